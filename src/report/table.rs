//! The summary for the terminal.

use anstyle::{AnsiColor, Style};
use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Table, TableStyle, presets};

use crate::outcome::{Baseline, Difference, Replications, Report, Verdict};

use super::sheet::{self, Column, Sheet, Tone};
use super::{compare, human, live, provenance, replications, verdicts};

/// The summary as text of at most `width` columns (100 reads best, below 60 it may not fit), with ANSI colours if
/// `colour`. Colours only repeat what the text says.
pub fn table(report: &Report, colour: bool, width: usize) -> String {
    let paint = Paint { colour };
    let scenario = &report.scenario;
    let store = scenario.store.as_ref().map(|url| format!("store {url}, ")).unwrap_or_default();
    let mut text = format!(
        "{}  profile {}, {store}{}, {}\n",
        paint.with(BOLD, &scenario.name),
        scenario.profile,
        human::span(scenario.horizon_us),
        provenance::seeds(report.seeds())
    );
    if let Some(note) = first_seed_only(report) {
        text += &wrapped(&note, width);
    }
    let names: Vec<String> = report.designs.iter().map(|design| human::elide(&design.name, 22)).collect();
    for sheet in sheet::sheets(report) {
        text.push('\n');
        text += &sheet_text(&sheet, &names, &paint, width);
    }
    text.push('\n');
    if let Some(note) = censored(report) {
        text += &wrapped(&note, width);
    }
    for line in live::lines(report) {
        text += &wrapped(&line, width);
    }
    if let Some(replications) = &report.replications {
        text += &difference_lines(replications, width);
    }
    if let Some(baseline) = &report.baseline {
        text += &wrapped(&baseline_line(report, baseline), width);
    }
    text += &verdict_lines(report, &paint, width);
    for line in unfinished(report) {
        text += &paint.with(style(Tone::Bad), wrapped(&line, width).trim_end());
        text.push('\n');
    }
    text.push('\n');
    text += &events(report);
    text += &format!("reproduce: {}\n", report.reproduce);
    text
}

/// How many samples are lower bounds, and of which designs.
pub(super) fn censored(report: &Report) -> Option<String> {
    let designs: Vec<_> = report
        .designs
        .iter()
        .filter(|design| design.metrics.lag_us.censored > 0)
        .map(|design| {
            let lag = &design.metrics.lag_us;
            format!("{} {} of {}", design.name, human::count(lag.censored), human::count(lag.samples))
        })
        .collect();
    (!designs.is_empty()).then(|| {
        format!(
            "≥ lower bound: not delivered by the end of the run, counted with their age then: {}.",
            designs.join("; ")
        )
    })
}

/// Which designs have no result, and why; nothing if all have.
pub(super) fn unfinished(report: &Report) -> Vec<String> {
    let (finished, what) = match &report.replications {
        Some(all) => (all.runs.len(), "runs"),
        None => (report.designs.len(), "designs"),
    };
    let all = finished + report.unfinished.len();
    let interrupted = report.unfinished.iter().any(|design| design.error.is_none());
    let interrupted = interrupted.then(|| format!("interrupted: {finished} of {all} {what} finished"));
    let errors = report.unfinished.iter().filter_map(|design| design.error.as_ref());
    interrupted.into_iter().chain(errors.map(|error| format!("failed: {error}"))).collect()
}

fn sheet_text(sheet: &Sheet, names: &[String], paint: &Paint, width: usize) -> String {
    let mut columns: Vec<&Column> = sheet.columns.iter().collect();
    let (mut zero, mut left_out) = (Vec::new(), Vec::new());
    let mut lines = lines_of(&columns, names, paint);
    while lines.iter().map(|line| columns_wide(line)).max() > Some(width) {
        // First what says nothing, from the right; then what Markdown shows as well.
        let nothing = |column: &&Column| column.cells.iter().all(|cell| cell.text == "0");
        let at = columns
            .iter()
            .rposition(|column| column.optional && nothing(column))
            .or_else(|| columns.iter().rposition(|column| column.optional));
        let Some(at) = at else { break };
        let column = columns.remove(at);
        let list = if nothing(&column) { &mut zero } else { &mut left_out };
        list.insert(0, one_line(&column.head));
        lines = lines_of(&columns, names, paint);
    }
    let mut text = format!("{}\n", paint.with(BOLD, sheet.title));
    for line in lines {
        text.push_str(&line);
        text.push('\n');
    }
    for (what, heads) in [("all 0", zero), ("no room for", left_out)] {
        if !heads.is_empty() {
            text += &wrapped(&format!("{what}: {}", heads.join(", ")), width);
        }
    }
    text
}

/// A head of two lines in one.
pub(super) fn one_line(head: &str) -> String {
    head.replace("-\n", "").replace('\n', " ").trim().to_owned()
}

