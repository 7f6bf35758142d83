//! The numbers of a report as sheets of text, a row per design: what the terminal and Markdown both show.

use crate::outcome::{Estimate, Lag, Metrics, Outcome, Report};

use super::{human, replications};

/// A table that answers one question.
pub(super) struct Sheet {
    /// The question.
    pub(super) title: &'static str,
    /// Its columns after the design's name.
    pub(super) columns: Vec<Column>,
}

/// One number of every design.
pub(super) struct Column {
    /// What it is, in one or two lines.
    pub(super) head: String,
    /// The number as text, by design.
    pub(super) cells: Vec<Cell>,
    /// Whether a narrow table may leave it out.
    pub(super) optional: bool,
}

/// A number as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) tone: Tone,
}

/// How a number compares. The text says the same: a tone only helps to find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    /// Like the others.
    Plain,
    /// The best of the designs.
    Good,
    /// Ten times the best, or a number that should be zero.
    Bad,
    /// Nothing to see.
    Faint,
}

/// All sheets of a report.
pub(super) fn sheets(report: &Report) -> Vec<Sheet> {
    let mut sheets: Vec<Sheet> = over_seeds(report).into_iter().collect();
    sheets.extend([late(report), spent(report), became(report)]);
    sheets.extend(befell(report));
    sheets
}

/// What all seeds say together: estimates with their intervals.
fn over_seeds(report: &Report) -> Option<Sheet> {
    let estimates = &report.replications.as_ref()?.estimates;
    let column = |head: &str, metric: &str, aggregate: &str, class: Option<&str>| {
        let estimate = |design: &Outcome| {
            let class_of =
                |estimate: &Estimate| estimate.r#where.values().next().map(String::as_str) == class;
            estimates.iter().find(|estimate| {
                estimate.design == design.name
                    && estimate.metric == metric
                    && estimate.aggregate == aggregate
                    && class_of(estimate)
            })
        };
        let found: Vec<_> = report.designs.iter().map(estimate).collect();
        let tones = relative(found.iter().map(|estimate| estimate.map(|estimate| estimate.value)));
        let tones: Vec<Tone> = if metric == "lag" { tones } else { vec![Tone::Plain; found.len()] };
        let cells = found.iter().zip(tones).map(|(estimate, tone)| Cell {
            text: estimate.map_or_else(|| "-".to_owned(), replications::in_a_cell),
            tone,
        });
        Column { head: head.to_owned(), cells: cells.collect(), optional: false }
    };
    let classes = classes(&report.designs);
    let by_class = classes.iter().filter(|_| classes.len() > 1).map(|class| {
        let head = format!("lag p99\n{}", human::elide(class, 12));
        Column { optional: true, ..column(&head, "lag", "p(99)", Some(class)) }
    });
    let mut columns: Vec<Column> = by_class.collect();
    columns.extend([
        column("lag p99\nall", "lag", "p(99)", None),
        column("\ndelivered", "delivered", "rate", None),
        column("429 per\ncall", "throttled", "rate", None),
    ]);
    Some(Sheet { title: "over all seeds (value and 95% interval)", columns })
}

fn late(report: &Report) -> Sheet {
    let designs = &report.designs;
    let mut columns: Vec<Column> = classes(designs)
        .into_iter()
        .map(|class| {
            let lag = |design: &Outcome| match design.classes.get(class) {
                Some(outcome) => quantile(&outcome.lag_us, "p99", outcome.lag_us.p99),
                None => (None, false),
            };
            Column { optional: true, ..lags(format!("p99\n{}", human::elide(class, 12)), designs, lag) }
        })
        .collect();
    columns.push(lags("p50\nall", designs, |design| lag_of(design, "p50", |lag| lag.p50)));
    columns.push(lags("p99\nall", designs, |design| lag_of(design, "p99", |lag| lag.p99)));
    columns.push(lags("max\nall", designs, |design| lag_of(design, "max", |lag| lag.max)));
    // Of what could be delivered: nobody can do better than 100 %.
    let deliverable = |m: &Metrics| m.due.saturating_sub(m.dead);
    let missing = |m: &Metrics| deliverable(m).saturating_sub(m.delivered);
    let tones = relative(designs.iter().map(|design| Some(missing(&design.metrics))));
    let delivered = designs.iter().zip(tones).map(|(Outcome { metrics, .. }, tone)| Cell {
        text: human::share(metrics.delivered, deliverable(metrics)),
        tone,
    });
    columns.push(Column { head: "deliv-\nered".to_owned(), cells: delivered.collect(), optional: false });
    columns.push(counts("\nlost", designs, absolute, |m| Some(m.lost)));
    Sheet { title: "who was late (lag from due to delivered)", columns }
}

