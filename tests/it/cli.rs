//! The command line: exit codes, texts, files.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use assert_cmd::Command;
use floodlab::gate::{METRICS, Rule};
use floodlab::outcome::Unfinished;
use floodlab::report;
use floodlab::run::{self, Options, Progress};
use insta::assert_snapshot;
use tempfile::TempDir;

use crate::lab;

/// Ten chats that get one message each, at once, from a server without limits.
const SMALL: &str = r#"summary = "Ten messages."
covers = ["S1"]
duration = "1min"
drain = "1min"
workers = 1

[chats]
count = 10

[server]
profile = "unlimited"

[workload.all]
kind = "broadcast"
class = "notice"

[[design]]
strategy = "naive-loop"

[[design]]
name = "wide"
strategy = "naive-loop"
workers = 10

[[expect]]
metric = "due"
expect = "== 10"
"#;

/// A directory with `scenarios/small.toml`.
pub(crate) fn directory() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    fs::create_dir(directory.path().join("scenarios")).expect("created");
    write(&directory, "small.toml", SMALL);
    directory
}

fn write(directory: &TempDir, name: &str, text: &str) {
    fs::write(directory.path().join("scenarios").join(name), text).expect("written");
}

/// What a command answers: its exit code, standard output and standard error.
pub(crate) fn floodlab(directory: &Path, line: &str) -> (i32, String, String) {
    let mut command = Command::cargo_bin("floodlab").expect("the binary");
    command.current_dir(directory).env_remove("FLOODLAB_SEED").args(line.split_whitespace());
    answer(&mut command)
}

fn answer(command: &mut Command) -> (i32, String, String) {
    let output = command.output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code().expect("an exit code"), text(output.stdout), text(output.stderr))
}

#[test]
fn without_arguments_it_says_what_to_type_first() {
    let directory = directory();
    let (code, out, err) = floodlab(directory.path(), "");
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("floodlab run scenarios/small.toml"), "{out}");
    let (code, out, _) = floodlab(tempfile::tempdir().expect("a directory").path(), "");
    assert_eq!(code, 0);
    assert!(out.contains("floodlab run SCENARIO.toml"), "{out}");
}

#[test]
fn a_run_prints_the_table_and_leaves_the_folder() {
    let directory = directory();
    let (code, out, err) =
        floodlab(directory.path(), "run scenarios/small.toml --expect --check-determinism");
    assert_eq!((code, err.as_str()), (0, ""), "nothing goes to standard error where it is no terminal");
    assert!(out.contains("wide") && out.contains("real time"), "{out}");
    assert!(out.contains("floodlab run scenarios/small.toml --seed 1"), "{out}");
    assert!(out.ends_with("report: reports/small\n"), "{out}");
    assert!(!out.contains('\x1b'), "no colours where there is no terminal");
    for file in ["report.json", "report.md", "comment.md"] {
        assert!(directory.path().join("reports/small").join(file).exists(), "{file}");
    }
    let drafts = fs::read_dir(directory.path().join("reports/small")).expect("the folder");
    let drafts = drafts.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with('.'));
    assert_eq!(drafts.count(), 0, "no draft is left");
}

#[test]
fn formats_and_exports_hold_the_same_result() {
    let directory = directory();
    let read = |file: &str| fs::read_to_string(directory.path().join(file)).expect(file);
    let (code, out, _) = floodlab(
        directory.path(),
        "run scenarios/small.toml --format json -o out --export-json a.json --export-json b/c.json --export-md d.md \
         --export-junit g.xml --export-svg lag-p99=e.svg --export-png f.png",
    );
    assert_eq!(code, 0);
    assert_eq!(out, read("out/report.json"));
    assert_eq!(out, read("a.json"));
    assert_eq!(out, read("b/c.json"));
    assert_eq!(read("d.md"), read("out/report.md"));
    assert_eq!(read("e.svg"), read("out/lag-p99.svg"));
    assert!(directory.path().join("f.png").exists());
    let (_, junit, _) = floodlab(directory.path(), "run scenarios/small.toml --export-junit -");
    assert_eq!(junit.replace("-o out", ""), read("g.xml").replace("-o out", ""));
    for (export, file) in [("--export-md -", "report.md"), ("--format quiet --export-json -", "report.json")]
    {
        let (code, out, _) = floodlab(directory.path(), &format!("run scenarios/small.toml {export}"));
        assert_eq!((code, out), (0, read(&format!("reports/small/{file}"))), "the export and nothing else");
    }
    for line in [
        "--export-json - --export-md -",
        "--export-md - --export-md -",
        "--format json --export-md -",
        "--format md --export-json -",
        "--export-junit - --export-md -",
    ] {
        let (code, out, err) = floodlab(directory.path(), &format!("run scenarios/small.toml {line}"));
        assert_eq!((code, out.as_str()), (2, ""), "{line}");
        assert!(err.contains("only one document can go to standard output"), "{err}");
    }
}

