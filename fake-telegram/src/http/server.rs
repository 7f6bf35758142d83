//! The server: connections in, and the tasks that live beside them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderName};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc;

use crate::http::admin;
use crate::http::call::{Aside, call};
use crate::http::deeds;
use crate::http::failure::Failure;
use crate::http::options::Options;
use crate::http::reply::{CALL, Cut, DRAW, Reply};
use crate::http::request::{self, Route};
use crate::http::state::State;

/// A server that runs on a thread of its own.
#[derive(Debug)]
pub struct Server {
    addr: SocketAddr,
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts one.
    ///
    /// # Errors
    /// If it cannot listen there, or the options are impossible.
    pub fn start(options: Options) -> anyhow::Result<Self> {
        let (opened, started) = std::sync::mpsc::sync_channel(1);
        // A runtime of its own, made where no other is: whoever starts a server may be inside of one.
        let thread = std::thread::Builder::new().name("fake-telegram".to_owned()).spawn(move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(opened.send(Err(error.into()))),
            };
            let open = match runtime.block_on(open(options)) {
                Ok(open) => open,
                Err(error) => return drop(opened.send(Err(error))),
            };
            if opened.send(Ok((open.addr, open.state.clone()))).is_ok() {
                runtime.block_on(open.serve());
            }
            runtime.shutdown_background();
        })?;
        let (addr, state) = started.recv().map_err(|_| anyhow::anyhow!("the server's thread ended"))??;
        Ok(Self { addr, state, thread: Some(thread) })
    }

    /// Where it listens.
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// What it knows.
    pub const fn state(&self) -> &Arc<State> {
        &self.state
    }

    /// Ends it, and waits for that.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.state.close();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended too.
            drop(thread.join());
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// A server that listens and does not serve yet.
#[derive(Debug)]
pub struct Open {
    addr: SocketAddr,
    listener: TcpListener,
    state: Arc<State>,
    workers: Workers,
}

/// Listens, and makes the state.
///
/// # Errors
/// As [`Server::start`].
pub async fn open(options: Options) -> anyhow::Result<Open> {
    let listener = listen(options.addr).map_err(|error| {
        anyhow::anyhow!(
            "cannot listen on {}: {error}; choose another --addr, or port 0 for a free one",
            options.addr
        )
    })?;
    let state = Arc::new(State::new(options)?);
    for token in &state.options.tokens {
        state.bot(token).map_err(|failure| anyhow::anyhow!("`{token}` is no token: {failure}"))?;
    }
    Ok(Open { addr: listener.local_addr()?, listener, state, workers: Workers::start()? })
}

fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = if addr.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // What a server that has just ended leaves behind does not keep the next one out.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    socket.listen(BACKLOG)
}

impl Open {
    /// Where it listens.
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// What it knows.
    pub const fn state(&self) -> &Arc<State> {
        &self.state
    }

    /// Serves until the state is closing; then answers what is in flight.
    pub async fn serve(self) {
        let Self { listener, state, mut workers, .. } = self;
        let mut closing = state.closing.subscribe();
        tokio::spawn(wake(state.clone()));
        for act in state.options.people.clone() {
            tokio::spawn(deeds::again_and_again(state.clone(), act));
        }
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = closing.wait_for(|closing| *closing) => break,
            };
            match accepted {
                Ok((stream, _)) => {
                    if let Some(connection) = Connection::enter(&state) {
                        workers.give(stream, connection);
                    }
                }
                Err(error) => pause_after(&error).await,
            }
        }
        drop(listener);
        workers.end().await;
    }
}

/// Threads with a runtime each, one a core: what a connection needs is made, used and freed by one of them, and none wakes
/// another.
#[derive(Debug)]
struct Workers {
    doors: Vec<mpsc::UnboundedSender<(std::net::TcpStream, Connection)>>,
    next: usize,
    /// Closed when all have ended.
    ended: mpsc::Receiver<()>,
}

