//! Results, each written once: for its client, for its chat, and for who repeats the call.

use bytes::Bytes;
use serde::Serialize;

/// A result of a call, as its client gets it (`telegram.md` 2.2). A copy shares its memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written(Bytes);

const HEAD: &str = r#"{"ok":true,"result":"#;
const TAIL: &str = "}";
/// Room for a message with a short text.
const USUAL: usize = 512;

impl Written {
    /// Writes a result.
    ///
    /// # Panics
    /// If it cannot be written as JSON: ours have text keys and no failing parts.
    pub fn new(result: &impl Serialize) -> Self {
        Self::with(|body| serde_json::to_writer(body, result).expect("text keys and no failing parts"))
    }

    /// Several results as one list.
    pub fn list(results: &[Self]) -> Self {
        Self::with(|body| {
            for (index, result) in results.iter().enumerate() {
                body.push(if index == 0 { b'[' } else { b',' });
                body.extend_from_slice(&result.result());
            }
            body.extend_from_slice(if results.is_empty() { b"[]" } else { b"]" });
        })
    }

    fn with(write: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut draft = Vec::with_capacity(USUAL);
        draft.extend_from_slice(HEAD.as_bytes());
        write(&mut draft);
        draft.extend_from_slice(TAIL.as_bytes());
        // It may be kept for long, and takes no more than it needs.
        Self(Bytes::copy_from_slice(&draft))
    }

    /// The answer: the result in its envelope.
    pub fn into_body(self) -> Bytes {
        self.0
    }

    /// The JSON of the result alone.
    pub fn result(&self) -> Bytes {
        self.0.slice(HEAD.len()..self.0.len() - TAIL.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_in_its_envelope_and_alone() {
        let [one, two] = [1, 2].map(|number| Written::new(&[number]));
        assert_eq!(one.result(), "[1]");
        assert_eq!(one.clone().into_body(), r#"{"ok":true,"result":[1]}"#);
        assert_eq!(Written::list(&[one, two]), Written::new(&[[1], [2]]));
        assert_eq!(Written::list(&[]), Written::new(&[(); 0]));
    }
}
