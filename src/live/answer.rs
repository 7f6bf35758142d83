//! What a strict client makes of an HTTP answer. Total: a server may answer whatever it likes.

use fake_telegram::api::{Answer, Forbidden, Garbage, Method};
use fake_telegram::hint::RetryHint;
use serde_json::Value;

use super::clock::Clock;

/// The answer that an HTTP answer to a call of `method` stands for.
///
/// What is none of the Bot API's answers is what it does to a client: a redirect is not followed, and declines for good
/// like any other 3xx or 4xx; any 2xx is a 200.
pub(super) fn answer(
    method: Method,
    status: u16,
    retry_after: Option<&str>,
    body: &[u8],
    clock: &Clock,
) -> Answer {
    match status {
        200..300 => accepted(method, body),
        403 => Answer::Forbidden(forbidden(&description(body))),
        400 if description(body).contains("chat not found") => Answer::ChatNotFound,
        429 => Answer::TooManyRequests { hint: hint(retry_after, body, clock) },
        500.. => Answer::ServerError { status, page: body.trim_ascii_start().starts_with(b"<") },
        _ => Answer::Rejected { status },
    }
}

fn accepted(method: Method, body: &[u8]) -> Answer {
    let body = body.trim_ascii();
    if body.is_empty() {
        return Answer::Garbage(Garbage::Empty);
    }
    let value: Value = match serde_json::from_slice(body) {
        Ok(value) => value,
        Err(error) if error.is_eof() => return Answer::Garbage(Garbage::Truncated),
        // A page, or a word of some proxy.
        Err(_) => return Answer::Garbage(Garbage::Html),
    };
    let result = (value["ok"] == true).then(|| &value["result"]);
    let message_id = match result {
        // A list is the wrong shape for what sends.
        Some(Value::Array(_)) => return Answer::Garbage(Garbage::CutList),
        Some(result) if method.spends() => result["message_id"].as_u64(),
        // What sends nothing has no message to show.
        Some(result) => (!result.is_null()).then_some(1),
        None => None,
    };
    match message_id.and_then(|id| u32::try_from(id).ok()) {
        Some(message_id) => Answer::Message { message_id },
        None => Answer::Garbage(Garbage::NoMessageId),
    }
}

/// What a 429 says of the wait: Telegram's own parameter, else the header in either of its forms (RFC 9110, 10.2.3).
fn hint(retry_after: Option<&str>, body: &[u8], clock: &Clock) -> RetryHint {
    let narrow = |seconds| RetryHint::Seconds(u32::try_from(seconds).unwrap_or(u32::MAX));
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    if let Some(seconds) = value["parameters"]["retry_after"].as_u64() {
        return narrow(seconds);
    }
    let Some(text) = retry_after.map(str::trim) else { return RetryHint::Absent };
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than fit say: for ever.
        return narrow(text.parse().unwrap_or(u64::MAX));
    }
    httpdate::parse_http_date(text).map_or(RetryHint::Absent, |date| clock.hint(date))
}

fn description(body: &[u8]) -> String {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    value["description"].as_str().unwrap_or_default().to_ascii_lowercase()
}