impl Workers {
    fn start() -> io::Result<Self> {
        let (here, ended) = mpsc::channel(1);
        let mut doors = Vec::new();
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let (door, connections) = mpsc::unbounded_channel();
            let here = here.clone();
            std::thread::Builder::new().name("fake-telegram-worker".to_owned()).spawn(move || {
                runtime.block_on(work(connections));
                // What long polls and deliveries are left have nobody any more.
                runtime.shutdown_background();
                drop(here);
            })?;
            doors.push(door);
        }
        Ok(Self { doors, next: 0, ended })
    }

    /// In turn: connections live long, and are many or do not matter.
    fn give(&mut self, stream: TcpStream, connection: Connection) {
        self.next = (self.next + 1) % self.doors.len();
        if let Ok(stream) = stream.into_std() {
            // A worker lives until its door is dropped.
            drop(self.doors[self.next].send((stream, connection)));
        }
    }

    /// No connection comes any more; completes when what is in flight is answered, or that takes too long.
    async fn end(mut self) {
        self.doors.clear();
        // Nothing is ever sent.
        let _: Option<()> = self.ended.recv().await;
    }
}

/// Serves connections, until none can come any more.
async fn work(mut connections: mpsc::UnboundedReceiver<(std::net::TcpStream, Connection)>) {
    let graceful = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.max_buf_size(HEADERS_MAX).keep_alive(true);
    while let Some((stream, connection)) = connections.recv().await {
        let Ok(stream) = TcpStream::from_std(stream) else { continue };
        let connection = Arc::new(connection);
        let served = http.serve_connection(TokioIo::new(prepared(stream)), {
            let connection = connection.clone();
            service_fn(move |request| answer(connection.is_asked(), request))
        });
        let served = graceful.watch(served);
        tokio::spawn(async move {
            tokio::select! {
                biased;
                // Whoever hangs up in the middle hurts nobody but itself.
                _ = served => {}
                () = connection.idles() => {}
            }
        });
    }
    drop(tokio::time::timeout(FAREWELL, graceful.shutdown()).await);
}

fn prepared(stream: TcpStream) -> TcpStream {
    // Answers are small and written at once; without it they would only be slower.
    drop(stream.set_nodelay(true));
    stream
}

