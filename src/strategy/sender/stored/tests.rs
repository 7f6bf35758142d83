//! Each script's two halves, held against each other over whatever may happen.

use fake_telegram::api::{ChatIndex, ChatKind, Method};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::*;
use crate::limiter::offer::Offer;
use crate::limiter::pause::PauseKey;
use crate::limiter::window_counter::KeyedBy;
use crate::store::keyspace::Keyspace;
use crate::store::redis::Redis;
use crate::strategy::sender::asked::{Count, Paused, Refuse, Slow, Take, take};
use crate::strategy::sender::limiter::{Limiter, TokenBucketLimiter};
use crate::strategy::sender::{Parts, Sender};
use crate::world::ClassIndex;

const CLASSES: [&str; 3] = ["reply", "notification", "bill"];
/// Processes that ask.
const PROCESSES: usize = 3;

/// What a script works on, twice.
struct Halves {
    rust: Keyspace,
    lua: Redis,
    now: Time,
}

impl Halves {
    fn new() -> Self {
        Self { rust: Keyspace::default(), lua: crate::store::redis::for_tests(), now: Time::ZERO }
    }

    fn lua(&mut self, eval: Option<Eval>) -> Result<Reply, CommandError> {
        let eval = eval.expect("it is written");
        self.lua.eval(self.now, &eval).unwrap_or_else(|error| panic!("{error}: {:?}", eval.args))
    }
}

/// How a sender is composed; lanes are slow enough, and leases short enough, for all to happen.
fn senders() -> impl Strategy<Value = Sender> {
    let pace = "{ chat_rate = '2/3s', chat_burst = 2, group_rate = '20/min', group_burst = 3 }";
    let queues = ["before", "after"].into_iter().flat_map(move |mark| {
        let rest = format!("mark = '{mark}', lease = '4s'");
        [
            format!("queue = {{ kind = 'fifo', {rest} }}"),
            format!("queue = {{ kind = 'fifo', {rest}, pace = {pace} }}"),
            format!("queue = {{ kind = 'lanes', {rest}, pace = {pace}, priority = ['reply', 'bill'] }}"),
        ]
    });
    let limiters = [
        "",
        "limiter = { kind = 'token-bucket', rate = '7/3s', burst = 3 }",
        "limiter = { kind = 'token-bucket', rate = '5/s', burst = 4, ramp = { resume = '20%', step = '2/s' } }",
        "limiter = { kind = 'token-bucket', rate = '3/s', burst = 2, clock = 'callers' }",
        "limiter = { kind = 'token-bucket', rate = '3/s', burst = 2, keep = 'process' }",
    ];
    let retries = [
        "retry = 'requeue'",
        "retry = 'postpone'",
        "retry = { kind = 'release', delay = '700ms', attempts = 3 }",
    ];
    let pauses = ["", "learned", "chat", "method", "token", "host"].map(|key| match key {
        "" => String::new(),
        key => format!("pause = {{ kind = 'store', key = '{key}' }}"),
    });
    let doubts = [
        "doubt = 'never'",
        "doubt = 'retry'",
        "doubt = { kind = 'retry', attempts = 2, pause = '300ms', at_most_once = ['bill'] }",
    ];
    let rest = ["dead_chats = 'remember'", "dead_chats = 'revive'", "deadlines = true"];
    (
        prop::sample::select(queues.collect::<Vec<_>>()),
        prop::sample::select(limiters.to_vec()),
        prop::sample::select(retries.to_vec()),
        prop::sample::select(pauses.to_vec()),
        prop::sample::select(doubts.to_vec()),
        prop::sample::select(rest.to_vec()),
    )
        .prop_map(|(queue, limiter, retry, pause, doubt, rest)| {
            let text = [&queue, limiter, retry, &pause, doubt, rest].join("\n");
            let parts: Parts = toml::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            parts.over(Sender::bare())
        })
}

/// A message of few chats, so that they meet; its number comes later.
fn messages() -> impl Strategy<Value = Message> {
    let deadlines = prop_oneof![3 => Just(Time::MAX), 1 => (0..20_000_000_u64).prop_map(Time::from_micros)];
    (0..4_u32, 0..CLASSES.len() as u8, deadlines, any::<bool>(), any::<bool>()).prop_map(
        |(chat, class, deadline, photo, from_user)| Message {
            number: 0,
            chat: ChatIndex(chat),
            due: Time::from_micros(7),
            deadline,
            class: ClassIndex(class),
            kind: [ChatKind::Private, ChatKind::Group, ChatKind::Channel, ChatKind::Private][chat as usize],
            method: if photo { Method::SendPhoto } else { Method::SendMessage },
            from_user,
        },
    )
}

#[derive(Debug, Clone)]
enum Step {
    Pass(u64),
    /// By which process, whether it asks its last question again, whether it can send, how far its clock is ahead.
    Exchange(usize, bool, bool, u64, Vec<Message>),
    /// Of which offer, how, for how long it was refused, whether the offer stays known, and whether it was told before.
    Finish(prop::sample::Index, Said, Option<u64>, bool, bool),
    Flush,
}

