//! The numbers of a run counted anew from its raw events, naively and by their definitions (`docs/report.md`), to be
//! compared with what the engine folded as the run went. Nothing here is clever, and nothing is shared with the engine.

use std::collections::{BTreeMap, BTreeSet};

use fake_telegram::api::{Answer, ChatIndex, TokenIndex, Truth};
use fake_telegram::hint::RetryHint;
use fake_telegram::limits::Key;
use fake_telegram::time::{Duration, Time};
use floodlab::event::Event;
use floodlab::outcome::{Lag, Metrics};
use floodlab::scenario::Scenario;
use floodlab::world::{Belief, GiveUp, Message, ProcessIndex};

use crate::lab::{Run, index};

/// Panics unless the totals of `run`, its lags, its series of queue depth, refusals and budget agree with its events.
pub(crate) fn check(scenario: &Scenario, run: &Run) {
    let design = index(scenario, &run.outcome.name);
    assert!(run.tape.is_sorted_by_key(|(at, _)| *at), "time never goes back");
    let measured = &run.outcome.metrics;
    let lines = lines(run);
    // What cannot be seen in events is taken over; lags are compared on their own.
    let (penalty_us, lag_us) = (measured.penalty_us.clone(), measured.lag_us.clone());
    let (penalties, penalty_max_us) = (measured.penalties.clone(), measured.penalty_max_us.clone());
    let (store_keys, store_keys_without_ttl) = (measured.store_keys, measured.store_keys_without_ttl);
    let counted = Metrics {
        queue_depth_max: depths(scenario, run).into_iter().max().unwrap_or(0),
        early_retries: early_retries(scenario, design, run).len() as u64,
        budget_utilisation_ppm: utilisation(scenario, design, run),
        throttled: throttled(scenario, run),
        penalty_us,
        penalties,
        penalty_max_us,
        store_keys,
        store_keys_without_ttl,
        lag_us,
        ..totals(run, &lines)
    };
    assert_eq!(*measured, counted, "design {}", run.outcome.name);
    let sum =
        counted.delivered + counted.dead + counted.expired + counted.dropped + counted.pending + counted.lost;
    assert_eq!(counted.due, sum);
    assert_eq!(run.outcome.series.queue_depth_max, depths(scenario, run));
    let horizon = Time::ZERO + scenario.horizon();
    check_lag(&measured.lag_us, lines.values(), horizon);
    for (number, (name, class)) in run.outcome.classes.iter().enumerate() {
        let of_class: Vec<&Line> =
            lines.values().filter(|line| usize::from(line.message.class.0) == number).collect();
        let count = |fate| of_class.iter().filter(|line| line.fate() == fate).count() as u64;
        assert_eq!(class.due, of_class.len() as u64, "class {name}");
        assert_eq!(
            [class.delivered, class.dead, class.expired, class.dropped, class.pending, class.lost],
            ["delivered", "dead", "expired", "dropped", "pending", "lost"].map(count),
            "class {name}"
        );
        check_lag(&class.lag_us, of_class.into_iter(), horizon);
    }
}

/// All that is known of a message at the end.
struct Line {
    message: Message,
    alive: bool,
    deliveries: Vec<Time>,
    /// The answer to its last call, if that call was answered.
    last_answer: Option<Answer>,
    settled: Option<Belief>,
    given_up: Option<GiveUp>,
    reused: Option<Time>,
    holder: Holder,
    /// Calls that the server has not decided.
    on_the_wire: u32,
}

#[derive(Clone, Copy, PartialEq)]
enum Holder {
    Outbox,
    Process(ProcessIndex),
    Store,
    /// Whoever held it is gone.
    Nobody,
}

impl Line {
    fn delivered_at(&self) -> Option<Time> {
        self.deliveries.first().copied().into_iter().chain(self.reused).min()
    }

    /// By the first that applies of the definition's list.
    fn fate(&self) -> &'static str {
        if self.delivered_at().is_some() {
            "delivered"
        } else if !self.alive || matches!(self.last_answer, Some(Answer::Forbidden(_))) {
            "dead"
        } else if self.given_up == Some(GiveUp::Expired) {
            "expired"
        } else if self.given_up.is_some() {
            "dropped"
        } else if self.settled.is_none() && (self.holder != Holder::Nobody || self.on_the_wire > 0) {
            "pending"
        } else {
            "lost"
        }
    }
}

