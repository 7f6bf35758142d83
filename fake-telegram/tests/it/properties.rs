//! What is promised for any stream of calls.

use std::collections::BTreeMap;

use fake_telegram::bucket::{BucketState, TokenBucket};
use fake_telegram::units::Rate;
use fake_telegram::window::{FixedState, FixedWindow, SlidingLog, SlidingWindow};
use proptest::prelude::*;

use super::naive::{any_call, any_gap};
use super::*;

/// The instants at which a limiter lets calls through that come after these gaps; where it refuses, its wait is
/// checked to be exact.
fn accepted<S: Clone>(
    gaps: &[Duration],
    mut state: S,
    wait: impl Fn(&S, Time) -> Duration,
    take: impl Fn(&mut S, Time),
) -> Vec<Time> {
    let mut now = Time::ZERO;
    let mut accepted = Vec::new();
    for &gap in gaps {
        now += gap;
        let pause = wait(&state, now);
        if pause.is_zero() {
            take(&mut state, now);
            accepted.push(now);
        } else {
            assert_eq!(wait(&state, now + pause), Duration::ZERO, "after its wait a call is free");
            assert_eq!(wait(&state, now + pause - Duration::from_micros(1)), Duration::from_micros(1));
        }
    }
    accepted
}

/// The most that lies in any half-open stretch of `length`.
fn most_within(times: &[Time], length: Duration) -> usize {
    let within = |from: &Time| times.iter().filter(|t| from <= t && **t < *from + length).count();
    times.iter().map(within).max().unwrap_or(0)
}

