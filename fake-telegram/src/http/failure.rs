//! An error of the Bot API.

use std::borrow::Cow;

/// An error answer: its code, which is the HTTP status too, and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Its code.
    pub code: u16,
    /// Its text.
    pub description: Cow<'static, str>,
    /// What a 429 says of the wait, in whole seconds of the client's time.
    pub retry_after: Option<u32>,
}

impl Failure {
    /// An error without parameters.
    pub fn new(code: u16, description: impl Into<Cow<'static, str>>) -> Self {
        Self { code, description: description.into(), retry_after: None }
    }

    /// 429, to be asked again after so many seconds.
    pub fn too_many_requests(seconds: u32) -> Self {
        let description = format!("Too Many Requests: retry after {seconds}").into();
        Self { code: 429, description, retry_after: Some(seconds) }
    }
}
