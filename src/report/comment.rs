//! `comment.md`: the verdict in short, for the summary of a CI job and a comment on a pull request.
//!
//! A comment has no folder beside it, so there are no pictures and no links; GitHub takes 65,536 characters, so long lists are
//! cut and say so. The first line is there for programs that look for a comment of theirs to replace.

use crate::outcome::{Report, Verdict};

use super::{markdown, replications, sheet, table, verdicts};

/// The verdict as GitHub-flavoured Markdown, at most 60,000 characters.
pub fn comment(report: &Report) -> String {
    let mut text = format!("<!-- floodlab: {} -->\n### {}\n", report.scenario.name, headline(report));
    let parts = [
        ("the gates", gates(report)),
        ("what went wrong", unfinished(report)),
        ("expectations", expectations(report)),
        ("the baseline", baseline(report)),
        ("differences", differences(report)),
        ("how to reproduce it", reproduce(report)),
        ("the numbers", numbers(report)),
    ];
    let mut length = text.chars().count() + NOTE;
    let mut left_out = Vec::new();
    for (what, part) in parts {
        let long = part.chars().count();
        if length + long > LONGEST {
            left_out.push(what);
        } else {
            length += long;
            text += &part;
        }
    }
    if !left_out.is_empty() {
        text += &format!("\nToo long for a comment, and only in `report.md`: {}.\n", left_out.join(", "));
    }
    text
}

/// `platform-day: failed, 3 of 4 gates passed`
fn headline(report: &Report) -> String {
    let (name, gates) = (&report.scenario.name, &report.gates);
    let failed: Vec<&Verdict> = gates.iter().filter(|gate| !gate.passed).collect();
    let word = match failed.as_slice() {
        _ if !report.unfinished.is_empty() => "incomplete, ",
        [] => "",
        failed if failed.iter().all(|gate| gate.measured.is_none()) => "no samples, ",
        _ => "failed, ",
    };
    match gates.len() {
        0 if word.is_empty() => format!("{name}: no gate, this run judges nothing"),
        0 => format!("{name}: {word}no gate judged"),
        all => format!("{name}: {word}{} of {all} gates passed", verdicts::held(gates)),
    }
}

/// The gates, those that do not hold first.
fn gates(report: &Report) -> String {
    let failed = report.gates.iter().filter(|gate| !gate.passed);
    let all: Vec<&Verdict> = failed.chain(report.gates.iter().filter(|gate| gate.passed)).collect();
    shortened(&all, |gates| markdown::verdict_table(gates.iter().copied()), "gates")
}

fn unfinished(report: &Report) -> String {
    // An error may be long and of several lines.
    let line = |line: String| format!("\n```text\n{}\n```\n", line.replace("```", "'''"));
    table::unfinished(report).into_iter().map(line).collect()
}

/// Expectations are judged only on request, so those that hold take a line.
fn expectations(report: &Report) -> String {
    let all = &report.expectations;
    if all.is_empty() {
        return String::new();
    }
    let failed: Vec<&Verdict> = all.iter().filter(|verdict| !verdict.passed).collect();
    format!(
        "\nExpectations (judged with `--expect`): {} of {} hold.\n{}",
        verdicts::held(all),
        all.len(),
        shortened(&failed, |failed| markdown::verdict_table(failed.iter().copied()), "expectations")
    )
}

fn baseline(report: &Report) -> String {
    let baseline = report.baseline.as_ref();
    baseline.map(|baseline| format!("\n{}\n", markdown::baseline_text(report, baseline))).unwrap_or_default()
}

/// What differs between designs, if several seeds were run.
fn differences(report: &Report) -> String {
    let Some(all) = &report.replications else { return String::new() };
    let news = replications::news(&all.differences);
    let mut text = shortened(
        &news,
        |news| {
            let table = markdown::difference_table(news.iter().copied());
            format!(
                "**Differences**, pairwise over {} seeds, [low change high] being the 95% interval:\n\n{table}",
                all.seeds.len()
            )
        },
        "differences",
    );
    if let Some(rest) = replications::rest(&all.differences) {
        text += &format!("\n{rest}\n");
    }
    text
}

/// The command that shows what failed; the run's own if nothing did.
fn reproduce(report: &Report) -> String {
    let commands = verdicts::commands(&report.gates);
    let (what, command) = match commands.first() {
        Some(command) => ("To see the first failure", *command),
        None => ("To run it again", report.reproduce.as_str()),
    };
    format!("\n{what}:\n\n```sh\n{command}\n```\n")
}

/// What was run and the tables of `report.md`, folded.
fn numbers(report: &Report) -> String {
    let mut text =
        format!("\n<details>\n<summary>The numbers</summary>\n\n{}\n", markdown::provenance_text(report));
    for note in [table::first_seed_only(report), table::censored(report)].into_iter().flatten() {
        text += &format!("\n{note}\n");
    }
    if !report.designs.is_empty() {
        for sheet in sheet::sheets(report) {
            let title = markdown::capitalised(sheet.title);
            text += &format!("\n**{title}**\n\n{}", markdown::sheet_table(report, &sheet));
        }
    }
    text + "\n</details>\n"
}

/// A list as `render` writes it, below an empty line and cut to what fits; nothing if it is empty.
fn shortened<T>(all: &[T], render: impl Fn(&[T]) -> String, what: &str) -> String {
    let mut shown = all.len().min(ROWS);
    while shown > 0 {
        let rest = all.len() - shown;
        let rest =
            if rest > 0 { format!("\n… and {rest} more {what} in `report.md`.\n") } else { String::new() };
        let text = format!("\n{}{rest}", render(&all[..shown]));
        if text.chars().count() <= LONGEST_LIST {
            return text;
        }
        shown /= 2;
    }
    if all.is_empty() { String::new() } else { format!("\n{} {what}, in `report.md`.\n", all.len()) }
}

/// Characters of a comment. GitHub takes 65,536; whoever posts it may add something.
const LONGEST: usize = 60_000;

/// Characters of a single list, so that no list keeps all else out.
const LONGEST_LIST: usize = 15_000;

/// Rows of a list: more are not read.
const ROWS: usize = 50;

/// Characters that the last line may take.
const NOTE: usize = 200;
