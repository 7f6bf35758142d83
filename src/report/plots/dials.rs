//! The plots themselves.

use crate::outcome::{Outcome, Report};

use super::super::{human, sheet};
use super::axis::Axis;
use super::chart::{self, BOTTOM, GREY, Panel, Sample, TOP};
use super::picture::{Anchor, Picture};

pub(super) fn budget_utilisation(report: &Report, title: &'static str) -> Picture {
    let notes = notes(report, |design| match design.metrics.budget_utilisation_ppm {
        Some(ppm) => format!("{} over the run", human::share(ppm, 1_000_000)),
        None => "no token-wide limit".to_owned(),
    });
    let subtitle = format!("Tokens taken per token available, each {}.", step(report));
    let mut picture = chart::picture(report, title, &subtitle, &notes);
    let panel = Panel { x: &time(report), y: &Axis::share(), top: TOP, bottom: BOTTOM };
    panel.frame(&mut picture, "budget used", true);
    panel.x_title(&mut picture, TIME);
    for (look, design) in chart::worst_first(report) {
        let values = design.series.budget_utilisation_ppm.iter().copied();
        panel.series(&mut picture, look, samples(design, values));
    }
    picture
}

pub(super) fn lag_p99(report: &Report, title: &'static str) -> Picture {
    let notes = notes(report, |design| {
        let (p99, max) =
            (sheet::lag_of(design, "p99", |lag| lag.p99), sheet::lag_of(design, "max", |lag| lag.max));
        let [p99, max] = [p99, max].map(|(us, lower_bound)| human::bounded_lag(us, lower_bound));
        format!("p99 {p99}, max {max}")
    });
    let subtitle = format!("p99 of each {}; dashed: not delivered by the end, a lower bound.", step(report));
    let mut picture = chart::picture(report, title, &subtitle, &notes);
    let values = report.designs.iter().flat_map(|design| design.series.lag_p99_us.iter().copied().flatten());
    let panel = Panel { x: &time(report), y: &Axis::lag(values), top: TOP, bottom: BOTTOM };
    panel.frame(&mut picture, "p99 lag", true);
    panel.x_title(&mut picture, TIME);
    let horizon = report.scenario.horizon_us;
    let mut censored = false;
    for (look, design) in chart::worst_first(report) {
        let values = design.series.lag_p99_us.iter().copied();
        // What fell due in a window is at most as old as the window's start at the end of the run. Values that reach
        // the age of its end are those of messages that were not delivered.
        let step = design.series.step_us;
        let samples = samples(design, values).enumerate().map(|(index, sample)| {
            let age = horizon.saturating_sub((index as u64 + 1) * step);
            let lower_bound =
                sample.y.is_some_and(|us| us >= age as f64) && design.metrics.lag_us.censored > 0;
            Sample { lower_bound, ..sample }
        });
        let samples: Vec<_> = samples.collect();
        censored |= samples.iter().any(|sample| sample.lower_bound);
        panel.series(&mut picture, look, samples.into_iter());
    }
    if censored {
        let ages = (0..=400).map(|k| horizon as f64 * f64::from(k) / 400.0);
        let ages: Vec<_> = ages.filter(|due| panel.y.contains(horizon as f64 - due)).collect();
        let curve: Vec<_> = ages.iter().map(|due| panel.place(*due, horizon as f64 - due)).collect();
        picture.dashed(&curve, GREY, 1.0, (3.0, 5.0));
    }
    picture
}

pub(super) fn lag_distribution(report: &Report, title: &'static str) -> Picture {
    let notes = notes(report, |design| {
        let from = design.lag_distribution.lower_bound_from_ppm;
        let bound = from.map(|ppm| format!("\nlower bound from {}", human::share(ppm.into(), 1_000_000)));
        let [p50, p99] =
            [sheet::lag_of(design, "p50", |lag| lag.p50), sheet::lag_of(design, "p99", |lag| lag.p99)]
                .map(|(us, lower_bound)| human::bounded_lag(us, lower_bound));
        format!("p50 {p50}, p99 {p99}{}", bound.unwrap_or_default())
    });
    let subtitle = "Read: this share of messages was at most so late. Dashed: a lower bound.";
    let mut picture = chart::picture(report, title, subtitle, &notes);
    let designs = &report.designs;
    let values = designs.iter().flat_map(|design| design.lag_distribution.us.iter().copied());
    let highest = designs.iter().flat_map(|design| design.lag_distribution.ppm.iter().copied());
    let highest = highest.filter(|ppm| *ppm < 1_000_000).max().unwrap_or(0);
    let panel = Panel { x: &Axis::tail(highest), y: &Axis::lag(values), top: TOP, bottom: BOTTOM };
    panel.frame(&mut picture, "lag", true);
    panel
        .x_title(&mut picture, "share of messages that were at most so late (each nine takes the same room)");
    for (look, design) in chart::worst_first(report) {
        let distribution = &design.lag_distribution;
        let samples = distribution.ppm.iter().zip(&distribution.us).map(|(ppm, us)| Sample {
            x: f64::from(*ppm),
            y: Some(*us as f64),
            lower_bound: distribution.lower_bound_from_ppm.is_some_and(|from| *ppm >= from),
        });
        panel.series(&mut picture, look, samples);
    }
    picture
}

