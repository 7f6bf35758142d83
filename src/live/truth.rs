//! What our own server says of a call beside its answer: what really happened to it.

use fake_telegram::api::{Answer, CallId, Decision, LimitIndex, Method, Truth};
use fake_telegram::hint::RetryHint;
use fake_telegram::limits::Limit;
use fake_telegram::time::{Duration, Time};
use serde::Deserialize;

/// The request header with a call's number in the run; whoever sends it is told the truth.
pub(super) const CALL: &str = "x-floodlab-call";
/// The request header with the draw that decides which fault hits the call.
pub(super) const DRAW: &str = "x-floodlab-draw";
/// The response header with the truth, a JSON object.
pub(super) const TRUTH: &str = "x-floodlab-truth";

/// The server's word on a call.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Word {
    truth: Kind,
    /// The name of the limit that refused it.
    #[serde(default)]
    limit: Option<String>,
    #[serde(default)]
    wait_us: u64,
    #[serde(default)]
    in_penalty: bool,
    #[serde(default)]
    taken: u32,
    /// When it was decided, on the server's clock.
    pub(super) at_us: u64,
}

/// The journal's answer for one call.
#[derive(Debug, Deserialize)]
pub(super) struct Journal {
    pub(super) entries: Vec<Word>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Delivered,
    Replayed,
    Refused,
    Dead,
    Unknown,
    Nothing,
}

/// What happened, and whether a limit was named that the profile does not have.
pub(super) type Told = (Decision, bool);

/// What the server's word comes to, at an instant of the run.
pub(super) fn told(word: &Word, at: Time, answer: Answer, limits: &[Limit]) -> Told {
    let mut elsewhere = false;
    let truth = match word.truth {
        Kind::Delivered => Truth::Delivered,
        Kind::Replayed => Truth::Replayed,
        Kind::Dead => Truth::Dead,
        Kind::Unknown => Truth::Unknown,
        Kind::Nothing => Truth::Nothing,
        Kind::Refused => {
            let named = limits.iter().position(|limit| Some(&limit.name) == word.limit.as_ref());
            elsewhere = named.is_none();
            refused(named.unwrap_or(0), Duration::from_micros(word.wait_us), limits)
        }
    };
    let Word { in_penalty, taken, .. } = *word;
    (Decision { call: CallId(0), at, answer, truth, in_penalty, taken }, elsewhere)
}

/// What an answer comes to where nobody tells the truth.
pub(super) fn believed(at: Time, answer: Answer, method: Method, limits: &[Limit]) -> Told {
    let truth = match answer {
        Answer::Message { .. } => Truth::Delivered,
        Answer::TooManyRequests { hint } => {
            // A date or nothing says no less than a second.
            let seconds = if let RetryHint::Seconds(seconds) = hint { seconds } else { 1 };
            refused(0, Duration::from_secs(seconds.into()), limits)
        }
        Answer::Forbidden(_) => Truth::Dead,
        Answer::ChatNotFound => Truth::Unknown,
        _ => Truth::Nothing,
    };
    let wide = limits.iter().find(|limit| limit.is_token_wide());
    let spends = truth == Truth::Delivered && method.spends();
    let taken = wide.filter(|_| spends).map_or(0, |limit| limit.cost);
    let elsewhere = matches!(answer, Answer::TooManyRequests { .. });
    (Decision { call: CallId(0), at, answer, truth, in_penalty: false, taken }, elsewhere)
}

/// A refusal by a limit; nothing at all where there are no limits to count it for.
fn refused(limit: usize, wait: Duration, limits: &[Limit]) -> Truth {
    if limits.is_empty() { Truth::Nothing } else { Truth::Refused { limit: LimitIndex(limit as u8), wait } }
}

#[cfg(test)]
mod tests {
    use fake_telegram::profile::Profile;

    use super::*;

    fn word(json: &str) -> Word {
        serde_json::from_str(json).expect("a word")
    }

    #[test]
    fn a_word_is_a_decision() {
        let limits = Profile::telegram().limits;
        let at = Time::from_secs(9);
        let answer = Answer::TooManyRequests { hint: RetryHint::Seconds(3) };
        let refused =
            r#"{"truth":"refused","limit":"group","wait_us":2500000,"in_penalty":true,"taken":0,"at_us":5}"#;
        let (decision, elsewhere) = told(&word(refused), at, answer, &limits);
        let group = limits.iter().position(|limit| limit.name == "group").expect("telegram has groups");
        let wait = Duration::from_millis(2_500);
        assert_eq!(decision.truth, Truth::Refused { limit: LimitIndex(group as u8), wait });
        assert!(decision.in_penalty && !elsewhere && decision.at == at);

        let stranger = r#"{"truth":"refused","limit":"moon","at_us":5}"#;
        let (decision, elsewhere) = told(&word(stranger), at, answer, &limits);
        assert!(matches!(decision.truth, Truth::Refused { limit: LimitIndex(0), .. }) && elsewhere);
        assert_eq!(told(&word(stranger), at, answer, &[]).0.truth, Truth::Nothing);

        let lost = word(r#"{"truth":"delivered","taken":1,"at_us":5}"#);
        let (decision, _) = told(&lost, at, Answer::TimedOut, &limits);
        assert_eq!((decision.truth, decision.taken), (Truth::Delivered, 1));
    }

    #[test]
    fn without_a_word_the_answer_is_believed() {
        let limits = Profile::telegram().limits;
        let believed = |answer, limits| believed(Time::ZERO, answer, Method::SendMessage, limits).0;
        let truth = |answer| believed(answer, &limits).truth;
        assert_eq!(truth(Answer::Message { message_id: 1 }), Truth::Delivered);
        assert_eq!(truth(Answer::TimedOut), Truth::Nothing);
        assert_eq!(truth(Answer::ServerError { status: 502, page: false }), Truth::Nothing);
        assert_eq!(truth(Answer::ChatNotFound), Truth::Unknown);
        let refused = Answer::TooManyRequests { hint: RetryHint::Absent };
        assert!(matches!(truth(refused), Truth::Refused { limit: LimitIndex(0), .. }));
        assert_eq!(believed(refused, &[]).truth, Truth::Nothing);
        assert_eq!(believed(Answer::Message { message_id: 1 }, &limits).taken, 1);
    }
}
