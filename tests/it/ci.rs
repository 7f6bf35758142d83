//! What CI gets: JUnit XML, the comment, and the action with its script.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use floodlab::outcome::{Baseline, Difference, Finding, Replications, Report, Unfinished, Verdict};
use floodlab::report;
use indexmap::IndexMap;
use roxmltree::{Document, Node};
use serde::Deserialize;
use tempfile::TempDir;

use crate::reports::small;

/// One gate of each kind: one that holds, one that fails in a window of seed 7, one without samples, one that is only known
/// from below.
fn gates() -> Vec<Verdict> {
    let gate = |design: &str, metric: &str, class: &str, expect: &str, measured, unit: &str| Verdict {
        metric: metric.to_owned(),
        design: design.to_owned(),
        r#where: if class.is_empty() {
            IndexMap::new()
        } else {
            [("class".to_owned(), class.to_owned())].into_iter().collect()
        },
        expect: expect.to_owned(),
        measured,
        unit: unit.to_owned(),
        ..Verdict::default()
    };
    vec![
        Verdict { passed: true, ..gate("scheduler", "lost", "", "== 0", Some(0), "count") },
        Verdict {
            over_us: Some(60_000_000),
            window_us: Some(4_320_000_000),
            interval: Some([6_800_000, 7_102_000]),
            seed: Some(7),
            reproduce: Some("floodlab run s.toml --design scheduler --seed 7".to_owned()),
            ..gate("scheduler", "lag", "alert", "p(99) <= 5s", Some(7_102_000), "us")
        },
        gate("scheduler", "lag", "nobody & <co>", "p(99) <= 5s", None, "us"),
        Verdict {
            lower_bound: true,
            bound: Some(5_500_000),
            reproduce: Some("floodlab run s.toml --design naive-loop --seed 1".to_owned()),
            ..gate("naive-loop", "lag", "", "p(99) <= baseline * 1.1", Some(11_000_000_000), "us")
        },
    ]
}

fn judged() -> Report {
    Report { gates: gates(), expectations: Vec::new(), ..small() }
}

/// What `junit-10.xsd` (Jenkins' xUnit plugin) allows: of an element the attributes that it must and may have, and what
/// may be in it. Of what may be, only what floodlab writes.
fn check_structure(node: Node<'_, '_>) {
    type Shape = (&'static [&'static str], &'static [&'static str], &'static [&'static str]);
    let (required, optional, children): Shape = match node.tag_name().name() {
        "testsuites" => (&[], &["name", "tests", "failures", "errors"], &["testsuite"]),
        "testsuite" => (&["name", "tests", "failures", "errors"], &["skipped"], &["properties", "testcase"]),
        "properties" => (&[], &[], &["property"]),
        "property" => (&["name", "value"], &[], &[]),
        "testcase" => (&["name"], &["classname"], &["failure", "error"]),
        "failure" | "error" => (&[], &["type", "message"], &[]),
        other => panic!("no element of JUnit: {other}"),
    };
    let attributes: Vec<&str> = node.attributes().map(|attribute| attribute.name()).collect();
    assert!(required.iter().all(|name| attributes.contains(name)), "{node:?}");
    assert!(attributes.iter().all(|name| required.contains(name) || optional.contains(name)), "{node:?}");
    for child in node.children().filter(Node::is_element) {
        assert!(children.contains(&child.tag_name().name()), "{child:?} in {node:?}");
        check_structure(child);
    }
}

fn named<'a>(node: Node<'a, 'a>, name: &'a str) -> Vec<Node<'a, 'a>> {
    node.descendants().filter(|node| node.has_tag_name(name)).collect()
}

/// The numbers on an element are those of what is in it.
fn check_counts(node: Node<'_, '_>) {
    for (attribute, element) in [("tests", "testcase"), ("failures", "failure"), ("errors", "error")] {
        let said = node.attribute(attribute).expect(attribute).parse();
        assert_eq!(said, Ok(named(node, element).len()), "{attribute} of {node:?}");
    }
}

