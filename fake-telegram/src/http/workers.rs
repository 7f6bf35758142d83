//! Threads that serve connections, and what becomes of these: the silent are cut off, and all end when the server does.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::Waker;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use crate::http::service::answer;
use crate::http::state::State;

/// Threads with a runtime each, one a core: what a connection needs is made, used and freed by one of them, and none wakes
/// another.
#[derive(Debug)]
pub(super) struct Workers {
    doors: Vec<mpsc::UnboundedSender<(std::net::TcpStream, Connection)>>,
    next: usize,
    /// Closed when all have ended.
    ended: mpsc::Receiver<()>,
}

impl Workers {
    pub(super) fn start() -> io::Result<Self> {
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
    pub(super) fn give(&mut self, stream: TcpStream, connection: Connection) {
        self.next = (self.next + 1) % self.doors.len();
        if let Ok(stream) = stream.into_std() {
            // A worker lives until its door is dropped.
            drop(self.doors[self.next].send((stream, connection)));
        }
    }

    /// No connection comes any more; completes when what is in flight is answered, or that takes too long.
    pub(super) async fn end(mut self) {
        self.doors.clear();
        // Nothing is ever sent.
        let _: Option<()> = self.ended.recv().await;
    }
}

/// Serves connections, until none can come any more.
async fn work(mut connections: mpsc::UnboundedReceiver<(std::net::TcpStream, Connection)>) {
    let mut open: Vec<Served> = Vec::new();
    let mut swept = 0;
    let mut rounds = tokio::time::interval(IDLE);
    // Who was stopped for long has heard nobody meanwhile.
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            came = connections.recv() => match came {
                Some((stream, connection)) => {
                    // Clients that come for one call each leave their tasks behind.
                    if open.len() >= 2 * swept + 64 {
                        open.retain(|served| !served.task.is_finished());
                        swept = open.len();
                    }
                    open.extend(Served::new(stream, connection));
                }
                None => break,
            },
            _ = rounds.tick() => open.retain_mut(Served::is_busy),
        }
    }
    open.iter().for_each(Served::end);
    let ended = async {
        for Served { task, .. } in open {
            // One that was cut off, or panicked, has ended too.
            drop(task.await);
        }
    };
    drop(tokio::time::timeout(FAREWELL, ended).await);
}

/// A connection that is served.
#[derive(Debug)]
struct Served {
    connection: Weak<Connection>,
    task: JoinHandle<()>,
    /// How many turns there had been when somebody last looked.
    turns: u64,
}

impl Served {
    fn new(stream: std::net::TcpStream, connection: Connection) -> Option<Self> {
        let stream = TcpStream::from_std(stream).ok()?;
        // Answers are small and written at once; without it they would only be slower.
        drop(stream.set_nodelay(true));
        let connection = Arc::new(connection);
        let (open, turns) = (Arc::downgrade(&connection), NOT_LOOKED);
        Some(Self { connection: open, task: tokio::spawn(serve(stream, connection)), turns })
    }

    /// Whether it is open and not silent; one that had no request since this was last asked, and waits for no answer, is
    /// cut off. One look every [`IDLE`] costs a request nothing; a timer would have to be looked at with each.
    fn is_busy(&mut self) -> bool {
        let Some(connection) = self.connection.upgrade() else { return false };
        let turns = connection.turns.load(Ordering::Relaxed);
        let is_silent = turns == self.turns && turns.is_multiple_of(2);
        self.turns = turns;
        if is_silent {
            self.task.abort();
        }
        !is_silent
    }

    /// It ends when what is in flight is answered.
    fn end(&self) {
        let Some(connection) = self.connection.upgrade() else { return };
        connection.is_ending.store(true, Ordering::Relaxed);
        if let Some(task) = connection.task.get() {
            task.wake_by_ref();
        }
    }
}

async fn serve(stream: TcpStream, connection: Arc<Connection>) {
    let mut http = http1::Builder::new();
    // Head and body of an answer in one piece: they are small, and two cost the system more to gather than to copy.
    http.max_buf_size(HEADERS_MAX).writev(false);
    let service = service_fn(|request| {
        let asked = Asked::new(connection.clone());
        async move { answer(&asked.0.state, request).await }
    });
    let mut served = pin!(http.serve_connection(TokioIo::new(stream), service));
    let mut is_told = false;
    let served = poll_fn(|context| {
        connection.task.get_or_init(|| context.waker().clone());
        if !is_told && connection.is_ending.load(Ordering::Relaxed) {
            is_told = true;
            served.as_mut().graceful_shutdown();
        }
        served.as_mut().poll(context)
    });
    // Whoever hangs up in the middle hurts nobody but itself.
    drop(served.await);
}

