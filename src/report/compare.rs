//! How two results differ, as text and as Markdown. The words are criterion's.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};

use crate::compare::{Comparison, PAIRS_MIN, Side};
use crate::gate;
use crate::outcome::{Difference, Finding};

use super::markdown::escaped;
use super::provenance::seeds;
use super::sheet::Tone;
use super::table::{BOLD, Paint, STYLE, columns_wide, style, wrapped};
use super::{human, verdicts};

/// The comparison as text of at most `width` columns, with ANSI colours if `colour`; without `all` only the dials: who was
/// late, what was lost, what the budget was spent on.
pub fn comparison_table(comparison: &Comparison, all: bool, colour: bool, width: usize) -> String {
    let paint = Paint { colour };
    let mut text = paint.with(BOLD, "compare");
    text += &format!("  {} -> {}\n", comparison.from.file, comparison.to.file);
    text += &wrapped(&setting(&comparison.to), width);
    for remark in remarks(comparison) {
        text += &wrapped(&format!("note: {remark}"), width);
    }
    let shown = Shown::new(comparison, all);
    for section in &shown.sections {
        text += &format!("\n{}\n", paint.with(BOLD, &section.title()));
        if let Some(note) = section.too_few() {
            text += &wrapped(&note, width);
        }
        text += &rows_text(section, &paint, width);
        text += &wrapped(&section.summary(), width);
    }
    text.push('\n');
    for note in shown.notes() {
        text += &wrapped(&note, width);
    }
    text
}

/// The comparison as Markdown for a pull request.
pub fn comparison_markdown(comparison: &Comparison, all: bool) -> String {
    let mut text = format!(
        "### floodlab: {}\n\n`{}` → `{}`. {}\n",
        escaped(&comparison.to.scenario.name),
        comparison.from.file,
        comparison.to.file,
        escaped(&setting(&comparison.to))
    );
    for remark in remarks(comparison) {
        text += &format!("\n> **Note:** {}\n", escaped(&remark));
    }
    let shown = Shown::new(comparison, all);
    for section in &shown.sections {
        text += &format!("\n#### {}\n\n{}\n", escaped(&section.title()), escaped(&section.summary()));
        if let Some(note) = section.too_few() {
            text += &format!("\n{note}\n");
        }
        if section.rows.is_empty() {
            continue;
        }
        text += &format!("\n| {} |\n| --- | ---: | ---: | ---: | :---: | --- |\n", HEADS.join(" | "));
        for row in &section.rows {
            text += &format!("| {} |\n", row.cells().map(|cell| escaped(&cell)).join(" | "));
        }
    }
    for note in shown.notes() {
        text += &format!("\n{}\n", escaped(&note));
    }
    text
}

/// What stands above [`Row::cells`].
pub(super) const HEADS: [&str; 6] = ["metric", "from", "to", "change", "seeds better : worse", "finding"];

/// What is shown of a comparison: a section for each pair of designs, and what none of them differs in.
struct Shown<'a> {
    sections: Vec<Section<'a>>,
    equal: Vec<String>,
}

/// One design against another.
struct Section<'a> {
    differences: Vec<&'a Difference>,
    rows: Vec<Row>,
}

/// One difference as text.
pub(super) struct Row {
    pub(super) subject: String,
    pub(super) lower_bound: bool,
    pub(super) from: String,
    pub(super) to: String,
    /// With its interval if there is one.
    pub(super) change: String,
    pub(super) won: String,
    pub(super) finding: &'static str,
    tone: Tone,
}

