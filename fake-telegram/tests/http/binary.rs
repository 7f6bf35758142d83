//! The program: its banner, its signals, its exit codes.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::fake::BOT;

/// The program, running.
pub(crate) struct Process {
    child: Child,
    out: BufReader<ChildStdout>,
    pub(crate) addr: SocketAddr,
}

impl Process {
    /// Starts it on a free port; its first line says which.
    pub(crate) fn start(flags: &[&str]) -> Self {
        let mut child = program(flags).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        out.read_line(&mut line).expect("a line");
        let addr = line.trim().strip_prefix("fake-telegram listens on http://");
        let addr = addr.and_then(|addr| addr.parse().ok()).unwrap_or_else(|| panic!("no address: {line}"));
        Self { child, out, addr }
    }

    /// Ends it with a signal; its exit code and the rest of what it said.
    fn signal(mut self, signal: &str) -> (Option<i32>, String) {
        let pid = self.child.id().to_string();
        let killed = Command::new("kill").args([signal, &pid]).status().expect("there is a kill");
        assert!(killed.success());
        self.end()
    }

    fn end(&mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).expect("text");
        (self.child.wait().expect("it ends").code(), rest)
    }

    async fn send(&self, chat: u32) -> u16 {
        let url = format!("http://{}/bot{BOT}/sendMessage?chat_id={chat}&text=x", self.addr);
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        client.get(url).send().await.expect("an answer").status().as_u16()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn program(flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fake-telegram"));
    command.args(["--addr", "127.0.0.1:0"]).args(flags).env_remove("FLOODLAB_SEED");
    command
}

/// Its exit code and what it says to stderr, where it does not begin.
fn refused(flags: &[&str]) -> (Option<i32>, String) {
    let output = program(flags).output().expect("it starts");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_banner_says_where_and_how() {
    let process = Process::start(&["--token", "42:SECRET", "--seed", "9", "--frozen"]);
    let base = format!("http://{}", process.addr);
    let (code, said) = process.signal("-TERM");
    assert_eq!(code, Some(0));
    for word in [
        &*format!("{base}/__admin/"),
        "profile  telegram, seed 9, the clock stands",
        "30/s, burst 30, for each token",
        "20 in any 1min, for each chat",
        "42:SECRET",
        &format!("base_url(\"{base}/bot\")"),
        "requests            0",
    ] {
        assert!(said.contains(word), "`{word}` in {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passed_gates_end_with_0_and_a_summary() {
    let folder = std::env::temp_dir().join(format!("fake-telegram-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let summary = folder.join("summary.json");
    let path = summary.to_str().expect("a path");
    let gates =
        ["--gate", "early_retries == 0", "--gate", "throttled: rate < 50%", "--gate", "delivered >= 5"];
    let process = Process::start(&[&gates[..], &["--frozen", "--summary", path, "--quiet"]].concat());
    for _ in 0..5 {
        assert_eq!(process.send(7001).await, 200);
    }
    assert_eq!(process.send(7001).await, 429);
    assert_eq!(process.signal("-INT"), (Some(0), String::new()), "quiet");
    let text = std::fs::read_to_string(&summary).expect("a summary");
    let summary: Value = serde_json::from_str(&text).expect("JSON");
    std::fs::remove_dir_all(&folder).expect("removed");
    assert_eq!((&summary["all"]["requests"], &summary["all"]["throttled"]["chat"]), (&6.into(), &1.into()));
    assert_eq!(summary["bots"][0]["bot"], 110_000);
    let passed: Vec<&Value> =
        summary["gates"].as_array().expect("a list").iter().map(|gate| &gate["passed"]).collect();
    assert_eq!(passed, [true, true, true]);
    assert_eq!(summary["gates"][1]["measured"], 166_666, "parts per million");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_gate_ends_with_99() {
    let process =
        Process::start(&["--frozen", "--gate", "throttled{limit:chat} == 0", "--gate", "requests > 0"]);
    for _ in 0..6 {
        process.send(7001).await;
    }
    let (code, said) = process.signal("-TERM");
    assert_eq!(code, Some(99));
    assert!(said.contains("FAILED  throttled{limit:chat} == 0  (measured 1)"), "{said}");
    assert!(said.contains("passed  requests > 0"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gates_without_a_single_call_end_with_4() {
    let (code, said) = Process::start(&["--gate", "early_retries == 0"]).signal("-TERM");
    assert_eq!(code, Some(4));
    assert!(said.contains("no request was made"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_admin_api_ends_it_too() {
    let mut process = Process::start(&[]);
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let asked = client.post(format!("http://{}/__admin/shutdown", process.addr)).send().await;
    assert_eq!(asked.expect("an answer").status(), 200);
    assert_eq!(process.end().0, Some(0));
}

#[test]
fn flags_that_mean_nothing_end_with_104() {
    let nowhere = "/nonexistent/people.json";
    for (flags, word) in [
        (&["--profile", "telegrm"][..], "telegram"),
        (&["--limit", "token"], "NAME:KEY=VALUE"),
        (&["--limit", "token:rate=25"], "25"),
        (&["--limit", "token:rate=0/s"], "token"),
        (&["--fault", "999:10%"], "CODE:RATE"),
        (&["--fault", "502:60%", "--fault", "500:60%"], "120%"),
        (&["--gate", "early_retrys == 0"], "early_retries"),
        (&["--gate", "early_retries"], "METRIC OP NUMBER"),
        (&["--people", nowhere], nowhere),
        (&["--token", "nonsense"], "123456:SECRET"),
    ] {
        let (code, said) = refused(flags);
        assert_eq!(code, Some(104), "{flags:?}: {said}");
        assert!(said.contains(word), "`{word}` in {said}");
    }
    for flags in [&["--speed", "0"][..], &["--nonsense"], &["--port", "99999"], &["--addr", "nowhere"]] {
        assert_eq!(refused(flags).0, Some(2), "{flags:?}");
    }
    // TEST-NET-1 (RFC 5737) is no address of this host.
    let output = Command::new(env!("CARGO_BIN_EXE_fake-telegram")).args(["--addr", "192.0.2.1:1"]).output();
    assert_eq!(output.expect("it starts").status.code(), Some(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_flags_of_the_local_bot_api_server_are_taken() {
    let process = Process::start(&["--local", "--api-id", "1", "--api-hash", "x", "--dir", "/tmp"]);
    assert_eq!(process.send(7001).await, 200);
    assert_eq!(process.signal("-TERM").0, Some(0));
}

/// What would be found out too late, or never.
#[test]
fn gates_limits_and_files_that_cannot_be_are_refused_at_once() {
    for (flags, why) in [
        (["--gate", "throttled{limit:tokn} == 0"], "did you mean `token`"),
        (["--limit", "tokne:off"], "did you mean `token`"),
        (["--summary", "/nowhere/at/all.json"], "make it first"),
    ] {
        let (code, said) = refused(&flags);
        assert_eq!(code, Some(104), "{said}");
        assert!(said.contains(why), "{said}");
    }
}

/// The summary says what it is, and goes to standard output as a document of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_summary_names_its_version_seed_and_units() {
    let gate = "throttled: rate < 1%";
    let process =
        Process::start(&["-q", "--seed", "9", "--gate", gate, "--no-fail", "--frozen", "--summary", "-"]);
    let mut statuses = Vec::new();
    for _ in 0..6 {
        statuses.push(process.send(7).await);
    }
    assert_eq!(statuses, [200, 200, 200, 200, 200, 429]);
    let (code, said) = process.signal("-TERM");
    let summary: Value = serde_json::from_str(&said).expect("JSON and nothing else");
    assert_eq!((code, &summary["schema_version"], &summary["seed"]), (Some(0), &1.into(), &9.into()));
    // One of six, in millionths.
    let judged = serde_json::json!({ "gate": gate, "measured": 166_666, "unit": "ppm", "passed": false });
    assert_eq!(summary["gates"], serde_json::json!([judged]));
}