/// A connection that counts.
#[derive(Debug)]
pub(super) struct Connection {
    state: Arc<State>,
    /// Goes up when a request is there and when it is answered: odd while the client waits.
    turns: AtomicU64,
    /// Whether it is to end.
    is_ending: AtomicBool,
    /// Wakes the task that serves it, once that runs.
    task: OnceLock<Waker>,
}

impl Connection {
    /// `None` if there are as many as there may be.
    pub(super) fn enter(state: &Arc<State>) -> Option<Self> {
        let before = state.connections.fetch_add(1, Ordering::Relaxed);
        let connection = Self {
            state: state.clone(),
            turns: AtomicU64::new(0),
            is_ending: AtomicBool::new(false),
            task: OnceLock::new(),
        };
        (before < state.options.connections_max).then_some(connection)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.state.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request that is not answered yet.
struct Asked(Arc<Connection>);

impl Asked {
    fn new(connection: Arc<Connection>) -> Self {
        connection.turns.fetch_add(1, Ordering::Relaxed);
        Self(connection)
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.0.turns.fetch_add(1, Ordering::Relaxed);
    }
}

/// Real clients keep idle connections and do not like to lose them: nothing under 75 s, and up to twice that. It bounds how
/// long somebody may take to send headers, too.
const IDLE: Duration = Duration::from_secs(75);
/// Odd: as if its client waited for an answer.
const NOT_LOOKED: u64 = u64::MAX;
/// Bytes of a request line and headers together. telebot puts 4,096 letters into a line: 37 kB in the worst case; the
/// open server takes 256 KiB of headers (td `HttpReader.cpp`). hyper looks when it has read, so up to twice as much may pass.
const HEADERS_MAX: usize = 256 << 10;
/// How long answers may take once the server is to end.
const FAREWELL: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;
    use crate::http::options::Options;

    /// Whoever waits for an answer may wait for as long as that takes; whoever asks nothing may not.
    #[tokio::test]
    async fn only_the_silent_are_cut_off() {
        let state = Arc::new(State::new(Options::default()).expect("sound"));
        let connection = Arc::new(Connection::enter(&state).expect("there is room"));
        let task = tokio::spawn(std::future::pending());
        let mut open = Served { connection: Arc::downgrade(&connection), task, turns: NOT_LOOKED };
        assert!(open.is_busy(), "it may have come just now");
        let asked = Asked::new(connection.clone());
        assert!(open.is_busy() && open.is_busy() && open.is_busy(), "it waits for us");
        drop(asked);
        assert!(open.is_busy());
        drop(Asked::new(connection.clone()));
        assert!(open.is_busy());
        assert!(!open.is_busy());
        assert!(open.task.await.is_err_and(|error| error.is_cancelled()));
        assert_eq!(state.connections.load(Ordering::Relaxed), 1);
        drop(connection);
        assert_eq!(state.connections.load(Ordering::Relaxed), 0);
    }

    /// By the worker, on a connection that is one: after 75 s to twice as long, and never earlier.
    #[tokio::test(start_paused = true)]
    async fn a_client_that_says_nothing_is_hung_up_on() {
        let state = Arc::new(State::new(Options::default()).expect("sound"));
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let addr = listener.local_addr().expect("an address");
        let mut client = TcpStream::connect(addr).await.expect("somebody listens");
        let (stream, _) = listener.accept().await.expect("a client");
        let (door, connections) = mpsc::unbounded_channel();
        let connection = Connection::enter(&state).expect("there is room");
        door.send((stream.into_std().expect("a socket"), connection)).expect("it is open");
        let worker = tokio::spawn(work(connections));
        let since = tokio::time::Instant::now();
        assert_eq!(client.read(&mut [0]).await.expect("no error"), 0);
        let silent = since.elapsed();
        assert!((IDLE..=2 * IDLE + Duration::from_secs(1)).contains(&silent), "{silent:?}");
        drop(door);
        worker.await.expect("it ends");
        assert_eq!(state.connections.load(Ordering::Relaxed), 0);
    }
}
