//! Every shipped scenario shows what it says it shows.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use floodlab::Registry;
use floodlab::run::{Options, run};
use floodlab::scenario::Scenario;

fn shipped() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let files =
        folder.read_dir().expect("the folder is there").map(|entry| entry.expect("it can be read").path());
    let mut files: Vec<PathBuf> =
        files.filter(|file| file.extension().is_some_and(|e| e == "toml")).collect();
    files.sort();
    files
}

#[test]
fn every_expectation_of_every_scenario_holds() {
    let files = shipped();
    assert!(files.len() >= 8, "the scenarios of the first release are there");
    let mut failed = Vec::new();
    for file in files {
        let scenario = Scenario::load(&file, &Registry::builtin()).unwrap_or_else(|error| panic!("{error}"));
        assert!(!scenario.expectations.is_empty(), "{} expects nothing", file.display());
        let options = Options {
            seeds: vec![scenario.seed],
            baseline: None,
            designs: (0..scenario.designs.len()).collect(),
            jobs: None,
            check_determinism: false,
            shuffle_ties: None,
            interrupted: &AtomicBool::new(false),
            wall_us: &|| 0,
        };
        let report =
            run(&scenario, &options, &|_| {}).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert!(!report.expectations.is_empty(), "{}: nothing was judged", file.display());
        for verdict in report.expectations.iter().filter(|verdict| !verdict.passed) {
            failed.push(format!("{}: {verdict:?}", scenario.name));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Every row of the field notes is a scenario: a sender's incidents S1 to S19, and the server's side T1 to T10.
#[test]
fn every_row_is_covered() {
    let load = |file: PathBuf| Scenario::load(&file, &Registry::builtin()).expect("a scenario");
    let covered: BTreeSet<String> = shipped().into_iter().flat_map(|file| load(file).covers).collect();
    let rows = (1..=19).map(|row| format!("S{row}")).chain((1..=10).map(|row| format!("T{row}")));
    let missing: Vec<String> = rows.filter(|row| !covered.contains(row)).collect();
    assert!(missing.is_empty(), "no scenario covers {missing:?}");
}

/// What a reader meets first: what it shows and what a good sender does on it.
#[test]
fn every_scenario_opens_with_what_it_shows() {
    for file in shipped() {
        let text = std::fs::read_to_string(&file).expect("it can be read");
        let comment = text.lines().take_while(|line| line.starts_with('#')).collect::<Vec<_>>().join(" ");
        assert!(comment.len() > 100, "{} opens without saying what it shows", file.display());
        assert!(
            comment.to_lowercase().contains("sender"),
            "{} does not say what a sender does",
            file.display()
        );
    }
}
