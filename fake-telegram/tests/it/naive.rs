//! The model once more, simple and slow: buckets as fractions in `i128`, windows as lists of everything ever taken,
//! maps for everything, penalties as `design.md` words them. No holds, faults or dead chats.

use std::collections::BTreeMap;

use fake_telegram::api::LimitIndex;
use fake_telegram::limits::{Algorithm, Key, Limit};
use fake_telegram::penalty::PenaltyRule;
use fake_telegram::units::Rate;
use proptest::prelude::*;

use super::*;

/// What has a budget of its own: the limit, and of token, chat and method what it tells apart.
type Of = (usize, Option<u16>, Option<u32>, Option<Method>);

#[derive(Default)]
struct Naive {
    taken: BTreeMap<Of, Vec<i128>>,
    buckets: BTreeMap<Of, (i128, i128)>,
    penalties: BTreeMap<Of, Pause>,
    /// Each first refusal and the deadline that it led to in the end.
    episodes: BTreeMap<Of, Vec<(i128, i128)>>,
}

#[derive(Clone, Copy)]
struct Pause {
    deadline: i128,
    set: i128,
    first: i128,
    n: i128,
    level: u32,
}

/// What a call gets: nothing, or the limit, the wait in us and the seconds of the answer.
type Verdict = (bool, Option<(u8, i128, u32)>);

impl Naive {
    fn call(&mut self, limits: &[Limit], now: Time, request: Request, kind: ChatKind) -> Verdict {
        let now = i128::from(now.as_micros());
        let mut longest = None;
        let mut in_penalty = false;
        let mut takes = Vec::new();
        for (i, limit) in limits.iter().enumerate() {
            if !(limit.kinds.is_empty() || limit.kinds.contains(&kind)) {
                continue;
            }
            let free = [Method::SendChatAction, Method::EditForumTopic, Method::GetMe];
            let named = limit.methods.contains(&request.method);
            let spends = limit.methods.is_empty() && !free.contains(&request.method);
            if !named && !spends {
                continue;
            }
            let items = i128::from(request.items);
            let (token, chat) = (Some(request.token.0), Some(request.chat.0));
            let key = match limit.key {
                Key::Host => (i, None, None, None),
                Key::Token => (i, token, None, None),
                Key::Method => (i, token, None, Some(request.method)),
                Key::Chat => (i, token, chat, None),
            };
            takes.push((key, limit));
            let pause = self.penalties.get(&key).copied().filter(|pause| now < pause.deadline);
            in_penalty |= pause.is_some();
            let wait = pause.map_or_else(|| self.wait(key, limit, now, items), |pause| pause.deadline - now);
            if wait == 0 {
                continue;
            }
            let wait = limit.penalty.map_or(wait, |rule| self.punish(key, rule, now, wait));
            if longest.is_none_or(|(_, longest)| wait > longest) {
                longest = Some((i as u8, wait));
            }
        }
        if longest.is_none() {
            for (key, limit) in takes {
                let level = self.level(key, limit, now);
                let tokens = Self::tokens(limit, request.items.into());
                self.buckets.insert(key, (now, level - self.cost(limit, request.items.into())));
                self.taken.entry(key).or_default().extend((0..tokens).map(|_| now));
            }
        }
        (in_penalty, longest.map(|(limit, wait)| (limit, wait, ((wait + 999_999) / 1_000_000) as u32)))
    }

    /// The cost of a call in tokens; of an album no more than there ever are.
    fn tokens(limit: &Limit, items: i128) -> i128 {
        (i128::from(limit.cost) * items).min(limit.algorithm.capacity().into())
    }

    /// The cost of a call in tokens times the rate's period.
    fn cost(&self, limit: &Limit, items: i128) -> i128 {
        Self::tokens(limit, items) * i128::from(limit.algorithm.rate().period.as_micros())
    }

    /// What a bucket holds, in tokens times the rate's period.
    fn level(&self, key: Of, limit: &Limit, now: i128) -> i128 {
        let rate = limit.algorithm.rate();
        let full = i128::from(limit.algorithm.capacity()) * i128::from(rate.period.as_micros());
        let (at, level) = self.buckets.get(&key).copied().unwrap_or((0, full));
        full.min(level + (now - at) * i128::from(rate.count))
    }

