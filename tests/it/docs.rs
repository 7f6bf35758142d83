//! What the documentation says is held against the code: links, code, parameters, lists of modules.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};

use fake_telegram::api::Answer;
use fake_telegram::profile::{Profile, ServerSettings};
use floodlab::store::command::{Command, Reply};
use floodlab::strategy::StrategyKind;
use floodlab::world::{Belief, GiveUp};
use floodlab::{Duration, Env, Registry, Strategy};
use rand_chacha::rand_core::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use floodlab::run::{Simulation, simulate};
use floodlab::scenario::Scenario;

#[path = "../../examples/own_strategy.rs"]
#[expect(dead_code, unreachable_pub, reason = "an example is a program of its own")]
mod own_strategy;

fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn pages() -> Vec<PathBuf> {
    let markdown = |directory: &str| {
        let entries = fs::read_dir(directory).expect("a directory").flatten().map(|entry| entry.path());
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect::<Vec<_>>()
    };
    let galleries = fs::read_dir("reports/gallery").expect("the gallery").flatten().map(|entry| entry.path());
    let galleries = galleries.filter(|path| path.is_dir());
    let mut pages = [markdown("."), markdown("docs"), markdown("reports/gallery")].concat();
    pages.extend(galleries.flat_map(|path| markdown(path.to_str().expect("UTF-8"))));
    pages.sort();
    pages
}

/// The fenced blocks of one language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    page.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn links_lead_somewhere() {
    for page in pages() {
        let text = read(&page);
        // Every second part is code.
        let prose: String = text.split("```").step_by(2).collect();
        for link in prose.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap_or_default();
            if link.contains("://") || file.is_empty() {
                continue;
            }
            let target = page.parent().expect("a page lies somewhere").join(file);
            assert!(target.exists(), "{}: {link} leads nowhere", page.display());
        }
    }
}

/// At the same time, since they mostly wait.
#[cfg(feature = "live")]
#[test]
fn the_commands_of_the_page_on_real_time_work() {
    use fake_telegram::http::options::Options;
    let page = read("docs/drive.md");
    let commands: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("    floodlab drive ")).collect();
    assert_eq!(commands.len(), 3, "{commands:?}");
    let addr = ([127, 0, 0, 1], 0).into();
    let server = fake_telegram::http::server::Server::start(Options { addr, ..Options::default() });
    let server = server.expect("a free port");
    let drive = |command: &str| {
        let words = command.split('#').next().unwrap_or_default();
        let words = words.replace("127.0.0.1:8081", &server.addr().to_string());
        let folder = tempfile::tempdir().expect("a directory");
        let mut floodlab = assert_cmd::Command::cargo_bin("floodlab").expect("the binary");
        floodlab.arg("drive").args(words.split_whitespace()).arg("-o").arg(folder.path());
        let output = floodlab.output().expect("it runs");
        let told = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && told.contains("real time, over HTTP"), "{command}: {told}");
    };
    std::thread::scope(|threads| commands.iter().for_each(|command| drop(threads.spawn(|| drive(command)))));
}

/// The code in `docs/strategy.md` that shows [`Env`] is the body of this one.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Tour {}

impl Strategy for Tour {
    const KIND: &'static str = "tour";
    const SUMMARY: &'static str = "one call of everything";

    #[rustfmt::skip]
    async fn run(self, env: Env) {
        // Messages. The outbox hands each to one process, at most once.
        let Some(message) = env.next().await else { return }; // waits; `None`: nothing more will come
        let another = env.try_next();                         // only if one is due now
        let is_over = env.is_over();                          // nothing is due, and nothing will be

        // Time. Computing takes none.
        let begun = env.now();
        env.sleep(Duration::from_millis(40)).await;
        env.sleep_until(begun + Duration::from_secs(1)).await;

        // Calls. Read the answer, then say what you believe.
        match env.send(&message).await.read() {
            Answer::Message { .. } => env.settle(&message, Belief::Delivered),
            Answer::Forbidden(_) => env.give_up(&message, GiveUp::ChatDead),
            Answer::TooManyRequests { hint } => {
                // In seconds or as a date; and there are servers that say nothing. Then send it again.
                env.sleep(hint.wait(env.now()).unwrap_or(Duration::from_secs(1))).await;
            }
            _ => env.settle(&message, Belief::Unknown),
        }

        // The process. Its workers share its memory, by type, and take turns.
        let calls = env.memory(|| Cell::new(0_u32));
        calls.set(calls.get() + 1);
        let turn = env.turn().await;
        env.idle_until(env.now() + Duration::from_secs(5)).await; // or until a message is due, or a nudge
        drop(turn);
        env.nudge();

        // The store. All processes share it; a script is atomic and takes a round trip.
        let budget = env.key("budget", || 30_u32);
        let taken = env.script("take", |call| { let mut left = call.object(budget); *left = left.saturating_sub(1); *left });
        let left = taken.await.unwrap_or(0); // an error: the store could not be reached
        let counted = env.call(Command::Incr { key: "sent".to_owned() }).await; // a command of Redis

        // Randomness, a stream per purpose and worker; and a task beside this worker.
        let jitter = env.rng("jitter").next_u32() % 100;
        env.spawn("heartbeat", async move { /* ... */ });

        // Of messages due at one instant the next may not be there yet.
        assert!(another.is_none_or(|another| another.number > message.number));
        assert!(!is_over && left == 29 && jitter < 100 && counted == Ok(Reply::Integer(1)));
    }
}

