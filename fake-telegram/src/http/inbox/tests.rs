use serde_json::json;
use tokio::time::Instant;

use super::*;
use crate::time::Duration;

fn params(fields: &Value) -> Params {
    let mut params = Params::default();
    for (name, value) in fields.as_object().expect("an object") {
        params.set(name, value.clone());
    }
    params
}

/// An inbox whose clock stands.
fn frozen() -> (Arc<Inbox>, Arc<Clock>) {
    let clock = Arc::new(Clock::new(1, true));
    (Arc::new(Inbox::new(Arc::clone(&clock))), clock)
}

async fn poll(inbox: &Inbox, fields: Value) -> Result<Value, Failure> {
    inbox.get_updates(&params(&fields)).await
}

#[tokio::test(start_paused = true)]
async fn an_empty_poll_lasts_as_long_as_it_asked_for() {
    let (inbox, _) = frozen();
    let begun = Instant::now();
    assert_eq!(poll(&inbox, json!({ "timeout": 50 })).await, Ok(json!([])));
    assert_eq!(begun.elapsed().as_secs(), 50);
    let begun = Instant::now();
    assert_eq!(poll(&inbox, json!({ "offset": 1 })).await, Ok(json!([])));
    assert!(begun.elapsed().is_zero());
    assert_eq!(poll(&inbox, json!({ "offset": 1 })).await, Ok(json!([])));
    assert_eq!(begun.elapsed().as_secs(), 3, "the same once more is slowed");
}

#[tokio::test(start_paused = true)]
async fn a_poll_is_answered_as_soon_as_something_is_there() {
    let (inbox, _) = frozen();
    let begun = Instant::now();
    let (answer, ()) = tokio::join!(poll(&inbox, json!({ "timeout": 50 })), async {
        tokio::task::yield_now().await;
        inbox.push(Kind::ChatMember, json!({}));
        inbox.push(Kind::Message, json!({}));
    });
    assert_eq!(answer, Ok(json!([{ "update_id": 1, "message": {} }])));
    assert!(begun.elapsed().is_zero());
    assert_eq!(inbox.pending_and_dropped(), (1, 0));
    assert_eq!(poll(&inbox, json!({ "offset": 2 })).await, Ok(json!([])));
    assert_eq!(inbox.pending_and_dropped(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn the_older_of_two_polls_is_ended_at_once() {
    let (inbox, _) = frozen();
    let (older, newer, ()) =
        tokio::join!(poll(&inbox, json!({ "timeout": 50 })), poll(&inbox, json!({ "timeout": 50 })), async {
            tokio::task::yield_now().await;
            inbox.push(Kind::Message, json!({}));
        });
    assert_eq!(older.map_err(|failure| failure.code), Err(409));
    assert_eq!(newer, Ok(json!([{ "update_id": 1, "message": {} }])));
}

#[tokio::test(start_paused = true)]
async fn a_poll_whose_connection_is_closed_makes_no_conflict() {
    let (inbox, _) = frozen();
    let short = std::time::Duration::from_secs(1);
    assert!(tokio::time::timeout(short, poll(&inbox, json!({ "timeout": 50 }))).await.is_err());
    assert_eq!(poll(&inbox, json!({ "offset": 7, "timeout": 50 })).await, Ok(json!([])));
    // A conflict before would hold this one for 3 s on a clock that stands.
    inbox.set_webhook(&params(&json!({ "url": "https://a.b/" }))).expect("set");
    assert_eq!(poll(&inbox, json!({})).await.map_err(|failure| failure.code), Err(409));
}

#[tokio::test]
async fn a_second_conflict_is_held_by_the_servers_clock() {
    let (inbox, clock) = frozen();
    assert_eq!(inbox.set_webhook(&params(&json!({ "url": "https://a.b/" }))), Ok(Change::Set));
    assert_eq!(poll(&inbox, json!({})).await.map_err(|failure| failure.code), Err(409));
    let held = tokio::spawn({
        let inbox = Arc::clone(&inbox);
        async move { poll(&inbox, json!({})).await }
    });
    tokio::task::yield_now().await;
    clock.advance(Duration::from_millis(2_999));
    tokio::task::yield_now().await;
    assert!(!held.is_finished());
    clock.advance(Duration::from_millis(1));
    assert_eq!(held.await.expect("no panic").map_err(|failure| failure.code), Err(409));
}

#[tokio::test(start_paused = true)]
async fn a_webhook_ends_the_poll_and_a_reset_answers_it() {
    let (inbox, _) = frozen();
    let (answer, change) = tokio::join!(poll(&inbox, json!({ "timeout": 50 })), async {
        tokio::task::yield_now().await;
        inbox.set_webhook(&params(&json!({ "url": "https://a.b/" })))
    });
    assert_eq!(change.map(Change::description), Ok("Webhook was set"));
    let text = "Conflict: terminated by setWebhook request";
    assert_eq!(answer, Err(Failure::new(409, text)));
    assert_eq!(inbox.webhook_info()["url"], "https://a.b/");
    assert_eq!(inbox.delete_webhook(&Params::default()), Change::Deleted);
    assert_eq!(inbox.delete_webhook(&Params::default()), Change::AlreadyDeleted);
    let (answer, ()) = tokio::join!(poll(&inbox, json!({ "timeout": 50 })), async {
        tokio::task::yield_now().await;
        inbox.reset();
    });
    assert_eq!(answer, Ok(json!([])));
}