impl<'a> Shown<'a> {
    fn new(comparison: &'a Comparison, all: bool) -> Self {
        let pair = |one: &Difference, other: &Difference| {
            (&one.design, &one.against) == (&other.design, &other.against)
        };
        let sections: Vec<Vec<&Difference>> = comparison
            .differences
            .chunk_by(pair)
            .map(|section| {
                // Dials first; what is none keeps its place behind them.
                let mut shown: Vec<_> =
                    section.iter().filter(|difference| all || dial(difference).is_some()).collect();
                shown.sort_by_key(|difference| dial(difference).unwrap_or(usize::MAX));
                shown
            })
            .filter(|section| !section.is_empty())
            .collect();
        let shown = sections.concat();
        let mut equal = Vec::new();
        for difference in &shown {
            let subject = subject(difference);
            let same = |other: &&&Difference| {
                (&other.metric, &other.r#where, &other.aggregate)
                    == (&difference.metric, &difference.r#where, &difference.aggregate)
            };
            if !equal.contains(&subject)
                && shown.iter().filter(same).all(|other| other.finding == Finding::Equal)
            {
                equal.push(subject);
            }
        }
        let sections = sections.into_iter().map(|differences| {
            let differing = differences.iter().filter(|difference| !equal.contains(&subject(difference)));
            let rows = differing.map(|difference| Row::new(difference)).collect();
            Section { differences, rows }
        });
        Self { sections: sections.collect(), equal }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.equal.is_empty() {
            let all = if self.sections.len() > 1 { " in all designs" } else { "" };
            notes.push(format!("equal{all}: {}", self.equal.join(", ")));
        }
        let differences = || self.sections.iter().flat_map(|section| &section.differences);
        if differences().any(|difference| difference.lower_bound) {
            notes.push(
                "≥: some values are lower bounds, as what was not delivered counts with its age at the end of the run; \
                 nothing is claimed that would not hold for larger ones."
                    .to_owned(),
            );
        }
        if differences().any(|difference| difference.interval.is_some()) {
            notes.push("In brackets: the mean change over seeds within its 95 % interval.".to_owned());
        }
        notes
    }
}

impl Section<'_> {
    fn title(&self) -> String {
        let first = self.differences[0];
        if first.design == first.against {
            return first.design.clone();
        }
        format!("{} -> {}", first.against, first.design)
    }

    /// How often what was found.
    fn summary(&self) -> String {
        let count =
            |finding| self.differences.iter().filter(|difference| difference.finding == finding).count();
        let counts = [
            (Finding::Improved, "improved"),
            (Finding::Regressed, "regressed"),
            (Finding::Changed, "changed"),
            (Finding::WithinNoise, "changed within the noise threshold"),
            (Finding::NoDifference, "without a detected difference"),
            (Finding::TooFew, "with too few seeds to say"),
            (Finding::Equal, "equal"),
        ];
        let counts = counts.map(|(finding, what)| (count(finding), what));
        let counts: Vec<_> =
            counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
        format!("{}.", counts.join(", "))
    }

    /// Said once, instead of in every row.
    fn too_few(&self) -> Option<String> {
        let few = self.differences.iter().filter(|difference| difference.finding == Finding::TooFew);
        let pairs = few.map(|difference| difference.pairs).max()?;
        Some(match pairs {
            0 => format!(
                "Too few seeds to say (at least {PAIRS_MIN} on each side): this is how these runs differ."
            ),
            _ => format!(
                "Too few seeds to say ({pairs} of at least {PAIRS_MIN}): this is how these runs differ."
            ),
        })
    }
}

impl Row {
    pub(super) fn new(difference: &Difference) -> Self {
        let kind = match difference.unit.as_str() {
            "us" => Kind::Lag,
            "ppm" if verdicts::is_ratio(&difference.metric) => Kind::Ratio,
            "ppm" => Kind::Share,
            _ => Kind::Count,
        };
        let (from, Difference { change, interval, .. }) = (difference.from, difference);
        let signed = |value: i64| {
            if from > 0 { percent(value, from) } else { kind.signed(value) }
        };
        let change = match interval {
            Some([low, high]) if difference.finding != Finding::Equal => {
                format!("[{} {} {}]", signed(*low), signed(*change), signed(*high))
            }
            _ => signed(*change),
        };
        let (finding, tone) = match difference.finding {
            Finding::Improved => ("Improved.", Tone::Good),
            Finding::Regressed => ("Regressed.", Tone::Bad),
            Finding::Changed => ("Changed.", Tone::Plain),
            Finding::WithinNoise => ("Change within noise threshold.", Tone::Faint),
            Finding::NoDifference => ("No difference detected.", Tone::Faint),
            Finding::Equal => ("Equal.", Tone::Faint),
            Finding::TooFew => ("", Tone::Plain),
        };
        let pairs = difference.won + difference.lost;
        Self {
            subject: subject(difference),
            lower_bound: difference.lower_bound,
            from: kind.text(from),
            to: kind.text(difference.to),
            change,
            won: if pairs > 0 { format!("{}:{}", difference.won, difference.lost) } else { String::new() },
            finding,
            tone,
        }
    }
}

impl Row {
    /// The cells of its row in Markdown, below [`HEADS`].
    pub(super) fn cells(&self) -> [String; 6] {
        let finding = match self.tone {
            Tone::Good | Tone::Bad => format!("**{}**", self.finding),
            Tone::Plain | Tone::Faint => self.finding.to_owned(),
        };
        let lower_bound = if self.lower_bound { " ≥" } else { "" };
        [
            format!("`{}`{lower_bound}", self.subject),
            self.from.clone(),
            self.to.clone(),
            self.change.clone(),
            self.won.clone(),
            finding,
        ]
    }
}

/// How a value is written.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Lag,
    Share,
    Ratio,
    Count,
}

