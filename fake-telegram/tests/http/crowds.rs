//! Many at once, and the slow.

use std::time::{Duration, Instant};

use fake_telegram::http::options::Options;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::binary::Process;
use crate::fake::{BOT, Fake};

/// How many sockets this process may have, less some for others.
fn sockets() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap_or_default();
    let soft = line.split_whitespace().nth(3).and_then(|soft| soft.parse().ok());
    soft.unwrap_or(256_usize).saturating_sub(200)
}

/// The server is a process of its own, so that its sockets are not those of the clients.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_idle_connections_stop_nobody() {
    let process = Process::start(&["--frozen"]);
    let many = sockets().min(10_000);
    let mut idle = Vec::with_capacity(many);
    for _ in 0..many {
        idle.push(TcpStream::connect(process.addr).await.expect("there is room"));
    }
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let send = |chat: usize| {
        client.get(format!("http://{}/bot{BOT}/sendMessage?chat_id={chat}&text=x", process.addr)).send()
    };
    for chat in 1..=30 {
        assert_eq!(send(chat).await.expect("an answer").status(), 200);
    }
    // Whoever was idle is served as well.
    let mut last = idle.pop().expect("one of them");
    last.write_all(b"GET /__admin/health HTTP/1.0\r\n\r\n").await.expect("written");
    assert_eq!(crate::fake::read(last).await.statuses(), [200]);
    let state = client.get(format!("http://{}/__admin/state", process.addr)).send().await.expect("an answer");
    let state: serde_json::Value = state.json().await.expect("JSON");
    assert!(state["connections"].as_u64() >= Some(many as u64 - 1), "{}", state["connections"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::disallowed_methods, reason = "slowness is what it is about")]
async fn slow_clients_stop_nobody() {
    let fake = Fake::running();
    let request = format!("GET /bot{BOT}/getMe HTTP/1.1\r\nX-Slow: {}", "a".repeat(4_000));
    let mut slow = JoinSet::new();
    for _ in 0..500 {
        let (mut stream, bytes) = (fake.connect().await, request.clone().into_bytes());
        slow.spawn(async move {
            for byte in bytes {
                if stream.write_all(&[byte]).await.is_err() {
                    return;
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
    }
    fake.until("they are connected", |state| state["connections"].as_u64() >= Some(500)).await;
    let since = Instant::now();
    for chat in 1..=30 {
        fake.send(chat, "x").await;
    }
    // A second for each would be 500.
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
    slow.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_beyond_the_bound_are_closed_and_room_comes_back() {
    let fake = Fake::with(Options { connections_max: 20, ..Options::default() });
    // This one is in, whoever comes.
    fake.health().await;
    let mut served = Vec::new();
    for _ in 0..30 {
        let mut stream = fake.connect().await;
        drop(stream.write_all(b"GET /__admin/health HTTP/1.1\r\n\r\n").await);
        let mut first = [0];
        if matches!(stream.read(&mut first).await, Ok(1)) {
            served.push(stream);
        }
    }
    // reqwest keeps one or two.
    assert!((17..=19).contains(&served.len()), "{}", served.len());
    served.clear();
    fake.until("they are gone", |state| state["connections"].as_u64() <= Some(3)).await;
    assert_eq!(fake.raw(b"GET /__admin/health HTTP/1.0\r\n\r\n").await.statuses(), [200]);
}

/// No call is lost or counted twice, whoever makes them at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_at_once_are_all_counted() {
    let fake = std::sync::Arc::new(Fake::frozen());
    let mut clients = JoinSet::new();
    for client in 0..20_i64 {
        let fake = fake.clone();
        clients.spawn(async move {
            let mut delivered = 0_u64;
            for call in 0..10_i64 {
                let params = json!({ "chat_id": -1 - client * 10 - call, "text": "x" });
                delivered += u64::from(fake.call("sendMessage", params).await.status == 200);
            }
            delivered
        });
    }
    let delivered: u64 = clients.join_all().await.into_iter().sum();
    assert_eq!(delivered, 30, "the token's burst, since no time passes");
    let verdict = &fake.look("verdict").await["all"];
    assert_eq!((&verdict["requests"], &verdict["throttled"]["token"]), (&json!(200), &json!(170)));
}
