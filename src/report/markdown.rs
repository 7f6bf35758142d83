//! `report.md`: the summary for people who read it in a pull request or a folder.

use crate::gate;
use crate::outcome::{Report, Verdict};

use super::sheet::{self, Sheet};
use super::{human, live, plots, table, verdicts};

/// The report as GitHub-flavoured Markdown. Links the plots by their file names; says nothing of the machine.
pub fn markdown(report: &Report) -> String {
    let scenario = &report.scenario;
    let is_live = report.designs.iter().any(|design| design.live.is_some());
    let time = if is_live { "real" } else { "virtual" };
    let mut text = format!("# {}\n\n", scenario.name);
    let store = scenario.store.as_ref().map(|url| format!("store `{url}`, ")).unwrap_or_default();
    text += &format!(
        "Profile `{}`, {store}{} of {time} time, seed {}, scenario hash `{}`, {}.\n\n```sh\n{}\n```\n",
        scenario.profile,
        human::span(scenario.horizon_us),
        report.seed,
        scenario.hash,
        report.tool,
        report.reproduce
    );
    for line in table::unfinished(report) {
        text += &format!("\n**{}**\n", escaped(&line));
    }
    for sheet in sheet::sheets(report) {
        text += &sheet_text(report, &sheet);
    }
    if let Some(note) = table::censored(report) {
        text += &format!("\n{note}\n");
    }
    for line in live::lines(report) {
        text += &format!("\n{}\n", escaped(&line));
    }
    for (what, verdicts) in verdicts::lists(report) {
        text += &verdict_text(what, verdicts);
    }
    text += "\n## Over time\n";
    for (name, title) in plots::names() {
        text += &format!("\n![{title}]({name}.svg)\n");
    }
    text += "\n## What the numbers mean\n\n";
    for (term, meaning) in GLOSSARY {
        text += &format!("- **{term}**: {meaning}\n");
    }
    if is_live {
        return text;
    }
    text += "\n## Events\n\nEqual runs have equal hashes.\n\n| design | event hash |\n| --- | --- |\n";
    for design in &report.designs {
        text += &format!("| {} | `{}` |\n", escaped(&design.name), design.event_hash);
    }
    text
}

fn sheet_text(report: &Report, sheet: &Sheet) -> String {
    let mut text = format!("\n## {}\n\n| design |", capitalised(sheet.title));
    for column in &sheet.columns {
        text += &format!(" {} |", escaped(&table::one_line(&column.head)));
    }
    text += &format!("\n| --- |{}\n", " ---: |".repeat(sheet.columns.len()));
    for (row, design) in report.designs.iter().enumerate() {
        text += &format!("| {} |", escaped(&design.name));
        for column in &sheet.columns {
            text += &format!(" {} |", column.cells[row].text);
        }
        text.push('\n');
    }
    text
}

fn verdict_text(what: &str, verdicts: &[Verdict]) -> String {
    let held = verdicts.iter().filter(|verdict| verdict.passed).count();
    let mut text = format!("\n## {}: {held} of {} hold\n\n", capitalised(what), verdicts.len());
    text += "| | design | metric | expected | measured |\n| --- | --- | --- | --- | ---: |\n";
    for verdict in verdicts {
        text += &format!(
            "| {} | {} | `{}` | `{}` | {} |\n",
            if verdict.passed { "pass" } else { "**FAIL**" },
            escaped(&verdict.design),
            gate::subject(verdict),
            verdict.expect,
            verdicts::measured(verdict)
        );
    }
    text
}

/// Text that no table cell ends at.
pub(super) fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

fn capitalised(text: &str) -> String {
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