/// A panel per limit that refused anything: their causes differ, and so do their sizes.
pub(super) fn throttled(report: &Report, title: &'static str) -> Picture {
    let notes = notes(report, |design| {
        let refused = design.metrics.throttled.values().sum();
        let share = human::share(refused, design.metrics.requests);
        format!("{} refused\n{share} of its calls", human::count(refused))
    });
    let subtitle = format!("Refusals each {}.", step(report));
    let mut picture = chart::picture(report, title, &subtitle, &notes);
    let refused = |limit: &str| {
        let series = report.designs.iter().filter_map(|design| design.series.throttled.get(limit));
        series.flatten().copied().max().unwrap_or(0)
    };
    let limits: Vec<_> =
        sheet::limits(&report.designs).into_iter().filter(|limit| refused(limit) > 0).collect();
    let x = time(report);
    let (room, gap) = ((BOTTOM - TOP) / limits.len().max(1) as f64, 52.0);
    for (index, limit) in limits.iter().enumerate() {
        let top = TOP + index as f64 * (room + gap / limits.len() as f64);
        let bottom = top + room + gap / limits.len() as f64 - gap;
        let last = index + 1 == limits.len();
        let panel = Panel { x: &x, y: &Axis::count(refused(limit)), top, bottom };
        panel.frame(&mut picture, &format!("refused by the limit `{limit}`"), last);
        if last {
            panel.x_title(&mut picture, TIME);
        }
        for (look, design) in chart::worst_first(report) {
            let values = design.series.throttled.get(*limit).into_iter().flatten().map(|calls| Some(*calls));
            panel.series(&mut picture, look, samples(design, values));
        }
    }
    if limits.is_empty() {
        let panel = Panel { x: &x, y: &Axis::count(0), top: TOP, bottom: BOTTOM };
        panel.frame(&mut picture, "refused", true);
        panel.x_title(&mut picture, TIME);
        picture.text(
            "no call was refused",
            panel.place(0.5 * report.scenario.horizon_us as f64, 2.0),
            26.0,
            GREY,
            Anchor::Middle,
        );
    }
    picture
}

pub(super) fn queue_depth(report: &Report, title: &'static str) -> Picture {
    let notes = notes(report, |design| format!("longest {}", human::count(design.metrics.queue_depth_max)));
    let subtitle = format!("Largest number of messages waiting for one chat, each {}.", step(report));
    let mut picture = chart::picture(report, title, &subtitle, &notes);
    let largest =
        report.designs.iter().flat_map(|design| design.series.queue_depth_max.iter().copied()).max();
    let panel = Panel { x: &time(report), y: &Axis::count(largest.unwrap_or(0)), top: TOP, bottom: BOTTOM };
    panel.frame(&mut picture, "messages for one chat", true);
    panel.x_title(&mut picture, TIME);
    for (look, design) in chart::worst_first(report) {
        let values = design.series.queue_depth_max.iter().map(|depth| Some(*depth));
        panel.series(&mut picture, look, samples(design, values));
    }
    picture
}

fn notes(report: &Report, note: impl Fn(&Outcome) -> String) -> Vec<String> {
    report.designs.iter().map(note).collect()
}

fn time(report: &Report) -> Axis {
    Axis::time(report.scenario.horizon_us)
}

/// The width of a point in words: `1 min`.
fn step(report: &Report) -> String {
    human::span(report.designs.first().map_or(0, |design| design.series.step_us))
}

/// A series over time; a point stands in the middle of its window.
fn samples(design: &Outcome, values: impl Iterator<Item = Option<u64>>) -> impl Iterator<Item = Sample> {
    let step = design.series.step_us as f64;
    values.enumerate().map(move |(index, value)| Sample {
        x: (index as f64 + 0.5) * step,
        y: value.map(|value| value as f64),
        lower_bound: false,
    })
}

const TIME: &str = "virtual time since the start of the run";