    fn wait(&self, key: Of, limit: &Limit, now: i128, items: i128) -> i128 {
        let tokens = Self::tokens(limit, items) as usize;
        let none = Vec::new();
        let taken = self.taken.get(&key).unwrap_or(&none);
        match limit.algorithm {
            Algorithm::TokenBucket { rate, .. } => {
                let missing = self.cost(limit, items) - self.level(key, limit, now);
                let count = i128::from(rate.count);
                if missing <= 0 { 0 } else { (missing + count - 1) / count }
            }
            Algorithm::SlidingWindow { limit: most, window } => {
                let window = i128::from(window.as_micros());
                // The first of now and all ends of takes at which there is room.
                let ends = taken.iter().map(|t| t + window).filter(|&end| end > now);
                let fits = |at: i128| {
                    taken.iter().filter(|&&t| t <= at && at < t + window).count() + tokens <= most as usize
                };
                std::iter::once(now).chain(ends).filter(|&at| fits(at)).min().expect("it ends") - now
            }
            Algorithm::FixedWindow { limit: most, window } => {
                let window = i128::from(window.as_micros());
                let counted = taken.iter().filter(|&t| t / window == now / window).count();
                if counted + tokens <= most as usize { 0 } else { (now / window + 1) * window - now }
            }
        }
    }

    /// A refusal; how long it then asks to wait.
    fn punish(&mut self, key: Of, rule: PenaltyRule, now: i128, wait: i128) -> i128 {
        let us = |duration: Duration| i128::from(duration.as_micros());
        let whole = |us: i128| (us + 999_999) / 1_000_000 * 1_000_000;
        let last = self.penalties.get(&key).copied();
        let next = match (rule, last) {
            (PenaltyRule::EarlyRetry { grace, cap, .. }, Some(mut pause)) if now < pause.deadline => {
                if now - pause.set > us(grace) {
                    if pause.n < us(cap) {
                        pause.n = us(cap).min(2 * pause.n);
                    }
                    pause.deadline = pause.deadline.max((now + pause.n).min(pause.first + us(cap)));
                    pause.set = now;
                }
                pause
            }
            (PenaltyRule::EarlyRetry { minimum, halve_every, .. }, last) => {
                let mut floor = last.map_or(0, |pause| pause.n);
                let quiet = last.map_or(0, |pause| now - pause.deadline);
                for _ in 0..(quiet / us(halve_every)).min(99) {
                    floor /= 2;
                }
                let n = whole(wait.max(floor).max(us(minimum)));
                Pause { deadline: now + n, set: now, first: now, n, level: 0 }
            }
            (PenaltyRule::Reoffence { .. }, Some(pause)) if now < pause.deadline => pause,
            (PenaltyRule::Reoffence { within, minimum, cap, forgive_every }, last) => {
                let level = last.map_or(0, |pause| {
                    let quiet = now - pause.deadline;
                    let forgiven = (quiet / us(forgive_every)).min(99) as u32;
                    pause.level.saturating_sub(forgiven) + u32::from(quiet <= us(within))
                });
                let base = whole(wait.max(us(minimum)));
                let n = (base << level).min(us(cap)).max(base);
                Pause { deadline: now + n, set: now, first: now, n, level }
            }
        };
        let episodes = self.episodes.entry(key).or_default();
        match last {
            Some(last) if now < last.deadline => {
                *episodes.last_mut().expect("it began") = (last.first, next.deadline)
            }
            _ => episodes.push((now, next.deadline)),
        }
        self.penalties.insert(key, next);
        next.deadline - now
    }

    /// Of a limit's penalties: how many, how long in all, how long the longest; cut at `until`.
    fn sums(&self, limit: usize, until: Time) -> (u64, i128, i128) {
        let until = i128::from(until.as_micros());
        let all = self.episodes.iter().filter(|(key, _)| key.0 == limit).flat_map(|(_, episodes)| episodes);
        let lengths: Vec<i128> = all.map(|&(first, deadline)| deadline.min(until) - first).collect();
        (lengths.len() as u64, lengths.iter().sum(), lengths.iter().copied().max().unwrap_or(0))
    }
}

