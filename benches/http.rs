//! The fake Telegram over HTTP, beside a bare hyper that answers "Hello, world" to anything, on tokio's usual runtime: the
//! same client, the same allocator, the same run. An element is a request.
//!
//! Every call is accepted: the limits of the profile `telegram` are all there, and wide. `one-bot` is a bot with 100,000
//! chats, `1000-bots` has 1,000 of them with 1,000 chats each, all of which have been written to. Who writes where is drawn:
//! bots that take turns would all have their tables grow within the same second.
//!
//! Under `cargo bench` ratios and response times at half the load are printed at the end, from short rounds in which the
//! servers take turns: whatever else the machine does meets all of them. Beside what all rounds give together stand the
//! median and the quartiles of the rounds, which a few that something else spoiled do not move.

#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a bench measures, and says what")]

#[path = "support/load.rs"]
mod load;
#[path = "support/size.rs"]
mod size;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::ops::RangeInclusive;

use bytes::Bytes;
use criterion::{Criterion, Throughput};
use fake_telegram::draw::draw;
use fake_telegram::http::options::Options;
use fake_telegram::http::server::Server;
use fake_telegram::limits::Algorithm;
use fake_telegram::profile::Profile;
use fake_telegram::units::Rate;
use hdrhistogram::Histogram;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use load::{Connection, as_fast_as_possible, at_a_rate};
use size::size;
use tokio::runtime::Runtime;

/// That of the programs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Enough that a worker seldom waits for the next request.
const CONNECTIONS: usize = 128;

fn main() {
    let server =
        Server::start(Options { addr: ([127, 0, 0, 1], 0).into(), profile: wide(), ..Options::default() })
            .expect("a free port");
    let hello = Hello::start();
    let one_bot = Traffic { bots: 1..=1, chats: size(100_000, 20) };
    let many_bots = Traffic { bots: 2..=1 + size(1_000, 20), chats: size(1_000, 20) };

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut client = Client { runtime, next: 0 };
    // Every chat of every bot is known before anything is measured.
    let mut connections = client.connect(server.addr());
    for traffic in [&one_bot, &many_bots] {
        let all = traffic.clone();
        let took =
            as_fast_as_possible(&mut connections, 0, traffic.pairs(), move |nth| all.request(nth, nth));
        client.runtime.block_on(took);
    }
    drop(connections);
    let mut targets = [
        client.target("hyper-hello-world", hello.addr, &one_bot),
        client.target("sendMessage-one-bot", server.addr(), &one_bot),
        client.target("sendMessage-1000-bots", server.addr(), &many_bots),
    ];

    let requests = size(4_000, 200);
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("http");
    group.throughput(Throughput::Elements(requests)).sample_size(size(30, 10));
    for target in &mut targets {
        group.bench_function(target.what, |bencher| bencher.iter(|| client.run(target, requests)));
    }
    group.finish();
    criterion.final_summary();

    let rounds: Vec<[f64; 3]> =
        (0..size(60, 1)).map(|_| targets.each_mut().map(|target| client.run(target, requests))).collect();
    // Of all rounds together.
    let total =
        |which: usize| rounds.len() as f64 / rounds.iter().map(|rates| 1.0 / rates[which]).sum::<f64>();
    for (which, target) in targets.iter().enumerate() {
        println!(
            "{:<22} {:>8.0} requests/s, {:.2} of hello; by round {}",
            target.what,
            total(which),
            total(which) / total(0),
            Spread::of(rounds.iter().map(|rates| rates[which] / rates[0]))
        );
    }
    // Windows of a quarter of a second.
    let halves = [0, 1, 2].map(|which| total(which) / 2.0);
    let windows: Vec<[Histogram<u64>; 3]> = (0..size(20, 1))
        .map(|_| {
            let mut halves = halves.into_iter();
            targets.each_mut().map(|target| client.times(target, halves.next().expect("one each")))
        })
        .collect();
    for (which, target) in targets.iter().enumerate() {
        let mut all = Histogram::<u64>::new(3).expect("three digits");
        windows.iter().for_each(|times| all.add(&times[which]).expect("they are alike"));
        let [p50, p99, p999, max] = [0.5, 0.99, 0.999, 1.0].map(|quantile| milliseconds(&all, quantile));
        println!(
            "{:<22} {:>8.0} requests/s: p50 {p50:.2} ms, p99 {p99:.2} ms, p99.9 {p999:.2} ms, max {max:.2} ms; p99 by window {}",
            target.what,
            halves[which],
            Spread::of(windows.iter().map(|times| milliseconds(&times[which], 0.99)))
        );
    }
}

