//! What comes of a request: a call, a file, or a word with the server's operator.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderName};
use hyper::{Method, Request, Response};

use crate::http::admin;
use crate::http::call::{Aside, call};
use crate::http::failure::Failure;
use crate::http::reply::{CALL, Cut, DRAW, IDEMPOTENCY, Pieces, Reply};
use crate::http::request::{self, Route};
use crate::http::state::State;

/// Answers a request.
///
/// # Errors
/// If there is to be no answer.
pub(super) async fn answer(state: &Arc<State>, request: Request<Incoming>) -> Result<Response<Pieces>, Cut> {
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
        idempotency: number(headers, &IDEMPOTENCY),
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
