//! Why a call fails, as its client is told.

use std::borrow::Cow;

/// An error of the Bot API (`telegram.md` 2.2).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code} {description}")]
pub struct Failure {
    /// `error_code`, and the HTTP status.
    pub code: u16,
    /// The API's own text; clients compare it.
    pub description: Cow<'static, str>,
    /// `parameters.retry_after`, in seconds, at least 1; with 429 only.
    pub retry_after: Option<u32>,
}

impl Failure {
    /// A failure that asks for no wait.
    pub fn new(code: u16, description: impl Into<Cow<'static, str>>) -> Self {
        Self { code, description: description.into(), retry_after: None }
    }

    /// A 400; the text begins with `Bad Request: `.
    pub(super) const fn bad_request(description: &'static str) -> Self {
        Self { code: 400, description: Cow::Borrowed(description), retry_after: None }
    }

    /// A 429 that asks to wait for `seconds`, at least 1.
    pub fn retry_after(seconds: u32) -> Self {
        let seconds = seconds.max(1);
        let description = format!("Too Many Requests: retry after {seconds}").into();
        Self { code: 429, description, retry_after: Some(seconds) }
    }
}
