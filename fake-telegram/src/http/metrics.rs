//! Counters for Prometheus. Made when somebody asks: calls pay nothing for them.

use std::sync::atomic::Ordering;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::http::state::State;

/// The text format of OpenMetrics.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Labels<const N: usize> = [(&'static str, String); N];

/// All of them. No chat is ever a label.
pub(super) fn text(state: &State) -> String {
    let requests = Family::<Labels<2>, Counter>::default();
    let throttled = Family::<Labels<1>, Counter>::default();
    let early = Family::<Labels<1>, Counter>::default();
    for (_, bot) in state.bots() {
        for (method, outcome, count) in bot.inner().counts.by_method() {
            let labels = [("method", method.to_owned()), ("outcome", outcome.name().to_owned())];
            requests.get_or_create(&labels).inc_by(count);
        }
    }
    let (bots, all) = state.verdicts();
    // What has not happened yet is 0 and not absent: so alerts can be written before.
    for limit in &state.core().profile().limits {
        let labels = [("limit", limit.name.clone())];
        drop((throttled.get_or_create(&labels), early.get_or_create(&labels)));
    }
    for (limit, count) in &all.throttled {
        throttled.get_or_create(&[("limit", limit.clone())]).inc_by(*count);
    }
    for (limit, count) in &all.early_retries {
        early.get_or_create(&[("limit", limit.clone())]).inc_by(*count);
    }
    let utilisation = Family::<Labels<1>, Gauge<f64, std::sync::atomic::AtomicU64>>::default();
    let token =
        state.core().profile().limits.iter().find(|limit| limit.is_token_wide()).map(|l| l.name.clone());
    if let Some(limit) = token {
        utilisation.get_or_create(&[("limit", limit)]).set(all.budget_utilisation_ppm as f64 / 1e6);
    }
    let gauge = |value: usize| {
        let gauge = Gauge::<i64>::default();
        gauge.set(value as i64);
        gauge
    };
    let held = state.core().held();
    let pending = state.bots().iter().map(|(_, bot)| bot.inbox.pending_and_dropped().0).sum();
    let mut registry = Registry::with_prefix("floodlab");
    registry.register("requests", "Calls, by method and by what the client got", requests);
    registry.register("throttled", "Refusals, by limit", throttled);
    registry.register(
        "early_retries",
        "Calls that should have waited for an earlier refusal, by limit",
        early,
    );
    registry.register(
        "calls_in_penalty",
        "Calls that arrived while a penalty ran",
        ConstCounter::new(all.calls_in_penalty),
    );
    registry.register("delivered", "Messages that arrived in chats", ConstCounter::new(all.delivered));
    registry.register(
        "duplicates",
        "Messages whose text was delivered to the same chat before",
        ConstCounter::new(all.duplicates),
    );
    registry.register(
        "budget_utilisation_ratio",
        "Tokens taken of those there were, of the bot that took most",
        utilisation,
    );
    registry.register("bots", "Bots that have called", gauge(bots.len()));
    registry.register("held_calls", "Calls that are held open", gauge(held));
    registry.register("pending_updates", "Updates that wait for their bots", gauge(pending));
    registry.register("connections", "Open connections", gauge(state.connections.load(Ordering::Relaxed)));
    let mut text = String::new();
    encode(&mut text, &registry).map_or_else(|error| error.to_string(), |()| text)
}