/// An hour of computing is not spent on what cannot be written.
#[test]
fn what_cannot_be_written_is_found_before_the_run() {
    let directory = directory();
    write(&directory, "other.toml", SMALL);
    let refused = |line: &str, expected| {
        let (code, out, err) = floodlab(directory.path(), &format!("run {line}"));
        assert_eq!((code, out.as_str()), (expected, ""), "{line}\n{err}");
        err
    };
    assert_snapshot!(
        refused("scenarios/small.toml --export-svg lag-p9=g.svg", 104),
        @"error: unknown plot `lag-p9`; did you mean `lag-p99`?"
    );
    assert_snapshot!(refused("scenarios/small.toml -o scenarios/small.toml/x", 1), @"error: cannot write the report into scenarios/small.toml/x (--output names another folder): not a directory");
    assert_snapshot!(refused("scenarios/small.toml --export-json scenarios", 1), @"error: cannot export to scenarios (name another file): is a directory");
    assert_snapshot!(refused("scenarios/small.toml --export-png throttled=scenarios/small.toml/x.png", 1), @"error: cannot export to scenarios/small.toml/x.png (name another file): not a directory");
    assert!(!directory.path().join("reports").exists(), "nothing was run");
    // Of the second scenario too.
    fs::create_dir(directory.path().join("out")).expect("created");
    fs::write(directory.path().join("out/other"), "in the way").expect("written");
    refused("scenarios/small.toml scenarios/other.toml -o out", 1);
    assert!(!directory.path().join("out/small").exists(), "the first was not run");
}

#[test]
fn two_scenarios_of_one_name_do_not_replace_each_other() {
    let directory = directory();
    write(&directory, "other.toml", &format!("name = \"small\"\n{SMALL}"));
    let (code, out, err) = floodlab(directory.path(), "run scenarios/small.toml scenarios/other.toml");
    assert_eq!((code, out.as_str()), (104, ""));
    assert_snapshot!(err, @"error: scenarios/small.toml and scenarios/other.toml are both called `small`, so the report of one would replace the other's; give one of them another `name`, or run them one by one with --output");
    let (code, _, err) = floodlab(directory.path(), "run scenarios/small.toml scenarios/small.toml -o out");
    assert_eq!(code, 104);
    assert_snapshot!(err, @"error: scenarios/small.toml is given twice, and the second report would replace the first; give it once");
    assert!(!directory.path().join("reports").exists() && !directory.path().join("out").exists());
}

/// As `| head -1` does.
#[test]
fn nobody_reading_changes_nothing() {
    let directory = directory();
    write(&directory, "fails.toml", &SMALL.replace("== 10", "== 11"));
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("floodlab"))
        .current_dir(directory.path())
        .args(["run", "scenarios/fails.toml", "scenarios/small.toml", "--expect"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("it runs");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(99));
    assert!(directory.path().join("reports/small/report.json").exists(), "the other was run");
}