impl Kind {
    fn text(self, value: u64) -> String {
        match self {
            Self::Lag => human::lag(value),
            Self::Share => human::share(value, 1_000_000),
            Self::Ratio => human::ratio(value),
            // A mean of few things has a decimal, one of many does not need it.
            Self::Count if value >= 100_000 || value.is_multiple_of(1_000) => {
                human::short((value + 500) / 1_000)
            }
            Self::Count if value < 50 => "<0.1".to_owned(),
            Self::Count => human::decimal((value + 50) / 100, 1),
        }
    }

    fn signed(self, value: i64) -> String {
        match value {
            0 => "0".to_owned(),
            ..0 => format!("-{}", self.text(value.unsigned_abs())),
            _ => format!("+{}", self.text(value.unsigned_abs())),
        }
    }
}

/// A change in per cent, in about three digits.
fn percent(change: i64, from: u64) -> String {
    let (change, from) = (i128::from(change), i128::from(from));
    let (sign, size) = if change < 0 { ('-', -change) } else { ('+', change) };
    let in_steps = |steps: i128| (size * steps + from / 2) / from;
    let (hundredths, tenths, whole) = (in_steps(10_000), in_steps(1_000), in_steps(100));
    if change == 0 {
        "0%".to_owned()
    } else if hundredths < 1_000 {
        format!("{sign}{}.{:02}%", hundredths / 100, hundredths % 100)
    } else if tenths < 1_000 {
        format!("{sign}{}.{}%", tenths / 10, tenths % 10)
    } else {
        format!("{sign}{}%", human::count(u64::try_from(whole).unwrap_or(u64::MAX)))
    }
}

