//! The server: it listens, deals connections out, and lets happen what happens by itself.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};

use crate::http::deeds;
use crate::http::options::Options;
use crate::http::state::State;
use crate::http::workers::{Connection, Workers};

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

/// Connections that wait to be accepted. With tokio's 128, who connects while they are full waits for a second: ten
/// thousand clients at once took half a minute. The host may allow fewer.
const BACKLOG: u32 = 4_096;