#[test]
fn the_command_that_is_printed_reproduces() {
    let directory = directory();
    write(&directory, "my small.toml", &SMALL.replace("summary", "name = \"small\"\nsummary"));
    let report = |arguments: &[&str]| -> serde_json::Value {
        let mut command = Command::cargo_bin("floodlab").expect("the binary");
        command.current_dir(directory.path()).env_remove("FLOODLAB_SEED").args(arguments);
        let (code, out, err) = answer(command.args(["--format", "json"]));
        assert_eq!(code, 0, "{err}");
        serde_json::from_str(&out).expect("JSON")
    };
    let line = ["run", "scenarios/my small.toml", "--shuffle-ties", "7", "--design", "wide", "--seed", "3"];
    let first = report(&line);
    assert_eq!(
        first["reproduce"],
        "floodlab run 'scenarios/my small.toml' --seed 3 --design wide --shuffle-ties 7"
    );
    let again = first["reproduce"].as_str().expect("a text");
    let (path, rest) =
        again.strip_prefix("floodlab run '").expect("quoted").split_once('\'').expect("quoted");
    let again: Vec<&str> = ["run", path].into_iter().chain(rest.split_whitespace()).collect();
    assert_eq!(report(&again)["designs"][0]["event_hash"], first["designs"][0]["event_hash"]);
    let (_, plain, _) = floodlab(directory.path(), "run scenarios/small.toml --design naive-loop,wide");
    assert!(plain.contains("reproduce: floodlab run scenarios/small.toml --seed 1\n"), "{plain}");
}

/// What judges nothing does not pass.
#[test]
fn nothing_to_judge_and_nothing_to_run_say_so() {
    let directory = directory();
    let check = |line: &str, expected| {
        let (code, _, err) = floodlab(directory.path(), &format!("run {line} --format quiet"));
        assert_eq!(code, expected, "{line}\n{err}");
        err
    };
    let of_two =
        SMALL.replace("metric = \"due\"\nexpect = \"== 10\"", "metric = \"lag\"\nexpect = \"max <= wide\"");
    write(&directory, "of-two.toml", &of_two);
    check("scenarios/of-two.toml", 0);
    check("scenarios/of-two.toml --design wide", 0);
    assert_snapshot!(check("scenarios/of-two.toml --design wide --expect", 4), @"error: nothing to judge: the expectations of scenarios/of-two.toml were skipped, because designs that they are about were not selected; leave --design out");
    let none = SMALL.split("[[expect]]").next().expect("a first part");
    write(&directory, "none.toml", none);
    check("scenarios/none.toml", 0);
    assert_snapshot!(check("scenarios/none.toml --expect", 4), @"error: nothing to judge: scenarios/none.toml has no [[expect]]");
    let silent = SMALL.replace("kind = \"broadcast\"", "kind = \"poisson\"\nrate = \"1/50w\"");
    write(&directory, "silent.toml", &silent);
    assert_snapshot!(check("scenarios/silent.toml", 4), @"error: nothing to run: no message of scenarios/silent.toml falls due; is `duration` too short, or a rate too low?");
    check("scenarios/silent.toml scenarios/small.toml --expect", 4);
}

