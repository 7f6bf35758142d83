//! The command line: exit codes, texts, files.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use insta::assert_snapshot;
use tempfile::TempDir;

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
fn directory() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    fs::create_dir(directory.path().join("scenarios")).expect("created");
    write(&directory, "small.toml", SMALL);
    directory
}

fn write(directory: &TempDir, name: &str, text: &str) {
    fs::write(directory.path().join("scenarios").join(name), text).expect("written");
}

/// What a command answers: its exit code, standard output and standard error.
fn floodlab(directory: &Path, line: &str) -> (i32, String, String) {
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
    for file in ["report.json", "report.md"] {
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
         --export-svg lag-p99=e.svg --export-png f.png",
    );
    assert_eq!(code, 0);
    assert_eq!(out, read("out/report.json"));
    assert_eq!(out, read("a.json"));
    assert_eq!(out, read("b/c.json"));
    assert_eq!(read("d.md"), read("out/report.md"));
    assert_eq!(read("e.svg"), read("out/lag-p99.svg"));
    assert!(directory.path().join("f.png").exists());
    let (_, quiet, _) = floodlab(directory.path(), "run scenarios/small.toml --format quiet --export-md -");
    assert!(quiet.starts_with('#'), "{quiet}");
    let (code, _, err) =
        floodlab(directory.path(), "run scenarios/small.toml --format quiet --export-svg lag-p9=g.svg");
    assert_eq!(code, 104);
    assert_snapshot!(err, @"error: unknown plot `lag-p9`; did you mean `lag-p99`?");
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
    command.current_dir(directory.path()).env("FLOODLAB_SEED", "2");
    let (_, out, _) = answer(command.args(["run", "scenarios/small.toml", "--format", "json"]));
    assert_eq!(hash(&serde_json::from_str(&out).expect("JSON")), hash(&two));
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
    check("run scenarios/small.toml -o scenarios/small.toml/x", 1);
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
    for what in ["strategies", "workloads", "profiles", "metrics", "scenarios"] {
        let (code, text, _) = floodlab(directory.path(), &format!("list {what}"));
        let (_, json, _) = floodlab(directory.path(), &format!("list {what} --format json"));
        let json: Vec<serde_json::Value> = serde_json::from_str(&json).expect("JSON");
        assert_eq!((code, text.lines().count()), (0, json.len()), "{what}");
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
}

/// The committed schemas are what the binary prints.
#[test]
fn schemas_are_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for what in ["scenario", "report"] {
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
    let page = fs::read_to_string(root.join("docs/scenario.md")).expect("the page");
    let (_, schema, _) = floodlab(root, "schema scenario");
    let mut schema: serde_json::Value = serde_json::from_str(&schema).expect("JSON");
    // Strategies document themselves: `floodlab schema strategy KIND`.
    schema["$defs"]["strategy"] = serde_json::Value::Null;
    let mut keys = Vec::new();
    collect_keys(&schema, &mut keys);
    let missing: Vec<&String> = keys.iter().filter(|key| !page.contains(&format!("`{key}`"))).collect();
    assert!(keys.len() > 50 && missing.is_empty(), "docs/scenario.md lacks {missing:?}");
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

/// What is finished is still written.
#[cfg(unix)]
#[test]
fn an_interrupt_ends_the_run_in_order() {
    let directory = directory();
    // Weeks of traffic: it never ends by itself while this test waits.
    let long = SMALL
        .replace("1min\"\ndrain", "20d\"\ndrain")
        .replace("kind = \"broadcast\"", "kind = \"poisson\"\nrate = \"100/s\"");
    write(&directory, "long.toml", &long);
    let binary = assert_cmd::cargo::cargo_bin!("floodlab");
    let line = ["run", "scenarios/small.toml", "scenarios/long.toml", "--format", "quiet"];
    let mut child =
        std::process::Command::new(binary).current_dir(directory.path()).args(line).spawn().expect("it runs");
    while !directory.path().join("reports/small/report.json").exists() {
        assert!(child.try_wait().expect("it is ours").is_none(), "it ended too early");
        std::thread::yield_now();
    }
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.expect("kill is there").success());
    assert_eq!(child.wait().expect("it ends").code(), Some(105));
    assert!(directory.path().join("reports/long/report.json").exists());
}
