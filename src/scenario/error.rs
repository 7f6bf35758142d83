//! What is wrong with a scenario, and where.

use std::ops::Range;
use std::path::Path;

/// What is wrong with a scenario: the file, the line, the key, the value and, where a name is nearly right, the right
/// one. One line; [`excerpt`](ScenarioError::excerpt) has the source beside it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {message}", excerpt.as_ref().map(|excerpt| format!(":{}", excerpt.line)).unwrap_or_default())]
pub struct ScenarioError {
    file: String,
    message: String,
    excerpt: Option<Excerpt>,
}

/// The line of the file that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// Its number, from 1.
    pub line: usize,
    /// Its text.
    pub text: String,
    /// How many characters stand before what is wrong.
    pub column: usize,
    /// How many characters are wrong, at least 1.
    pub width: usize,
}

impl ScenarioError {
    /// The error `message` about a whole file.
    pub(crate) fn of_file(file: &Path, message: impl Into<String>) -> Self {
        Self { file: file.display().to_string(), message: message.into(), excerpt: None }
    }

    /// The error `message` about a part of the file's text.
    pub(super) fn at(file: &Path, text: &str, span: Range<usize>, message: impl Into<String>) -> Self {
        let excerpt = Some(Excerpt::new(text, span));
        Self { excerpt, ..Self::of_file(file, message) }
    }

    /// The line that is wrong, if it is one.
    pub fn excerpt(&self) -> Option<&Excerpt> {
        self.excerpt.as_ref()
    }
}

impl Excerpt {
    fn new(text: &str, span: Range<usize>) -> Self {
        let start = text.floor_char_boundary(span.start.min(text.len()));
        let end = text.floor_char_boundary(span.end.clamp(start, text.len()));
        let begin = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line = text[begin..].lines().next().unwrap_or_default();
        let wrong = text[start..end].lines().next().unwrap_or_default();
        let (shown, secret) = mask(line);
        let shift = |at: usize| match &secret {
            Some(secret) if at >= secret.end => at - secret.len() + MASK.len(),
            Some(secret) if at > secret.start => secret.start,
            _ => at,
        };
        let (from, to) = (shift(start - begin), shift(start - begin + wrong.len()));
        let count = |bytes: Range<usize>| shown.get(bytes).unwrap_or_default().chars().count();
        Self {
            line: text[..begin].matches('\n').count() + 1,
            column: count(0..from),
            width: count(from..to).max(1),
            text: shown,
        }
    }
}

/// Instead of a secret.
const MASK: &str = "…";

/// The line without what may be a name and a password in an address, and where that stood.
fn mask(line: &str) -> (String, Option<Range<usize>>) {
    let begin = line.find("://").map(|scheme| scheme + "://".len());
    let secret = begin.and_then(|begin| Some(begin..begin + line[begin..].rfind('@')?));
    match secret {
        Some(secret) => (format!("{}{MASK}{}", &line[..secret.start], &line[secret.end..]), Some(secret)),
        None => (line.to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_one_line_whatever_the_span() {
        let text = "a = 1\nbü = [\n 2 ]\n";
        let check = |span, line, shown: &str, column, width| {
            assert_eq!(Excerpt::new(text, span), Excerpt { line, text: shown.to_owned(), column, width });
        };
        check(4..5, 1, "a = 1", 4, 1);
        check(6..9, 2, "bü = [", 0, 2);
        check(12..18, 2, "bü = [", 5, 1);
        check(99..99, 4, "", 0, 1);
    }

    #[test]
    fn an_excerpt_shows_no_password() {
        let text = "store = { url = 'rediss://me:s/@#é@host/1', x = 1 } # bü\n";
        let shown = "store = { url = 'rediss://…@host/1', x = 1 } # bü";
        let check = |part: &str, marked: &str| {
            let at = text.find(part).expect("it is there");
            let Excerpt { text, column, width, .. } = Excerpt::new(text, at..at + part.len());
            assert_eq!(text, shown);
            assert_eq!(shown.chars().skip(column).take(width).collect::<String>(), marked, "{part}");
        };
        check("'rediss://me:s/@#é@host/1'", "'rediss://…@host/1'");
        check("x = 1", "x = 1");
        check("url", "url");
        check("bü", "bü");
        check("s/@", "…");
    }
}
