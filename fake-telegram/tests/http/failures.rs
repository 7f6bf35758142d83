//! What the server answers when it fails.

use serde_json::json;

use crate::fake::Fake;

/// Texts as bots have logged them: telegram.md 2.3; 173 bytes are those of yagop/node-telegram-bot-api#573, and the reason
/// of a 504 has five letters more, twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_fails_with_json_and_its_proxy_with_a_page() {
    let fake = Fake::frozen();
    for (kind, status, content_type, length) in
        [("502-html", 502, "text/html", 173), ("504", 504, "text/html", 183)]
    {
        fake.tell("faults", json!({ "kind": kind, "rate": "100%" })).await;
        let answer = fake.call("sendMessage", json!({ "chat_id": 1, "text": "x" })).await;
        assert_eq!((answer.status, answer.text.len()), (status, length), "{}", answer.text);
        assert_eq!(answer.headers["content-type"], content_type);
        fake.admin(reqwest::Method::DELETE, "faults", None).await.ok();
    }
    for (kind, status, description) in
        [("500", 500, "Internal Server Error: request aborted"), ("502", 502, "Bad Gateway")]
    {
        fake.tell("faults", json!({ "kind": kind, "rate": "100%" })).await;
        let answer = fake.call("sendMessage", json!({ "chat_id": 1, "text": "x" })).await;
        assert_eq!(answer.failure(), (status, description));
        assert_eq!(answer.headers["content-type"], "application/json");
        fake.admin(reqwest::Method::DELETE, "faults", None).await.ok();
    }
    assert_eq!(fake.look("journal/count?outcome=failed").await["count"], 4);
}
