//! The plots themselves.

use crate::outcome::{Lag, Outcome, Report};

use super::super::{human, sheet};
use super::axis::Axis;
use super::chart::{self, BOTTOM, GREY, Panel, Sample, TOP, Through};
use super::picture::{Anchor, Picture};

pub(super) fn budget_utilisation(report: &Report, title: &'static str) -> Picture {
    let notes = notes(report, |design| match design.metrics.budget_utilisation_ppm {
        Some(ppm) => format!("{} over the run", human::share(ppm, 1_000_000)),
        None => "no token-wide limit".to_owned(),
    });
    let subtitle = format!("Tokens taken per token available. {}", points(report, Through::Middle));
    let mut picture = chart::picture(report, title, &subtitle, &notes);
    let panel = Panel { x: &time(report), y: &Axis::share(), top: TOP, bottom: BOTTOM };
    panel.frame(&mut picture, "budget used", true);
    panel.x_title(&mut picture, TIME);
    for (look, design) in chart::worst_first(report) {
        let values = design.series.budget_utilisation_ppm.iter().copied();
        panel.series(&mut picture, look, Through::Middle, samples(design, values));
    }
    picture
}

/// A panel per class: a reply's minute is another matter than a broadcast's.
pub(super) fn lag_p99(report: &Report, title: &'static str) -> Picture {
    let notes = notes(report, |design| {
        let bounded = |lag: &Lag, name: &str, us: Option<u64>| {
            human::bounded_lag(us, lag.lower_bound.iter().any(|bound| bound == name))
        };
        let p99 = |lag: &Lag| bounded(lag, "p99", lag.p99);
        match (design.classes.first(), design.classes.last()) {
            (Some((first, lag)), Some((last, other))) if first != last => {
                format!("{first} {}\n{last} {}", p99(&lag.lag_us), p99(&other.lag_us))
            }
            _ => {
                let lag = &design.metrics.lag_us;
                format!("p99 {}\nmax {}", p99(lag), bounded(lag, "max", lag.max))
            }
        }
    });
    let subtitle = points(report, Through::Largest) + " Dashed or hollow: never delivered, a lower bound.";
    let mut picture = chart::picture(report, title, &subtitle, &notes);
    let classes = with_a_course(report);
    let x = time(report);
    let mut censored = None;
    for (place, class) in stack(classes.len()).zip(classes) {
        let values = report.designs.iter().flat_map(|design| lags(design, class).0.iter().copied().flatten());
        let panel = Panel { x: &x, y: &Axis::lag(values), top: place.top, bottom: place.bottom };
        let name = class.map_or_else(|| "p99 lag".to_owned(), |class| format!("p99 lag of class {class}"));
        panel.frame(&mut picture, &name, place.last);
        if place.last {
            panel.x_title(&mut picture, TIME);
        }
        for (look, design) in chart::worst_first(report) {
            let samples = lag_samples(design, class, report.scenario.horizon_us);
            if samples.iter().any(|sample| sample.lower_bound) {
                censored.get_or_insert(place);
            }
            panel.series(&mut picture, look, Through::Largest, samples.into_iter());
        }
        if let Some(first) = censored {
            ages(&mut picture, &panel, report.scenario.horizon_us, first == place);
        }
    }
    picture
}

/// The classes whose lag has a course: one whose messages all fell due at once is a number, not a line. Without
/// several classes, or without such a one, all messages together.
fn with_a_course(report: &Report) -> Vec<Option<&str>> {
    const POINTS_MIN: usize = 3;
    let Some(design) = report.designs.first().filter(|design| design.classes.len() > 1) else {
        return vec![None];
    };
    let has_course = |class: &&String| lags(design, Some(class)).0.iter().flatten().count() >= POINTS_MIN;
    let classes: Vec<_> =
        design.classes.keys().filter(has_course).map(|class| Some(class.as_str())).collect();
    if classes.is_empty() { vec![None] } else { classes }
}

/// The 99th percentile over time of a class, or of all, and how many of its messages were not delivered.
fn lags<'a>(design: &'a Outcome, class: Option<&str>) -> (&'a [Option<u64>], u64) {
    match class.and_then(|class| design.classes.get(class)) {
        Some(class) => (&class.lag_p99_us, class.lag_us.censored),
        None => (&design.series.lag_p99_us, design.metrics.lag_us.censored),
    }
}

