//! The fake Telegram over HTTP, beside a bare hyper that answers "Hello, world" to anything, on tokio's usual runtime: the
//! same client, the same allocator, the same run. An element is a request.
//!
//! Every call is accepted: the limits of the profile `telegram` are all there, and the token's is wide. `one-bot` is a bot
//! with 100,000 chats, `1000-bots` has 1,000 of them with 1,000 chats each, all of which have been written to.
//! Under `cargo bench` the ratio and response times at half that load are printed at the end.

#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a bench measures, and says what")]

#[path = "support/load.rs"]
mod load;
#[path = "support/size.rs"]
mod size;

use std::convert::Infallible;
use std::net::SocketAddr;

use bytes::Bytes;
use criterion::{Criterion, Throughput};
use fake_telegram::http::options::Options;
use fake_telegram::http::server::Server;
use fake_telegram::limits::Algorithm;
use fake_telegram::profile::Profile;
use fake_telegram::units::Rate;
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
    let (bots, chats) = (size(1_000, 20), size(1_000, 20));
    let one_bot = |number: u64| send(1, 1 + number % 100_000, number);
    let many_bots = move |number: u64| send(2 + number % bots, 1 + number / bots % chats, number);
    let requests = size(4_000, 200);

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut client = Client { runtime, next: 0 };
    let mut to_hello = client.connect(hello.addr);
    let mut to_server = client.connect(server.addr());
    // Every chat of every bot is known before anything is measured.
    client.run(&mut to_server, bots * chats, many_bots);

    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("http");
    group.throughput(Throughput::Elements(requests)).sample_size(size(30, 10));
    group.bench_function("hyper-hello-world", |bencher| {
        bencher.iter(|| client.run(&mut to_hello, requests, one_bot));
    });
    group.bench_function("sendMessage-one-bot", |bencher| {
        bencher.iter(|| client.run(&mut to_server, requests, one_bot));
    });
    group.bench_function("sendMessage-1000-bots", |bencher| {
        bencher.iter(|| client.run(&mut to_server, requests, many_bots));
    });
    group.finish();
    criterion.final_summary();

    // Turn by turn, so that whatever else the machine does meets both.
    let mut rounds: Vec<[f64; 3]> = (0..size(15, 1))
        .map(|_| {
            [
                client.run(&mut to_hello, requests, one_bot),
                client.run(&mut to_server, requests, one_bot),
                client.run(&mut to_server, requests, many_bots),
            ]
        })
        .collect();
    let mut median = |of: &dyn Fn(&[f64; 3]) -> f64| {
        rounds.sort_by(|a, b| of(a).total_cmp(&of(b)));
        of(&rounds[rounds.len() / 2])
    };
    let rates: Vec<f64> = (0..3).map(|which| median(&|round| round[which])).collect();
    let (ratio, ratio_many) = (median(&|round| round[1] / round[0]), median(&|round| round[2] / round[0]));
    println!("requests/s: hello world {:.0}, one bot {:.0}, 1,000 bots {:.0}", rates[0], rates[1], rates[2]);
    println!("of hello world: one bot {ratio:.2}, 1,000 bots {ratio_many:.2}");
    client.print_times(&mut to_hello, "hello world", rates[0] / 2.0, one_bot);
    client.print_times(&mut to_server, "one bot", rates[1] / 2.0, one_bot);
    client.print_times(&mut to_server, "1,000 bots", rates[2] / 2.0, many_bots);
}

/// The profile `telegram` with so much budget for each token that no call of this bench is refused: a chat is written to
/// every 100,000 requests at most, and a bot may write a million messages a second.
fn wide() -> Profile {
    let mut profile = Profile::telegram();
    for limit in &mut profile.limits {
        if limit.name == "token" {
            limit.algorithm = Algorithm::TokenBucket { rate: Rate::per_second(1_000_000), burst: 1_000_000 };
        }
    }
    profile
}

/// A call as a client library makes it.
fn send(bot: u64, chat: u64, number: u64) -> Vec<u8> {
    let body = format!(r#"{{"chat_id":{chat},"text":"message {number}"}}"#);
    format!(
        "POST /bot{bot}:bench/sendMessage HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
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

    /// Requests per second.
    fn run(
        &mut self,
        connections: &mut Vec<Connection>,
        count: u64,
        request: impl Fn(u64) -> Vec<u8> + Clone + Send + 'static,
    ) -> f64 {
        let from = self.next;
        self.next += count;
        let took = self.runtime.block_on(as_fast_as_possible(connections, from, count, request));
        count as f64 / took.as_secs_f64()
    }

    fn print_times(
        &mut self,
        connections: &mut Vec<Connection>,
        what: &str,
        rate: f64,
        request: impl Fn(u64) -> Vec<u8> + Clone + Send + 'static,
    ) {
        let from = self.next;
        let count = size((5.0 * rate) as u64, 100);
        self.next += count;
        let times =
            self.runtime.block_on(at_a_rate(connections, rate, count, move |number| request(from + number)));
        let at = |quantile| times.value_at_quantile(quantile) as f64 / 1e3;
        println!(
            "{what} at {rate:.0}/s: p50 {:.2} ms, p99 {:.2} ms, p99.9 {:.2} ms, max {:.2} ms",
            at(0.5),
            at(0.99),
            at(0.999),
            at(1.0)
        );
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