fn milliseconds(times: &Histogram<u64>, quantile: f64) -> f64 {
    times.value_at_quantile(quantile) as f64 / 1e3
}

/// The median, and the quartiles.
struct Spread([f64; 3]);

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        Self([1, 2, 3].map(|quarter| values[(values.len() - 1) * quarter / 4]))
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self([low, median, high]) = self;
        write!(formatter, "{median:.2} (quartiles {low:.2}, {high:.2})")
    }
}

/// The profile `telegram` with so much budget that no call of this bench is refused.
fn wide() -> Profile {
    let mut profile = Profile::telegram();
    for limit in &mut profile.limits {
        if let Algorithm::TokenBucket { rate, burst } = &mut limit.algorithm {
            (*rate, *burst) = (Rate::per_second(1_000_000), 1_000_000);
        }
    }
    profile
}

/// Bots that send messages, each to as many chats.
#[derive(Clone)]
struct Traffic {
    bots: RangeInclusive<u64>,
    chats: u64,
}

impl Traffic {
    /// How many pairs of a bot and a chat there are.
    fn pairs(&self) -> u64 {
        (self.bots.end() - self.bots.start() + 1) * self.chats
    }

    /// A call as a client library makes it; `number` tells its text from others.
    fn request(&self, pair: u64, number: u64) -> Vec<u8> {
        let (bot, chat) = (self.bots.start() + pair / self.chats, 1 + pair % self.chats);
        let body = format!(r#"{{"chat_id":{chat},"text":"message {number}"}}"#);
        format!(
            "POST /bot{bot}:bench/sendMessage HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    }

    /// That of a drawn bot to a drawn chat.
    fn drawn(&self, number: u64) -> Vec<u8> {
        self.request(draw(1, number, 0) % self.pairs(), number)
    }
}

/// Who is called, with what.
struct Target {
    what: &'static str,
    connections: Vec<Connection>,
    traffic: Traffic,
}

/// Those who call, on one thread.
struct Client {
    runtime: Runtime,
    /// Of the next request, so that no two are alike.
    next: u64,
}

impl Client {
    fn connect(&self, addr: SocketAddr) -> Vec<Connection> {
        self.runtime.block_on(async {
            let mut connections = Vec::new();
            for _ in 0..CONNECTIONS {
                connections.push(Connection::open(addr).await);
            }
            connections
        })
    }

    fn target(&self, what: &'static str, addr: SocketAddr, traffic: &Traffic) -> Target {
        Target { what, connections: self.connect(addr), traffic: traffic.clone() }
    }

    /// The number of the first of `count` requests.
    fn numbers(&mut self, count: u64) -> u64 {
        self.next += count;
        self.next - count
    }

    /// Requests per second.
    fn run(&mut self, target: &mut Target, count: u64) -> f64 {
        let (from, traffic) = (self.numbers(count), target.traffic.clone());
        let took = as_fast_as_possible(&mut target.connections, from, count, move |n| traffic.drawn(n));
        count as f64 / self.runtime.block_on(took).as_secs_f64()
    }

    /// Response times in microseconds at so many requests per second, for a quarter of a second.
    fn times(&mut self, target: &mut Target, rate: f64) -> Histogram<u64> {
        let count = size((rate / 4.0) as u64, 100);
        let (from, traffic) = (self.numbers(count), target.traffic.clone());
        let times = at_a_rate(&mut target.connections, rate, count, move |n| traffic.drawn(from + n));
        self.runtime.block_on(times)
    }
}

/// A bare hyper.
struct Hello {
    addr: SocketAddr,
    _runtime: Runtime,
}

impl Hello {
    fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
        let listener =
            runtime.block_on(tokio::net::TcpListener::bind(("127.0.0.1", 0))).expect("a free port");
        let addr = listener.local_addr().expect("an address");
        runtime.spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.expect("a connection");
                stream.set_nodelay(true).expect("a socket");
                let served = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service_fn(hello));
                tokio::spawn(served);
            }
        });
        Self { addr, _runtime: runtime }
    }
}

async fn hello(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::new(Bytes::from_static(b"Hello, world"))))
}