/// What fell due in a window is at most as old as the window's start at the end of the run. Values that reach the age
/// of its end are those of messages that were not delivered. In a window that reaches the end of the run there is no
/// telling, and nothing is marked.
fn lag_samples(design: &Outcome, class: Option<&str>, horizon: u64) -> Vec<Sample> {
    let step = design.series.step_us;
    let (values, censored) = lags(design, class);
    let samples = samples(design, values.iter().copied()).enumerate().map(|(index, sample)| {
        let age = horizon.saturating_sub((index as u64 + 1) * step);
        Sample {
            lower_bound: censored > 0 && age > 0 && sample.y.is_some_and(|us| us >= age as f64),
            ..sample
        }
    });
    samples.collect()
}

/// The age at the end of the run of what fell due at each instant: where undelivered messages lie.
fn ages(picture: &mut Picture, panel: &Panel<'_>, horizon: u64, named: bool) {
    let ages = (0..=400).map(|k| horizon as f64 * f64::from(k) / 400.0);
    let ages: Vec<_> = ages.filter(|due| panel.y.contains(horizon as f64 - due)).collect();
    let curve: Vec<_> = ages.iter().map(|due| panel.place(*due, horizon as f64 - due)).collect();
    picture.dashed(&curve, GREY, 1.5, (3.0, 5.0));
    // It falls, so there is room above it to the right.
    if let Some((x, y)) = curve.get(curve.len() * 3 / 5).filter(|_| named) {
        picture.text("age at the end of the run", (x + 10.0, y - 14.0), 18.0, GREY, Anchor::Left);
    }
}

/// The place of one of several panels that share a time axis.
#[derive(Clone, Copy, PartialEq)]
struct Place {
    top: f64,
    bottom: f64,
    /// It carries the axis.
    last: bool,
}

/// Panels one above the other, with room for their names.
fn stack(panels: usize) -> impl Iterator<Item = Place> {
    const GAP: f64 = 52.0;
    let step = (BOTTOM - TOP + GAP) / panels as f64;
    (0..panels).map(move |index| {
        let top = TOP + index as f64 * step;
        Place { top, bottom: top + step - GAP, last: index + 1 == panels }
    })
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
        panel.series(&mut picture, look, Through::Largest, samples);
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
    let subtitle = points(report, Through::Largest);
    let mut picture = chart::picture(report, title, &subtitle, &notes);
    let refused = |limit: &str| {
        let series = report.designs.iter().filter_map(|design| design.series.throttled.get(limit));
        series.flatten().copied().max().unwrap_or(0)
    };
    let limits: Vec<_> =
        sheet::limits(&report.designs).into_iter().filter(|limit| refused(limit) > 0).collect();
    let x = time(report);
    for (place, limit) in stack(limits.len()).zip(&limits) {
        let panel = Panel { x: &x, y: &Axis::count(refused(limit)), top: place.top, bottom: place.bottom };
        panel.frame(&mut picture, &format!("refused by limit: {limit}"), place.last);
        if place.last {
            panel.x_title(&mut picture, TIME);
        }
        for (look, design) in chart::worst_first(report) {
            let values = design.series.throttled.get(*limit).into_iter().flatten().map(|calls| Some(*calls));
            panel.series(&mut picture, look, Through::Largest, samples(design, values));
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
    let subtitle = points(report, Through::Largest);
    let mut picture = chart::picture(report, title, &subtitle, &notes);
    let largest =
        report.designs.iter().flat_map(|design| design.series.queue_depth_max.iter().copied()).max();
    let panel = Panel { x: &time(report), y: &Axis::count(largest.unwrap_or(0)), top: TOP, bottom: BOTTOM };
    panel.frame(&mut picture, "messages for one chat", true);
    panel.x_title(&mut picture, TIME);
    for (look, design) in chart::worst_first(report) {
        let values = design.series.queue_depth_max.iter().map(|depth| Some(*depth));
        panel.series(&mut picture, look, Through::Largest, samples(design, values));
    }
    picture
}

fn notes(report: &Report, note: impl Fn(&Outcome) -> String) -> Vec<String> {
    report.designs.iter().map(note).collect()
}

fn time(report: &Report) -> Axis {
    Axis::time(report.scenario.horizon_us)
}

/// What a point is and which of them are drawn.
fn points(report: &Report, through: Through) -> String {
    let step = human::span(report.designs.first().map_or(0, |design| design.series.step_us));
    match through {
        Through::Middle => format!("A point is {step}; a veil spans neighbours, the line is the middle one."),
        Through::Largest => format!("A point is {step}; of close neighbours the largest is drawn."),
    }
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
