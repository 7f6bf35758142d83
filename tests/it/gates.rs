//! Gates from the command line to the exit code.

use std::fs;

use assert_cmd::Command;
use floodlab::outcome::Report;
use tempfile::TempDir;

/// Poisson traffic of 3/s under two designs that keep up with it: runs differ by seed.
const SCENARIO: &str = r#"
duration = "2min"
drain = "1min"
workers = 8
chats = { count = 1000 }

[workload.alert]
kind = "poisson"
class = "alert"
rate = "3/s"

[[design]]
name = "one"
strategy = "scheduler"
processes = 1

[[design]]
name = "few"
strategy = "scheduler"
workers = 1

[[gate]]
metric = "lost"
expect = "== 0"
"#;

fn directory(scenario: &str) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("it.toml"), scenario).expect("written");
    directory
}

/// Exit code, standard output and standard error of `floodlab run it.toml …`.
fn run(directory: &TempDir, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::cargo_bin("floodlab").expect("the binary");
    command
        .current_dir(directory.path())
        .env_remove("FLOODLAB_SEED")
        .args(["run", "it.toml"])
        .args(arguments);
    let output = command.output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code().expect("an exit code"), text(output.stdout), text(output.stderr))
}

fn code(directory: &TempDir, arguments: &[&str]) -> i32 {
    run(directory, arguments).0
}

fn report(directory: &TempDir) -> Report {
    let text = fs::read(directory.path().join("reports/it/report.json")).expect("a report");
    serde_json::from_slice(&text).expect("JSON")
}

#[test]
fn the_gravest_verdict_is_the_exit_code() {
    let directory = directory(SCENARIO);
    assert_eq!(code(&directory, &[]), 0);
    assert_eq!(code(&directory, &["--gate", "lag: p(99) <= 1us"]), 99);
    assert_eq!(code(&directory, &["--gate", "lag: p(99) <= 1us", "--no-fail"]), 0);
    assert_eq!(code(&directory, &["--gate", "lag: p(99) <= 1us over any 30s"]), 99);
    assert_eq!(code(&directory, &["--gate", "throttled{limit:token}: rate < 1%", "--gate", "due > 0"]), 0);
    let (code, _, err) = run(&directory, &["--gate", "lag{class:alrt}: p(99) <= 1s"]);
    assert_eq!(code, 104);
    assert!(err.contains("--gate 'lag{class:alrt}: p(99) <= 1s': unknown class `alrt`"), "{err}");
    let (code, _, err) = run(&directory, &["--gate", "lagg <= 1s"]);
    assert_eq!((code, err.contains("did you mean `lag`?")), (104, true), "{err}");
    let (code, _, err) = run(&directory, &["--gate", "lag: p(99) <= 5"]);
    assert_eq!((code, err.contains("write `5s` for seconds")), (104, true), "{err}");
}

#[test]
fn a_gate_without_samples_is_an_error_of_its_own() {
    let rare = "[workload.rare]\nkind = \"poisson\"\nclass = \"rare\"\nrate = \"1/24h\"\n\n[[gate]]";
    let directory = directory(&SCENARIO.replace("[[gate]]", rare));
    let (code, _, err) = run(&directory, &["--gate", "lag{class:rare}: p(99) <= 1s"]);
    assert_eq!(code, 4, "{err}");
}

#[test]
fn a_gate_in_the_wrong_place_says_where() {
    let directory = directory(&SCENARIO.replace("expect = \"== 0\"", "expect = \"== 0\"\nover = \"60s\""));
    let (code, _, err) = run(&directory, &[]);
    assert_eq!(code, 104);
    assert!(err.contains("it.toml:25") && err.contains("`60s` is no window"), "{err}");
}

