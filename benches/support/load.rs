//! A lean HTTP client: whole requests as bytes, keep-alive, responses read by their length. What it costs is the same
//! for every server.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// A keep-alive connection.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).await.expect("the server listens");
        stream.set_nodelay(true).expect("a socket");
        Self { stream, buffer: Vec::with_capacity(4096) }
    }

    /// Sends a request and reads its response: the status, and the whole text.
    pub(crate) async fn call(&mut self, request: &[u8]) -> (u16, &[u8]) {
        self.stream.write_all(request).await.expect("it is written");
        self.buffer.clear();
        loop {
            let read = self.stream.read_buf(&mut self.buffer).await.expect("it is read");
            assert!(read > 0, "the server hung up");
            if let Some(length) = whole(&self.buffer)
                && self.buffer.len() >= length
            {
                let status = std::str::from_utf8(&self.buffer[9..12]).expect("ASCII");
                return (status.parse().expect("a status"), &self.buffer);
            }
        }
    }
}

/// Bytes of a response, once its headers are there.
fn whole(response: &[u8]) -> Option<usize> {
    let end = response.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let headers = std::str::from_utf8(&response[..end]).expect("ASCII");
    let length = headers.split("content-length: ").nth(1).expect("a length");
    let length: usize = length[..length.find('\r').expect("a line's end")].parse().expect("a number");
    Some(end + length)
}

/// Sends requests `from..from + count` over the connections, each as soon as the last is answered; how long it took.
pub(crate) async fn as_fast_as_possible(
    connections: &mut Vec<Connection>,
    from: u64,
    count: u64,
    request: impl Fn(u64) -> Vec<u8> + Clone + Send + 'static,
) -> Duration {
    let lanes = connections.len() as u64;
    let mut tasks = JoinSet::new();
    let start = Instant::now();
    for (lane, mut connection) in connections.drain(..).enumerate() {
        let request = request.clone();
        tasks.spawn(async move {
            for number in (from + lane as u64..from + count).step_by(lanes as usize) {
                let (status, text) = connection.call(&request(number)).await;
                assert_eq!(status, 200, "{}", String::from_utf8_lossy(text));
            }
            connection
        });
    }
    while let Some(connection) = tasks.join_next().await {
        connections.push(connection.expect("it is answered"));
    }
    start.elapsed()
}

/// Sends `count` requests at an even pace, whatever the server does; response times in microseconds, from the instant at
/// which each was due.
pub(crate) async fn at_a_rate(
    connections: &mut Vec<Connection>,
    per_second: f64,
    count: u64,
    request: impl Fn(u64) -> Vec<u8> + Clone + Send + 'static,
) -> Histogram<u64> {
    let lanes = connections.len() as u64;
    let mut tasks = JoinSet::new();
    let start = Instant::now();
    for (lane, mut connection) in connections.drain(..).enumerate() {
        let request = request.clone();
        tasks.spawn(async move {
            let mut times = Histogram::<u64>::new(3).expect("three digits");
            for number in (lane as u64..count).step_by(lanes as usize) {
                let due = start + Duration::from_secs_f64(number as f64 / per_second);
                let bytes = request(number);
                // The timer wakes up to a millisecond late, which counts.
                tokio::time::sleep_until(due.into()).await;
                let (status, text) = connection.call(&bytes).await;
                assert_eq!(status, 200, "{}", String::from_utf8_lossy(text));
                times.record(due.elapsed().as_micros() as u64).expect("it fits");
            }
            (connection, times)
        });
    }
    let mut all = Histogram::<u64>::new(3).expect("three digits");
    while let Some(lane) = tasks.join_next().await {
        let (connection, times) = lane.expect("it is answered");
        connections.push(connection);
        all.add(times).expect("they are alike");
    }
    all
}