fn spent(report: &Report) -> Sheet {
    let designs = &report.designs;
    let plain = |head: &str, text: fn(&Metrics) -> String| Column {
        head: head.to_owned(),
        cells: designs.iter().map(|design| Cell { text: text(&design.metrics), tone: Tone::Plain }).collect(),
        optional: false,
    };
    let mut columns = vec![
        plain("budget\nused", |m| {
            m.budget_utilisation_ppm.map_or_else(|| "-".to_owned(), |ppm| human::share(ppm, 1_000_000))
        }),
        plain("calls per\nmessage", |m| human::ratio(m.amplification_ppm)),
    ];
    for limit in limits(designs) {
        let refusals = |m: &Metrics| m.throttled.get(limit).copied();
        let head = format!("429 by\n{}", human::elide(limit, 12));
        columns.push(Column { optional: true, ..counts(head, designs, relative, refusals) });
    }
    columns.push(counts("early\nretries", designs, relative, |m| Some(m.early_retries)));
    let in_penalty = counts("in\npenalty", designs, relative, |m| Some(m.calls_in_penalty));
    columns.push(Column { optional: true, ..in_penalty });
    columns.push(counts("spent\non dead", designs, relative, |m| Some(m.spent_on_dead)));
    columns.push(counts("longest\nqueue", designs, relative, |m| Some(m.queue_depth_max)));
    Sheet { title: "what the budget was spent on", columns }
}

fn became(report: &Report) -> Sheet {
    let designs = &report.designs;
    let optional = |head: &str, read: fn(&Metrics) -> u64| Column {
        optional: true,
        ..counts(head, designs, plain, move |m| Some(read(m)))
    };
    let columns = vec![
        counts("\ndue", designs, plain, |m| Some(m.due)),
        counts("deliv-\nered", designs, plain, |m| Some(m.delivered)),
        optional("\ndead", |m| m.dead),
        optional("\nexpired", |m| m.expired),
        optional("\ndropped", |m| m.dropped),
        optional("\npending", |m| m.pending),
        counts("\nlost", designs, absolute, |m| Some(m.lost)),
        counts("dupli-\ncated", designs, absolute, |m| Some(m.duplicated)),
        Column { optional: true, ..counts("out of\norder", designs, absolute, |m| Some(m.reordered)) },
        counts("believed\nfalsely", designs, absolute, |m| Some(m.believed_falsely)),
        Column {
            optional: true,
            ..counts("believed\ndelivered", designs, plain, |m| Some(m.believed_delivered))
        },
    ];
    Sheet { title: "what became of the messages", columns }
}

/// What happened to senders, or what they did to themselves; nothing in most runs.
fn befell(report: &Report) -> Option<Sheet> {
    let designs = &report.designs;
    let optional = |head: &str, tones, read: fn(&Metrics) -> u64| Column {
        optional: true,
        ..counts(head, designs, tones, move |m| Some(read(m)))
    };
    let longest = |m: &Metrics| m.penalty_max_us.values().copied().max().unwrap_or(0);
    let worth_telling = |m: &Metrics| longest(m) + m.kills + m.reused + m.store_keys > 0;
    if !designs.iter().any(|design| worth_telling(&design.metrics)) {
        return None;
    }
    let penalties = |m: &Metrics| m.penalties.values().sum();
    let waits: Vec<u64> = designs.iter().map(|design| longest(&design.metrics)).collect();
    let tones = relative(waits.iter().map(|us| Some(*us)));
    let cells = waits.iter().zip(tones).map(|(us, tone)| Cell {
        text: if *us == 0 { "0".to_owned() } else { human::bounded_lag(Some(*us), false) },
        tone,
    });
    let mut columns = vec![
        counts("\npenalties", designs, relative, move |m| Some(penalties(m))),
        Column { head: "longest\npenalty".to_owned(), cells: cells.collect(), optional: false },
        optional("calls in\n1 ms", relative, |m| m.calls_per_ms_max),
        optional("processes\ndied", plain, |m| m.kills),
        optional("answers\nreused", plain, |m| m.reused),
        optional("keys in\nthe store", plain, |m| m.store_keys),
        optional("without\nTTL", absolute, |m| m.store_keys_without_ttl),
    ];
    // Most runs know only one of these.
    columns.retain(|column| !column.optional || column.cells.iter().any(|cell| cell.text != "0"));
    Some(Sheet { title: "what befell the senders", columns })
}