fn lines(run: &Run) -> BTreeMap<u32, Line> {
    let mut lines = BTreeMap::new();
    for (at, event) in &run.tape {
        match *event {
            Event::Due { message, alive } => {
                let (deliveries, last_answer) = (Vec::new(), None);
                let (settled, given_up, reused, holder) = (None, None, None, Holder::Outbox);
                let on_the_wire = 0;
                let line = Line {
                    message,
                    alive,
                    deliveries,
                    last_answer,
                    settled,
                    given_up,
                    reused,
                    holder,
                    on_the_wire,
                };
                assert!(lines.insert(message.number, line).is_none(), "a message falls due once");
                assert_eq!(*at, message.due);
            }
            Event::Sent { message, .. } => {
                let line = line(&mut lines, message);
                (line.last_answer, line.on_the_wire) = (None, line.on_the_wire + 1);
            }
            Event::Decided { message, decision, .. } => {
                let line = line(&mut lines, message);
                line.on_the_wire -= 1;
                if decision.truth == Truth::Delivered {
                    line.deliveries.push(*at);
                }
            }
            Event::Answered { message, answer, .. } => line(&mut lines, message).last_answer = Some(answer),
            Event::Settled { message, belief } => line(&mut lines, message).settled = Some(belief),
            Event::GivenUp { message, why } => line(&mut lines, message).given_up = Some(why),
            Event::Reused { message } => line(&mut lines, message).reused = Some(*at),
            Event::Taken { message, process } => held_by(&mut lines, message, Holder::Process(process)),
            Event::Vanished { message } => held_by(&mut lines, message, Holder::Nobody),
            Event::Stored { message } => held_by(&mut lines, message, Holder::Store),
            Event::Killed { process } => lose(&mut lines, Holder::Process(process)),
            Event::Flushed => lose(&mut lines, Holder::Store),
            Event::Started { .. } | Event::Sample { .. } => {}
        }
    }
    lines
}

fn held_by(lines: &mut BTreeMap<u32, Line>, message: u32, holder: Holder) {
    lines.get_mut(&message).expect("nothing happens to a message before it is due").holder = holder;
}

fn lose(lines: &mut BTreeMap<u32, Line>, holder: Holder) {
    lines.values_mut().filter(|line| line.holder == holder).for_each(|line| line.holder = Holder::Nobody);
}

fn line(lines: &mut BTreeMap<u32, Line>, message: Message) -> &mut Line {
    lines.get_mut(&message.number).expect("nothing happens to a message before it is due")
}

fn calls_per_ms_max(run: &Run) -> u64 {
    let mut calls: BTreeMap<u64, u64> = BTreeMap::new();
    for (at, _) in run.tape.iter().filter(|(_, event)| matches!(event, Event::Sent { .. })) {
        *calls.entry(at.as_micros() / 1_000).or_default() += 1;
    }
    calls.into_values().max().unwrap_or(0)
}

fn totals(run: &Run, lines: &BTreeMap<u32, Line>) -> Metrics {
    let count = |fate| lines.values().filter(|line| line.fate() == fate).count() as u64;
    let events =
        |wanted: &dyn Fn(&Event) -> bool| run.tape.iter().filter(|(_, event)| wanted(event)).count() as u64;
    let believed = |belief| lines.values().filter(|line| line.believes(belief)).count() as u64;
    let requests = events(&|event| matches!(event, Event::Sent { .. }));
    let due = lines.len() as u64;
    Metrics {
        due,
        delivered: count("delivered"),
        dead: count("dead"),
        expired: count("expired"),
        dropped: count("dropped"),
        pending: count("pending"),
        lost: count("lost"),
        duplicated: lines.values().map(|line| line.deliveries.len().saturating_sub(1) as u64).sum(),
        reordered: reordered(run),
        believed_delivered: believed(Belief::Delivered),
        believed_unknown: believed(Belief::Unknown),
        believed_falsely: lines
            .values()
            .filter(|line| line.believes(Belief::Delivered) && line.delivered_at().is_none())
            .count() as u64,
        requests,
        reused: lines.values().filter(|line| line.reused.is_some()).count() as u64,
        kills: events(&|event| matches!(event, Event::Killed { .. })),
        calls_per_ms_max: calls_per_ms_max(run),
        calls_in_penalty: events(
            &|event| matches!(event, Event::Decided { decision, .. } if decision.in_penalty),
        ),
        amplification_ppm: (requests * 1_000_000).checked_div(due).unwrap_or(0),
        spent_on_dead: decisions(run)
            .filter(|(_, decision)| decision.truth == Truth::Dead)
            .map(|(_, decision)| u64::from(decision.taken))
            .sum(),
        ..Metrics::default()
    }
}