#[test]
fn designs_and_seeds_are_picked() {
    let directory = directory();
    let report = |line: &str| -> serde_json::Value {
        let (code, out, err) =
            floodlab(directory.path(), &format!("run scenarios/small.toml --format json {line}"));
        assert_eq!(code, 0, "{err}");
        serde_json::from_str(&out).expect("JSON")
    };
    let names = |report: &serde_json::Value| {
        let designs = report["designs"].as_array().expect("a list").clone();
        designs.iter().map(|design| design["name"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&report("")), ["naive-loop", "wide"]);
    assert_eq!(names(&report("--design wide")), ["wide"]);
    assert_eq!(names(&report("--design wide,naive-loop")), ["naive-loop", "wide"]);
    let hash = |report: &serde_json::Value| report["designs"][0]["event_hash"].clone();
    let (one, two) = (report("--seed 1"), report("--seed 2"));
    assert_eq!(hash(&one), hash(&report("")), "the default is the scenario's");
    assert_ne!(hash(&one), hash(&two), "the seed changes the outcome");
    assert_eq!(one["scenario"]["hash"], two["scenario"]["hash"]);
    let mut command = Command::cargo_bin("floodlab").expect("the binary");
    command.current_dir(directory.path()).args(["run", "scenarios/small.toml", "--format", "json"]);
    let (_, out, _) = answer(command.env("FLOODLAB_SEED", "2"));
    assert_eq!(hash(&serde_json::from_str(&out).expect("JSON")), hash(&two));
    let (code, _, err) = answer(command.env("FLOODLAB_SEED", "x"));
    assert_eq!(code, 2);
    assert!(err.starts_with("error: FLOODLAB_SEED is `x`; a seed is a whole number from 0 on\n"), "{err}");
    assert_eq!(answer(command.args(["--seed", "2"])).0, 0, "the flag goes before the variable");
}

#[test]
fn several_scenarios_have_a_folder_each() {
    let directory = directory();
    write(&directory, "other.toml", &SMALL.replace("count = 10", "count = 11"));
    let both = "run scenarios/small.toml scenarios/other.toml --format quiet";
    assert_eq!(floodlab(directory.path(), &format!("{both} -o out")), (0, String::new(), String::new()));
    assert!(directory.path().join("out/small/report.json").exists());
    assert!(directory.path().join("out/other/report.json").exists());
    assert_eq!(floodlab(directory.path(), &format!("{both} --expect")).0, 99, "the gravest decides");
    assert_eq!(floodlab(directory.path(), &format!("{both} --export-json -")).0, 2);
}

#[test]
fn exit_codes_tell_what_happened() {
    let directory = directory();
    let check = |line: &str, expected| {
        let (code, out, err) = floodlab(directory.path(), line);
        assert_eq!(code, expected, "{line}\n{out}\n{err}");
    };
    let with = |name: &str, old: &str, new: &str| write(&directory, name, &SMALL.replace(old, new));
    with("fails.toml", "== 10", "== 11");
    check("run scenarios/fails.toml", 0);
    check("run scenarios/fails.toml --expect", 99);
    check("run scenarios/fails.toml --expect --no-fail", 0);
    with(
        "no-samples.toml",
        "metric = \"due\"\nexpect = \"== 10\"",
        "metric = \"lag\"\nwhere = { class = \"rare\" }\nexpect = \"max < 1h\"\n[workload.rare]\nkind = \"poisson\"\nclass = \"rare\"\nrate = \"1/50w\"",
    );
    check("run scenarios/no-samples.toml --expect", 4);
    with("wrong.toml", "workers = 1\n", "wokers = 1\n");
    check("run scenarios/wrong.toml", 104);
    check("check scenarios/wrong.toml scenarios/small.toml", 104);
    check("run scenarios/missing.toml", 104);
    check("run scenarios/small.toml --design wid", 104);
    check("schema strategy scheduller", 104);
    check("run", 2);
    check("run scenarios/small.toml --seeed 1", 2);
    check("run scenarios/small.toml --seed x", 2);
}

#[test]
fn errors_show_the_line() {
    let directory = directory();
    write(&directory, "wrong.toml", &SMALL.replace("workers = 1\n", "wokers = 1\n"));
    let (_, out, err) = floodlab(directory.path(), "run scenarios/wrong.toml");
    assert_eq!(out, "");
    assert_snapshot!(err, @r#"
    error: scenarios/wrong.toml:5: unknown key `wokers`; did you mean `workers`?
      |
    5 | wokers = 1
      | ^^^^^^
    "#);
    let (_, _, err) = floodlab(directory.path(), "run scenarios/wrong.toml --color always");
    assert!(err.contains("\x1b[2m"), "a dim gutter: {err:?}");
    let (_, _, err) = floodlab(directory.path(), "run scenarios/small.toml --design wid");
    assert_snapshot!(err, @"error: scenarios/small.toml: unknown design `wid`; did you mean `wide`?");
    let (_, _, err) = floodlab(directory.path(), "runn scenarios/small.toml");
    assert!(err.contains("a similar subcommand exists: 'run'"), "{err}");
}

#[test]
fn check_prints_what_reads_back() {
    let directory = directory();
    let (code, out, _) = floodlab(directory.path(), "check scenarios/small.toml");
    assert_eq!(code, 0);
    let hash = out.lines().next().expect("a first line").replace("small", "again");
    write(&directory, "again.toml", &out);
    let (_, again, _) = floodlab(directory.path(), "check scenarios/again.toml");
    assert_eq!(again.lines().next(), Some(hash.as_str()));
    assert_eq!(
        floodlab(directory.path(), "check -q scenarios/small.toml"),
        (0, String::new(), String::new())
    );
}

#[test]
fn lists_are_for_people_and_programs() {
    let directory = directory();
    for what in ["strategies", "workloads", "profiles", "scenarios"] {
        let (code, text, _) = floodlab(directory.path(), &format!("list {what}"));
        let (_, json, _) = floodlab(directory.path(), &format!("list {what} --format json"));
        let json: Vec<serde_json::Value> = serde_json::from_str(&json).expect("JSON");
        // Long summaries go on in indented lines.
        let items = text.lines().filter(|line| !line.starts_with(' '));
        assert_eq!((code, items.count()), (0, json.len()), "{what}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let told = json.iter().flat_map(|item| {
            let mut told = [&item["name"], &item["summary"]]
                .map(|part| words(part.as_str().unwrap_or_default()))
                .concat();
            let rows: Vec<&str> =
                item["covers"].as_array().into_iter().flatten().filter_map(|r| r.as_str()).collect();
            if !rows.is_empty() {
                told.extend(words(&format!("[{}]", rows.join(", "))));
            }
            told
        });
        assert_eq!(words(&text), told.collect::<Vec<_>>(), "nothing is cut");
        assert!(json.iter().all(|item| item["name"].is_string() && item["summary"].is_string()));
    }
    let (_, scenarios, _) = floodlab(directory.path(), "list scenarios --format json");
    assert_snapshot!(scenarios, @r#"
    [
      {
        "name": "small",
        "summary": "Ten messages.",
        "covers": [
          "S1"
        ],
        "file": "scenarios/small.toml"
      }
    ]
    "#);
    write(&directory, "wrong.toml", "");
    let (code, out, err) = floodlab(directory.path(), "list scenarios");
    assert_eq!((code, out.lines().count()), (104, 1), "the others are listed");
    assert!(err.contains("scenarios/wrong.toml"), "{err}");
    let (code, out, err) = floodlab(directory.path(), "list scenarios --directory nope");
    assert_eq!((code, out.as_str()), (104, ""));
    assert_snapshot!(err, @"error: cannot list the scenarios of nope (--directory names another): No such file or directory (os error 2)");
}

/// Whoever writes a gate finds in the list what the grammar takes.
#[test]
fn the_list_of_metrics_is_enough_to_write_a_gate() {
    let directory = directory();
    let (_, json, _) = floodlab(directory.path(), "list metrics --format json");
    let json: Vec<serde_json::Value> = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json.len(), METRICS.len());
    let (code, text, _) = floodlab(directory.path(), "list metrics");
    assert!(code == 0 && text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for metric in &json {
        let get = |key: &str| metric[key].as_str().expect(key).to_owned();
        let list = |key: &str| -> Vec<String> {
            let items = metric[key].as_array().expect(key).iter();
            items.map(|item| item.as_str().expect("a text").to_owned()).collect()
        };
        let (name, summaries) = (get("name"), list("summaries"));
        let line =
            [&[name.clone(), get("unit")][..], &list("where"), &[summaries.join(", ")]].concat().join(" ");
        assert!(words(&text).contains(&format!("{line} {}", words(&get("summary")))), "{line}\n{text}");
        for summary in summaries {
            let quantity = match (get("unit").as_str(), summary.as_str()) {
                (_, "rate") | ("share", _) => "1.5%",
                ("duration", _) => "5s",
                ("ratio", _) => "1.05",
                _ => "300k",
            };
            let labels = list("where").first().map(|label| format!("{{{label}:x}}")).unwrap_or_default();
            for subject in [name.clone(), format!("{name}{labels}")] {
                let gate = format!("{subject}: {summary} <= {quantity}");
                gate.parse::<Rule>().unwrap_or_else(|error| panic!("{gate}: {error}"));
            }
        }
    }
    let example = text.lines().find(|line| line.contains("--gate")).expect("an example");
    for gate in example.split('\'').skip(1).step_by(2) {
        gate.parse::<Rule>().unwrap_or_else(|error| panic!("{gate}: {error}"));
    }
}

/// The committed schemas are what the binary prints.
#[test]
fn schemas_are_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for what in ["scenario", "report", "comparison"] {
        let (code, schema, _) = floodlab(root, &format!("schema {what}"));
        assert_eq!(code, 0);
        let committed =
            fs::read_to_string(root.join("schemas").join(format!("{what}.json"))).unwrap_or_default();
        assert!(committed == schema, "run `floodlab schema {what} > schemas/{what}.json`");
    }
    for kind in ["strategy naive-loop", "workload trace"] {
        let (code, schema, _) = floodlab(root, &format!("schema {kind}"));
        let schema: serde_json::Value = serde_json::from_str(&schema).expect("JSON");
        assert_eq!((code, &schema["type"]), (0, &"object".into()), "{kind}");
    }
}

/// Every key of the schema is on the page, and every verb and exit code in the help.
#[test]
fn docs_and_help_are_complete() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = |name| fs::read_to_string(root.join(name)).expect("the page");
    let page = page("docs/scenario.md") + &page("docs/strategy.md");
    let (_, schema, _) = floodlab(root, "schema scenario");
    let schema: serde_json::Value = serde_json::from_str(&schema).expect("JSON");
    let mut keys = Vec::new();
    collect_keys(&schema, &mut keys);
    let missing: Vec<&String> = keys.iter().filter(|key| !page.contains(&format!("`{key}`"))).collect();
    assert!(keys.len() > 50 && missing.is_empty(), "docs/scenario.md and docs/strategy.md lack {missing:?}");
    let (code, help, _) = floodlab(root, "--help");
    assert_eq!(code, 0);
    for (exit, what) in floodlab::cli::exit::ALL {
        assert!(help.contains(&format!("{:>3}  {what}", exit as u8)), "{help}");
    }
}

