//! JUnit XML: the verdicts on the gates, for the many programs that show tests.
//!
//! A suite is the scenario under one design, a case is a gate. A gate that does not hold is a failure; one without
//! samples, and a design without a result, are errors. Expectations are not in it: whether they are judged is said on
//! the command line, and a report does not know it. There are no times of day and no durations.
//!
//! The structure is that of `junit-10.xsd` of Jenkins' xUnit plugin, which is the schema that a CI server checks against
//! (<https://github.com/jenkinsci/xunit-plugin>, read 2026-11-30).

use quick_junit::{NonSuccessKind, Property, TestCase, TestCaseStatus, TestSuite};

use crate::outcome::{Report, Unfinished, Verdict};

use super::{provenance, verdicts};

/// The report as JUnit XML, with a newline at the end. Without gates its suites have no cases.
pub fn junit(report: &Report) -> String {
    let name = &report.scenario.name;
    let mut xml = quick_junit::Report::new(name.as_str());
    for design in provenance::designs(report) {
        let mut suite = TestSuite::new(format!("{name} / {design}"));
        suite.add_properties(properties(report));
        let class = format!("{name}.{design}");
        let gates = report
            .gates
            .iter()
            .filter(|verdict| verdict.design == design)
            .map(|verdict| gate(report, verdict));
        let unfinished = report.unfinished.iter().filter(|unfinished| unfinished.design == design);
        for mut case in gates.chain(unfinished.map(missing)) {
            case.set_classname(class.as_str());
            suite.add_test_case(case);
        }
        xml.add_test_suite(suite);
    }
    let text = xml.to_string().expect("texts without control characters can be written to memory");
    // The schema knows no such attribute of `testsuites`, the first element. It is 0: nothing is ever skipped.
    text.replacen(" skipped=\"0\"", "", 1)
}

fn properties(report: &Report) -> [Property; 5] {
    [
        ("tool", report.tool.clone()),
        ("profile", report.scenario.profile.clone()),
        ("seeds", provenance::seeds(report.seeds())),
        ("scenario-hash", report.scenario.hash.clone()),
        ("reproduce", report.reproduce.clone()),
    ]
    .map(|(name, value)| Property::new(name, value))
}

fn gate(report: &Report, verdict: &Verdict) -> TestCase {
    let status = match verdict.measured {
        _ if verdict.passed => TestCaseStatus::success(),
        None => failed(NonSuccessKind::Error, "no-samples", "no samples", report, verdict),
        Some(_) => {
            let place = verdicts::place(verdict);
            let place = if place.is_empty() { place } else { format!(" {place}") };
            let message = format!("measured {}{place}", verdicts::measured(verdict));
            failed(NonSuccessKind::Failure, "gate", &message, report, verdict)
        }
    };
    TestCase::new(verdicts::claim(verdict), status)
}

fn failed(
    kind: NonSuccessKind,
    r#type: &str,
    message: &str,
    report: &Report,
    verdict: &Verdict,
) -> TestCaseStatus {
    let mut lines = vec![
        format!("measured:   {}", verdicts::measured(verdict)),
        format!("expected:   {}", verdicts::expected(verdict)),
    ];
    let mut line = |name: &str, value: Option<String>| {
        lines.extend(value.filter(|value| !value.is_empty()).map(|value| format!("{name:11} {value}")));
    };
    line("which is:", verdicts::bound(verdict));
    line("missed by:", verdicts::missed(verdict));
    line("where:", Some(verdicts::place(verdict)));
    line("reproduce:", verdict.reproduce.clone().or_else(|| Some(report.reproduce.clone())));
    let mut status = TestCaseStatus::non_success(kind);
    status.set_type(r#type).set_message(message).set_description(lines.join("\n"));
    status
}

/// A design without a result, or one seed of it.
fn missing(Unfinished { seed, error, .. }: &Unfinished) -> TestCase {
    let name = seed.map_or_else(|| "result".to_owned(), |seed| format!("result of seed {seed}"));
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
    status.set_type("unfinished").set_message(error.as_deref().unwrap_or("interrupted"));
    TestCase::new(name, status)
}