impl Line {
    fn believes(&self, belief: Belief) -> bool {
        let reused = self.reused.is_some() && belief == Belief::Delivered;
        self.given_up.is_none() && (self.settled == Some(belief) || reused)
    }
}

fn decisions(run: &Run) -> impl Iterator<Item = (Time, fake_telegram::api::Decision)> {
    run.tape.iter().filter_map(|(at, event)| match event {
        Event::Decided { decision, .. } => Some((*at, *decision)),
        _ => None,
    })
}

/// First deliveries into a chat that come after the delivery of a later message of that chat.
fn reordered(run: &Run) -> u64 {
    let mut delivered: BTreeMap<(TokenIndex, ChatIndex), BTreeSet<u32>> = BTreeMap::new();
    let mut reordered = 0;
    for (_, event) in &run.tape {
        let Event::Decided { message, token, decision } = event else { continue };
        if decision.truth != Truth::Delivered {
            continue;
        }
        let chat = delivered.entry((*token, message.chat)).or_default();
        if chat.insert(message.number) && chat.iter().any(|other| *other > message.number) {
            reordered += 1;
        }
    }
    reordered
}

fn throttled(scenario: &Scenario, run: &Run) -> indexmap::IndexMap<String, u64> {
    let limits = scenario.server.limits.iter().enumerate();
    let by_limit = limits.map(|(index, limit)| {
        let refused = decisions(run).filter(
            |(_, decision)| matches!(decision.truth, Truth::Refused { limit, .. } if usize::from(limit.0) == index),
        );
        (limit.name.clone(), refused.count() as u64)
    });
    by_limit.collect()
}

/// The longest queue of a chat in each point of the series: all queues are measured again after every event.
fn depths(scenario: &Scenario, run: &Run) -> Vec<u64> {
    let step = run.outcome.series.step_us;
    let points = scenario.horizon().as_micros().div_ceil(step) as usize;
    let mut depths = vec![0; points];
    let mut waiting: BTreeMap<ChatIndex, BTreeSet<u32>> = BTreeMap::new();
    let mut longest = 0;
    let mut reached = 0;
    for (at, event) in &run.tape {
        let point = ((at.as_micros() / step) as usize).min(points);
        for depth in depths.iter_mut().take(point + 1).skip(reached) {
            *depth = longest.max(*depth);
        }
        reached = point;
        match event {
            Event::Due { message, .. } => {
                waiting.entry(message.chat).or_default().insert(message.number);
            }
            Event::Settled { message, .. } | Event::GivenUp { message, .. } => {
                waiting.entry(message.chat).or_default().remove(&message.number);
            }
            _ => continue,
        }
        longest = waiting.values().map(|queue| queue.len() as u64).max().unwrap_or(0);
        if let Some(depth) = depths.get_mut(point) {
            *depth = longest.max(*depth);
        }
    }
    depths.iter_mut().skip(reached + 1).for_each(|depth| *depth = longest);
    depths
}

/// Tokens taken per token there was, over the run: each token of the design has a budget.
fn utilisation(scenario: &Scenario, design: usize, run: &Run) -> Option<u64> {
    let mut tokens: Vec<u16> = scenario.designs[design].groups.iter().map(|group| group.token).collect();
    tokens.sort_unstable();
    tokens.dedup();
    let limit = scenario.server.limits.iter().find(|limit| limit.is_token_wide())?;
    let taken: u64 = decisions(run).map(|(_, decision)| u64::from(decision.taken)).sum();
    let rate = limit.algorithm.rate();
    let refill = rate.count as f64 * scenario.horizon().as_secs_f64() / rate.period.as_secs_f64();
    let available = (limit.algorithm.capacity() as f64 + refill) * tokens.len() as f64;
    Some((taken as f64 * 1e6 / available + 1e-6) as u64)
}

/// A 429 that reached a process.
struct Refusal {
    answered: Time,
    until: Time,
    process: ProcessIndex,
    token: u16,
    chat: ChatIndex,
    token_wide: bool,
}