fn lines_of(columns: &[&Column], names: &[String], paint: &Paint) -> Vec<String> {
    let mut table = Table::new();
    table.load_style(STYLE).set_content_arrangement(ContentArrangement::Disabled);
    let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
    let heads = columns.iter().map(|column| right(column.head.clone()));
    table.set_header([Cell::new("\ndesign")].into_iter().chain(heads));
    for (row, name) in names.iter().enumerate() {
        let cells = columns.iter().map(|column| &column.cells[row]);
        let cells = cells.map(|cell| right(paint.with(style(cell.tone), &cell.text)));
        table.add_row([Cell::new(name)].into_iter().chain(cells));
    }
    for column in table.column_iter_mut() {
        column.set_padding((1, 0));
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect()
}

/// Why the tables do not show everything; nothing for a single seed.
pub(super) fn first_seed_only(report: &Report) -> Option<String> {
    let seeds = report.replications.as_ref()?.seeds.len();
    (seeds > 1).then(|| {
        format!(
            "The first table is over all {seeds} seeds, the others show seed {}; gates are judged on all.",
            report.seed
        )
    })
}

fn baseline_line(report: &Report, Baseline { file, scenario_hash, .. }: &Baseline) -> String {
    let other = *scenario_hash != report.scenario.hash;
    let other = if other { " (of another scenario: what changed may be the scenario)" } else { "" };
    format!("baseline: {file}{other}")
}

/// The differences that are news, as many as a reader looks at, and what is to be said of the others.
fn difference_lines(Replications { differences, seeds, .. }: &Replications, width: usize) -> String {
    const SHOWN: usize = 12;
    if differences.is_empty() {
        return String::new();
    }
    let news = replications::news(differences);
    let mut text = format!(
        "differences over {} seeds, pairwise ([low change high]: 95% interval; seeds better:worse):\n",
        seeds.len()
    );
    for difference in news.iter().take(SHOWN) {
        let compare::Row { subject, from, to, change, won, finding, .. } = compare::Row::new(difference);
        let Difference { design, against, .. } = difference;
        let won = if won.is_empty() { won } else { format!(" {won}") };
        let line = format!("{design} against {against}: {subject} {from} -> {to} {change}{won} {finding}");
        text += &indented(&line, width);
    }
    if news.len() > SHOWN {
        text += &format!("  and {} more in report.md\n", news.len() - SHOWN);
    }
    if let Some(rest) = replications::rest(differences) {
        text += &indented(&rest, width);
    }
    text
}

fn indented(text: &str, width: usize) -> String {
    wrapped(text, width.saturating_sub(2)).lines().map(|line| format!("  {line}\n")).collect()
}

fn verdict_lines(report: &Report, paint: &Paint, width: usize) -> String {
    let mut text = String::new();
    for (what, verdicts) in verdicts::lists(report) {
        text += &format!("{what}: {} of {} hold\n", verdicts::held(verdicts), verdicts.len());
        let mut told: Vec<&str> = vec![&report.reproduce];
        for verdict in verdicts.iter().filter(|verdict| !verdict.passed) {
            text += &verdict_line(verdict, paint, width);
            let command = verdict.reproduce.as_deref().filter(|command| !told.contains(command));
            if let Some(command) = command {
                text += &format!("       reproduce: {command}\n");
                told.push(command);
            }
        }
    }
    text
}

fn verdict_line(verdict: &Verdict, paint: &Paint, width: usize) -> String {
    let bound = verdicts::bound(verdict).map(|bound| format!(", that is {bound}")).unwrap_or_default();
    let asked = format!("{}: {}{bound}", verdict.design, verdicts::claim(verdict));
    let place = verdicts::place(verdict);
    let place = if place.is_empty() { place } else { format!(" {place}") };
    let measured = match verdict.measured {
        Some(_) => format!("measured {}{place}", verdicts::measured(verdict)),
        None => verdicts::measured(verdict),
    };
    let fits = "  FAIL ".len() + asked.chars().count() + 2 + measured.chars().count() <= width;
    let gap = if fits { "  " } else { "\n       " };
    format!("  {} {asked}{gap}{measured}\n", paint.with(style(Tone::Bad), "FAIL"))
}

fn events(report: &Report) -> String {
    let longest = report.designs.iter().map(|design| design.name.chars().count()).max().unwrap_or(0);
    // In real time nothing comes again.
    let simulated = report.designs.iter().filter(|design| design.live.is_none());
    let line = |design: &crate::outcome::Outcome| {
        let (name, hash, host) = (&design.name, &design.event_hash, &design.host);
        format!("events: {name:longest$}  {hash}  {}x real time\n", human::count(host.speed_up))
    };
    simulated.map(line).collect()
}

pub(super) fn style(tone: Tone) -> Style {
    match tone {
        Tone::Plain => Style::new(),
        Tone::Good => AnsiColor::Green.on_default(),
        Tone::Bad => AnsiColor::Red.on_default(),
        Tone::Faint => Style::new().dimmed(),
    }
}

/// Whether to write escape codes.
pub(super) struct Paint {
    pub(super) colour: bool,
}

impl Paint {
    pub(super) fn with(&self, style: Style, text: &str) -> String {
        if self.colour { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

/// What a line takes on the terminal: escape codes take nothing.
pub(super) fn columns_wide(line: &str) -> usize {
    let mut escaped = false;
    line.chars()
        .filter(|&c| {
            let shown = !escaped && c != '\u{1b}';
            escaped = if escaped { c != 'm' } else { c == '\u{1b}' };
            shown
        })
        .count()
}

/// Breaks at spaces; continued lines are indented.
pub(super) fn wrapped(text: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a first line");
        if !line.trim().is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(format!("  {word}"));
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n") + "\n"
}

pub(super) const BOLD: Style = Style::new().bold();

/// A rule under the head, and nothing else.
pub(super) const STYLE: TableStyle =
    presets::NOTHING.header_separator(LineStyle::none().fill('─').junction('─'));