#[test]
fn junit_is_what_ci_servers_check_against() {
    let mut report = judged();
    report.unfinished = vec![
        Unfinished { design: "shared-bucket".to_owned(), seed: None, error: None },
        Unfinished {
            design: "scheduler".to_owned(),
            seed: Some(9),
            error: Some("the ledger does not balance: \"1\" < 2\u{1b}[31m".to_owned()),
        },
    ];
    let text = report::junit(&report);
    let document = Document::parse(&text).expect("XML");
    let root = document.root_element();
    assert_eq!(root.tag_name().name(), "testsuites");
    check_structure(root);
    check_counts(root);
    let suites = named(root, "testsuite");
    suites.iter().for_each(|suite| check_counts(*suite));
    let names: Vec<_> = suites.iter().filter_map(|suite| suite.attribute("name")).collect();
    assert_eq!(
        names,
        ["platform-day / naive-loop", "platform-day / scheduler", "platform-day / shared-bucket"]
    );
    let told: Vec<(String, &str, &str)> = named(root, "testcase")
        .iter()
        .map(|case| {
            let child = case.first_element_child();
            let name =
                format!("{}: {}", case.attribute("classname").unwrap(), case.attribute("name").unwrap());
            let kind = child.map_or("passed", |child| child.attribute("type").expect("a type"));
            (name, kind, child.and_then(|child| child.attribute("message")).unwrap_or_default())
        })
        .collect();
    let told: Vec<_> = told.iter().map(|(name, kind, message)| (name.as_str(), *kind, *message)).collect();
    assert_eq!(
        told,
        [
            ("platform-day.naive-loop: lag p(99) <= baseline * 1.1", "gate", "measured ≥3h03m (11000s)"),
            ("platform-day.scheduler: lost == 0", "passed", ""),
            (
                "platform-day.scheduler: lag{class:alert} p(99) <= 5s over any 1min",
                "gate",
                "measured 7.102s [6.8s, 7.102s] in the window from 1h12m, worst seed 7"
            ),
            ("platform-day.scheduler: lag{class:nobody & <co>} p(99) <= 5s", "no-samples", "no samples"),
            (
                "platform-day.scheduler: result of seed 9",
                "unfinished",
                "the ledger does not balance: \"1\" < 2"
            ),
            ("platform-day.shared-bucket: result", "unfinished", "interrupted"),
        ]
    );
    let failure = named(root, "failure")[1].text().expect("what to do");
    for part in
        ["7.102s", "p(99) <= 5s", "worst seed 7", "2.102s", "floodlab run s.toml --design scheduler --seed 7"]
    {
        assert!(failure.contains(part), "{part} in {failure}");
    }
}

/// The same result gives the same bytes, and nothing in them is of the day or the machine.
#[test]
fn junit_knows_no_clock() {
    let mut report = judged();
    let text = report::junit(&report);
    report.host.wall_ms += 1;
    report.designs.iter_mut().for_each(|design| design.host.wall_ms += 1);
    assert_eq!(report::junit(&report), text);
    let document = Document::parse(&text).expect("XML");
    for node in document.descendants() {
        assert!(["time", "timestamp", "hostname"].iter().all(|name| !node.has_attribute(*name)), "{node:?}");
    }
}

#[test]
fn without_gates_a_suite_has_no_cases() {
    let text = report::junit(&small());
    let document = Document::parse(&text).expect("XML");
    check_structure(document.root_element());
    assert_eq!(named(document.root_element(), "testsuite").len(), 2);
    assert_eq!(named(document.root_element(), "testcase").len(), 0, "expectations are no gates");
    for suite in named(document.root_element(), "testsuite") {
        check_counts(suite);
    }
}

#[test]
fn the_comment_says_first_what_failed() {
    let text = report::comment(&judged());
    assert!(
        text.starts_with("<!-- floodlab: platform-day -->\n### platform-day: failed, 1 of 4 gates passed\n")
    );
    insta::assert_snapshot!("comment", text);
}

