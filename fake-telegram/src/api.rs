//! What crosses the wire between a client and the model: requests in, answers out, and beside each answer the truth.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hint::RetryHint;
use crate::time::{Duration, Time};

/// A bot's token, as a dense index: 0 is the first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenIndex(pub u16);

/// A chat, as a dense index into the declared chats; an index beyond them is an unknown chat (400).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChatIndex(pub u32);

/// A limit of the profile, as an index into its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LimitIndex(pub u8);

/// A call, named by whoever makes it; the model hands it back with the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u32);

/// What kind of chat it is; limits differ by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChatKind {
    /// One user.
    Private,
    /// A group or supergroup.
    Group,
    /// A channel.
    Channel,
}

/// A method, as far as limits tell methods apart: each stands for its whole family (`telegram.md` 5.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Method {
    /// Sends a text, or what is sent like one: a poll, a place, a contact.
    SendMessage,
    /// Sends a photo or another file: a chain of its own beside texts (telegram.md 3.2; td `ChainId.h`).
    SendPhoto,
    /// Edits a message: a third chain.
    EditMessageText,
    /// Searches for what is on offer (a Steam-like market: incident T9). A [question](Method::is_question).
    Search,
    /// Asks for the price of an item. A [question](Method::is_question).
    GetPrice,
    /// Forwards or copies messages.
    ForwardMessage,
    /// Tells that the bot is typing, or shows a draft. [Spends](Method::spends) nothing but what is limited for it.
    SendChatAction,
    /// Changes a forum topic or a chat. Spends nothing but what is limited for it.
    EditForumTopic,
    /// Everything else: reads, deletes, answers to buttons. Spends nothing but what is limited for it.
    GetMe,
}

/// One call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Whose budget it spends.
    pub token: TokenIndex,
    /// Where to.
    pub chat: ChatIndex,
    /// What for.
    pub method: Method,
    /// The client's key: calls of one token with the same key are one call, to a server that knows such keys
    /// ([`Profile::idempotency_keys`](crate::profile::Profile::idempotency_keys)). Telegram does not.
    pub idempotency: Option<u32>,
    /// How many messages it sends, at least 1: an album takes as many tokens as it has pictures, of each limit at most
    /// what that ever holds (`telegram.md` 3.5, 5.5; td counts the items too).
    pub items: u16,
}

/// The randomness of one call, drawn by its caller from (purpose, message, attempt), so that it is the same under
/// every design.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draws {
    /// Decides which fault hits the call, uniform over all `u32`.
    pub fault: u32,
}

/// What the client gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Answer {
    /// 200 with a message and its id; to a question, with what there is to tell.
    Message {
        /// The id in its chat, from 1.
        message_id: u32,
    },
    /// 200 with an empty list: what a question gets of which there is nothing to tell (incident S14).
    Nothing,
    /// 429.
    TooManyRequests {
        /// What it says about the wait.
        hint: RetryHint,
    },
    /// 403.
    Forbidden(Forbidden),
    /// 400: the chat is unknown.
    ChatNotFound,
    /// Another answer by which the server declines for good: 400, 401, 404, a redirect. Never made by the model.
    Rejected {
        /// 300 to 499.
        status: u16,
    },
    /// 5xx.
    ServerError {
        /// 500, 502 or 504.
        status: u16,
        /// Whether a proxy in front says so, with a page, not the server with JSON.
        page: bool,
    },
    /// 200, and the body is not what it should be.
    Garbage(Garbage),
    /// No answer: the connection was reset.
    ConnectionLost,
    /// No answer within the client's time-out. Made by the wire, never by the model.
    TimedOut,
    /// The call never left: no connection, or one that was closed before the request was sent. Nothing can have
    /// happened. Made by the wire, never by the model.
    Unreachable,
}

/// Why a chat cannot be written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Forbidden {
    /// The user blocked the bot: a *remote* 403, found out by a real upstream call, which costs budget.
    Blocked,
    /// The user's account is gone: remote.
    Deactivated,
    /// The bot was removed from the group or channel: *local*, answered from the server's cache, costs nothing.
    Kicked,
}

/// A 200 whose body is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Garbage {
    /// An HTML page.
    Html,
    /// Nothing.
    Empty,
    /// JSON that ends in the middle.
    Truncated,
    /// `ok: true` and a result without `message_id`.
    NoMessageId,
    /// `ok: true` and a list that ends, without a word, after its first 20 entries (incident T7). As the answer to a
    /// question it looks perfect; to a send it is a result of the wrong shape.
    CutList,
}

