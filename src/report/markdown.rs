//! `report.md`: the summary for people who read it in a pull request or a folder.

use crate::gate;
use crate::outcome::{Baseline, Difference, Report, Verdict};

use super::sheet::{self, Sheet};
use super::{compare, human, live, plots, provenance, replications, table, verdicts};

/// The report as GitHub-flavoured Markdown. Links the plots by their file names; says nothing of the machine.
pub fn markdown(report: &Report) -> String {
    let mut text = format!("# {}\n\n", report.scenario.name);
    text += &format!("{}\n\n```sh\n{}\n```\n", provenance_text(report), report.reproduce);
    for line in table::unfinished(report) {
        text += &format!("\n**{}**\n", escaped(&line));
    }
    if let Some(baseline) = &report.baseline {
        text += &format!("\n{}\n", baseline_text(report, baseline));
    }
    if let Some(note) = table::first_seed_only(report) {
        text += &format!("\n{note}\n");
    }
    for sheet in sheet::sheets(report) {
        text += &format!("\n## {}\n\n{}", capitalised(sheet.title), sheet_table(report, &sheet));
    }
    if let Some(note) = table::censored(report) {
        text += &format!("\n{note}\n");
    }
    for line in live::lines(report) {
        text += &format!("\n{}\n", escaped(&line));
    }
    for (what, verdicts) in verdicts::lists(report) {
        text += &format!(
            "\n## {}: {} of {} hold\n\n{}",
            capitalised(what),
            verdicts::held(verdicts),
            verdicts.len(),
            verdict_table(verdicts)
        );
        let commands = verdicts::commands(verdicts);
        if !commands.is_empty() {
            text += &format!("\nTo see what failed:\n\n```sh\n{}\n```\n", commands.join("\n"));
        }
    }
    text += &replications_text(report);
    text += "\n## Over time\n";
    for (name, title) in plots::names() {
        text += &format!("\n![{title}]({name}.svg)\n");
    }
    text += "\n## What the numbers mean\n\n";
    for (term, meaning) in GLOSSARY {
        text += &format!("- **{term}**: {meaning}\n");
    }
    if is_live(report) {
        return text;
    }
    text += "\n## Events\n\nEqual runs have equal hashes.\n\n| design | event hash |\n| --- | --- |\n";
    for design in &report.designs {
        text += &format!("| {} | `{}` |\n", escaped(&design.name), design.event_hash);
    }
    text
}

/// What was run, in a sentence.
pub(super) fn provenance_text(report: &Report) -> String {
    let scenario = &report.scenario;
    let store = scenario.store.as_ref().map(|url| format!("store `{url}`, ")).unwrap_or_default();
    format!(
        "Profile `{}`, {store}{} of {} time, {}, scenario hash `{}`, {}.",
        scenario.profile,
        human::span(scenario.horizon_us),
        if is_live(report) { "real" } else { "virtual" },
        provenance::seeds(report.seeds()),
        scenario.hash,
        report.tool,
    )
}

fn is_live(report: &Report) -> bool {
    report.designs.iter().any(|design| design.live.is_some())
}

/// A sheet as a table.
pub(super) fn sheet_table(report: &Report, sheet: &Sheet) -> String {
    let heads = sheet.columns.iter().map(|column| table::one_line(&column.head));
    let mut text = head(["design".to_owned()].into_iter().chain(heads), 1);
    for (index, design) in report.designs.iter().enumerate() {
        let cells = sheet.columns.iter().map(|column| column.cells[index].text.clone());
        text += &row([design.name.clone()].into_iter().chain(cells));
    }
    text
}

/// Verdicts as a table, with a column for what was missed if anything was, and for window and worst seed if there are any.
pub(super) fn verdict_table<'a>(verdicts: impl IntoIterator<Item = &'a Verdict>) -> String {
    let verdicts: Vec<&Verdict> = verdicts.into_iter().collect();
    // Of what holds nobody wants to know where.
    let place = |verdict: &Verdict| if verdict.passed { String::new() } else { verdicts::place(verdict) };
    let places = verdicts.iter().any(|verdict| !place(verdict).is_empty());
    let missed = verdicts.iter().any(|verdict| verdicts::missed(verdict).is_some());
    let heads = ["", "design", "metric", "expected", "measured"].into_iter();
    let heads = heads.chain(missed.then_some("missed by")).chain(places.then_some("where"));
    let mut text = head(heads.map(str::to_owned), 4);
    for verdict in &verdicts {
        let bound = verdicts::bound(verdict).map(|bound| format!(", that is {bound}"));
        let cells = [
            if verdict.passed { "pass" } else { "**FAIL**" }.to_owned(),
            verdict.design.clone(),
            format!("`{}`", gate::subject(verdict)),
            format!("`{}`{}", verdicts::expected(verdict), bound.unwrap_or_default()),
            verdicts::measured(verdict),
        ];
        let by = missed.then(|| verdicts::missed(verdict).unwrap_or_default());
        let place = places.then(|| place(verdict));
        text += &row(cells.into_iter().chain(by).chain(place));
    }
    text
}