#[test]
fn the_table_says_where_a_gate_failed_and_how_to_see_it() {
    let table = report::table(&judged(), false, 100);
    let gates = table.split("gates: ").nth(1).expect("the gates").split("\nevents").next().expect("a part");
    insta::assert_snapshot!(gates, @r"
    1 of 4 hold
      FAIL scheduler: lag{class:alert} p(99) <= 5s over any 1min
           measured 7.102s [6.8s, 7.102s] in the window from 1h12m, worst seed 7
           reproduce: floodlab run s.toml --design scheduler --seed 7
      FAIL scheduler: lag{class:nobody & <co>} p(99) <= 5s  no samples
      FAIL naive-loop: lag p(99) <= baseline * 1.1, that is 5.5s  measured ≥3h03m (11000s)
           reproduce: floodlab run s.toml --design naive-loop --seed 1
    ");
}

#[test]
fn headlines() {
    let headline = |report: &Report| {
        let text = report::comment(report);
        text.lines().nth(1).expect("a headline").trim_start_matches("### platform-day: ").to_owned()
    };
    let [passed, failed, no_samples, _] = gates().try_into().expect("four gates");
    let with = |gates: &[&Verdict]| Report { gates: gates.iter().copied().cloned().collect(), ..small() };
    assert_eq!(headline(&with(&[])), "no gate, this run judges nothing");
    assert_eq!(headline(&with(&[&passed])), "1 of 1 gates passed");
    assert_eq!(headline(&with(&[&passed, &failed, &no_samples])), "failed, 1 of 3 gates passed");
    assert_eq!(headline(&with(&[&passed, &no_samples])), "no samples, 1 of 2 gates passed");
    let unfinished = vec![Unfinished { design: "wide".to_owned(), ..Unfinished::default() }];
    let cut = Report { unfinished, ..with(&[&passed]) };
    assert_eq!(headline(&cut), "incomplete, 1 of 1 gates passed");
    assert_eq!(headline(&Report { gates: Vec::new(), ..cut }), "incomplete, no gate judged");
}

fn difference(metric: &str, finding: Finding) -> Difference {
    let (from, to, change) = if finding == Finding::Regressed { (90, 100, 10) } else { (100, 90, -10) };
    let unit = if metric == "lag" { "us" } else { "milli" };
    let scale = if unit == "us" { 100_000 } else { 1_000 };
    Difference {
        design: "scheduler".to_owned(),
        against: "naive-loop".to_owned(),
        metric: metric.to_owned(),
        r#where: IndexMap::new(),
        aggregate: if metric == "lag" { "p(99)" } else { "" }.to_owned(),
        unit: unit.to_owned(),
        from: from * scale,
        to: to * scale,
        change: change * scale as i64,
        interval: Some([(change - 2) * scale as i64, (change + 2) * scale as i64]),
        unpaired: None,
        pairs: 20,
        won: 18,
        lost: 2,
        finding,
        lower_bound: false,
    }
}

fn replicated() -> Report {
    let differences = vec![
        difference("lag", Finding::Improved),
        difference("duplicated", Finding::Regressed),
        difference("kills", Finding::Changed),
        difference("lost", Finding::Equal),
        difference("dropped", Finding::NoDifference),
        difference("expired", Finding::WithinNoise),
    ];
    Report {
        replications: Some(Replications {
            seeds: (1..=20).collect(),
            runs: Vec::new(),
            estimates: Vec::new(),
            differences,
        }),
        baseline: Some(Baseline {
            file: "reports/baseline/platform-day.json".to_owned(),
            tool: "floodlab 0.1.0".to_owned(),
            scenario_hash: "fedcba9876543210".to_owned(),
            seeds: vec![1, 2, 3],
        }),
        ..judged()
    }
}

#[test]
fn differences_that_are_news_are_shown_and_the_rest_is_counted() {
    let report = replicated();
    let text = report::comment(&report);
    let row = "| scheduler | naive-loop | `lag p(99)` | 10s | 9.0s | [-12.0% -10.0% -8.00%] | 18:2 | **Improved.** |";
    assert!(text.contains(row), "{text}");
    assert!(
        text.contains("| `duplicated` | 90 | 100 | [+8.89% +11.1% +13.3%] | 18:2 | **Regressed.** |"),
        "{text}"
    );
    assert!(text.contains("Different as well, see `report.md`: 1 other metric."), "{text}");
    assert!(!text.contains("| naive-loop | `lost` |"), "{text}");
    assert!(text.contains("No difference detected in 1 other metric. Equal in 1 other metric."), "{text}");
    assert!(text.contains("Within the noise threshold: 1 other metric."), "{text}");
    assert!(text.contains("hash `fedcba9876543210`, now `0123456789abcdef`"), "{text}");
    let markdown = report::markdown(&report);
    assert!(markdown.contains("| scheduler | naive-loop | `lost` |"), "the report has them all: {markdown}");
    let table = report::table(&report, false, 100);
    assert!(
        table.contains("20 seeds (1 to 20)") && table.contains("No difference detected in 1 other metric."),
        "{table}"
    );
    let mut same = report;
    same.baseline.as_mut().expect("one").scenario_hash = same.scenario.hash.clone();
    assert!(!report::comment(&same).contains("another scenario"));
}

#[test]
fn fewer_than_five_pairs_say_nothing() {
    let mut report = replicated();
    let all = report.replications.as_mut().expect("some");
    all.seeds.truncate(3);
    all.differences.iter_mut().for_each(|difference| difference.finding = Finding::TooFew);
    let text = report::comment(&report);
    assert!(text.contains("Too few seeds to say anything of 6 metrics."), "{text}");
    assert!(!text.contains("Improved") && !text.contains("Regressed"), "{text}");
}

/// GitHub takes 65,536 characters.
#[test]
fn a_comment_is_cut_and_says_so() {
    let mut report = replicated();
    let long = "x".repeat(1_000);
    let gate = &report.gates[1];
    report.gates = (0..500).map(|index| Verdict { design: format!("d{index}"), ..gate.clone() }).collect();
    assert!(report::comment(&report).contains("… and 450 more gates in `report.md`"));
    report.gates.iter_mut().for_each(|gate| gate.expect = format!("p(99) <= 5s {long}"));
    report.designs[0].name = long.repeat(10);
    report.unfinished = (0..100)
        .map(|index| Unfinished { design: format!("u{index}"), seed: None, error: Some(long.repeat(10)) })
        .collect();
    let text = report::comment(&report);
    assert!(text.chars().count() <= 60_000);
    let missing = "Too long for a comment, and only in `report.md`: what went wrong, the numbers.";
    assert!(text.contains(missing) && text.contains("more gates in `report.md`"), "{text}");
}

/// A run of `scripts/ci-gate` as a runner of GitHub would start it.
struct Gate {
    /// The working directory: a repository with scenarios.
    folder: TempDir,
    /// The environment beside what a runner sets.
    environment: BTreeMap<&'static str, String>,
}

/// What became of it.
struct Gated {
    code: i32,
    out: String,
    /// What it wrote for later steps.
    outputs: BTreeMap<String, String>,
    /// What it wrote for the job's summary.
    summary: String,
    comment: String,
}

/// Three messages, all delivered at once.
const CALM: &str = r#"duration = "1min"
workers = 1
chats = { count = 3 }
server = { profile = "unlimited" }

[workload.all]
kind = "broadcast"
class = "notice"

[[design]]
strategy = "naive-loop"
"#;

impl Gate {
    fn new(scenarios: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("scenarios")).expect("created");
        for (name, text) in scenarios {
            fs::write(folder.path().join("scenarios").join(name), text).expect("written");
        }
        let floodlab = assert_cmd::cargo::cargo_bin("floodlab").display().to_string();
        let environment = [("FLOODLAB", floodlab), ("FLOODLAB_SCENARIOS", "scenarios/*.toml".to_owned())];
        Self { folder, environment: environment.into_iter().collect() }
    }

    fn with(mut self, name: &'static str, value: &str) -> Self {
        self.environment.insert(name, value.to_owned());
        self
    }

    /// Another program in floodlab's place.
    fn with_program(self, text: &str) -> Self {
        let program = self.folder.path().join("program");
        fs::write(&program, text).expect("written");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("ours");
        let program = program.display().to_string();
        self.with("FLOODLAB", &program)
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    fn run(&self) -> Gated {
        let (outputs, summary) = (self.path("outputs"), self.path("summary"));
        for file in [&outputs, &summary] {
            fs::write(file, "").expect("written");
        }
        let mut script = Command::new(script());
        script.current_dir(self.folder.path()).env_remove("FLOODLAB_SEED").envs(&self.environment);
        script
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_OUTPUT", &outputs)
            .env("GITHUB_STEP_SUMMARY", &summary);
        let output = script.output().expect("it runs");
        let read = |file: &Path| fs::read_to_string(file).unwrap_or_default();
        let lines = read(&outputs);
        let lines = lines.lines().map(|line| line.split_once('=').expect("NAME=VALUE"));
        Gated {
            code: output.status.code().expect("a code"),
            out: String::from_utf8(output.stdout).expect("UTF-8"),
            outputs: lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            summary: read(&summary),
            comment: read(&self.path("reports/ci/comment.md")),
        }
    }
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/ci-gate")
}

/// Adds gates to a scenario.
fn gated(scenario: &str, gates: &[(&str, &str)]) -> String {
    let gates = gates
        .iter()
        .map(|(metric, expect)| format!("\n[[gate]]\nmetric = \"{metric}\"\nexpect = \"{expect}\"\n"));
    format!("{scenario}{}", gates.collect::<String>())
}

#[test]
fn the_script_passes_what_passes() {
    let gate = Gate::new(&[("calm.toml", &gated(CALM, &[("delivered", "== 3")]))]);
    let gated = gate.run();
    assert_eq!((gated.code, gated.outputs["verdict"].as_str()), (0, "passed"), "{}", gated.out);
    assert_eq!(gated.outputs.keys().collect::<Vec<_>>(), ["comment", "junit", "report", "verdict"]);
    assert_eq!(gated.outputs["comment"], "reports/ci/comment.md");
    assert_eq!(gated.summary, gated.comment);
    assert!(
        gated
            .comment
            .starts_with("<!-- floodlab -->\n<!-- floodlab: calm -->\n### calm: 1 of 1 gates passed\n"),
        "{}",
        gated.comment
    );
    assert!(!gated.out.contains("::error") && !gated.out.contains("::warning"), "{}", gated.out);
    for file in ["report.json", "report.md", "junit.xml"] {
        assert!(gate.path("reports/ci/calm").join(file).exists(), "{file}");
    }
}

#[test]
fn the_script_fails_with_the_gravest_code_and_runs_everything() {
    let scenarios = [
        ("a-fails.toml", gated(CALM, &[("delivered", "== 3"), ("requests", "<= 2")])),
        ("b-calm.toml", gated(CALM, &[("lost", "== 0")])),
        ("c-silent.toml", gated(&CALM.replace("notice", "other"), &[("lag", "max <= 1s")])),
    ];
    let scenarios = scenarios.each_ref().map(|(name, text)| (*name, text.as_str()));
    let gated = Gate::new(&scenarios).run();
    assert_eq!((gated.code, gated.outputs["verdict"].as_str()), (99, "failed"), "{}", gated.out);
    let annotation =
        "::error file=scenarios/a-fails.toml,title=a-fails.naive-loop%3A requests <= 2::measured 3";
    assert!(gated.out.lines().any(|line| line == annotation), "{}", gated.out);
    let order: Vec<_> = gated.comment.lines().filter(|line| line.starts_with('#')).collect();
    assert_eq!(
        order,
        [
            "## floodlab: a gate failed",
            "### a-fails: failed, 1 of 2 gates passed",
            "### b-calm: 1 of 1 gates passed",
            "### c-silent: 1 of 1 gates passed"
        ]
    );
}

#[test]
fn gates_of_the_environment_are_judged_as_well() {
    let gated = Gate::new(&[("calm.toml", CALM)])
        .with("FLOODLAB_GATES", "lost: == 0\n\n  lag{class:notice}: max <= 1ms\n")
        .run();
    assert_eq!(gated.code, 99, "{}", gated.out);
    assert!(gated.comment.contains("calm: failed, 1 of 2 gates passed"), "{}", gated.comment);
}

#[test]
fn a_gate_without_samples_is_a_verdict_of_its_own() {
    // Nobody is told anything, so nobody is late.
    let dead = CALM.replace("count = 3", "count = 3, dead = \"100%\"");
    let gated = Gate::new(&[("calm.toml", &gated(&dead, &[("lag", "max <= 1s")]))]).run();
    assert_eq!((gated.code, gated.outputs["verdict"].as_str()), (4, "no-samples"), "{}", gated.out);
    assert!(gated.out.contains("::no samples"), "{}", gated.out);
}

/// A job that judges nothing is green for ever: it says so.
#[test]
fn the_script_warns_where_nothing_is_judged() {
    let gate = Gate::new(&[("calm.toml", CALM)]);
    let nothing = gate.run();
    assert_eq!((nothing.code, nothing.outputs["verdict"].as_str()), (0, "nothing"));
    assert!(
        nothing.out.contains("::warning file=scenarios/calm.toml,title=nothing is judged::"),
        "{}",
        nothing.out
    );
    assert!(nothing.comment.contains("no gate, this run judges nothing"), "{}", nothing.comment);
}

#[test]
fn expectations_are_judged_on_request() {
    let expecting = |expect: &str| format!("{CALM}\n[[expect]]\nmetric = \"due\"\nexpect = \"{expect}\"\n");
    for (expect, code, verdict) in [("== 3", 0, "passed"), ("== 4", 99, "failed")] {
        let gated = Gate::new(&[("calm.toml", &expecting(expect))]).with("FLOODLAB_EXPECT", "true").run();
        assert_eq!((gated.code, gated.outputs["verdict"].as_str()), (code, verdict), "{}", gated.out);
        assert!(!gated.out.contains("::warning"), "{}", gated.out);
    }
}

#[test]
fn what_cannot_be_run_is_an_error_and_stays_no_result_of_earlier() {
    let gate = Gate::new(&[("calm.toml", CALM)]);
    gate.run();
    fs::write(gate.path("scenarios/calm.toml"), CALM.replace("naive-loop", "naive-lop")).expect("written");
    let gated = gate.run();
    assert_eq!((gated.code, gated.outputs["verdict"].as_str()), (104, "error"), "{}", gated.out);
    assert!(gated.comment.contains("### calm: no result, exit code 104"), "{}", gated.comment);
    assert!(gated.comment.contains("did you mean `naive-loop`?"), "{}", gated.comment);
    assert!(
        gated.out.contains("::error file=scenarios/calm.toml,title=calm%3A exit code 104::"),
        "{}",
        gated.out
    );
    assert!(!gate.path("reports/ci/calm/report.json").exists());
    let missing = gate.with("FLOODLAB_SCENARIOS", "scenarios/none*.toml").run();
    assert_eq!(missing.code, 104, "{}", missing.out);
}

/// What is handed to floodlab, one argument a line.
#[test]
fn inputs_become_flags_and_are_never_split() {
    let program = "#!/bin/sh\nprintf '%s\\n' \"$@\" >>arguments\n";
    let gate = Gate::new(&[("calm.toml", CALM), ("with space.toml", CALM)])
        .with_program(program)
        .with("FLOODLAB_GATES", "lag{class:notice}: p(99) <= 5s, max <= 1min\n$(touch hacked): == 0")
        .with("FLOODLAB_SEEDS", "1..20")
        .with("FLOODLAB_BASELINE", "reports/baseline")
        .with("FLOODLAB_BASELINE_LENIENT", "true");
    gate.run();
    let arguments = fs::read_to_string(gate.path("arguments")).expect("it was called");
    let common = "--gate\nlag{class:notice}: p(99) <= 5s, max <= 1min\n--gate\n$(touch hacked): == 0\n--seeds\n1..20\n\
                  --baseline\nreports/baseline\n--baseline-lenient\n";
    let call = |name: &str| {
        let folder = format!("reports/ci/{name}");
        format!("run\nscenarios/{name}.toml\n{common}-o\n{folder}\n--export-junit\n{folder}/junit.xml\n")
    };
    assert_eq!(arguments, call("calm") + &call("with space"));
    assert!(!gate.path("hacked").exists());
}

#[test]
fn a_comment_of_many_scenarios_is_cut() {
    let program = r#"#!/bin/sh
while [ "$1" != -o ]; do shift; done
{
    echo '### '"$2"
    echo "<details>"
    yes "a line of the numbers" | head -n 1000
    echo "</details>"
    echo '```sh'
    yes "a line outside" | head -n LINES
    echo '```'
} >"$2/comment.md"
"#;
    let names: Vec<String> = (0..5).map(|index| format!("s{index}.toml")).collect();
    let scenarios: Vec<_> = names.iter().map(|name| (name.as_str(), CALM)).collect();
    let folded = Gate::new(&scenarios).with_program(&program.replace("LINES", "10")).run().comment;
    assert!(folded.contains("s4") && !folded.contains("numbers\n"), "{folded}");
    assert!(folded.contains("Too long for a comment with all numbers"), "{folded}");
    let cut = Gate::new(&scenarios).with_program(&program.replace("LINES", "3000")).run().comment;
    assert!(cut.len() < 61_000 && cut.contains("Too long for a comment: the rest"), "{}", cut.len());
    assert_eq!(cut.matches("```").count() % 2, 0, "no block is left open");
}

/// The parts of `action.yml` that are checked.
#[derive(Debug, Deserialize)]
struct Action {
    inputs: BTreeMap<String, serde_json::Value>,
    outputs: BTreeMap<String, BTreeMap<String, String>>,
    runs: Runs,
}

#[derive(Debug, Deserialize)]
struct Runs {
    using: String,
    steps: Vec<Step>,
}

#[derive(Debug, Deserialize)]
struct Step {
    id: Option<String>,
    shell: Option<String>,
    run: Option<String>,
    uses: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

/// What the other tests run is what the action runs.
#[test]
fn the_action_is_the_script() {
    let text = fs::read_to_string("action.yml").expect("it lies at the top");
    let action: Action = serde_saphyr::from_str(&text).expect("YAML");
    assert_eq!(action.runs.using, "composite");
    let scripts = action.runs.steps.iter().filter(|step| step.run.is_some());
    let commands: Vec<&str> = scripts
        .map(|step| {
            assert_eq!(step.shell.as_deref(), Some("bash"));
            let run = step.run.as_deref().expect("filtered");
            run.strip_prefix("\"$GITHUB_ACTION_PATH/scripts/ci-gate\"").expect(run).trim()
        })
        .collect();
    assert_eq!(commands, ["key", "install", ""]);
    let others: Vec<&str> = action.runs.steps.iter().filter_map(|step| step.uses.as_deref()).collect();
    assert!(matches!(others[..], [cache] if cache.starts_with("actions/cache@")), "{others:?}");
    let step = action.runs.steps.last().expect("steps");
    // Every input reaches the script, by a variable that it reads.
    let source = fs::read_to_string(script()).expect("it is there");
    let mut used: Vec<&str> = Vec::new();
    for (variable, value) in &step.env {
        assert!(source.contains(&format!("${{{variable}")), "{variable}");
        let input = value.strip_prefix("${{ inputs.").and_then(|value| value.strip_suffix(" }}"));
        used.push(input.expect("an input"));
    }
    used.sort_unstable();
    assert_eq!(used, action.inputs.keys().map(String::as_str).collect::<Vec<_>>());
    // Every output is one that the script writes.
    let gated = Gate::new(&[("calm.toml", CALM)]).run();
    let id = step.id.as_deref().expect("an id");
    for (name, output) in &action.outputs {
        assert_eq!(output["value"], format!("${{{{ steps.{id}.outputs.{name} }}}}"));
        assert!(gated.outputs.contains_key(name), "{name}");
    }
}

/// People copy it: every input and output that it uses is there.
#[test]
fn the_workflow_of_the_page_uses_the_action_as_it_is() {
    let action: Action =
        serde_saphyr::from_str(&fs::read_to_string("action.yml").expect("it lies at the top")).expect("YAML");
    let page = fs::read_to_string("docs/ci.md").expect("the page");
    let blocks: Vec<serde_json::Value> = page
        .split("```yaml\n")
        .skip(1)
        .map(|rest| serde_saphyr::from_str(rest.split("```").next().unwrap_or_default()).expect("YAML"))
        .collect();
    assert_eq!(blocks.len(), 2, "GitHub and GitLab");
    let steps = blocks[0]["jobs"]["gates"]["steps"].as_array().expect("steps");
    let step = steps.iter().find(|step| step["id"] == "floodlab").expect("the action");
    for input in step["with"].as_object().expect("inputs").keys() {
        assert!(action.inputs.contains_key(input), "{input}");
    }
    let used = page.split("steps.floodlab.outputs.").skip(1);
    let used: Vec<&str> =
        used.filter_map(|rest| rest.split(|c: char| !c.is_ascii_alphanumeric()).next()).collect();
    assert!(used.len() == 2 && used.iter().all(|output| action.outputs.contains_key(*output)), "{used:?}");
    for (name, kind) in action
        .inputs
        .keys()
        .map(|name| (name, "input"))
        .chain(action.outputs.keys().map(|name| (name, "output")))
    {
        assert!(page.contains(&format!("`{name}`")), "docs/ci.md does not explain the {kind} {name}");
    }
}

/// The program that is cached is the one of this source, and `cargo install` is asked for it.
#[test]
fn the_script_names_and_installs_this_version() {
    let gate = Gate::new(&[]);
    let outputs = gate.path("outputs");
    let path = format!("{}:{}", gate.folder.path().display(), std::env::var("PATH").expect("there is one"));
    let gate = gate.with_program("#!/bin/sh\n");
    fs::write(gate.path("cargo"), "#!/bin/sh\necho \"$@\"\n").expect("written");
    fs::set_permissions(gate.path("cargo"), fs::Permissions::from_mode(0o755)).expect("ours");
    let run = |verb: &str| {
        let mut script = Command::new(script());
        script.arg(verb).env("PATH", &path).env("GITHUB_OUTPUT", &outputs).env("FLOODLAB_ROOT", "/somewhere");
        let output = script.output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    run("key");
    run("key");
    let keys = fs::read_to_string(&outputs).expect("written");
    let keys: Vec<&str> = keys.lines().collect();
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0], keys[1]);
    let key = keys[0].strip_prefix("key=").expect("its name");
    assert!(key.len() == 64 && key.bytes().all(|byte| byte.is_ascii_hexdigit()), "{key}");
    let installed = run("install");
    assert!(
        installed.starts_with("install --locked ") && installed.contains("--root /somewhere"),
        "{installed}"
    );
}
