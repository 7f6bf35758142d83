//! What a bot says in `setWebhook`.

use reqwest::Url;

use crate::http::failure::Failure;
use crate::http::params::Params;

/// A webhook: where updates go, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// As the bot wrote it.
    pub url: String,
    /// The same, read: http or https, with a host.
    pub target: Url,
    /// What every delivery carries in `X-Telegram-Bot-Api-Secret-Token`, 1-256 of `A-Z a-z 0-9 _ -`.
    pub secret_token: Option<String>,
    /// How many deliveries are on the wire at once at most, 1-100.
    pub max_connections: usize,
    /// The address that the bot fixed. Shown again, and not used: nothing but the URL says where a delivery goes.
    pub ip_address: Option<String>,
    /// Whether the bot uploaded a certificate. It is not kept.
    pub has_certificate: bool,
}

impl Hook {
    /// Reads the parameters of a `setWebhook`; `None` if they remove the webhook: `url` is absent or empty.
    ///
    /// Nothing is resolved or called. Any port and plain http are fine, as on a local Bot API server
    /// (core.telegram.org/bots/api#using-a-local-bot-api-server).
    ///
    /// # Errors
    /// 400 if the URL is none, or the secret token is too long or has other letters.
    pub fn read(params: &Params) -> Result<Option<Self>, Failure> {
        let text =
            |name| params.text(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let Some(url) = text("url") else { return Ok(None) };
        let target = target(&url).ok_or_else(|| Failure::new(400, INVALID_URL))?;
        let secret_token = text("secret_token");
        if let Some(secret) = &secret_token {
            if secret.len() > SECRET_TOKEN_MAX {
                return Err(Failure::new(400, SECRET_TOO_LONG));
            }
            if !secret.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-') {
                return Err(Failure::new(400, SECRET_UNALLOWED));
            }
        }
        // Out of range is not refused but brought into it (tdlib/telegram-bot-api `Client.cpp`, get_integer_arg).
        let max_connections = params.integer("max_connections").unwrap_or(40).clamp(1, 100) as usize;
        let ip_address = text("ip_address");
        let has_certificate = params.file("certificate").is_some();
        Ok(Some(Self { url, target, secret_token, max_connections, ip_address, has_certificate }))
    }
}

/// A URL without a scheme is an https one (td `HttpUrl.h`, parse_url).
fn target(url: &str) -> Option<Url> {
    let whole = if url.contains("://") { Url::parse(url) } else { Url::parse(&format!("https://{url}")) };
    whole.ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

/// core.telegram.org/bots/api#setwebhook.
const SECRET_TOKEN_MAX: usize = 256;
// Texts: `bot-api-errors.json`.
const INVALID_URL: &str = "Bad Request: invalid webhook URL specified";
const SECRET_TOO_LONG: &str = "Bad Request: secret token is too long";
const SECRET_UNALLOWED: &str = "Bad Request: secret token contains unallowed characters";

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(fields: &[(&str, Value)]) -> Result<Option<Hook>, Failure> {
        let mut params = Params::default();
        for (name, value) in fields {
            params.set(*name, value.clone());
        }
        Hook::read(&params)
    }

    #[test]
    fn no_url_removes_it() {
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[("url", json!("")), ("max_connections", json!(7))]), Ok(None));
    }

    #[test]
    fn any_http_address_will_do() {
        for (url, target) in [
            ("https://127.0.0.1:8443/hook", "https://127.0.0.1:8443/hook"),
            ("http://localhost:1/a?b=c", "http://localhost:1/a?b=c"),
            ("example.com/hook", "https://example.com/hook"),
            ("http://[::1]:99", "http://[::1]:99/"),
        ] {
            let hook = read(&[("url", json!(url))]).expect("valid").expect("a hook");
            assert_eq!((hook.url.as_str(), hook.target.as_str()), (url, target));
            assert_eq!((hook.max_connections, hook.secret_token), (40, None), "the API's defaults");
        }
        for url in
            ["ftp://example.com/", "http://", "https://exa mple.com", "https://a:99999", "file:///etc/passwd"]
        {
            assert_eq!(read(&[("url", json!(url))]), Err(Failure::new(400, INVALID_URL)), "{url}");
        }
    }

    #[test]
    fn secrets_and_connections_have_bounds() {
        let with = |name, value| read(&[("url", json!("https://a.b/")), (name, value)]);
        let hook = |name, value| with(name, value).expect("valid").expect("a hook");
        assert_eq!(hook("max_connections", json!("1000")).max_connections, 100);
        assert_eq!(hook("max_connections", json!(0)).max_connections, 1);
        assert_eq!(hook("secret_token", json!("aZ0_-")).secret_token.as_deref(), Some("aZ0_-"));
        assert!(with("secret_token", json!("a".repeat(256))).is_ok());
        assert_eq!(with("secret_token", json!("a".repeat(257))), Err(Failure::new(400, SECRET_TOO_LONG)));
        assert_eq!(with("secret_token", json!("a b")), Err(Failure::new(400, SECRET_UNALLOWED)));
        assert_eq!(with("secret_token", json!("ключ")), Err(Failure::new(400, SECRET_UNALLOWED)));
    }
}