/// When there are no sockets left, those that are open have to end first.
#[expect(clippy::disallowed_methods, reason = "the host's sockets know no other time")]
async fn pause_after(error: &io::Error) {
    let is_the_clients = matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    );
    if !is_the_clients {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A connection that counts.
#[derive(Debug)]
struct Connection {
    state: Arc<State>,
    /// Goes up when a request is there and when it is answered: odd while the client waits.
    turns: AtomicU64,
}

/// A request that is not answered yet.
struct Asked(Arc<Connection>);

impl Connection {
    fn enter(state: &Arc<State>) -> Option<Self> {
        let before = state.connections.fetch_add(1, Ordering::Relaxed);
        let connection = Self { state: state.clone(), turns: AtomicU64::new(0) };
        (before < state.options.connections_max).then_some(connection)
    }

    fn is_asked(self: &Arc<Self>) -> Asked {
        self.turns.fetch_add(1, Ordering::Relaxed);
        Asked(self.clone())
    }

    /// Completes when the client has left the server without a request for [`IDLE`] to twice as long: one timer a
    /// connection, and none a request.
    #[expect(clippy::disallowed_methods, reason = "a client is idle in real time")]
    async fn idles(&self) {
        loop {
            let before = self.turns.load(Ordering::Relaxed);
            tokio::time::sleep(IDLE).await;
            if before.is_multiple_of(2) && self.turns.load(Ordering::Relaxed) == before {
                return;
            }
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.0.turns.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.state.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Lets what happens by itself happen when its time has come: calls that are held go on, chats die and come back.
async fn wake(state: Arc<State>) {
    let mut closing = state.closing.subscribe();
    loop {
        let next = deeds::catch_up(&state);
        let due = async {
            match next {
                Some(at) => state.clock.sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = due => {}
            () = state.wakes.notified() => {}
            _ = closing.wait_for(|closing| *closing) => return,
        }
    }
}

async fn answer(asked: Asked, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Cut> {
    let state = &asked.0.state;
    let (parts, body) = request.into_parts();
    if parts.uri.authority().is_some() {
        let failure = Failure::new(404, "Not Found: absolute URI is specified in the Request-Line");
        return Reply::failure(&failure).into_response(true);
    }
    let reply = match request::route(parts.uri.path()) {
        Route::Call { token, method } => {
            if parts.method != Method::GET && parts.method != Method::POST {
                return Reply::failure(&Failure::new(405, "Method Not Allowed")).into_response(false);
            }
            let mut params = match request::of_query(parts.uri.query()) {
                Ok(params) => params,
                Err(failure) => return Reply::failure(&failure).into_response(true),
            };
            let body = request::of_body(&mut params, &parts.headers, body, state.options.body_max);
            match body.await {
                Ok(()) => call(state, &token, &method, params, aside(&parts.headers)).await,
                // The rest of the body is not read.
                Err(failure) => return Reply::failure(&failure).into_response(true),
            }
        }
        Route::File { token, path } => file(state, &token, &path),
        Route::Admin(path) => {
            let query = parts.uri.query().unwrap_or_default();
            match request::collect(body, state.options.body_max).await {
                Ok(body) => Box::pin(admin::answer(state, &parts.method, path, query, &body)).await,
                Err(failure) => return Reply::failure(&failure).into_response(true),
            }
        }
        Route::Nothing => Reply::failure(&Failure::new(404, "Not Found")),
    };
    // Whoever else has asked is answered first, and then all are written to together: a client that was woken by the first
    // answer finds the others, and is not woken again for each.
    tokio::task::yield_now().await;
    reply.into_response(false)
}

fn aside(headers: &HeaderMap) -> Aside {
    fn number<T: std::str::FromStr>(headers: &HeaderMap, name: &HeaderName) -> Option<T> {
        headers.get(name)?.to_str().ok()?.trim().parse().ok()
    }
    Aside {
        call: number(headers, &CALL),
        draw: number(headers, &DRAW),
        idempotency: number(headers, &HeaderName::from_static("idempotency-key")),
    }
}

fn file(state: &State, token: &str, path: &str) -> Reply {
    let bot = match state.bot(token) {
        Ok(bot) => bot,
        Err(failure) => return Reply::failure(&failure),
    };
    let inner = bot.inner();
    match inner.contents.file_at(path) {
        Some(file) => Reply::raw(200, "application/octet-stream", file.bytes.clone()),
        None => Reply::failure(&Failure::new(404, "Not Found")),
    }
}

/// Connections that wait to be accepted. With tokio's 128, who connects while they are full waits for a second: ten
/// thousand clients at once took half a minute. The host may allow fewer.
const BACKLOG: u32 = 4_096;
/// Real clients keep idle connections and do not like to lose them: nothing under 75 s. It bounds how long somebody may
/// take to send headers, too.
const IDLE: Duration = Duration::from_secs(75);
/// Bytes of a request line and headers together. telebot puts 4,096 letters into a line: 37 kB in the worst case; the
/// open server takes 256 KiB of headers (td `HttpReader.cpp`). hyper looks when it has read, so up to twice as much may pass.
const HEADERS_MAX: usize = 256 << 10;
/// How long answers may take once the server is to end.
const FAREWELL: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever waits for an answer may wait for as long as that takes; whoever asks nothing may not.
    #[tokio::test(start_paused = true)]
    #[expect(clippy::disallowed_methods, reason = "the clock of the test stands")]
    async fn only_the_silent_are_cut_off() {
        let state = Arc::new(State::new(Options::default()).expect("sound"));
        let connection = Arc::new(Connection::enter(&state).expect("there is room"));
        let within = |time| tokio::time::timeout(time, connection.idles());
        let asked = connection.is_asked();
        assert!(within(10 * IDLE).await.is_err(), "it waits for us");
        drop(asked);
        assert!(within(IDLE - Duration::from_secs(1)).await.is_err());
        let (idles, ()) = tokio::join!(within(2 * IDLE + Duration::from_secs(1)), async {
            tokio::time::sleep(IDLE / 2).await;
            drop(connection.is_asked());
        });
        assert!(idles.is_ok());
    }
}
