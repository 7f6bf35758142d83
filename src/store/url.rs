//! Where a real Redis is.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The address of a real Redis, `redis://[user[:password]@]host[:port][/database]`.
///
/// Wherever it is shown or written, its password is left out.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl(String);

/// Why a text is no such address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreUrlError(String);

const SCHEME: &str = "redis://";

impl StoreUrl {
    /// The whole of it, password and all: for whoever connects.
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// Its host.
    pub fn host(&self) -> &str {
        let authority = self.authority();
        let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
        match place.strip_prefix('[').and_then(|place| place.split_once(']')) {
            Some((host, _)) => host,
            None => place.split_once(':').map_or(place, |(host, _)| host),
        }
    }

    /// Whether it is this machine.
    pub fn is_loopback(&self) -> bool {
        self.host() == "localhost" || self.host().parse().is_ok_and(|host: IpAddr| host.is_loopback())
    }

    fn authority(&self) -> &str {
        let rest = &self.0[SCHEME.len()..];
        &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())]
    }
}

impl FromStr for StoreUrl {
    type Err = StoreUrlError;

    fn from_str(text: &str) -> Result<Self, StoreUrlError> {
        // What is wrong may hold a password: the text is not repeated.
        let wrong = |what: &str| Err(StoreUrlError(what.to_owned()));
        if text.starts_with("rediss://") {
            return wrong(
                "TLS is not supported; write the address of a Redis as in `redis://127.0.0.1:6379`",
            );
        }
        if !text.starts_with(SCHEME) {
            return wrong("this is no address of a Redis; write it as in `redis://127.0.0.1:6379`");
        }
        let url = Self(text.to_owned());
        if text[SCHEME.len() + url.authority().len()..].contains('@') {
            // The password would end there, and what is left of it would be no secret.
            return wrong(
                "the address of a Redis has an @ behind its host; write / # ? in a password as %2F %23 %3F",
            );
        }
        if url.host().is_empty() {
            return wrong("the address of a Redis lacks its host; write it as in `redis://127.0.0.1:6379`");
        }
        Ok(url)
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authority = self.authority();
        let rest = &self.0[SCHEME.len() + authority.len()..];
        // Options may hold secrets too, and nobody needs them to know the server.
        let path = rest.split(['?', '#']).next().unwrap_or_default();
        match authority.rsplit_once('@') {
            Some((user, place)) => {
                let user = user.split_once(':').map_or(user, |(user, _)| user);
                let at = if user.is_empty() { "" } else { "@" };
                write!(f, "{SCHEME}{user}{at}{place}{path}")
            }
            None => write!(f, "{SCHEME}{authority}{path}"),
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for StoreUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for StoreUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for StoreUrl {
    fn schema_name() -> Cow<'static, str> {
        "StoreUrl".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "the address of a Redis, as in `redis://127.0.0.1:6379`",
            "pattern": "^redis://.+$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> StoreUrl {
        text.parse().expect("an address")
    }

    #[test]
    fn a_password_is_nowhere_to_be_seen() {
        for (written, shown) in [
            ("redis://127.0.0.1:6379", "redis://127.0.0.1:6379"),
            ("redis://me:secret@host:1/2", "redis://me@host:1/2"),
            ("redis://:secret@host", "redis://host"),
            ("redis://:sec@ret@host", "redis://host"),
            ("redis://host/0?password=secret", "redis://host/0"),
        ] {
            let url = url(written);
            assert_eq!((url.to_string(), format!("{url:?}")), (shown.to_owned(), shown.to_owned()));
            assert_eq!(url.secret(), written);
        }
        let tls = "rediss://:secret@host".parse::<StoreUrl>().expect_err("no TLS");
        assert!(tls.to_string().contains("TLS is not supported"), "{tls}");
        // Whichever of these begins what stands behind the host, the password would end there.
        for written in ["redis://u:sec/ret@host", "redis://:sec#ret@host/1", "redis://u:sec?ret@host"] {
            let error = written.parse::<StoreUrl>().expect_err("a password as it is not written").to_string();
            assert!(error.contains("%2F") && !error.contains("sec") && !error.contains("ret@"), "{error}");
        }
        assert_eq!(url("redis://u:sec%2Fret@host").to_string(), "redis://u@host");
    }

    #[test]
    fn this_machine_is_told_from_others() {
        for text in ["redis://localhost", "redis://127.8.0.1:7", "redis://me:secret@[::1]:6379/3"] {
            assert!(url(text).is_loopback(), "{text}");
        }
        for text in ["redis://10.0.0.1", "redis://localhost.example:1", "redis://127.0.0.1@example.com"] {
            assert!(!url(text).is_loopback(), "{text}");
        }
        assert!("redis://".parse::<StoreUrl>().is_err() && "redis://:1@:6379".parse::<StoreUrl>().is_err());
    }
}
