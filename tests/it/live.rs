//! Real time against servers that no model is: wrong lengths, slow bodies, redirects, dates, and connections that break.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use fake_telegram::http::options::Options;
use floodlab::live::Target;
use floodlab::outcome::{Live, LiveCalls, Outcome};
use floodlab::run::{Drive, drive};
use floodlab::scenario::Scenario;
use wiremock::{MockServer, Respond, ResponseTemplate};

use crate::lab;

/// One message, by one worker that looks at the shape of answers.
fn one_message(rest: &str) -> Scenario {
    scenario(1, rest)
}

fn scenario(messages: u32, rest: &str) -> Scenario {
    lab::scenario(&text(messages, rest))
}

fn text(messages: u32, rest: &str) -> String {
    format!(
        r#"
        duration = "1s"
        drain = "9s"
        workers = 1
        chats = {{ count = {messages} }}
        wire = {{ timeout = "400ms" }}
        [workload.all]
        kind = "broadcast"
        class = "all"
        [[design]]
        name = "it"
        strategy = {{ kind = "bare", answers = "shape", {rest} }}"#
    )
}

fn outcome(scenario: &Scenario, url: &str) -> Outcome {
    let target = Target::resolve(url, vec!["1:secret".to_owned()]).expect("a URL");
    outcome_unless(scenario, Some(target), &AtomicBool::new(false), &|_| {})
}

fn outcome_unless(
    scenario: &Scenario,
    target: Option<Target>,
    interrupted: &AtomicBool,
    progress: &dyn Fn(floodlab::run::Progress),
) -> Outcome {
    let how = Drive { seed: 1, designs: vec![0], target, baseline: None, judge: false, interrupted };
    let report = drive(scenario, &how, progress, |_| Vec::new());
    report.unwrap_or_else(|error| panic!("{error}")).designs.remove(0)
}

fn calls(outcome: &Outcome) -> LiveCalls {
    outcome.live.as_ref().expect("it was live").calls.clone()
}

/// What a connection gets: bytes, and whether it stays open then.
type Act = (&'static str, bool);

/// A server of sockets: the first connection is told that this is no server of ours, each further one gets the next of
/// `acts`, and after the last of them nobody listens any more. Where it is, and the requests so far.
fn sockets(acts: Vec<Act>) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = requests.clone();
    thread::spawn(move || {
        let mut open = Vec::new();
        let mut listener = Some(listener);
        let mut acts = [(NOBODY, false)].into_iter().chain(acts).peekable();
        while let (Some((answer, stays)), Some(accepting)) = (acts.next(), &listener) {
            let Ok((mut stream, _)) = accepting.accept() else { return };
            seen.lock().expect("nobody panics").push(request(&mut stream));
            // Nobody listens any more when the client has the last answer.
            listener = listener.filter(|_| acts.peek().is_some());
            stream.write_all(answer.as_bytes()).expect("the client listens");
            if stays {
                open.push(stream);
            }
        }
        // Who was promised more waits in vain.
        for mut stream in open {
            let _ = stream.read(&mut [0]);
        }
    });
    (url, requests)
}

/// Reads a request to its end.
fn request(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).expect("a request") == 0 {
            break;
        }
        text.push(byte[0]);
    }
    let mut text = String::from_utf8(text).expect("text").to_ascii_lowercase();
    let length = text.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).expect("a body");
    text.push_str(std::str::from_utf8(&body).expect("text"));
    text
}

/// What a server that is none of ours says when it is asked.
const NOBODY: &str = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
const OK: &str = r#"{"ok":true,"result":{"message_id":7}}"#;