/// What really happened to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Truth {
    /// The message is in the chat; or whoever asked a question has its answer.
    Delivered,
    /// Delivered before under the same key: nothing happened.
    Replayed,
    /// A limit refused it: nothing happened.
    Refused {
        /// The limit; of several the one with the longest wait.
        limit: LimitIndex,
        /// Until its budget or penalty frees, before rounding.
        wait: Duration,
    },
    /// The chat cannot receive.
    Dead,
    /// There is no such chat.
    Unknown,
    /// A fault ate it before it had any effect.
    Nothing,
}

/// The model's word on one call: what the client gets, and what happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// Which call.
    pub call: CallId,
    /// When the effect happened (or did not).
    pub at: Time,
    /// What the client gets.
    pub answer: Answer,
    /// What happened.
    pub truth: Truth,
    /// Whether the call *arrived* while a penalty of a limit that applies to it ran.
    pub in_penalty: bool,
    /// Tokens taken of the token-wide limit, whole tokens (the cost of the call, or 0).
    pub taken: u32,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::SendMessage,
        Self::SendPhoto,
        Self::EditMessageText,
        Self::Search,
        Self::GetPrice,
        Self::ForwardMessage,
        Self::SendChatAction,
        Self::EditForumTopic,
        Self::GetMe,
    ];

    /// Whether it asks instead of sending: its chat is what it asks about, and the answer may be
    /// [nothing](Answer::Nothing).
    #[inline]
    pub const fn is_question(self) -> bool {
        matches!(self, Self::Search | Self::GetPrice)
    }

    /// Whether it puts messages into a chat.
    #[inline]
    pub const fn is_send(self) -> bool {
        matches!(self, Self::SendMessage | Self::SendPhoto | Self::ForwardMessage)
    }

    /// Whether it spends the budgets of limits that name no methods.
    #[inline]
    pub const fn spends(self) -> bool {
        !matches!(self, Self::SendChatAction | Self::EditForumTopic | Self::GetMe)
    }
}

impl Answer {
    /// The HTTP status, or `None` where no answer came.
    pub const fn status(self) -> Option<u16> {
        Some(match self {
            Self::Message { .. } | Self::Nothing | Self::Garbage(_) => 200,
            Self::TooManyRequests { .. } => 429,
            Self::Forbidden(_) => 403,
            Self::ChatNotFound => 400,
            Self::Rejected { status } | Self::ServerError { status, .. } => status,
            Self::ConnectionLost | Self::TimedOut | Self::Unreachable => return None,
        })
    }

    /// How long a 429 asks a client to wait that reads it at `now`, and understands seconds and dates; `None` if it
    /// says nothing, or is no 429.
    pub const fn retry_after(self, now: Time) -> Option<Duration> {
        match self {
            Self::TooManyRequests { hint } => hint.wait(now),
            _ => None,
        }
    }

    /// The header `Retry-After`, as [`RetryHint::header`] writes it.
    pub fn retry_after_header(self) -> Option<String> {
        match self {
            Self::TooManyRequests { hint } => hint.header(),
            _ => None,
        }
    }