/// Which baseline it was, and whether it is one of the same scenario.
pub(super) fn baseline_text(report: &Report, baseline: &Baseline) -> String {
    let Baseline { file, tool, scenario_hash, seeds } = baseline;
    let seeds = provenance::seeds(seeds);
    let text = format!("Baseline: `{file}` ({tool}, {seeds}).");
    if *scenario_hash == report.scenario.hash {
        return text;
    }
    format!(
        "{text} **It is of another scenario (hash `{scenario_hash}`, now `{}`): what changed may be the scenario.**",
        report.scenario.hash
    )
}

/// Estimates and differences in full; nothing for a single seed.
fn replications_text(report: &Report) -> String {
    let Some(all) = &report.replications else { return String::new() };
    let mut text = format!("\n## Over {} seeds\n", all.seeds.len());
    if !all.estimates.is_empty() {
        text += "\nA quantile of lag is that of all messages of all seeds; all else is the mean over the seeds. The interval \
                 holds the true value in 95 of 100 such experiments.\n\n";
        text += &head(["design", "metric", "estimate", "95% interval", "worst seed"].map(str::to_owned), 2);
        for estimate in &all.estimates {
            text += &row([estimate.design.clone()].into_iter().chain(replications::estimate(estimate)));
        }
    }
    if !all.differences.is_empty() {
        text += "\n## Differences\n\nPairwise by seed: the mean difference and its 95% interval.\n\n";
        text += &difference_table(&all.differences);
    }
    text
}

/// Differences as a table.
pub(super) fn difference_table<'a>(differences: impl IntoIterator<Item = &'a Difference>) -> String {
    let heads = ["design", "against"].into_iter().chain(compare::HEADS);
    let mut text = head(heads.map(str::to_owned), 3);
    for difference in differences {
        let names = [difference.design.clone(), difference.against.clone()];
        text += &row(names.into_iter().chain(compare::Row::new(difference).cells()));
    }
    text
}

/// The head of a table: the first `left` columns are aligned to the left.
fn head(cells: impl IntoIterator<Item = String>, left: usize) -> String {
    let cells: Vec<String> = cells.into_iter().collect();
    let rule = (0..cells.len()).map(|index| if index < left { " --- |" } else { " ---: |" });
    format!("{}|{}\n", row(cells.iter().cloned()), rule.collect::<String>())
}

fn row(cells: impl IntoIterator<Item = String>) -> String {
    let cells = cells.into_iter().map(|cell| match cell.as_str() {
        "" => " |".to_owned(),
        cell => format!(" {} |", escaped(cell)),
    });
    format!("|{}\n", cells.collect::<String>())
}

/// Text that no table cell ends at.
pub(super) fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

/// With a capital first.
pub(super) fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// The dials, in the words of `docs/report.md`.
const GLOSSARY: &[(&str, &str)] = &[
    (
        "lag",
        "from the instant at which a message was due to its delivery. What was not delivered counts with its age at \
         the end of the run, as a lower bound (`≥`); chats that were dead when it fell due are left out.",
    ),
    ("budget used", "tokens taken ÷ tokens available of the token-wide limit; not messages per second."),
    (
        "429 by limit",
        "calls refused, by the limit that was hit; each limit has its own cause and its own cure.",
    ),
    ("longest queue", "the largest number of messages that waited for one chat; one chat, not the sum."),
    ("calls per message", "calls to the server ÷ messages due."),
    ("early retries", "calls sent before a `retry_after` that the sender knew of was over."),
    ("calls in penalty", "calls that arrived while the server's penalty ran, those on the wire included."),
    ("spent on dead", "tokens spent on chats that cannot receive."),
    ("ledger", "due = delivered + dead + expired + dropped + pending + lost; each message counts once."),
    ("delivered (in per cent)", "of the messages whose chat could receive."),
    ("lost", "neither delivered nor accounted for: believed delivered and not, or gone with a process."),
    ("believed falsely", "messages that the sender believes delivered and that are not in their chat."),
    ("pending", "in the outbox, on the wire, held by a live worker, or in a queue of the store at the end."),
];
