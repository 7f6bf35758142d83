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
        Self {
            line: text[..begin].matches('\n').count() + 1,
            text: line.to_owned(),
            column: text[begin..start].chars().count(),
            width: text[start..end].lines().next().unwrap_or_default().chars().count().max(1),
        }
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
}