#[derive(Debug, Clone, Copy)]
enum Said {
    Done,
    ChatDead,
    Waits(u64, Postponed),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let why = prop::sample::select(vec![Postponed::Refused, Postponed::InVain, Postponed::HeldBack]);
    let said = prop_oneof![
        3 => Just(Said::Done),
        1 => Just(Said::ChatDead),
        4 => (prop_oneof![Just(0), 0..5_000_000_u64], why).prop_map(|(wait, why)| Said::Waits(wait, why)),
    ];
    let refused = prop::option::weighted(0.3, prop_oneof![Just(0), 1..5_000_000_u64]);
    let exchange = (
        0..PROCESSES,
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.9),
        0..900_000_u64,
        prop::collection::vec(messages(), 0..4),
    );
    let step = prop_oneof![
        30 => prop_oneof![Just(0), 1..300_000_u64, 1..5_000_000_u64].prop_map(Step::Pass),
        50 => exchange.prop_map(|(process, again, can_send, ahead, due)| Step::Exchange(process, again, can_send, ahead, due)),
        30 => (any::<prop::sample::Index>(), said, refused, prop::bool::weighted(0.2), any::<bool>())
            .prop_map(|(which, said, refused, stays, again)| Step::Finish(which, said, refused, stays, again)),
        1 => Just(Step::Flush),
    ];
    prop::collection::vec(step, 1..120)
}

/// What both halves of a queue's scripts say is the same, and what they hold too.
fn agree(sender: &Sender, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut halves = Halves::new();
    let classes = CLASSES.map(str::to_owned);
    let policy = Policy::new(sender, &classes);
    let queue = sender.queue.0.clone();
    let bucket = sender.limiter.0.bucket_beside(sender.queue.0.keep()).cloned();
    let key = sender.pause.0.shared_key();
    let at = Stored {
        queue: halves.rust.holder("queue", move || Shared::new(&queue)),
        budget: bucket.map(|bucket| halves.rust.key("budget", move || bucket.budget())),
        pause: key.map(|key| halves.rust.key("pause", move || Pause::new(key))),
    };
    let (mut offers, mut questions, mut number) = (Vec::<Offer>::new(), [0_u32; PROCESSES], 0);
    for step in steps {
        match step {
            Step::Pass(us) => halves.now += Duration::from_micros(us),
            Step::Flush => {
                halves.rust.flush();
                halves.lua.flush().expect("it is there");
            }
            Step::Exchange(process, again, can_send, ahead, mut due) => {
                for message in &mut due {
                    number += 1;
                    message.number = number;
                }
                questions[process] += u32::from(!again);
                let asker = Asker {
                    process: process as u16,
                    life: process as u32 + 7,
                    question: questions[process],
                    can_send,
                    now: halves.now + Duration::from_micros(ahead),
                };
                let script = Exchange { policy: &policy, at, asker, due: &due };
                let eval = script.eval(Names::new(&halves.rust));
                let expected = run(&halves, at, |now, queue, beside, told| {
                    policy.exchange(now, asker, queue, beside, &due, &mut |what| told.push(what))
                });
                let said = halves.lua(eval).expect("no command of it fails");
                prop_assert_eq!(
                    read_grant(&said).zip(read_all_told(&said)),
                    Some(expected.clone()),
                    "at {}: {:?}",
                    halves.now,
                    said
                );
                offers.extend(expected.0.offer);
            }
            Step::Finish(which, said, refused, stays, is_again) => {
                if offers.is_empty() {
                    continue;
                }
                let which = which.index(offers.len());
                let offer = if stays { offers[which] } else { offers.swap_remove(which) };
                let ending = match said {
                    Said::Done => Ending::Done,
                    Said::ChatDead => Ending::ChatDead,
                    Said::Waits(wait, why) => Ending::Waits(Duration::from_micros(wait), why),
                };
                let refused = refused.map(Duration::from_micros);
                let news = News { offer: &offer, ending, refused, is_again };
                let eval = Finish { policy: &policy, at, news }.eval(Names::new(&halves.rust));
                let expected = run(&halves, at, |now, queue, beside, told| {
                    policy.finish(now, queue, beside, news, &mut |what| told.push(what))
                });
                let said = halves.lua(eval).expect("no command of it fails");
                prop_assert_eq!(
                    read_wait(&said).zip(read_all_told(&said)),
                    Some(expected),
                    "at {}: {:?}",
                    halves.now,
                    said
                );
            }
        }
        let holder = [Name::Object("queue:messages".to_owned())];
        let mut held = halves.lua.held(holder.into_iter()).expect("it is there");
        let mut expected = halves.rust.held();
        held.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(held, expected);
    }
    Ok(())
}

