//! How long a text is.

use crate::http::params::Params;

use super::Failure;

/// At most so many UTF-16 units in a text (core.telegram.org/bots/api#sendmessage).
const TEXT_MAX: usize = 4_096;
/// At most so many in a caption (core.telegram.org/bots/api#sendphoto).
const CAPTION_MAX: usize = 1_024;

/// How a text says what is bold in it.
#[derive(Clone, Copy)]
enum Markup {
    None,
    Markdown,
    Html,
}

/// Checks the text of a message.
///
/// # Errors
///
/// It is absent, empty, too long, or in a markup that nobody knows.
pub(super) fn check_text(params: &Params) -> Result<(), Failure> {
    let markup = markup(params)?;
    let text = params.text("text").unwrap_or_default();
    if text.is_empty() {
        return Err(Failure::bad_request("Bad Request: message text is empty"));
    }
    if text.trim().is_empty() {
        return Err(Failure::bad_request("Bad Request: text must be non-empty"));
    }
    if is_longer(&text, markup, TEXT_MAX) {
        return Err(Failure::bad_request("Bad Request: message is too long"));
    }
    Ok(())
}

/// Checks the caption of a file, if there is one.
///
/// # Errors
///
/// It is too long, or in a markup that nobody knows.
pub(super) fn check_caption(params: &Params) -> Result<(), Failure> {
    let markup = markup(params)?;
    if params.text("caption").is_some_and(|caption| is_longer(&caption, markup, CAPTION_MAX)) {
        return Err(Failure::bad_request("Bad Request: message caption is too long"));
    }
    Ok(())
}

fn markup(params: &Params) -> Result<Markup, Failure> {
    let Some(mode) = params.text("parse_mode") else { return Ok(Markup::None) };
    match mode.to_ascii_lowercase().as_str() {
        "" | "none" => Ok(Markup::None),
        "markdown" | "markdownv2" => Ok(Markup::Markdown),
        "html" => Ok(Markup::Html),
        _ => Err(Failure::bad_request("Bad Request: unsupported parse_mode")),
    }
}

/// Whether more than `max` UTF-16 units of a text are left once its markup is taken out. Of texts with markup the
/// shortest reading counts: none is refused that would pass.
fn is_longer(text: &str, markup: Markup, max: usize) -> bool {
    // No text has more units than bytes.
    if text.len() <= max {
        return false;
    }
    let mut units = 0;
    let mut rest = text;
    while let Some(char) = rest.chars().next() {
        let (skip, counts) = match (markup, char) {
            (Markup::Html, '<') => (rest.find('>').map_or(1, |end| end + 1), 0),
            (Markup::Html, '&') => {
                (rest.find(';').filter(|end| *end <= ENTITY_MAX).map_or(1, |end| end + 1), 1)
            }
            (Markup::Markdown, ']') if rest.starts_with("](") => (rest.find(')').map_or(1, |end| end + 1), 0),
            (Markup::Markdown, '*' | '_' | '~' | '|' | '`' | '[' | ']' | '>' | '\\') => (1, 0),
            _ => (char.len_utf8(), char.len_utf16()),
        };
        units += counts;
        rest = &rest[skip..];
    }
    units > max
}

/// `&quot;` and `&#x10FFFF;` are the longest (core.telegram.org/bots/api#html-style).
const ENTITY_MAX: usize = 9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_is_counted_in_utf_16() {
        assert!(!is_longer(&"я".repeat(4_096), Markup::None, 4_096));
        assert!(is_longer(&"я".repeat(4_097), Markup::None, 4_096));
        // Outside of the basic plane: two units each.
        assert!(!is_longer(&"😀".repeat(2_048), Markup::None, 4_096));
        assert!(is_longer(&"😀".repeat(2_049), Markup::None, 4_096));
    }

    #[test]
    fn markup_does_not_count() {
        assert!(!is_longer("<b>ab</b>&amp;", Markup::Html, 3));
        assert!(is_longer("<b>ab</b>&amp;c", Markup::Html, 3));
        assert!(is_longer("<b>ab</b>", Markup::None, 3));
        assert!(!is_longer("*ab* [c](http://example.com/)", Markup::Markdown, 4));
        assert!(is_longer("*ab* [c](http://example.com/)d", Markup::Markdown, 4));
        assert!(is_longer("a < b & c", Markup::Html, 3), "broken markup does not loop");
    }
}
