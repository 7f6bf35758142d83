//! `floodlab compare`: what it says, and what it says when there is nothing to compare. Numbers are chosen by hand.

use std::fs;
use std::path::Path;

use floodlab::compare::Comparison;
use floodlab::outcome::{Finding, Metrics, Replication, Replications, Report};
use floodlab::report;
use insta::assert_snapshot;
use tempfile::TempDir;

use crate::cli;

/// The result of one seed, as `run` saves it.
fn saved() -> (TempDir, Report) {
    let directory = cli::directory();
    let (code, _, err) = cli::floodlab(directory.path(), "run scenarios/small.toml -o one --format quiet");
    assert_eq!(code, 0, "{err}");
    let text = fs::read_to_string(directory.path().join("one/report.json")).expect("it was written");
    (directory, serde_json::from_str(&text).expect("a report"))
}

/// The same with as many seeds as asked for: every design of every seed has these metrics.
fn replicated(report: &Report, seeds: &[u64], metrics: impl Fn(u64, &str, &mut Metrics)) -> Report {
    let runs = seeds.iter().flat_map(|seed| report.designs.iter().map(move |outcome| (*seed, outcome)));
    let runs = runs.map(|(seed, outcome)| {
        let mut changed = outcome.metrics.clone();
        metrics(seed, &outcome.name, &mut changed);
        Replication {
            seed,
            design: outcome.name.clone(),
            event_hash: outcome.event_hash.clone(),
            metrics: changed,
            classes: outcome.classes.clone(),
            windows: Vec::new(),
        }
    });
    let replications = Replications {
        seeds: seeds.to_vec(),
        runs: runs.collect(),
        estimates: Vec::new(),
        differences: Vec::new(),
    };
    Report { replications: Some(replications), ..report.clone() }
}

fn write(directory: &Path, name: &str, report: &Report) {
    fs::write(directory.join(name), report::json(report)).expect("written");
}

/// Two results of six seeds: of one design messages are lost no more and its lag falls by a tenth, but for what is random; the other
/// one calls more often, and for longer than anybody watched.
fn two_results() -> (TempDir, Report, Report) {
    let (directory, report) = saved();
    let seeds = [1, 2, 3, 4, 5, 6];
    let old = replicated(&report, &seeds, |seed, _, metrics| {
        metrics.lag_us.p50 = Some(40_000 + seed * 10);
        metrics.lag_us.p99 = Some(4_000_000 + seed * 100_000);
        metrics.lag_us.max = Some(9_000_000);
        metrics.lost = 3 + seed % 2;
        metrics.requests = 1_000;
        metrics.amplification_ppm = 1_000_000;
    });
    let new = replicated(&report, &seeds, |seed, design, metrics| {
        let wide = u64::from(design == "wide");
        metrics.lag_us.p50 = Some(40_000 + seed * 10 + seed % 3);
        metrics.lag_us.p99 = Some((4_000_000 + seed * 100_000) / 10 * (9 + wide) + seed % 2 * 20_000);
        metrics.lag_us.max = Some(8_000_000 + wide * 2_000_000);
        metrics.lag_us.lower_bound = if wide > 0 { vec!["max".to_owned()] } else { Vec::new() };
        metrics.lost = if wide > 0 { 4 - seed % 2 } else { 0 };
        metrics.early_retries = wide * (seed / 3);
        metrics.amplification_ppm = 1_000_000 + wide * 250_000;
    });
    (directory, old, new)
}

#[test]
fn the_table_is_worth_looking_at() {
    let (directory, old, mut new) = two_results();
    new.tool = "floodlab 9.9.9".to_owned();
    new.scenario.hash = "feedfacecafebeef".to_owned();
    new.scenario.horizon_us *= 2;
    let mut old = old;
    old.tool = "floodlab 0.1.0".to_owned();
    old.scenario.hash = "00c0ffee00c0ffee".to_owned();
    write(directory.path(), "old.json", &old);
    write(directory.path(), "new.json", &new);
    let (code, out, err) = cli::floodlab(directory.path(), "compare old.json new.json");
    assert_eq!((code, err.as_str()), (0, ""));
    assert_snapshot!("compare_text", out);
    let (code, markdown, _) = cli::floodlab(directory.path(), "compare old.json new.json --format md");
    assert_eq!(code, 0);
    assert_snapshot!("compare_markdown", markdown);
    let (_, all, _) = cli::floodlab(directory.path(), "compare old.json new.json --all");
    assert!(all.contains("store_keys_without_ttl") && !out.contains("store_keys_without_ttl"), "{all}");
}