/// What differs, as a gate names it: `lag{class:reply} p(99)`.
fn subject(difference: &Difference) -> String {
    let metric = gate::labelled(&difference.metric, &difference.r#where);
    format!("{metric} {}", difference.aggregate).trim_end().to_owned()
}

/// The place of the few numbers that tell whether a sender is any good; `None` of all others.
pub(super) fn dial(difference: &Difference) -> Option<usize> {
    let labelled = !difference.r#where.is_empty();
    let wanted = |(metric, aggregate, by_label): &(&str, &str, bool)| {
        (*metric, *aggregate, *by_label) == (&difference.metric, &difference.aggregate, labelled)
    };
    DIALS.iter().position(wanted)
}

/// Metric, aggregate, and whether it is shown by label.
const DIALS: [(&str, &str, bool); 12] = [
    ("lag", "p(50)", false),
    ("lag", "p(99)", false),
    ("lag", "p(99)", true),
    ("lag", "max", false),
    ("delivered", "", false),
    ("lost", "", false),
    ("duplicated", "", false),
    ("throttled", "", true),
    ("early_retries", "", false),
    ("calls_in_penalty", "", false),
    ("budget_utilisation", "", false),
    ("amplification", "", false),
];

/// What was run.
fn setting(side: &Side) -> String {
    let scenario = &side.scenario;
    let [seeds, span] = [seeds(&side.seeds), human::span(scenario.horizon_us)];
    format!("{}, profile {}, {span}, {seeds}", scenario.name, scenario.profile)
}

/// What differs beside the results, so that nobody takes it for the work of a design.
fn remarks(Comparison { from, to, .. }: &Comparison) -> Vec<String> {
    let (old, new) = (&from.scenario, &to.scenario);
    let mut remarks = Vec::new();
    let mut differs = |what: &str, old: String, new: String| {
        if old != new {
            remarks.push(format!("{what}: {old} -> {new}"));
        }
    };
    differs("another scenario", old.name.clone(), new.name.clone());
    if old.name == new.name {
        differs("the scenario has changed, hash", old.hash.clone(), new.hash.clone());
    }
    differs("another length", human::span(old.horizon_us), human::span(new.horizon_us));
    differs("another warm-up", human::span(old.warm_up_us), human::span(new.warm_up_us));
    differs("another profile", old.profile.clone(), new.profile.clone());
    let store = |store: &Option<String>| store.clone().unwrap_or_else(|| "simulated".to_owned());
    differs("another store", store(&old.store), store(&new.store));
    differs("another version", from.tool.clone(), to.tool.clone());
    if from.seeds != to.seeds {
        let common = from.seeds.iter().filter(|seed| to.seeds.contains(seed)).count();
        let compared = match common {
            0 => "none in common, so the runs are not paired and the intervals are Welch's".to_owned(),
            1 => "compared on the one in common".to_owned(),
            _ => format!("compared on the {common} in common"),
        };
        remarks.push(format!("other seeds: {} -> {}; {compared}", seeds(&from.seeds), seeds(&to.seeds)));
    }
    remarks
}

fn rows_text(section: &Section<'_>, paint: &Paint, width: usize) -> String {
    if section.rows.is_empty() {
        return String::new();
    }
    let fits = |lines: &Vec<String>| lines.iter().all(|line| columns_wide(line) <= width);
    let full = rows_lines(section, paint, true);
    let lines = if fits(&full) { full } else { rows_lines(section, paint, false) };
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn rows_lines(section: &Section<'_>, paint: &Paint, with_won: bool) -> Vec<String> {
    let mut table = Table::new();
    table.load_style(STYLE).set_content_arrangement(ContentArrangement::Disabled);
    let right = |text: &str| Cell::new(text).set_alignment(CellAlignment::Right);
    let with_won = with_won && section.rows.iter().any(|row| !row.won.is_empty());
    let mut head = vec![Cell::new(""), right("from"), right("to"), right("change")];
    head.extend(with_won.then(|| right("won:lost")));
    table.set_header(head);
    for row in &section.rows {
        let subject = human::elide(&row.subject, 34);
        let subject = if row.lower_bound { format!("{subject} ≥") } else { subject };
        let mut cells = vec![Cell::new(subject), right(&row.from), right(&row.to), right(&row.change)];
        cells.extend(with_won.then(|| right(&row.won)));
        cells.push(Cell::new(format!(" {}", paint.with(style(row.tone), row.finding))));
        table.add_row(cells);
    }
    for column in table.column_iter_mut() {
        column.set_padding((1, 0));
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests;