/// Runs the first design of a scenario.
fn run(toml: &str, registry: &Registry) -> floodlab::outcome::Outcome {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("scenario.toml");
    fs::write(&file, toml).expect("written");
    let scenario = Scenario::load(&file, registry).unwrap_or_else(|error| panic!("{error}"));
    let simulation = Simulation { scenario: &scenario, design: 0, seed: 1, shuffle_ties: None };
    simulate(&simulation, Vec::new(), |_| true).expect("it runs").expect("nobody stops it")
}

#[test]
fn the_tour_runs() {
    let toml = "duration = \"1min\"\nworkers = 1\nchats = { count = 3 }\n\
        [workload.all]\nkind = \"broadcast\"\nclass = \"notice\"\n[[design]]\nstrategy = \"tour\"\n";
    let outcome = run(toml, &Registry::builtin().with_strategy::<Tour>());
    assert_eq!(outcome.metrics.believed_delivered, 1);
}

/// The scenario in the example's comment.
#[test]
fn the_example_runs() {
    let source = read("examples/own_strategy.rs");
    let comment = source.lines().filter_map(|line| line.strip_prefix("//!"));
    let comment: String =
        comment.map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line))).collect();
    let toml = blocks(&comment, "toml");
    let outcome = run(&toml[0], &Registry::builtin().with_strategy::<own_strategy::FixedGap>());
    assert_eq!(outcome.metrics.delivered, 10_000);
    assert_eq!(outcome.metrics.throttled.values().sum::<u64>(), 0);
}

/// Code that people copy is code that is compiled: each block stands, line by line, in a source file.
#[test]
fn code_in_the_pages_is_compiled() {
    let flat = |text: &str| {
        text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
    };
    let sources = ["examples/own_strategy.rs", "tests/it/docs.rs", "src/strategy/naive_loop.rs"];
    let sources = sources.map(|file| flat(&read(file)));
    for page in ["README.md", "docs/strategy.md"] {
        for block in blocks(&read(page), "rust") {
            let known = sources.iter().any(|source| source.contains(&flat(&block)));
            assert!(known, "{page}: this is in no source file:\n{block}");
        }
    }
}

/// Whole scenarios load, and a `[server]` alone is a profile.
#[test]
fn scenarios_in_the_pages_are_valid() {
    let mut whole = 0;
    for page in pages() {
        for block in blocks(&read(&page), "toml") {
            let place = format!("{}:\n{block}", page.display());
            if block.contains("[[design]]") && block.contains("duration") {
                let directory = tempfile::tempdir().expect("a directory");
                let file = directory.path().join("scenario.toml");
                fs::write(&file, &block).expect("written");
                Scenario::load(&file, &Registry::builtin())
                    .unwrap_or_else(|error| panic!("{place}\n{error}"));
                whole += 1;
            }
        }
    }
    assert!(whole > 0);
}

/// The profile that `docs/server.md` prints in full is the profile.
#[test]
fn the_profile_in_the_page_is_the_profile() {
    #[derive(Deserialize)]
    struct File {
        server: ServerSettings,
    }
    let page = read("docs/server.md");
    let block = blocks(&page, "toml").into_iter().find(|block| block.starts_with("[server]"));
    let file: File = toml::from_str(&block.expect("a block that begins with [server]")).expect("TOML");
    assert_eq!(file.server.limit.len(), 4, "written out, not inherited");
    assert_eq!(file.server.resolve().expect("a profile"), Profile::telegram());
    for (name, _) in Profile::ALL {
        assert!(page.contains(&format!("`{name}`")), "docs/server.md says nothing of {name}");
    }
}

/// `docs/strategy.md` has a section for each strategy, with the parts that it has beyond those of `bare`, in order.
#[test]
fn parameters_in_the_page_are_the_strategies_own() {
    let page = read("docs/strategy.md");
    let registry = Registry::builtin();
    let parts = |strategy: &StrategyKind| {
        let nothing = toml::de::ValueDeserializer::parse("{}").expect("an empty table");
        (strategy.read)(nothing).expect("every part has a default").parameters()
    };
    let bare = parts(registry.strategy("bare").expect("it is built in"));
    for strategy in registry.strategies() {
        let heading = format!("### `{}`\n", strategy.kind);
        let section =
            page.split(&heading).nth(1).unwrap_or_else(|| panic!("no section for {}", strategy.kind));
        let section = section.split("\n#").next().unwrap_or_default();
        let rows = section.lines().filter(|line| line.starts_with("| `"));
        let rows: Vec<String> =
            rows.map(|row| row.split(" | ").take(2).collect::<Vec<_>>().join(" | ")).collect();
        let all = strategy.kind == "bare";
        let parts = parts(strategy);
        let own = parts.iter().filter(|(name, part)| all || bare.get(*name) != Some(part));
        let expected: Vec<String> = own.map(|(name, part)| format!("| `{name}` | `{part}` |")).collect();
        assert_eq!(rows, expected, "{}", strategy.kind);
    }
}

/// The code map has a row for each module, in the order of `lib.rs`.
#[test]
fn the_code_map_is_the_code() {
    let page = read("docs/ARCHITECTURE.md");
    for (file, heading) in
        [("src/lib.rs", "### `floodlab`\n"), ("fake-telegram/src/lib.rs", "### `fake-telegram`\n")]
    {
        let declared = read(file);
        let declared = declared.lines().filter_map(|line| line.split("mod ").nth(1)?.strip_suffix(';'));
        let section = page.split(heading).nth(1).expect("a section for each crate");
        let section = section.split("\n#").next().unwrap_or_default();
        let mapped = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        assert_eq!(mapped.collect::<Vec<_>>(), declared.collect::<Vec<_>>(), "{file}");
    }
}