#[test]
fn formats_and_exports_hold_the_same_comparison() {
    let (directory, old, new) = two_results();
    write(directory.path(), "old.json", &old);
    write(directory.path(), "new.json", &new);
    let compare = |line: &str| cli::floodlab(directory.path(), &format!("compare old.json new.json {line}"));
    let read = |file: &str| fs::read_to_string(directory.path().join(file)).expect(file);
    let (code, json, _) = compare("--format json --export-json a.json --export-md a.md");
    assert_eq!((code, json.as_str()), (0, read("a.json").as_str()));
    let parsed: Comparison = serde_json::from_str(&json).expect("a comparison");
    assert_eq!(parsed, Comparison::new(("old.json", &old), ("new.json", &new), &[]).expect("comparable"));
    let found = |design: &str, metric: &str, aggregate: &str| {
        let wanted = parsed.differences.iter().find(|difference| {
            (difference.design.as_str(), difference.metric.as_str(), difference.aggregate.as_str())
                == (design, metric, aggregate)
        });
        wanted.expect("it is compared").finding
    };
    assert_eq!(found("naive-loop", "lag", "p(99)"), Finding::Improved);
    assert_eq!(found("wide", "lag", "p(99)"), Finding::NoDifference);
    assert_eq!(found("wide", "amplification", ""), Finding::Regressed);
    for line in ["--format md", "--export-md -", "--format quiet --export-md -"] {
        assert_eq!(compare(line), (0, read("a.md"), String::new()), "{line}");
    }
    assert_eq!(compare("--format quiet"), (0, String::new(), String::new()));
    assert_eq!(compare("--format json --export-md -").0, 2);
    let (code, out, _) = compare("--design wide");
    assert!(code == 0 && out.contains("wide") && !out.contains("naive-loop"), "{out}");
}

/// Two deterministic runs differ as they differ: that is told, and nothing is claimed.
#[test]
fn a_single_seed_is_told_as_it_is() {
    let (directory, one) = saved();
    let (code, out, _) = cli::floodlab(directory.path(), "compare one one/report.json");
    assert_eq!(code, 0);
    assert!(out.contains("equal in all designs: lag p(50)") && !out.contains("Too few"), "{out}");
    let mut other = one.clone();
    other.designs[0].metrics.lost = 4;
    write(directory.path(), "other.json", &other);
    let (_, out, _) = cli::floodlab(directory.path(), "compare one other.json");
    assert!(out.contains("Too few seeds to say (1 of at least 5)") && out.contains("+4"), "{out}");
    assert!(!out.contains("Regressed") && !out.contains("interval"), "{out}");
    let others = replicated(&one, &[11, 12, 13, 14, 15], |_, _, metrics| metrics.lost = 9);
    write(directory.path(), "others.json", &others);
    let (_, out, _) = cli::floodlab(directory.path(), "compare one others.json");
    assert!(out.contains("Too few seeds to say (at least 5 on each side)"), "{out}");
    assert!(out.contains("none in common, so the runs are not paired"), "{out}");
}

#[test]
fn two_results_of_one_design_each_need_no_common_name() {
    let (directory, mut one) = saved();
    one.designs.truncate(1);
    let mut other = one.clone();
    other.designs[0].name = "naive-loop-2".to_owned();
    write(directory.path(), "a.json", &one);
    write(directory.path(), "b.json", &other);
    let (code, out, _) = cli::floodlab(directory.path(), "compare a.json b.json");
    assert!(code == 0 && out.contains("naive-loop -> naive-loop-2"), "{out}");
}

#[test]
fn errors_name_the_file_and_the_way_out() {
    let (directory, one) = saved();
    let here = directory.path();
    let mut others = one.clone();
    others.designs.iter_mut().for_each(|outcome| outcome.name += "-2");
    write(here, "others.json", &others);
    let newer = report::json(&one).replacen("\"schema_version\": 1", "\"schema_version\": 7", 1);
    fs::write(here.join("newer.json"), newer).expect("written");
    fs::write(here.join("empty.json"), "{}").expect("written");
    fs::write(here.join("half.json"), "{\"schema_version\": 1}").expect("written");
    fs::write(here.join("text.json"), "who was late").expect("written");
    fs::create_dir(here.join("folder")).expect("created");
    let check = |line: &str, expected: &[&str]| {
        let (code, out, err) = cli::floodlab(here, &format!("compare {line}"));
        assert_eq!((code, out.as_str()), (104, ""), "{line}: {err}");
        for part in expected {
            assert!(err.contains(part), "{line}: {err} lacks {part}");
        }
    };
    check("one absent.json", &["absent.json: cannot read the result", "floodlab run SCENARIO -o FOLDER"]);
    check("folder one", &["folder/report.json: cannot read"]);
    check("text.json one", &["text.json: not a result of floodlab", "line 1"]);
    check("one empty.json", &["empty.json: not a result of floodlab", "schema_version"]);
    check("one half.json", &["half.json: not a result of floodlab"]);
    check("one newer.json", &["newer.json: a result of schema version 7", "reads version 1"]);
    check("one one --design wid", &["one/report.json: unknown design `wid`; did you mean `wide`?"]);
    check(
        "one others.json",
        &["no design in common: one/report.json has naive-loop, wide, others.json has naive-loop-2, wide-2"],
    );
}