/// The calls that were early retries, as places in the tape: every call is held against every refusal before it.
///
/// A call is early if a refusal by that limit and key was answered to the same process, or to any process of the token
/// more than 1 s ago, and its `retry_after` is not over. Of a token-wide refusal a call to another chat knows only
/// once a second chat was refused in the same stretch: refusals that follow while an earlier one is in force.
pub(crate) fn early_retries(scenario: &Scenario, design: usize, run: &Run) -> Vec<usize> {
    let groups = &scenario.designs[design].groups;
    let tokens: Vec<u16> =
        groups.iter().flat_map(|group| std::iter::repeat_n(group.token, group.processes as usize)).collect();
    let token_of = |process: ProcessIndex| tokens[usize::from(process.0)];
    let mut refusals: Vec<Refusal> = Vec::new();
    let mut early = Vec::new();
    for (place, (at, event)) in run.tape.iter().enumerate() {
        match *event {
            Event::Answered {
                message,
                process,
                answer: Answer::TooManyRequests { hint },
                decision: Some(decision),
            } => {
                let Truth::Refused { limit, .. } = decision.truth else { panic!("a 429 without a refusal") };
                let until = match hint {
                    RetryHint::Seconds(seconds) => decision.at + Duration::from_secs(seconds.into()),
                    RetryHint::Date(seconds) => Time::from_secs(seconds.into()),
                    RetryHint::Absent => continue,
                };
                refusals.push(Refusal {
                    answered: *at,
                    until,
                    process,
                    token: token_of(process),
                    chat: message.chat,
                    token_wide: scenario.server.limits[usize::from(limit.0)].key == Key::Token,
                });
            }
            Event::Sent { message, process, .. } => {
                let token = token_of(process);
                let of_token: Vec<&Refusal> = refusals.iter().filter(|r| r.token == token).collect();
                let second = second_chat(&of_token);
                let known = |refusal: &&Refusal| {
                    *at < refusal.until
                        && (refusal.process == process || *at > refusal.answered + Duration::from_secs(1))
                        && (refusal.chat == message.chat || refusal.token_wide && second)
                };
                if of_token.iter().any(known) {
                    early.push(place);
                }
            }
            _ => {}
        }
    }
    early
}

/// Whether token-wide refusals met two chats in the latest stretch.
fn second_chat(refusals: &[&Refusal]) -> bool {
    let mut chats = BTreeSet::new();
    let mut until = Time::ZERO;
    for refusal in refusals.iter().filter(|refusal| refusal.token_wide) {
        if refusal.answered >= until {
            chats.clear();
        }
        chats.insert(refusal.chat);
        until = until.max(refusal.until);
    }
    chats.len() > 1
}

/// Lags against quantiles: exact ones of the raw lags, within the histogram's three digits.
fn check_lag<'a>(lag: &Lag, lines: impl Iterator<Item = &'a Line>, horizon: Time) {
    let (mut ages, mut infinite): (Vec<u64>, Vec<u64>) = lines
        .filter(|line| line.alive)
        .map(|line| match line.delivered_at() {
            Some(delivered) => {
                ((delivered - line.message.due).as_micros(), (delivered - line.message.due).as_micros())
            }
            None => ((horizon - line.message.due).as_micros(), u64::MAX),
        })
        .unzip();
    ages.sort_unstable();
    infinite.sort_unstable();
    assert_eq!(lag.samples, ages.len() as u64);
    assert_eq!(lag.censored, infinite.iter().filter(|us| **us == u64::MAX).count() as u64);
    let quantiles = [
        ("p50", lag.p50, 500),
        ("p90", lag.p90, 900),
        ("p99", lag.p99, 990),
        ("p999", lag.p999, 999),
        ("max", lag.max, 1_000),
    ];
    for (name, measured, permille) in quantiles {
        if ages.is_empty() {
            assert_eq!(measured, None, "{name}");
            continue;
        }
        let rank = (ages.len() * permille).div_ceil(1_000).max(1) - 1;
        let measured = measured.expect("there are samples");
        let most = ages[rank] + ages[rank] / 1_000;
        assert!((ages[rank]..=most).contains(&measured), "{name}: {measured}, {} by hand", ages[rank]);
        let listed = lag.lower_bound.iter().any(|bound| bound == name);
        assert!(!listed || ages[rank] != infinite[rank], "{name} is exact");
        assert!(listed || infinite[rank] <= most, "{name} is a lower bound");
    }
}