/// Every class of any design, in the scenario's order.
pub(super) fn classes(designs: &[Outcome]) -> Vec<&str> {
    distinct(designs.iter().flat_map(|design| design.classes.keys()))
}

/// Every limit of any design, in the profile's order.
pub(super) fn limits(designs: &[Outcome]) -> Vec<&str> {
    distinct(designs.iter().flat_map(|design| design.metrics.throttled.keys()))
}

fn distinct<'a>(names: impl Iterator<Item = &'a String>) -> Vec<&'a str> {
    let mut all: Vec<&str> = Vec::new();
    for name in names {
        if !all.contains(&name.as_str()) {
            all.push(name);
        }
    }
    all
}

/// A quantile and whether it is a lower bound.
fn quantile(lag: &Lag, key: &str, value: Option<u64>) -> (Option<u64>, bool) {
    (value, lag.lower_bound.iter().any(|name| name == key))
}

pub(super) fn lag_of(design: &Outcome, key: &str, read: fn(&Lag) -> Option<u64>) -> (Option<u64>, bool) {
    quantile(&design.metrics.lag_us, key, read(&design.metrics.lag_us))
}

fn lags(
    head: impl Into<String>,
    designs: &[Outcome],
    read: impl Fn(&Outcome) -> (Option<u64>, bool),
) -> Column {
    let values: Vec<_> = designs.iter().map(read).collect();
    let tones = relative(values.iter().map(|(us, _)| *us));
    let cells = values.iter().zip(tones).map(|((us, lower_bound), tone)| {
        let tone = if *lower_bound && tone == Tone::Good { Tone::Plain } else { tone };
        Cell { text: human::bounded_lag(*us, *lower_bound), tone }
    });
    Column { head: head.into(), cells: cells.collect(), optional: false }
}

fn counts<I: IntoIterator<Item = Tone>>(
    head: impl Into<String>,
    designs: &[Outcome],
    tones: fn(std::vec::IntoIter<Option<u64>>) -> I,
    read: impl Fn(&Metrics) -> Option<u64>,
) -> Column {
    let values: Vec<_> = designs.iter().map(|design| read(&design.metrics)).collect();
    let cells = values.iter().zip(tones(values.clone().into_iter())).map(|(value, tone)| Cell {
        text: value.map_or_else(|| "-".to_owned(), human::short),
        tone: if *value == Some(0) && tone != Tone::Good { Tone::Faint } else { tone },
    });
    Column { head: head.into(), cells: cells.collect(), optional: false }
}

/// Less is better: the best is good, ten times that is bad.
fn relative(values: impl Iterator<Item = Option<u64>>) -> Vec<Tone> {
    let values: Vec<_> = values.collect();
    let best = values.iter().flatten().min().copied();
    let all_alike = values.iter().all(|value| *value == best);
    let tone = |value: Option<u64>| match (value, best) {
        (None, _) | (_, None) => Tone::Faint,
        _ if all_alike => Tone::Plain,
        (Some(value), Some(best)) if value == best => Tone::Good,
        (Some(value), Some(best)) if value >= best.saturating_mul(10) => Tone::Bad,
        _ => Tone::Plain,
    };
    values.into_iter().map(tone).collect()
}

/// Anything but zero is bad.
fn absolute(values: impl Iterator<Item = Option<u64>>) -> Vec<Tone> {
    values.map(|value| if value.is_some_and(|value| value > 0) { Tone::Bad } else { Tone::Plain }).collect()
}

fn plain(values: impl Iterator<Item = Option<u64>>) -> Vec<Tone> {
    values.map(|_| Tone::Plain).collect()
}