fn collect_keys(schema: &serde_json::Value, keys: &mut Vec<String>) {
    if let Some(properties) = schema["properties"].as_object() {
        keys.extend(properties.keys().cloned());
    }
    match schema {
        serde_json::Value::Object(object) => object.values().for_each(|value| collect_keys(value, keys)),
        serde_json::Value::Array(items) => items.iter().for_each(|item| collect_keys(item, keys)),
        _ => {}
    }
}

#[test]
fn completions_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (code, script, _) = floodlab(Path::new("."), &format!("completions {shell}"));
        assert!(code == 0 && script.contains("floodlab"), "{shell}");
    }
}

/// An earlier report is worth more than an empty one.
#[cfg(unix)]
#[test]
fn an_interrupt_leaves_what_is_there() {
    let directory = directory();
    // Weeks of traffic: it never ends by itself while this test waits.
    let long = SMALL
        .replace("1min\"\ndrain", "20d\"\ndrain")
        .replace("kind = \"broadcast\"", "kind = \"poisson\"\nrate = \"100/s\"");
    write(&directory, "long.toml", &long);
    let earlier = directory.path().join("reports/long/report.json");
    fs::create_dir_all(earlier.parent().expect("a folder")).expect("created");
    fs::write(&earlier, "an earlier report").expect("written");
    let line = ["run", "scenarios/small.toml", "scenarios/long.toml", "--format", "json", "--expect"];
    let child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("floodlab"))
        .current_dir(directory.path())
        .args(line)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn();
    let mut child = child.expect("it runs");
    while !directory.path().join("reports/small/report.json").exists() {
        assert!(child.try_wait().expect("it is ours").is_none(), "it ended too early");
        std::thread::yield_now();
    }
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.expect("kill is there").success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(105));
    let told = String::from_utf8(output.stderr).expect("UTF-8");
    // The signal may come before the second scenario begins.
    let expected = [
        "interrupted: 0 of 2 designs finished; nothing is written\n",
        "interrupted: 1 of 2 scenarios were run\n",
    ];
    assert!(expected.contains(&told.as_str()), "{told}");
    assert_eq!(fs::read_to_string(&earlier).expect("it is there"), "an earlier report");
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one document");
    assert_eq!(printed["scenario"]["name"], "small");
}