    /// The media type of the body.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::ServerError { page: true, .. } | Self::Garbage(Garbage::Html) => "text/html",
            _ => "application/json",
        }
    }

    /// The body, to the byte (shapes and texts: telegram.md 2.2, 2.3, `bot-api-errors.json`).
    pub fn body(self) -> String {
        match self {
            Self::Message { message_id } => {
                format!(r#"{{"ok":true,"result":{{"message_id":{message_id}}}}}"#)
            }
            Self::Nothing => r#"{"ok":true,"result":[]}"#.to_owned(),
            Self::TooManyRequests { hint: RetryHint::Seconds(seconds) } => format!(
                r#"{{"ok":false,"error_code":429,"description":"Too Many Requests: retry after {seconds}","parameters":{{"retry_after":{seconds}}}}}"#
            ),
            // Telegram always says seconds; who says a date says it in the header only.
            Self::TooManyRequests { .. } => error(429, "Too Many Requests"),
            Self::Forbidden(why) => error(403, why),
            Self::ChatNotFound => error(400, "Bad Request: chat not found"),
            Self::Rejected { status: 401 } => error(401, "Unauthorized"),
            Self::Rejected { status: 404 } => error(404, "Not Found"),
            Self::Rejected { status } => error(status, "Bad Request"),
            Self::ServerError { status, page: true } => page(status),
            Self::ServerError { status: 500, .. } => error(500, "Internal Server Error: request aborted"),
            Self::ServerError { status, .. } => error(status, reason(status)),
            Self::Garbage(Garbage::Html) => page(502),
            Self::Garbage(Garbage::Truncated) => r#"{"ok":true,"result":{"mess"#.to_owned(),
            Self::Garbage(Garbage::NoMessageId) => r#"{"ok":true,"result":{}}"#.to_owned(),
            Self::Garbage(Garbage::CutList) => {
                let entries: Vec<String> = (1..=CUT_LIST_LEN).map(|id| format!(r#"{{"id":{id}}}"#)).collect();
                format!(r#"{{"ok":true,"result":[{}]}}"#, entries.join(","))
            }
            Self::Garbage(Garbage::Empty) | Self::ConnectionLost | Self::TimedOut | Self::Unreachable => {
                String::new()
            }
        }
    }
}

/// How long a [cut list](Garbage::CutList) is (incident T7).
const CUT_LIST_LEN: usize = 20;

const fn reason(status: u16) -> &'static str {
    match status {
        500 => "Internal Server Error",
        504 => "Gateway Time-out",
        _ => "Bad Gateway",
    }
}

/// As nginx 1.12 writes it, which was seen in front of Telegram.
fn page(status: u16) -> String {
    let title = format!("{status} {}", reason(status));
    format!(
        "<html>\r\n<head><title>{title}</title></head>\r\n<body bgcolor=\"white\">\r\n<center><h1>{title}</h1></center>\r\n<hr><center>nginx/1.12.2</center>\r\n</body>\r\n</html>\r\n"
    )
}

fn error(code: u16, description: impl fmt::Display) -> String {
    format!(r#"{{"ok":false,"error_code":{code},"description":"{description}"}}"#)
}

impl fmt::Display for Forbidden {
    /// The API's own text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blocked => "Forbidden: bot was blocked by the user",
            Self::Deactivated => "Forbidden: user is deactivated",
            Self::Kicked => "Forbidden: bot was kicked from the group chat",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The body of telegram.md 2.2, word for word.
    #[test]
    fn a_429_has_the_documented_body() {
        let answer = Answer::TooManyRequests { hint: RetryHint::Seconds(35) };
        assert_eq!(answer.status(), Some(429));
        assert_eq!(
            answer.body(),
            r#"{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 35","parameters":{"retry_after":35}}"#
        );
        assert_eq!(answer.retry_after_header().as_deref(), Some("35"));
        assert_eq!(answer.retry_after(Time::from_secs(7)), Some(Duration::from_secs(35)));
    }

    #[test]
    fn a_429_without_seconds_has_no_parameters() {
        for hint in [RetryHint::Date(90), RetryHint::Absent] {
            let answer = Answer::TooManyRequests { hint };
            assert_eq!(answer.body(), r#"{"ok":false,"error_code":429,"description":"Too Many Requests"}"#);
            assert_eq!(answer.retry_after_header(), hint.header());
        }
        assert_eq!(Answer::ChatNotFound.retry_after_header(), None);
    }

    /// telegram.md 2.3. The page of a 502 has 173 bytes (yagop/node-telegram-bot-api#573), that of a 504 twice the five
    /// letters more that its reason has.
    #[test]
    fn a_server_fails_as_telegrams_does() {
        let body = |status, page| Answer::ServerError { status, page }.body();
        assert_eq!(
            body(500, false),
            r#"{"ok":false,"error_code":500,"description":"Internal Server Error: request aborted"}"#
        );
        assert_eq!(body(502, false), r#"{"ok":false,"error_code":502,"description":"Bad Gateway"}"#);
        assert_eq!((body(502, true).len(), body(504, true).len()), (173, 183));
        assert!(body(504, true).contains("<title>504 Gateway Time-out</title>"));
    }

    #[test]
    fn a_cut_list_is_sound_and_has_twenty_entries() {
        let answer = Answer::Garbage(Garbage::CutList);
        assert_eq!(answer.status(), Some(200));
        assert!(answer.body().starts_with(r#"{"ok":true,"result":[{"id":1},{"id":2},"#));
        let body: serde_json::Value = serde_json::from_str(&answer.body()).expect("JSON");
        assert_eq!(body["ok"], true);
        assert_eq!(body["result"].as_array().map(Vec::len), Some(20));
    }

    /// As TOML writes them; two of them ask (incident T9).
    #[test]
    fn two_methods_ask() {
        let names = Method::ALL.map(|method| serde_json::to_value(method).expect("a name"));
        let expected =
            ["sendMessage", "sendPhoto", "editMessageText", "search", "getPrice", "forwardMessage"];
        assert_eq!(names[..6], expected);
        assert_eq!(names[6..], ["sendChatAction", "editForumTopic", "getMe"]);
        let asking = Method::ALL.into_iter().filter(|method| method.is_question());
        assert_eq!(asking.collect::<Vec<_>>(), [Method::Search, Method::GetPrice]);
        assert_eq!(Answer::Nothing.status(), Some(200));
        assert_eq!(Answer::Nothing.body(), r#"{"ok":true,"result":[]}"#);
    }

    #[test]
    fn an_answer_is_eight_bytes() {
        assert_eq!(size_of::<Answer>(), 8);
    }
}
