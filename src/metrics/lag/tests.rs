use fake_telegram::api::{Answer, CallId, ChatIndex, ChatKind, Decision, Method, TokenIndex, Truth};
use fake_telegram::time::Duration;
use proptest::prelude::*;

use super::*;
use crate::event::{Event, Observer};
use crate::world::{ClassIndex, Message};

/// A ledger of messages due at 0, each delivered after so many milliseconds, or not at all.
fn ledger(lags_ms: &[Option<u64>]) -> Ledger {
    let mut ledger = Ledger::new(1, 1, 1);
    let message = |number| Message {
        number,
        chat: ChatIndex(0),
        due: Time::ZERO,
        deadline: Time::MAX,
        class: ClassIndex(0),
        kind: ChatKind::Private,
        method: Method::SendMessage,
        from_user: false,
    };
    for number in 0..lags_ms.len() as u32 {
        ledger.observe(Time::ZERO, &Event::Due { message: message(number), alive: true });
    }
    for (number, lag) in lags_ms.iter().enumerate() {
        if let Some(lag) = lag {
            let at = Time::ZERO + Duration::from_millis(*lag);
            let (answer, truth) = (Answer::Message { message_id: 1 }, Truth::Delivered);
            let decision = Decision { call: CallId(0), at, answer, truth, in_penalty: false, taken: 1 };
            ledger.observe(
                at,
                &Event::Decided { message: message(number as u32), token: TokenIndex(0), decision },
            );
        }
    }
    ledger
}

fn summary(lags_ms: &[Option<u64>], horizon_s: u64) -> Lag {
    Lags::new(&ledger(lags_ms), Time::ZERO..Time::from_secs(horizon_s), 1).summary(None)
}

/// Within the histogram's three digits.
fn close(actual: Option<u64>, expected_ms: u64) -> bool {
    actual.is_some_and(|us| us.abs_diff(expected_ms * 1_000) * 1_000 <= expected_ms * 1_000)
}

#[test]
fn quantiles_are_those_of_the_sorted_lags() {
    let lags: Vec<_> = (1..=1_000).map(Some).collect();
    let lag = summary(&lags, 10);
    assert!(close(lag.p50, 500) && close(lag.p90, 900) && close(lag.p99, 990) && close(lag.p999, 999));
    assert_eq!((lag.max, lag.samples, lag.censored), (Some(1_000_000), 1_000, 0));
    assert!(lag.lower_bound.is_empty());
}

#[test]
fn what_was_not_delivered_counts_with_its_age_as_a_lower_bound() {
    let mut lags: Vec<_> = (1..=98).map(Some).collect();
    lags.extend([None, None]);
    let lag = summary(&lags, 60);
    assert!(close(lag.p90, 90));
    assert_eq!((lag.p99, lag.max, lag.censored), (Some(60_000_000), Some(60_000_000), 2));
    assert_eq!(lag.lower_bound, ["p99", "p999", "max"]);
}

/// An age in the middle of the field shifts the quantiles below it too, and each that it shifts is named.
#[test]
fn a_quantile_that_a_young_age_shifts_is_a_lower_bound() {
    let mut lags: Vec<_> = (0..50).map(|_| Some(100)).collect();
    lags.extend((0..49).map(|_| Some(100_000)));
    lags.push(None);
    let lag = summary(&lags, 50);
    assert!(close(lag.p50, 100));
    assert!(!lag.lower_bound.contains(&"p50".to_owned()));
    assert!(lag.lower_bound.contains(&"max".to_owned()));
}

proptest! {
    /// With the other deliveries fixed, dropping a message never lowers a quantile: its age at the end of the run is
    /// at least the lag that it would have had.
    #[test]
    fn dropping_never_lowers_a_quantile(lags in prop::collection::vec(prop::option::of(1_u64..9_000), 1..200), pick in any::<prop::sample::Index>()) {
        let before = summary(&lags, 10);
        let mut dropped = lags;
        *pick.get_mut(&mut dropped) = None;
        let after = summary(&dropped, 10);
        for (before, after) in [(before.p50, after.p50), (before.p90, after.p90), (before.p99, after.p99), (before.p999, after.p999), (before.max, after.max)] {
            prop_assert!(after >= before, "{:?} became {:?}", before, after);
        }
        prop_assert!(after.censored >= before.censored);
    }

    /// Against the definition: the quantile is exact if replacing ages by infinity leaves it alone.
    #[test]
    fn lower_bounds_are_those_that_infinite_ages_would_change(lags in prop::collection::vec(prop::option::of(1_u64..20_000), 1..100)) {
        let lag = summary(&lags, 20);
        let quantile = |age: u64, ppm: u64| {
            let mut sorted: Vec<u64> = lags.iter().map(|lag| lag.unwrap_or(age)).collect();
            sorted.sort_unstable();
            sorted[((sorted.len() as u64 * ppm).div_ceil(1_000_000) as usize).max(1) - 1]
        };
        for (name, ppm) in [("p50", 500_000), ("p90", 900_000), ("p99", 990_000), ("p999", 999_000), ("max", 1_000_000)] {
            let (with_age, with_infinity) = (quantile(20_000, ppm), quantile(u64::MAX, ppm));
            // Values that the histogram cannot tell apart may go either way.
            if with_age == with_infinity || with_infinity > with_age + with_age / 500 {
                prop_assert_eq!(lag.lower_bound.contains(&name.to_owned()), with_age != with_infinity, "{}", name);
            }
        }
    }
}