/// Nobody floods another's machine by accident, and what is wrong is found before the first call.
#[cfg(feature = "live")]
#[test]
fn drive_refuses_what_it_must_not_call() {
    let directory = directory();
    let refused = |flags: &str, expected: i32, why: &str| {
        let (code, out, err) = floodlab(directory.path(), &format!("drive scenarios/small.toml {flags}"));
        assert_eq!((code, out.as_str()), (expected, ""), "{flags}: {err}");
        assert!(err.contains(why), "{flags}: {err}");
        assert!(!directory.path().join("reports").exists(), "{flags}");
    };
    refused("--url http://192.0.2.1:8081 --token 1:a", 2, "say --i-own-this-target");
    refused("--url https://api.telegram.org --token 1:a --i-own-this-target", 2, "Telegram itself");
    refused("--url http://127.0.0.1:1", 2, "say --token once for each");
    refused("--url http://127.0.0.1:1 --token x", 2, "a token is a number");
    refused("--url 127.0.0.1:1 --token 1:a", 2, "write it like http://127.0.0.1:8081");
    refused("--token 1:a", 2, "--url");
    refused("--url http://127.0.0.1:1 --token 1:a --design wise", 104, "did you mean `wide`");
    refused("--url http://127.0.0.1:1 --token 1:a", 1, "is the server running?");
    let (_, _, err) =
        floodlab(directory.path(), "drive scenarios/small.toml --url http://127.0.0.1:1 --token 1:a");
    assert_eq!(err.matches("nothing answers").count(), 1, "once, and not for each design: {err}");
}