proptest! {
    #[test]
    fn a_sliding_window_never_lets_more_than_its_limit_through(
        gaps in prop::collection::vec(any_gap(), 1..200), limit in 1u32..10, micros in 1u64..5_000_000,
    ) {
        let window = SlidingWindow { limit, window: Duration::from_micros(micros) };
        let times = accepted(&gaps, SlidingLog::default(), |log, t| window.wait(log, t, 1), |log, t| window.take(log, t, 1));
        prop_assert!(most_within(&times, window.window) <= limit as usize);
    }

    #[test]
    fn a_fixed_window_lets_at_most_twice_its_limit_through(
        gaps in prop::collection::vec(any_gap(), 1..200), limit in 1u32..10, millis in 1u64..5_000,
    ) {
        let window = FixedWindow { limit, window: Duration::from_millis(millis) };
        let times = accepted(&gaps, FixedState::default(), |s, t| window.wait(*s, t, 1), |s, t| window.take(s, t, 1));
        prop_assert!(most_within(&times, window.window) <= 2 * limit as usize);
    }

    #[test]
    fn a_bucket_never_lets_more_than_burst_and_refill_through(
        gaps in prop::collection::vec(any_gap(), 1..150), burst in 1u64..10, count in 1u64..1_000, micros in 1u64..90_000_000,
    ) {
        let bucket = TokenBucket::new(Rate { count, period: Duration::from_micros(micros) }, burst);
        let times = accepted(&gaps, BucketState::default(), |s, t| bucket.wait(*s, t), |s, t| bucket.take(s, t));
        for (i, from) in times.iter().enumerate() {
            for (j, to) in times.iter().enumerate().skip(i) {
                let refill = u128::from((*to - *from).as_micros()) * u128::from(count) / u128::from(micros);
                prop_assert!((j - i + 1) as u128 <= u128::from(burst) + refill);
            }
        }
    }

    /// A server that saw only the accepted calls is in the same state as one that saw the refused ones too.
    #[test]
    fn a_refused_call_takes_nothing_from_any_limit(calls in prop::collection::vec(any_call(), 1..300)) {
        let profile = profile("penalties = false");
        let new = || Model::new(&profile, Faults::default(), chats(), 2);
        let (mut all, mut accepted) = (new(), new());
        let mut now = Time::ZERO;
        for (gap, request) in calls {
            now += gap;
            all.handle(now, CallId(0), request, Draws { fault: 0 });
            let decision = all.poll().expect("nothing is held");
            if is_delivered(&decision) {
                accepted.handle(now, CallId(0), request, Draws { fault: 0 });
                prop_assert_eq!(accepted.poll(), Some(decision));
            }
            for token in [TokenIndex(0), TokenIndex(1)] {
                prop_assert_eq!(all.token_level(token, now), accepted.token_level(token, now));
            }
        }
    }

    /// Where no two tokens write to one chat it does not matter that a chat has one budget, not one for each token.
    #[test]
    fn own_chats_change_nothing_for_those_who_have_them(
        calls in prop::collection::vec(any_call(), 1..300), profile in 0..Profile::ALL.len(),
    ) {
        let profile = Profile::named(Profile::ALL[profile].0).expect("a listed profile");
        let new = |tokens| Model::new(&profile, Faults::default(), chats(), tokens);
        let (mut apart, mut own) = (new(2), new(0).with_own_chats());
        let mut now = Time::ZERO;
        for (gap, mut request) in calls {
            now += gap;
            // Even ones are one token's, odd ones the other's.
            request.token = TokenIndex((request.chat.0 % 2) as u16);
            for model in [&mut apart, &mut own] {
                model.handle(now, CallId(0), request, Draws { fault: 0 });
            }
            loop {
                let decision = apart.poll();
                prop_assert_eq!(own.poll(), decision);
                if decision.is_none() {
                    break;
                }
            }
        }
    }

    /// The level falls by what accepted calls take and rises by no more than the rate.
    #[test]
    fn the_token_level_accounts_for_every_call(calls in prop::collection::vec(any_call(), 1..300)) {
        let mut model = Model::new(&Profile::telegram(), Faults::default(), chats(), 2);
        let (mut now, token) = (Time::ZERO, TokenIndex(0));
        let level = |model: &Model, now| model.token_level(token, now).expect("a token-wide limit");
        for (gap, request) in calls {
            let before = level(&model, now);
            now += gap;
            let refilled = before.available + gap.as_micros() * 30;
            let then = level(&model, now).available;
            // Rounded down to micro-tokens, both times.
            prop_assert!(then.abs_diff(refilled.min(before.capacity)) <= 1);
            model.handle(now, CallId(0), request, Draws { fault: 0 });
            let decision = model.poll().expect("nothing is held");
            let taken = if request.token == token { u64::from(decision.taken) } else { 0 };
            prop_assert_eq!(level(&model, now).available, then - taken * 1_000_000);
        }
    }

    /// Waiting exactly `retry_after` works, under every profile, when nobody else spends the budget meanwhile.
    #[test]
    fn retry_after_is_enough(calls in prop::collection::vec(any_call(), 1..200)) {
        for (name, _) in Profile::ALL {
            let mut client = Client::new(&Profile::named(name).expect("a listed profile"));
            for (gap, request) in &calls {
                let decision = client.send(client.now + *gap, request.chat.0);
                if let Some(seconds) = retry_after(&decision) {
                    let again = client.send(client.now + Duration::from_secs(seconds.into()), request.chat.0);
                    prop_assert!(is_delivered(&again), "{}: {:?}, then {:?}", name, decision, again);
                    prop_assert_eq!(again.at, client.now);
                }
            }
        }
    }

    /// Whatever is called during it, a penalty never ends earlier than was answered, nor an episode later than its cap.
    #[test]
    fn an_early_call_never_shortens_a_penalty(gaps in prop::collection::vec(any_gap(), 1..100)) {
        let mut client = Client::new(&Profile::telegram());
        while is_delivered(&client.send(s(0), GROUP)) {}
        let mut deadline = s(60);
        for gap in gaps {
            let decision = client.send(client.now + gap, GROUP);
            let Truth::Refused { wait, .. } = decision.truth else {
                prop_assert!(decision.at >= deadline);
                break;
            };
            prop_assert!(decision.at < deadline || decision.at - s(0) >= Duration::from_hours(1));
            prop_assert!(decision.at + wait >= deadline);
            deadline = decision.at + wait;
            prop_assert!(deadline <= s(3_600));
        }
    }

    /// Under any limits and holds a key is delivered at most once, and all its deliveries look the same.
    #[test]
    fn a_key_is_delivered_once(calls in prop::collection::vec((any_call(), 0u32..20), 1..200), observed: bool) {
        let profile = if observed { Profile::telegram_observed() } else { Profile::telegram() };
        let mut client = Client::new(&Profile { idempotency_keys: true, ..profile });
        let mut decisions = Vec::new();
        for ((gap, request), key) in &calls {
            decisions.extend(client.decided(client.now + *gap));
            client.request(client.now, Request { idempotency: Some(*key), ..*request });
        }
        decisions.extend(client.decided(client.now + Duration::from_hours(24)));
        prop_assert_eq!(decisions.len(), calls.len());
        let mut delivered = BTreeMap::new();
        for decision in decisions {
            let ((_, request), key) = calls[decision.call.0 as usize];
            match decision.truth {
                Truth::Delivered => prop_assert_eq!(delivered.insert((request.token, key), decision.answer), None),
                Truth::Replayed => prop_assert_eq!(delivered.get(&(request.token, key)), Some(&decision.answer)),
                _ => {}
            }
        }
    }

    /// A hold never lasts longer than its budget for a call that is alone, and everything is answered in the end.
    #[test]
    fn held_calls_are_all_answered(calls in prop::collection::vec(any_call(), 1..300), cascade: bool) {
        let profile = profile(&format!("profile = \"telegram-observed\"\nhold = {{ cascade = {cascade} }}"));
        let mut client = Client::new(&profile);
        let mut called = Vec::new();
        let mut decisions = Vec::new();
        for (gap, request) in calls {
            called.push(client.now + gap);
            decisions.extend(client.decided(client.now + gap));
            client.call(client.now, request.chat.0, request.method);
        }
        decisions.extend(client.decided(client.now + Duration::from_hours(24)));
        prop_assert_eq!(client.model.next_timeout(), None);
        let mut answered: Vec<u32> = decisions.iter().map(|d| d.call.0).collect();
        answered.sort_unstable();
        prop_assert_eq!(answered, (0..called.len() as u32).collect::<Vec<_>>());
        let in_order = decisions.iter().map(|d| d.at).collect::<Vec<_>>();
        prop_assert!(in_order.is_sorted());
        for decision in &decisions {
            prop_assert!(called[decision.call.0 as usize] <= decision.at);
        }
    }
}