#[test]
fn what_never_left_is_safe_to_send_again() {
    let (url, _) = sockets(Vec::new());
    let outcome = outcome(&one_message(r#"retry = "drop""#), &url);
    assert_eq!(calls(&outcome), LiveCalls { unconnected: 1, ..LiveCalls::default() });
    let metrics = &outcome.metrics;
    assert_eq!(
        (metrics.requests, metrics.dropped, metrics.believed_unknown),
        (1, 1, 0),
        "a refusal, no doubt"
    );

    let (url, _) = sockets(Vec::new());
    let again = one_message(r#"retry = { kind = "backoff", first = "50ms", attempts = 3 }"#);
    assert_eq!(calls(&self::outcome(&again, &url)).unconnected, 3);
}

#[test]
fn what_was_sent_and_not_answered_is_in_doubt() {
    let check = |act: Act, expected: LiveCalls| {
        let (url, requests) = sockets(vec![act]);
        let outcome = outcome(&one_message(r#"retry = "drop""#), &url);
        assert_eq!(calls(&outcome), expected, "{}", act.0);
        let metrics = &outcome.metrics;
        assert_eq!((metrics.believed_unknown, metrics.lost, metrics.delivered), (1, 1, 0), "{}", act.0);
        let requests = requests.lock().expect("nobody panics");
        assert!(requests[1].starts_with("post /bot1:secret/sendmessage http/1.1\r\n"), "{}", requests[1]);
        assert!(requests[1].ends_with(r#"{"chat_id":1000000000,"text":"message 0"}"#), "{}", requests[1]);
        assert!(!requests[1].contains("x-floodlab"), "a stranger is told nothing: {}", requests[1]);
    };
    let lost = LiveCalls { lost: 1, ..LiveCalls::default() };
    let timed_out = LiveCalls { timed_out: 1, ..LiveCalls::default() };
    let answered = LiveCalls { answered: 1, ..LiveCalls::default() };
    check(("", false), lost.clone());
    check(("", true), timed_out.clone());
    check(("HTTP/1.1 200 OK\r\ncontent-le", false), lost.clone());
    check(("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{\"ok\":true,", false), lost.clone());
    check(("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{\"ok\":true,", true), timed_out);
    check(
        ("HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n{\"ok\":true,\"result\":{\"message_id\":7}}", true),
        answered.clone(),
    );
    check(("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", true), answered);
    check(("SSH-2.0-OpenSSH_9.6\r\n", true), lost);
}

/// Nobody takes the connection: a queue of accepted ones that is full, as before a server that hangs.
#[cfg(target_os = "linux")]
#[test]
fn no_connection_in_time_is_safe_to_send_again() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let listener = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.bind(([127, 0, 0, 1], 0).into()).expect("a free port");
        socket.listen(1).and_then(tokio::net::TcpListener::into_std).expect("it listens")
    });
    listener.set_nonblocking(false).expect("it is open");
    let address = listener.local_addr().expect("it is bound");
    let full = thread::spawn(move || {
        // Who it is, it is asked while there is room.
        let (mut stream, _) = listener.accept().expect("it calls");
        request(&mut stream);
        let at_most = std::time::Duration::from_millis(200);
        let queue: Vec<TcpStream> =
            std::iter::from_fn(|| TcpStream::connect_timeout(&address, at_most).ok()).take(64).collect();
        stream.write_all(NOBODY.as_bytes()).expect("the client listens");
        (listener, queue)
    });
    let outcome = outcome(&one_message(r#"retry = "drop""#), &format!("http://{address}"));
    let (_listener, queue) = full.join().expect("nobody panics");
    assert!(queue.len() < 64, "the queue is full");
    assert_eq!(calls(&outcome), LiveCalls { unconnected: 1, ..LiveCalls::default() });
    let metrics = &outcome.metrics;
    assert_eq!((metrics.dropped, metrics.believed_unknown), (1, 0), "a refusal, no doubt");
}

/// A whole answer, but not in time: each byte comes, and the time-out is over all of them.
#[test]
fn a_body_that_drips_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    let drip = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("it calls");
        request(&mut stream);
        stream.write_all(NOBODY.as_bytes()).expect("the client listens");
        let (mut stream, _) = listener.accept().expect("it calls");
        request(&mut stream);
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{OK}", OK.len());
        let (head, body) = answer.split_at(answer.len() - OK.len());
        stream.write_all(head.as_bytes()).expect("the client listens");
        let dripped = body.bytes().take_while(|byte| {
            #[expect(clippy::disallowed_methods, reason = "a server that is slow")]
            thread::sleep(std::time::Duration::from_millis(50));
            stream.write_all(&[*byte]).is_ok()
        });
        dripped.count()
    });
    let outcome = outcome(&one_message(r#"retry = "drop""#), &url);
    assert_eq!(calls(&outcome), LiveCalls { timed_out: 1, ..LiveCalls::default() });
    assert_eq!((outcome.metrics.believed_unknown, outcome.metrics.lost), (1, 1));
    let dripped = drip.join().expect("nobody panics");
    assert!((2..OK.len()).contains(&dripped), "some of it came: {dripped} bytes");
}

/// Connections are kept, and the server ends them between two calls: at once, so that the client knows by the next call,
/// or when that has come, so that nobody knows whether it was heard.
#[test]
fn a_connection_that_was_kept_too_long_is_told_from_a_call_that_was_lost() {
    let two =
        || scenario(2, r#"retry = "drop", limiter = { kind = "token-bucket", rate = "4/s", burst = 1 }"#);
    let check = |ends_at_once: bool, expected: LiveCalls| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let server = thread::spawn(move || {
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{OK}", OK.len());
            let accept = || listener.accept().expect("it calls").0;
            let mut stream = accept();
            request(&mut stream);
            stream.write_all(NOBODY.as_bytes()).expect("the client listens");
            let mut calls = Vec::new();
            let mut stream = accept();
            calls.push(request(&mut stream));
            stream.write_all(answer.as_bytes()).expect("the client listens");
            if ends_at_once {
                drop(stream);
                stream = accept();
                calls.push(request(&mut stream));
                stream.write_all(answer.as_bytes()).expect("the client listens");
            } else {
                calls.push(request(&mut stream));
            }
            drop(stream);
            // Whoever sent it again by himself would be heard.
            listener.set_nonblocking(true).expect("it is open");
            (listener, calls)
        });
        let outcome = outcome(&two(), &url);
        assert_eq!(calls(&outcome), expected);
        let (listener, calls) = server.join().expect("nobody panics");
        assert_eq!(outcome.metrics.requests, 2);
        for (number, call) in calls.iter().enumerate() {
            assert!(call.contains(&format!("\"message {number}\"")), "{call}");
        }
        assert!(listener.accept().is_err(), "nothing is sent twice");
    };
    check(true, LiveCalls { answered: 2, ..LiveCalls::default() });
    check(false, LiveCalls { answered: 1, lost: 1, ..LiveCalls::default() });
}

/// A call that the server decides before the end, and whose answer comes after it: the server's word says when.
#[test]
fn what_was_decided_before_the_end_and_heard_after_it_counts() {
    let text = text(2, "").replace("drain = \"9s\"", "drain = \"0s\"").replace("400ms", "5s");
    let scenario = lab::scenario(&text);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    let server = thread::spawn(move || {
        let answer = |headers: &str, body: &str| {
            format!(
                "HTTP/1.1 200 OK\r\n{headers}connection: close\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            )
        };
        // On its own clock it is some day in 1970.
        let word = |at_us: u64| {
            let truth = format!(r#"{{"truth":"delivered","taken":1,"at_us":{at_us}}}"#);
            answer(&format!("x-floodlab-truth: {truth}\r\n"), OK)
        };
        let next = |start: &str| {
            let (mut stream, _) = listener.accept().expect("it calls");
            let request = request(&mut stream);
            assert!(request.starts_with(start), "{request}");
            stream
        };
        let say = |mut stream: TcpStream, text: &str| stream.write_all(text.as_bytes()).expect("it listens");
        say(
            next("get /__admin/health"),
            &answer("", r#"{"name":"fake-telegram","version":"0","profile":"telegram"}"#),
        );
        say(next("post /__admin/reset"), &answer("", "{}"));
        say(next("post /bot1:secret/sendmessage"), &word(1_000_000));
        let second = next("post /bot1:secret/sendmessage");
        // Whoever asks has come to the end of the run.
        let journal = next("get /__admin/journal");
        say(second, &word(1_100_000));
        #[expect(clippy::disallowed_methods, reason = "the answer comes first")]
        thread::sleep(std::time::Duration::from_millis(200));
        say(journal, &answer("", r#"{"entries":[]}"#));
    });
    let outcome = outcome(&scenario, &url);
    server.join().expect("nobody panics");
    let metrics = &outcome.metrics;
    assert_eq!((metrics.requests, metrics.delivered, metrics.pending), (2, 2, 0), "{metrics:?}");
    assert!(metrics.lag_us.max.expect("a sample") < 1_000_000, "{:?}", metrics.lag_us);
}

/// A server on a thread of its own that answers everything in the same way.
fn serve(answers: impl Respond + 'static) -> MockServer {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let server = MockServer::start().await;
        wiremock::Mock::given(wiremock::matchers::any()).respond_with(answers).mount(&server).await;
        server
    })
}

#[test]
fn a_redirect_is_a_rejection_and_is_not_followed() {
    let (elsewhere, visitors) = sockets(Vec::new());
    let answer = ResponseTemplate::new(302).insert_header("location", elsewhere.as_str());
    let server = serve(answer);
    let outcome = outcome(&one_message(r#"retry = "wait""#), &server.uri());
    assert_eq!((outcome.metrics.requests, outcome.metrics.dropped), (1, 1));
    assert_eq!(visitors.lock().expect("nobody panics").len(), 0);
}

/// Refuses the first call until two seconds from then, and says so with a date.
struct Dated(AtomicUsize);

impl Respond for Dated {
    fn respond(&self, request: &wiremock::Request) -> ResponseTemplate {
        if request.url.path().starts_with("/__admin") {
            return ResponseTemplate::new(404);
        }
        if self.0.fetch_add(1, Ordering::Relaxed) > 0 {
            return ResponseTemplate::new(200).set_body_string(OK);
        }
        #[expect(clippy::disallowed_methods, reason = "a date is of the wall")]
        let until = std::time::SystemTime::now() + std::time::Duration::from_secs(2);
        ResponseTemplate::new(429).insert_header("retry-after", httpdate::fmt_http_date(until).as_str())
    }
}

#[test]
fn a_date_is_waited_for() {
    let server = serve(Dated(AtomicUsize::new(0)));
    let outcome = outcome(&one_message(r#"retry = "wait""#), &server.uri());
    let metrics = &outcome.metrics;
    assert_eq!((metrics.delivered, metrics.requests), (1, 2));
    // A date has whole seconds, so it is one to two seconds away.
    let lag = metrics.lag_us.max.expect("a sample");
    assert!(lag > 1_000_000, "{lag} us");
    assert_eq!(metrics.throttled.values().copied().collect::<Vec<_>>(), [1, 0, 0, 0], "the first limit");
    assert_eq!(calls(&outcome).refused_elsewhere, 1);
    assert!(!outcome.live.expect("it was live").told_truth);
}

#[test]
fn an_interrupted_run_ends_there_and_its_books_balance() {
    let scenario = scenario(40, r#"limiter = { kind = "token-bucket", rate = "10/s", burst = 1 }"#);
    let interrupted = AtomicBool::new(false);
    let after_a_while = |progress: floodlab::run::Progress| {
        interrupted.store(progress.now.as_micros() > 700_000, Ordering::Relaxed);
    };
    let outcome = outcome_unless(&scenario, None, &interrupted, &after_a_while);
    let metrics = &outcome.metrics;
    let Live { interrupted_us, .. } = outcome.live.expect("it was live");
    assert!(interrupted_us.is_some_and(|at| (700_000..10_000_000).contains(&at)), "{interrupted_us:?}");
    assert_eq!(metrics.due, metrics.delivered + metrics.pending);
    assert!(metrics.delivered >= 5 && metrics.pending > 0, "{metrics:?}");
}

/// A quarter of a second in which nothing runs, while messages fall due every 25 ms or so.
#[test]
fn how_late_the_program_was_is_told() {
    let spread = text(40, r#"retry = "drop""#).replace("\"broadcast\"", "\"broadcast\"\nspread = \"1s\"");
    let scenario = lab::scenario(&spread);
    let slept = AtomicBool::new(false);
    let sleep_once = |progress: floodlab::run::Progress| {
        if progress.now.as_micros() > 200_000 && !slept.swap(true, Ordering::Relaxed) {
            #[expect(clippy::disallowed_methods, reason = "a machine that is busy")]
            thread::sleep(std::time::Duration::from_millis(250));
        }
    };
    let outcome = outcome_unless(&scenario, None, &AtomicBool::new(false), &sleep_once);
    let late = outcome.live.expect("it was live").late_us;
    assert!(late.max > 100_000 && late.max >= late.p99 && late.events > 8, "{late:?}");
}

#[test]
fn nobody_waits_for_the_end_when_nothing_is_left_to_do() {
    let scenario = one_message(r#"retry = "drop""#);
    let outcome = outcome_unless(&scenario, None, &AtomicBool::new(false), &|_| {});
    assert_eq!(outcome.metrics.delivered, 1);
    assert!(outcome.host.wall_ms < 9_000, "{} ms of 10 s", outcome.host.wall_ms);
    let live = outcome.live.expect("it was live");
    let server = live.server.expect("a server of ours says its name");
    assert!(server.starts_with("fake-telegram ") && server.ends_with(", profile telegram"), "{server}");
}

/// Elsewhere: started by somebody else, with rules and faults of its own and a past: what it allows is what one design takes.
#[test]
fn a_server_of_ours_elsewhere_tells_the_truth_and_begins_again_for_each_design() {
    let text = text(3, "") + "\n[[design]]\nname = \"again\"\nstrategy = \"bare\"\n";
    let faulty = text.clone()
        + "[server]\nlimit = { token = { rate = \"1/h\", burst = 3 } }\n[[server.fault]]\nkind = \"lost\"\nphase = \"after\"\nrate = \"100%\"\n";
    let (scenario, faulty) = (lab::scenario(&text), lab::scenario(&faulty));
    let Scenario { server: profile, faults, .. } = faulty;
    let options = Options { tokens: vec!["7:it".to_owned()], profile, faults, ..Options::default() };
    let (target, _server) = Target::start(options).expect("a free port");
    // Twice, and its journal remembers the calls of before.
    for _ in 0..2 {
        let interrupted = AtomicBool::new(false);
        let how = Drive {
            seed: 1,
            designs: vec![0, 1],
            target: Some(target.clone()),
            baseline: None,
            judge: false,
            interrupted: &interrupted,
        };
        let report = drive(&scenario, &how, &|_| {}, |_| Vec::new());
        let report = report.unwrap_or_else(|error| panic!("{error}"));
        for outcome in report.designs {
            let metrics = &outcome.metrics;
            // No answer came, and each message arrived.
            assert_eq!(
                (metrics.requests, metrics.delivered, metrics.believed_unknown),
                (3, 3, 3),
                "{metrics:?}"
            );
            assert_eq!(calls(&outcome), LiveCalls { lost: 3, ..LiveCalls::default() });
        }
    }
}