#[test]
fn a_baseline_is_saved_once_and_held_against_later() {
    let directory = directory(SCENARIO);
    let gate = ["--gate", "lag: p(99) <= baseline * 1.10 + 0.5s"];
    let (code, _, err) = run(&directory, &gate);
    assert_eq!(code, 104);
    assert!(err.contains("reports/baseline/it.json does not exist; make it with --save-baseline"), "{err}");
    let (code, _, err) = run(&directory, &[&gate[..], &["--baseline-lenient"]].concat());
    assert_eq!((code, err.contains("1 condition")), (0, true), "{err}");
    let (code, _, err) = run(&directory, &[&gate[..], &["--seeds", "1..5", "--save-baseline"]].concat());
    assert_eq!((code, err.contains("baseline: reports/baseline/it.json")), (0, true), "{err}");
    let saved = fs::read(directory.path().join("reports/baseline/it.json")).expect("saved");
    assert_eq!(run(&directory, &[&gate[..], &["--seeds", "1..5"]].concat()).0, 0);
    let with = report(&directory);
    assert_eq!(with.baseline.expect("there is one").seeds, [1, 2, 3, 4, 5]);
    assert!(with.gates.iter().any(|verdict| verdict.bound.is_some()));
    // The same run saves the same bytes, but for the command, which has the baseline that was there now.
    assert_eq!(run(&directory, &[&gate[..], &["--seeds", "1..5", "--save-baseline"]].concat()).0, 0);
    let lines = |bytes: &[u8]| {
        let text = std::str::from_utf8(bytes).expect("UTF-8");
        text.lines().filter(|line| !line.contains("\"reproduce\"")).map(str::to_owned).collect::<Vec<_>>()
    };
    let again = fs::read(directory.path().join("reports/baseline/it.json")).expect("saved");
    assert!(lines(&again) == lines(&saved), "another baseline");
    let better = ["--seeds", "1..5", "--gate", "lag{design:few}: p(99) <= 0.9 * baseline"];
    assert_eq!(run(&directory, &better).0, 99);
}

#[test]
fn several_seeds_are_one_result_with_intervals() {
    let directory = directory(SCENARIO);
    let gates = ["--gate", "lag{design:few}: p(99) <= 1us", "--replications", "6", "--seed", "3"];
    let (code, out, _) = run(&directory, &gates);
    assert_eq!(code, 99);
    let report = report(&directory);
    let all = report.replications.expect("there are six");
    assert_eq!((all.seeds.as_slice(), all.runs.len()), (&[3, 4, 5, 6, 7, 8][..], 12));
    let failed: Vec<_> = report.gates.iter().filter(|verdict| !verdict.passed).collect();
    let [verdict] = failed.as_slice() else { panic!("{failed:?}") };
    let seed = verdict.seed.expect("the worst is named");
    let worst = all.runs.iter().filter(|run| run.design == "few").max_by_key(|run| run.metrics.lag_us.p99);
    assert_eq!(worst.map(|run| run.seed), Some(seed));
    let command = verdict.reproduce.clone().expect("a command");
    let expected =
        format!("floodlab run it.toml --seed {seed} --design few --gate 'lag{{design:few}}: p(99) <= 1us'");
    assert_eq!(command, expected);
    assert!(out.contains(&command), "{out}");
    // And that command gives the run of this seed.
    let single = ["--seed", &seed.to_string(), "--design", "few", "--gate", "lag{design:few}: p(99) <= 1us"];
    assert_eq!(run(&directory, &single).0, 99);
    let alone = self::report(&directory);
    let hash = all.runs.iter().find(|run| run.seed == seed && run.design == "few").map(|run| &run.event_hash);
    assert_eq!(Some(&alone.designs[0].event_hash), hash);
    // The estimate is that of the runs: their mean, by Student's t with five degrees of freedom, 2.571.
    let requests: Vec<f64> =
        all.runs.iter().filter(|r| r.design == "few").map(|r| r.metrics.requests as f64).collect();
    let mean = requests.iter().sum::<f64>() / 6.0;
    let deviation = (requests.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / 5.0).sqrt();
    let half = 2.571 * deviation / 6_f64.sqrt();
    let estimate =
        all.estimates.iter().find(|e| e.design == "few" && e.metric == "requests").expect("it has one");
    let near = |milli: u64, expected: f64| (milli as f64 / 1e3 - expected).abs() < 0.01 * half + 0.002;
    assert!(
        near(estimate.value, mean) && near(estimate.low, mean - half) && near(estimate.high, mean + half),
        "{estimate:?}"
    );
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let directory = directory(SCENARIO);
    for (arguments, expected) in [
        (&["--seeds", "5..1"][..], "5 is after 1"),
        (&["--seeds", "1..3", "--replications", "3"], "cannot be used with"),
        (&["--replications", "0"], "0 is not in 1..=10000"),
        (&["--save-baseline", "--design", "few"], "leave --design out"),
    ] {
        let (code, _, err) = run(&directory, arguments);
        assert_eq!((code, err.contains(expected)), (2, true), "{err}");
    }
}
