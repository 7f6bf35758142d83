//! Uploads and downloads.

use fake_telegram::http::options::Options;
use serde_json::json;

use crate::fake::{Answer, BOT, Fake};

const BOUNDARY: &str = "----floodlab";

/// A multipart body of texts and files.
fn multipart(texts: &[(&str, &str)], files: &[(&str, &str, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    let mut part = |disposition: String, content: &[u8]| {
        body.extend_from_slice(
            format!("--{BOUNDARY}\r\nContent-Disposition: form-data; {disposition}\r\n\r\n").as_bytes(),
        );
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    };
    for (name, text) in texts {
        part(format!("name=\"{name}\""), text.as_bytes());
    }
    for (name, file_name, content) in files {
        part(format!("name=\"{name}\"; filename=\"{file_name}\""), content);
    }
    body.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
    body
}

async fn upload(fake: &Fake, method: &str, texts: &[(&str, &str)], files: &[(&str, &str, &[u8])]) -> Answer {
    let request = fake.client().post(format!("{}/bot{BOT}/{method}", fake.base()));
    let request = request.header("content-type", format!("multipart/form-data; boundary={BOUNDARY}"));
    Answer::of(request.body(multipart(texts, files)).send().await.expect("an answer")).await
}

async fn download(fake: &Fake, token: &str, file_id: &str) -> Vec<u8> {
    let file = fake.call_by(token, "getFile", json!({ "file_id": file_id })).await;
    let path = file.result()["file_path"].as_str().expect("a path").to_owned();
    let response = fake.client().get(format!("{}/file/bot{token}/{path}", fake.base())).send().await;
    let response = response.expect("an answer");
    assert_eq!(response.status(), 200);
    response.bytes().await.expect("a whole body").to_vec()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_uploaded_is_downloaded() {
    let fake = Fake::frozen();
    // Every byte there is, and what looks like a boundary.
    let content: Vec<u8> = (0..=255_u8).cycle().take(300_000).chain(*b"\r\n--floodlab\r\n").collect();
    let sent = upload(
        &fake,
        "sendDocument",
        &[("chat_id", "7001"), ("caption", "all bytes")],
        &[("document", "all.bin", &content)],
    )
    .await;
    let document = &sent.result()["document"];
    assert_eq!((&document["file_name"], &document["file_size"]), (&json!("all.bin"), &json!(content.len())));
    assert_eq!(sent.result()["caption"], "all bytes");
    let id = document["file_id"].as_str().expect("an id");
    assert_eq!(download(&fake, BOT, id).await, content);
    // The id sends it again.
    let again = fake.call("sendDocument", json!({ "chat_id": 7002, "document": id })).await;
    let id = again.result()["document"]["file_id"].as_str().expect("an id");
    assert_eq!(download(&fake, BOT, id).await, content);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_album_names_its_parts() {
    let fake = Fake::frozen();
    let media = json!([
        { "type": "photo", "media": "attach://first", "caption": "one" },
        { "type": "photo", "media": "attach://second" },
    ]);
    let texts = [("chat_id", "-5001"), ("media", &media.to_string())];
    let files = [("first", "1.jpg", &b"one"[..]), ("second", "2.jpg", &b"two"[..])];
    let sent = upload(&fake, "sendMediaGroup", &texts, &files).await;
    let messages = sent.result().as_array().expect("a list");
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0]["media_group_id"], messages[1]["media_group_id"]);
    for (message, content) in messages.iter().zip([b"one", b"two"]) {
        let sizes = message["photo"].as_array().expect("sizes");
        let id = sizes.last().expect("a size")["file_id"].as_str().expect("an id");
        assert_eq!(download(&fake, BOT, id).await, content);
    }
    // An album of two takes two of the twenty.
    for _ in 0..18 {
        fake.send(-5001, "x").await;
    }
    assert_eq!(fake.refused(-5001).await, 60);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_elses_files_are_there() {
    let fake = Fake::frozen();
    let sent = upload(&fake, "sendPhoto", &[("chat_id", "7001")], &[("photo", "p.jpg", b"secret")]).await;
    let id = sent.result()["photo"][0]["file_id"].as_str().expect("an id").to_owned();
    let other = "220000:AAother";
    let file = fake.call_by(other, "getFile", json!({ "file_id": id })).await;
    assert_eq!(file.failure(), (400, "Bad Request: invalid file_id"));
    let path = fake.call("getFile", json!({ "file_id": id })).await.result()["file_path"].clone();
    let path = path.as_str().expect("a path");
    for url in [
        format!("/file/bot{other}/{path}"),
        format!("/file/bot{BOT}/../{path}"),
        format!("/file/bot{BOT}/etc/passwd"),
    ] {
        let response = fake.client().get(format!("{}{url}", fake.base())).send().await.expect("an answer");
        assert_eq!(response.status(), 404, "{url}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_more_than_20_mb_are_not_told_and_of_more_than_50_not_taken() {
    let fake = Fake::with(Options { frozen: true, ..Options::default() });
    let big = vec![7; (20 << 20) + 1];
    let sent = upload(&fake, "sendDocument", &[("chat_id", "7001")], &[("document", "big", &big)]).await;
    let id = sent.result()["document"]["file_id"].clone();
    let file = fake.call("getFile", json!({ "file_id": id })).await;
    assert_eq!(file.failure(), (400, "Bad Request: file is too big"));
    let huge =
        format!("POST /bot{BOT}/sendDocument HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", 60 << 20);
    assert_eq!(fake.raw(huge.as_bytes()).await.statuses(), [413]);
}
