//! Which server is called, and whether that is safe.

use std::net::{SocketAddr, ToSocketAddrs};

use fake_telegram::http::options::Options;
use fake_telegram::http::server::Server;
use fake_telegram::time::Duration;
use reqwest::Url;

use super::client::Client;

/// A Bot API server.
#[derive(Debug, Clone)]
pub struct Target {
    /// The base URL, without a slash at its end.
    pub(super) base: String,
    host: String,
    addresses: Vec<SocketAddr>,
    /// By token of the scenario: what the server knows it by.
    pub(super) tokens: Vec<String>,
    /// Its name, if it is a server of ours: it tells the truth.
    pub(super) ours: Option<String>,
}

/// Why a URL names no server that can be called.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// It is no base URL.
    #[error("`{url}` is no base URL of a Bot API server: {why}; write it like http://127.0.0.1:8081")]
    Url {
        /// The URL, without what may be secret.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// It is the real Telegram.
    #[error("this is Telegram itself, which nobody floods; run a server of your own")]
    Telegram,
    /// The host has no address.
    #[error("cannot find the host `{host}`")]
    Host {
        /// The host.
        host: String,
        /// Why.
        source: std::io::Error,
    },
    /// Nobody answers.
    #[error("nothing answers at {base}; is the server running?")]
    Silent {
        /// The base URL.
        base: String,
        /// Why.
        source: reqwest::Error,
    },
    /// The system gives no thread of real time.
    #[error("cannot run in real time")]
    System(#[source] std::io::Error),
    /// No server of our own can be started.
    #[error("cannot start a server")]
    Own(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// It cannot be reset.
    #[error(
        "{base} cannot be reset, so the design would begin with the budgets and penalties of before; start it again"
    )]
    Reset {
        /// The base URL.
        base: String,
        /// Why.
        source: reqwest::Error,
    },
}

impl Target {
    /// Finds the server of a base URL. Calls nothing but the resolver.
    ///
    /// # Errors
    /// If the text is no such URL, its host has no address, or it is the real Telegram.
    pub fn resolve(text: &str, tokens: Vec<String>) -> Result<Self, TargetError> {
        let url = Url::parse(text);
        let wrong = |why: String| {
            // What cannot be read may hold anything.
            let url =
                Url::parse(text).map_or_else(|_| "…".to_owned(), |url| url.origin().ascii_serialization());
            TargetError::Url { url, why }
        };
        let url = url.map_err(|error| wrong(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong("it begins neither with http:// nor with https://".to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("a user or a password has no place in it".to_owned()));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("a query or a fragment has no place in it".to_owned()));
        }
        let Some(host) = url.host_str() else { return Err(wrong("the host is missing".to_owned())) };
        if is_telegram(host) {
            return Err(TargetError::Telegram);
        }
        let port = url.port_or_known_default().unwrap_or(80);
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let addresses = (bare, port).to_socket_addrs();
        let addresses =
            addresses.map_err(|source| TargetError::Host { host: host.to_owned(), source })?.collect();
        let base = url.as_str().trim_end_matches('/').to_owned();
        Ok(Self { base, host: host.to_owned(), addresses, tokens, ours: None })
    }

    /// Starts a server of our own, which ends when it is dropped; it knows the tokens of the options and no others.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(options: Options) -> Result<(Self, Server), TargetError> {
        let tokens = options.tokens.clone();
        let addr = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = Server::start(Options { addr, strict: true, ..options });
        let server = server.map_err(|error| TargetError::Own(error.into()))?;
        Ok((Self::resolve(&format!("http://{}", server.addr()), tokens)?, server))
    }

    /// The base URL, without a slash at its end.
    pub fn url(&self) -> &str {
        &self.base
    }

    /// Whether it is on this machine, whichever of its addresses is taken.
    pub fn is_loopback(&self) -> bool {
        !self.addresses.is_empty()
            && self.addresses.iter().all(|address| address.ip().to_canonical().is_loopback())
    }

    /// Finds out whether it is a server of ours.
    ///
    /// # Errors
    /// If nobody answers.
    pub(super) async fn meet(&mut self, timeout: Duration) -> Result<(), TargetError> {
        let silent = |source| TargetError::Silent { base: self.base.clone(), source };
        let health = match self.client(timeout) {
            Ok(client) => client.health().await,
            Err(error) => Err(error),
        };
        self.ours = health.map_err(silent)?.map(|health| {
            let part = |key: &str| health[key].as_str().unwrap_or_default().to_owned();
            format!("{} {}, profile {}", part("name"), part("version"), part("profile"))
        });
        Ok(())
    }

    /// Lets a server of ours begin again.
    pub(super) async fn reset(&self, timeout: Duration) -> Result<(), TargetError> {
        let reset = match self.client(timeout) {
            Ok(client) => client.reset().await,
            Err(error) => Err(error),
        };
        reset.map_err(|source| TargetError::Reset { base: self.base.clone(), source })
    }

    /// A client of its own for whoever asks.
    pub(super) fn client(&self, timeout: Duration) -> reqwest::Result<Client> {
        Client::new(&self.base, &self.host, &self.addresses, timeout)
    }
}

fn is_telegram(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    host == "telegram.org" || host.ends_with(".telegram.org")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> Result<Target, TargetError> {
        Target::resolve(url, Vec::new())
    }

    #[test]
    fn loopback_is_loopback_in_every_spelling() {
        for url in [
            "http://127.0.0.1:8081",
            "http://127.9.9.9",
            "http://[::1]:1/",
            "http://localhost:1/prefix/",
            "http://[::ffff:127.0.0.1]:1",
        ] {
            assert!(target(url).expect(url).is_loopback(), "{url}");
        }
        for url in ["http://192.0.2.1:8081", "https://[2001:db8::1]/", "http://0.0.0.0:1"] {
            assert!(!target(url).expect(url).is_loopback(), "{url}");
        }
        assert_eq!(target("http://localhost:1/prefix/").expect("a URL").base, "http://localhost:1/prefix");
    }

    #[test]
    fn what_is_no_base_url_is_told_so_without_its_secrets() {
        for url in [
            "127.0.0.1:8081",
            "ftp://127.0.0.1",
            "http://me:secret@127.0.0.1",
            "http://127.0.0.1/?t=secret",
            "http://",
        ] {
            let error = target(url).expect_err(url).to_string();
            assert!(error.contains("http://127.0.0.1:8081") && !error.contains("secret"), "{error}");
        }
    }

    /// Whatever the resolver says.
    #[test]
    fn telegram_is_telegram() {
        for url in ["https://api.telegram.org", "http://API.Telegram.org.:8081/", "https://telegram.org"] {
            assert!(matches!(target(url), Err(TargetError::Telegram)), "{url}");
        }
        assert!(!is_telegram("telegram.org.example") && !is_telegram("nottelegram.org"));
    }
}