/// Why a 403: by the API's texts.
fn forbidden(description: &str) -> Forbidden {
    let says = |word| description.contains(word);
    if says("deactivated") {
        Forbidden::Deactivated
    } else if says("kicked") || says("not a member") {
        Forbidden::Kicked
    } else {
        Forbidden::Blocked
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const GONE: Answer = Answer::Garbage(Garbage::NoMessageId);

    fn read(status: u16, body: &str) -> Answer {
        answer(Method::SendMessage, status, None, body.as_bytes(), &Clock::start())
    }

    /// What the model's answers say, this reads out of them again.
    #[test]
    fn every_answer_of_the_model_reads_back() {
        let answers = [
            Answer::Message { message_id: 77 },
            Answer::TooManyRequests { hint: RetryHint::Seconds(35) },
            Answer::TooManyRequests { hint: RetryHint::Absent },
            Answer::Forbidden(Forbidden::Blocked),
            Answer::Forbidden(Forbidden::Deactivated),
            Answer::Forbidden(Forbidden::Kicked),
            Answer::ChatNotFound,
            Answer::Rejected { status: 401 },
            Answer::Rejected { status: 404 },
            Answer::ServerError { status: 500, page: false },
            Answer::ServerError { status: 502, page: true },
            Answer::Garbage(Garbage::Html),
            Answer::Garbage(Garbage::Empty),
            Answer::Garbage(Garbage::Truncated),
            GONE,
            Answer::Garbage(Garbage::CutList),
        ];
        for expected in answers {
            let status = expected.status().expect("it is an answer");
            assert_eq!(read(status, &expected.body()), expected);
        }
    }

    #[test]
    fn a_message_is_true_and_has_a_number() {
        for body in [
            r#"{"ok":false,"result":{"message_id":1}}"#,
            r#"{"ok":"true","result":{"message_id":1}}"#,
            r#"{"ok":true,"result":{"message_id":"1"}}"#,
            r#"{"ok":true,"result":{"message_id":1.5}}"#,
            r#"{"ok":true,"result":{"message_id":99999999999}}"#,
            r#"{"ok":true,"result":true}"#,
            r#"{"ok":true}"#,
            "[]",
            "7",
        ] {
            assert_eq!(read(200, body), GONE, "{body}");
        }
        assert_eq!(read(200, "\r\n"), Answer::Garbage(Garbage::Empty));
        assert_eq!(read(200, "OK"), Answer::Garbage(Garbage::Html));
        assert_eq!(read(204, ""), Answer::Garbage(Garbage::Empty));
        let typing =
            answer(Method::SendChatAction, 200, None, br#"{"ok":true,"result":true}"#, &Clock::start());
        assert_eq!(typing, Answer::Message { message_id: 1 });
    }

    #[test]
    fn other_texts_are_rejections_and_redirects_are_not_followed() {
        assert_eq!(
            read(400, r#"{"ok":false,"description":"Bad Request: message is too long"}"#),
            Answer::Rejected { status: 400 }
        );
        for status in [301, 302, 304, 307, 409, 413] {
            assert_eq!(read(status, "<html>"), Answer::Rejected { status });
        }
        assert_eq!(read(599, ""), Answer::ServerError { status: 599, page: false });
    }

    /// RFC 9110, 10.2.3: seconds or a date.
    #[test]
    fn the_body_speaks_before_the_header() {
        let clock = Clock::start();
        let hint = |header, body: &str| {
            let Answer::TooManyRequests { hint } =
                answer(Method::SendMessage, 429, header, body.as_bytes(), &clock)
            else {
                panic!("a 429 is one")
            };
            hint
        };
        assert_eq!(hint(Some("9"), r#"{"parameters":{"retry_after":4}}"#), RetryHint::Seconds(4));
        assert_eq!(hint(Some(" 9 "), "<html>"), RetryHint::Seconds(9));
        assert_eq!(hint(Some("99999999999999999999999"), ""), RetryHint::Seconds(u32::MAX));
        for nothing in [None, Some(""), Some("soon"), Some("-1"), Some("1.5")] {
            assert_eq!(hint(nothing, "{}"), RetryHint::Absent);
        }
        #[expect(clippy::disallowed_methods, reason = "a date is of the wall")]
        let now = std::time::SystemTime::now();
        // A date has whole seconds: the next minute's is 59 to 60 s away, rounded up.
        let minute = httpdate::fmt_http_date(now + Duration::from_secs(60));
        assert!(matches!(hint(Some(&minute), ""), RetryHint::Date(59..=60)));
        assert_eq!(hint(Some("Sun, 06 Nov 1994 08:49:37 GMT"), ""), RetryHint::Date(0), "long over");
        assert_eq!(hint(Some("Sunday, 06-Nov-94 08:49:37 GMT"), ""), RetryHint::Date(0), "the obsolete form");
    }

    #[test]
    fn a_403_says_why() {
        let why = |text: &str| read(403, &format!(r#"{{"ok":false,"description":"{text}"}}"#));
        assert_eq!(
            why("Forbidden: bot is not a member of the channel chat"),
            Answer::Forbidden(Forbidden::Kicked)
        );
        assert_eq!(
            why("Forbidden: bot can't initiate conversation with a user"),
            Answer::Forbidden(Forbidden::Blocked)
        );
    }
}