fn run<R>(
    halves: &Halves,
    at: Stored,
    run: impl FnOnce(Time, &mut Shared, &mut Beside<'_>, &mut Vec<Told>) -> R,
) -> (R, Vec<Told>) {
    let mut queue = halves.rust.object(at.queue);
    let mut budget = at.budget.map(|budget| halves.rust.object(budget));
    let mut pause = at.pause.map(|pause| halves.rust.object(pause));
    let mut beside = Beside { budget: budget.as_deref_mut(), pause: pause.as_deref_mut() };
    let mut told = Vec::new();
    let result = run(halves.now, &mut queue, &mut beside, &mut told);
    (result, told)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn a_queue_is_the_same_in_lua(sender in senders(), steps in steps()) {
        agree(&sender, steps)?;
    }

    /// Waits, credit, ramps and clocks of callers that differ.
    #[test]
    fn a_budget_is_the_same_in_lua(
        kind in 0..4_usize,
        count in 1..40_u64,
        period in prop_oneof![Just(1_000_000), Just(60_000_000), 1..200_000_000_u64],
        burst in 1..30_u32,
        steps in prop::collection::vec((0..3_000_000_u64, 0..5_u8, 0..4_000_000_u64), 1..60),
    ) {
        let more = ["", "clock = 'callers'", "ramp = {}", "ramp = { resume = '0%', step = '7/min' }"][kind];
        let text = format!("rate = '{count}/{period}us'\nburst = {burst}\n{more}");
        let limiter: TokenBucketLimiter = toml::from_str(&text).expect("parameters");
        let is_on_callers_clocks = Limiter::TokenBucket(limiter.clone()).is_on_callers_clocks();
        let settings = lua::budget(&limiter).to_string();
        let mut halves = Halves::new();
        let budget = halves.rust.key("budget", move || limiter.budget());
        for (pause, what, us) in steps {
            halves.now += Duration::from_micros(pause);
            let now = halves.now;
            if what == 0 {
                let wait = Duration::from_micros(us);
                let eval = Slow { budget, wait, settings: &settings }.eval(Names::new(&halves.rust));
                halves.rust.object(budget).refuse(now, now + wait);
                halves.lua(eval).expect("no command of it fails");
                continue;
            }
            let own = is_on_callers_clocks.then(|| now + Duration::from_micros(us));
            let eval = Take { budget, own, settings: &settings }.eval(Names::new(&halves.rust));
            let expected = take(now, own, &mut halves.rust.object(budget));
            let said = halves.lua(eval).expect("no command of it fails");
            prop_assert_eq!(lua::read_distance(&said), Some(expected), "at {}", now);
        }
    }

    #[test]
    fn a_pause_is_the_same_in_lua(
        key in prop::sample::select(vec![
            PauseKey::Learned, PauseKey::Chat, PauseKey::Method, PauseKey::Token, PauseKey::Host,
        ]),
        steps in prop::collection::vec((0..2_000_000_u64, messages(), prop::option::of(0..5_000_000_u64)), 1..80),
    ) {
        let mut halves = Halves::new();
        let pause = halves.rust.key("pause", move || Pause::new(key));
        for (gap, message, refused) in steps {
            halves.now += Duration::from_micros(gap);
            let now = halves.now;
            if let Some(wait) = refused.map(Duration::from_micros) {
                let eval = Refuse { pause, key, message: &message, wait }.eval(Names::new(&halves.rust));
                halves.rust.object(pause).refuse(now, message.chat, message.method, now + wait);
                halves.lua(eval).expect("no command of it fails");
            }
            let eval = Paused { pause, key, message: &message }.eval(Names::new(&halves.rust));
            let until = halves.rust.object(pause).until_for(now, message.chat, message.method);
            let said = halves.lua(eval).expect("no command of it fails");
            prop_assert_eq!(lua::read_distance(&said), Some(until.saturating_since(now)), "at {}", now);
        }
    }

    /// The same commands one by one, and a counter that is none.
    #[test]
    fn a_counter_is_the_same_in_lua(steps in prop::collection::vec((0..900_000_u64, 0..3_u8, 0..8_u8), 1..60)) {
        use crate::store::command::Command;

        let mut halves = Halves::new();
        let ttl = Duration::from_secs(1);
        for (gap, which, what) in steps {
            halves.now += Duration::from_micros(gap);
            let now = halves.now;
            let key = format!("{:?}{which}", KeyedBy::Window);
            if what == 0 {
                let set = Command::Set { key, value: b"x".to_vec(), only_if_absent: false, ttl: Some(ttl) };
                let expected = halves.rust.execute(now, &set);
                prop_assert_eq!(halves.lua.execute(now, &set).expect("it is there"), expected);
                continue;
            }
            let expected = halves.rust.execute(now, &Command::Incr { key: key.clone() });
            let eval = Count { key: key.clone(), ttl }.eval(Names::new(&halves.rust));
            prop_assert_eq!(&halves.lua(eval), &expected);
            if expected == Ok(Reply::Integer(1)) {
                let expire = Command::Expire { key, ttl };
                let expected = halves.rust.execute(now, &expire);
                prop_assert_eq!(halves.lua.execute(now, &expire).expect("it is there"), expected);
            }
        }
    }
}