/// Any possible limit, small enough to be hit.
fn any_limit() -> impl Strategy<Value = Limit> {
    let algorithm = (0..3, 1u64..40, 1u64..5_000_000, 2u32..8, 1u64..20_000);
    let penalty = prop_oneof![
        Just(None),
        Just(Some(PenaltyRule::EARLY_RETRY)),
        Just(Some(PenaltyRule::REOFFENCE)),
        Just(Some(PenaltyRule::EarlyRetry {
            grace: Duration::ZERO,
            minimum: Duration::from_secs(3),
            cap: Duration::from_secs(20),
            halve_every: Duration::from_secs(5),
        })),
        Just(Some(PenaltyRule::Reoffence {
            within: Duration::from_secs(30),
            minimum: Duration::from_millis(1),
            cap: Duration::from_secs(60),
            forgive_every: Duration::from_secs(10),
        })),
    ];
    let kinds = prop_oneof![
        Just(Vec::new()),
        Just(vec![ChatKind::Private]),
        Just(vec![ChatKind::Group, ChatKind::Channel])
    ];
    let questions = Just(vec![Method::Search, Method::GetPrice]);
    let methods = prop_oneof![3 => Just(Vec::new()), 1 => Just(vec![Method::SendPhoto]), 1 => questions];
    let key = prop::sample::select(vec![Key::Host, Key::Token, Key::Method, Key::Chat]);
    (algorithm, penalty, kinds, methods, key, 1u32..3).prop_map(
        |((which, count, period, most, millis), penalty, kinds, methods, key, cost)| Limit {
            name: "any".to_owned(),
            key,
            kinds,
            methods,
            algorithm: match which {
                0 => Algorithm::TokenBucket {
                    rate: Rate { count, period: Duration::from_micros(period) },
                    burst: most.into(),
                },
                1 => Algorithm::SlidingWindow { limit: most, window: Duration::from_millis(millis) },
                _ => Algorithm::FixedWindow { limit: most, window: Duration::from_millis(millis) },
            },
            cost,
            penalty,
        },
    )
}

/// A gap before a call: mostly short, sometimes long, often none.
pub(super) fn any_gap() -> impl Strategy<Value = Duration> {
    prop_oneof![
        3 => Just(0),
        2 => 1u64..10,
        4 => 0u64..100_000,
        3 => 0u64..3_000_000,
        1 => (0u64..60).prop_map(|seconds| seconds * 1_000_000),
        1 => 0u64..2_000_000_000,
    ]
    .prop_map(Duration::from_micros)
}

/// A call to one of the declared chats.
pub(super) fn any_call() -> impl Strategy<Value = (Duration, Request)> {
    let method = prop::sample::select(Method::ALL.to_vec());
    let items = prop_oneof![4 => Just(1u16), 1 => 2u16..11];
    (any_gap(), 0u16..2, 0u32..8, method, items).prop_map(|(gap, token, chat, method, items)| {
        let (token, chat) = (TokenIndex(token), ChatIndex(chat % 3 * 3));
        (gap, Request { token, chat, method, idempotency: None, items })
    })
}

proptest! {
    #[test]
    fn the_model_agrees_with_a_naive_one(
        limits in prop::collection::vec(any_limit(), 1..5),
        calls in prop::collection::vec(any_call(), 1..150),
    ) {
        let profile = Profile { limits, ..Profile::unlimited() };
        agree(&profile, &calls)?;
    }

    #[test]
    fn telegram_agrees_with_a_naive_one(calls in prop::collection::vec(any_call(), 1..300)) {
        agree(&Profile::telegram(), &calls)?;
        agree(&Profile { hold: None, ..Profile::telegram_observed() }, &calls)?;
    }
}

fn agree(profile: &Profile, calls: &[(Duration, Request)]) -> Result<(), TestCaseError> {
    let mut model = Model::new(profile, Faults::default(), chats(), 2);
    let mut naive = Naive::default();
    let mut now = Time::ZERO;
    for &(gap, request) in calls {
        now += gap;
        model.handle(now, CallId(0), request, Draws { fault: 0 });
        let decision = model.poll().expect("nothing is held");
        let kind = model.chat_kind(request.chat).expect("a declared chat");
        let expected = naive.call(&profile.limits, now, request, kind);
        let refused = match decision.truth {
            Truth::Refused { limit: LimitIndex(limit), wait } => {
                Some((limit, i128::from(wait.as_micros()), retry_after(&decision).expect("a 429")))
            }
            _ => None,
        };
        prop_assert_eq!((decision.in_penalty, refused), expected, "at {}", now);
    }
    for until in [now, now + Duration::from_secs(10), now + Duration::from_hours(9)] {
        for i in 0..profile.limits.len() {
            let limit = LimitIndex(i as u8);
            let time = i128::from(model.penalty_time(limit, until).as_micros());
            let longest = i128::from(model.penalty_longest(limit, until).as_micros());
            prop_assert_eq!((model.penalties(limit), time, longest), naive.sums(i, until), "until {}", until);
        }
    }
    Ok(())
}