/// Without a URL it has a server of its own; the report says that it was real time, and how real.
#[cfg(feature = "live")]
#[test]
fn drive_reports_as_a_run_does_and_says_what_real_time_brought() {
    let directory = directory();
    let (code, out, err) = floodlab(directory.path(), "drive scenarios/small.toml --expect");
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("real time, over HTTP: http://127.0.0.1:"), "{out}");
    assert!(out.contains("reproduce: floodlab drive scenarios/small.toml --seed 1\n"), "{out}");
    let folder = directory.path().join("reports/small");
    let page = fs::read_to_string(folder.join("report.md")).expect("it is written");
    assert!(page.contains("of real time") && !page.contains("event hash"), "{page}");
    let json = fs::read_to_string(folder.join("report.json")).expect("it is written");
    let report: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    for design in report["designs"].as_array().expect("designs") {
        assert_eq!(design["metrics"]["delivered"], 10);
        assert_eq!(design["live"]["told_truth"], true);
        assert_eq!(design["live"]["calls"]["answered"], 10);
    }
}

/// The scenario's rules and chats, changed by the flags; its verdict is an exit code.
#[cfg(feature = "live")]
#[test]
fn a_scenario_is_served() {
    use std::io::{BufRead, BufReader};
    let directory = directory();
    let text = SMALL.replace("profile = \"unlimited\"", "limit = { token = { rate = \"7/s\", burst = 3 } }");
    write(&directory, "served.toml", &text);
    let serve =
        "serve --scenario scenarios/served.toml --limit chat:off --addr 127.0.0.1:0 --gate throttled==0";
    let child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("floodlab"))
        .current_dir(directory.path())
        .args(serve.split(' '))
        .stdout(std::process::Stdio::piped())
        .spawn();
    /// Nothing that a failed test leaves behind keeps a pipe open.
    struct Ends(std::process::Child);
    impl Drop for Ends {
        fn drop(&mut self) {
            let _ = self.0.kill();
        }
    }
    let mut child = Ends(child.expect("it runs"));
    let mut out =
        BufReader::new(child.0.stdout.take().expect("a pipe")).lines().map(|line| line.expect("UTF-8"));
    let first = out.next().expect("a line");
    let base = first.strip_prefix("fake-telegram listens on ").expect("the address first").to_owned();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let ask = |request: reqwest::RequestBuilder| -> serde_json::Value {
        runtime.block_on(async { request.send().await.expect("an answer").json().await.expect("JSON") })
    };
    let client = reqwest::Client::new();
    let limits = ask(client.get(format!("{base}/__admin/limits")));
    assert_eq!((&limits["token"]["rate"], &limits["token"]["burst"]), (&"7/s".into(), &"3".into()));
    assert_eq!(limits["chat"], serde_json::json!({ "off": true }));
    ask(client.post(format!("{base}/__admin/clock")).body(r#"{"frozen": true}"#));
    for (nth, ok) in [true, true, true, false].into_iter().enumerate() {
        let call = format!("{base}/bot1:a/sendMessage?chat_id=1000000000&text={nth}");
        assert_eq!(ask(client.get(call))["ok"], ok, "call {nth}");
    }
    ask(client.post(format!("{base}/__admin/shutdown")));
    let rest: Vec<String> = out.collect();
    assert_eq!(child.0.wait().expect("it ends").code(), Some(99), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("FAILED  throttled==0")), "{rest:?}");
    let (code, _, err) = floodlab(directory.path(), "serve --scenario scenarios/none.toml");
    assert!(code == 104 && err.contains("none.toml"), "{code} {err}");
}

/// What was sent until then is the report, whether somebody presses Ctrl-C or a time limit ends it.
#[cfg(all(unix, feature = "live"))]
#[test]
fn an_interrupted_drive_leaves_its_report() {
    use std::io::{Read, Write};
    for signal in ["-INT", "-TERM"] {
        let directory = directory();
        let long = SMALL.replace("1min\"\ndrain", "20d\"\ndrain");
        write(&directory, "long.toml", &long);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("floodlab"))
            .current_dir(directory.path())
            .args(["drive", "scenarios/long.toml", "--format", "quiet", "--url", &url, "--token", "1:a"])
            .stderr(std::process::Stdio::piped())
            .spawn();
        let mut child = child.expect("it runs");
        // Before the run and before the design it is asked who it is; then a message comes, and is never answered.
        let mut call = loop {
            let (mut stream, _) = listener.accept().expect("it calls");
            let mut head = [0; 5];
            stream.read_exact(&mut head).expect("a request");
            if &head == b"POST " {
                break stream;
            }
            stream
                .write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                .expect("sent");
            // What is unread when a socket closes resets the connection.
            stream.shutdown(std::net::Shutdown::Write).expect("it is open");
            let _ = stream.read_to_end(&mut Vec::new());
        };
        let kill = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(kill.expect("kill is there").success());
        let output = child.wait().expect("it ends");
        let mut told = String::new();
        child.stderr.take().expect("it is piped").read_to_string(&mut told).expect("UTF-8");
        assert_eq!(output.code(), Some(105), "{signal}: {told}");
        assert!(told.contains("interrupted: the report ends where the run did"), "{signal}: {told}");
        let json = fs::read_to_string(directory.path().join("reports/long/report.json")).expect("a report");
        let report: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert!(report["designs"][0]["live"]["interrupted_us"].is_u64(), "{signal}: {json}");
        let _ = call.read(&mut [0]);
    }
}

/// The command says which store it was, and so does the report.
#[cfg(feature = "redis")]
#[test]
fn a_real_store_is_in_the_report_and_in_the_command() {
    let directory = directory();
    let url = crate::redis::url();
    let line = format!("run scenarios/small.toml --store {}", url.secret());
    let (code, out, err) = floodlab(directory.path(), &line);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains(&format!("small  profile unlimited, store {url}, 2 min, seed 1\n")), "{out}");
    assert!(out.contains(&format!("floodlab run scenarios/small.toml --seed 1 --store {url}\n")), "{out}");
    let read = |file| fs::read_to_string(directory.path().join("reports/small").join(file)).expect("written");
    assert!(read("report.md").starts_with(&format!("# small\n\nProfile `unlimited`, store `{url}`, ")));
    let report: serde_json::Value = serde_json::from_str(&read("report.json")).expect("JSON");
    assert_eq!(report["scenario"]["store"], url.to_string());
}

/// What is finished is the result, and says what is missing.
#[test]
fn an_interrupted_report_holds_what_was_finished() {
    let more = "\n[[expect]]\nmetric = \"lag\"\nexpect = \"max <= wide\"\n[[design]]\nname = \"third\"\nstrategy = \"naive-loop\"\n";
    let scenario = lab::scenario(&format!("{SMALL}{more}"));
    let interrupted = AtomicBool::new(false);
    let options = Options {
        seeds: vec![1],
        baseline: None,
        designs: vec![0, 1, 2],
        jobs: Some(1),
        check_determinism: false,
        shuffle_ties: None,
        interrupted: &interrupted,
        wall_us: &|| 0,
    };
    let interrupt_the_second =
        |progress: Progress| interrupted.store(progress.design == 1, Ordering::Relaxed);
    let report = run::run(&scenario, &options, &interrupt_the_second).expect("nothing goes wrong");
    let names: Vec<_> = report.designs.iter().map(|design| design.name.as_str()).collect();
    assert_eq!(names, ["naive-loop"]);
    let missing =
        ["wide", "third"].map(|name| Unfinished { design: name.to_owned(), ..Unfinished::default() });
    assert_eq!(report.unfinished, missing);
    // One design was judged, and nothing against one that is missing.
    let judged: Vec<_> = report.expectations.iter().map(|verdict| verdict.metric.as_str()).collect();
    assert_eq!(judged, ["due"]);
    let line = "interrupted: 1 of 3 designs finished";
    assert!(report::table(&report, false, 100).contains(&format!("\n{line}\n")));
    assert!(report::markdown(&report).contains(&format!("\n**{line}**\n")));
}
