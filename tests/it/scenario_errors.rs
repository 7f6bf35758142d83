//! What is said about scenarios that are wrong: file, line, key, value, and the nearest right name.

use floodlab::scenario::{Excerpt, Scenario};
use floodlab::{Env, Registry, Strategy};
use insta::assert_snapshot;

/// A valid scenario.
const VALID: &str = r#"duration = "1h"

[chats]
count = "10k"

[workload.replies]
kind = "poisson"
class = "reply"
rate = "1/s"

[[design]]
strategy = "plain-loop"
"#;

#[derive(Debug, Clone, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct PlainLoop {}

impl Strategy for PlainLoop {
    const KIND: &'static str = "plain-loop";
    const SUMMARY: &'static str = "for these tests";
    async fn run(self, _env: Env) {}
}

#[derive(Debug, Clone, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Paced {
    rate: fake_telegram::units::Rate,
}

impl Strategy for Paced {
    const KIND: &'static str = "paced";
    const SUMMARY: &'static str = "for these tests";
    async fn run(self, _env: Env) {}
}

pub(crate) fn registry() -> Registry {
    Registry::builtin().with_strategy::<PlainLoop>().with_strategy::<Paced>()
}

/// The error about a file, as a compiler shows it.
fn told_about(name: &str, text: &str) -> String {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name);
    let write = |name: &str, text: &str| std::fs::write(file(name), text).expect("written");
    write(name, text);
    write("broken.csv", "due_ms,chat,kind\n1,1,private\n2,one,private\n");
    write("unsorted.csv", "due_ms,chat,kind\n5,1,private\n4,1,private\n");
    let error = Scenario::load(&file(name), &registry()).expect_err("a wrong scenario");
    let mut told = error.to_string().replace(&format!("{}/", directory.path().display()), "");
    if let Some(Excerpt { text, column, width, .. }) = error.excerpt() {
        told += &format!("\n{text}\n{}{}", " ".repeat(*column), "^".repeat(*width));
    }
    told
}

/// The scenario is right.
fn loads(text: &str) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("x.toml");
    std::fs::write(&file, text).expect("written");
    Scenario::load(&file, &registry()).unwrap_or_else(|error| panic!("{error}\n{text}"));
}

/// [`VALID`] with `old` replaced by `new`.
fn with(old: &str, new: &str) -> String {
    assert!(VALID.contains(old), "{old} is not in the scenario");
    told_about("x.toml", &VALID.replace(old, new))
}

/// [`VALID`] with lines at its end.
fn and(more: &str) -> String {
    told_about("x.toml", &format!("{VALID}{more}\n"))
}

#[test]
fn names_that_are_nearly_right() {
    assert_snapshot!(and("wokers = 16"), @r#"
    x.toml:13: unknown key `wokers` in [[design]]; did you mean `workers`?
    wokers = 16
    ^^^^^^
    "#);
    assert_snapshot!(with(r#""plain-loop""#, r#""plain-lop""#), @r#"
    x.toml:12: unknown strategy `plain-lop`; did you mean `plain-loop`?
    strategy = "plain-lop"
               ^^^^^^^^^^^
    "#);
    assert_snapshot!(with(r#""plain-loop""#, r#"{ kind = "paced", rat = "25/s" }"#), @r#"
    x.toml:12: unknown key `rat` in [design.strategy]; did you mean `rate`?
    strategy = { kind = "paced", rat = "25/s" }
                                 ^^^
    "#);
    assert_snapshot!(with(r#""poisson""#, r#""posson""#), @r#"
    x.toml:7: unknown workload `posson`; did you mean `poisson`?
    kind = "posson"
           ^^^^^^^^
    "#);
    assert_snapshot!(with(r#"rate = "1/s""#, r#"rate = "1/s"
unitl = "5min""#), @r#"
    x.toml:10: unknown key `unitl` in [workload.replies]; did you mean `until`?
    unitl = "5min"
    ^^^^^
    "#);
    assert_snapshot!(with(r#"rate = "1/s""#, r#"rate = "1/s"
chats = { kinds = ["privat"] }"#), @r#"
    x.toml:10: unknown value `privat` of `kinds` in [workload.replies.chats]; did you mean `private`?
    chats = { kinds = ["privat"] }
                       ^^^^^^^^
    "#);
    assert_snapshot!(with(r#"count = "10k""#, r#"count = "10k"
[[chats.schedule]]
at = "1h"
action = "dye""#), @r#"
    x.toml:7: unknown value `dye` of `action` in [[chats.schedule]]; did you mean `die`?
    action = "dye"
             ^^^^^
    "#);
    assert_snapshot!(and(r#"[server.limit.token]
rat = "30/s""#), @r#"
    x.toml:14: unknown key `rat` in [server.limit.token]; did you mean `rate`?
    rat = "30/s"
    ^^^
    "#);
    assert_snapshot!(and(r#"[[server.fault]]
kind = "htm"
rate = "1%""#), @r#"
    x.toml:14: unknown value `htm` of `kind` in [[server.fault]]; did you mean `html`?
    kind = "htm"
           ^^^^^
    "#);
    assert_snapshot!(with(r#"strategy = "plain-loop""#, r#"[[design.group]]
strategy = "plain-loop"
workloads = ["reply"]"#), @r#"
    x.toml:14: unknown workload `reply` in `workloads`; there is only `replies`
    workloads = ["reply"]
                ^^^^^^^^^
    "#);
}

#[test]
fn values_that_do_not_fit() {
    assert_snapshot!(with(r#""plain-loop""#, r#"{ kind = "paced", rate = 25 }"#), @r#"
    x.toml:12: `rate` in [design.strategy]: `25` has no unit; write `25/s` or `25/min`
    strategy = { kind = "paced", rate = 25 }
                                        ^^
    "#);
    assert_snapshot!(with(r#""1h""#, "10"), @r#"
    x.toml:1: `duration`: `10` has no unit; write `10s` for seconds, `10ms` for milliseconds
    duration = 10
               ^^
    "#);
    assert_snapshot!(with(r#""1h""#, r#""0s""#), @r#"
    x.toml:1: `duration`: nothing happens in no time; write it as in `24h`
    duration = "0s"
               ^^^^
    "#);
    assert_snapshot!(with(r#"count = "10k""#, r#"count = "10k"
dead = 0.05"#), @r#"
    x.toml:5: `dead` in [chats]: `0.05` has no unit; write a share in per cent, as in `5%`
    dead = 0.05
           ^^^^
    "#);
    assert_snapshot!(with(r#"count = "10k""#, r#"count = "10k"
dead = "105%""#), @r#"
    x.toml:5: `dead` in [chats]: `105%` is more than 100%
    dead = "105%"
           ^^^^^^
    "#);
    assert_snapshot!(with(r#"rate = "1/s""#, r#"rate = "1/s"
profile = [1, 2, 3]"#), @r#"
    x.toml:10: `profile` in [workload.replies]: 3 weights; write one for each of the 24 hours
    profile = [1, 2, 3]
              ^^^^^^^^^
    "#);
    assert_snapshot!(with(r#"rate = "1/s""#, r#"rate = "1/s"
from = "2h""#), @r#"
    x.toml:10: `from` in [workload.replies]: 2h is not before 1h, where the workload ends
    from = "2h"
           ^^^^
    "#);
    assert_snapshot!(with(r#"[chats]
count = "10k""#, r#"chats = "10k""#), @r#"
    x.toml:3: `chats`: invalid type: string "10k", expected a table [chats]
    chats = "10k"
            ^^^^^
    "#);
    assert_snapshot!(with("[[design]]", "[design]"), @r#"
    x.toml:11: a table where a list of tables [[design]] is expected
    [design]
    ^^^^^^^^
    "#);
    assert_snapshot!(and(r#"name = "my design""#), @r#"
    x.toml:13: `my design` is no name; use letters, digits, `-`, `_` and `.`, a letter or digit first
    name = "my design"
           ^^^^^^^^^^^
    "#);
}

#[test]
fn stores_that_cannot_be() {
    assert_snapshot!(and(r#"[store]
round_trip = "2ms"
round_trip_p99 = "1ms""#), @r#"
    x.toml:15: `round_trip_p99` in [store]: 1ms is less than `round_trip`, 2ms
    round_trip_p99 = "1ms"
                     ^^^^^
    "#);
    assert_snapshot!(and(r#"[store]
round_trip = "20ms"
timeout = "20ms""#), @r#"
    x.toml:15: `timeout` in [store]: 20ms is not longer than `round_trip`, 20ms, so every call would time out; raise it
    timeout = "20ms"
              ^^^^^^
    "#);
    assert_snapshot!(and(r#"[store]
round_trip = "2s""#), @r#"
    x.toml:13: `timeout` in [store]: 1s is not longer than `round_trip`, 2s, so every call would time out; raise it
    [store]
    ^^^^^^^
    "#);
    assert_snapshot!(and(r#"[store]
timeout = "0s""#), @r#"
    x.toml:14: `timeout` in [store]: no call would ever be answered
    timeout = "0s"
              ^^^^
    "#);
    assert_snapshot!(and(r#"[store]
round_trp = "2ms""#), @r#"
    x.toml:14: unknown key `round_trp` in [store]; did you mean `round_trip`?
    round_trp = "2ms"
    ^^^^^^^^^
    "#);
}

#[test]
fn workloads_that_cannot_be() {
    assert_snapshot!(with(r#"rate = "1/s""#, r#"rate = "1/s"
method = "sendPhotos""#), @r#"
    x.toml:10: unknown value `sendPhotos` of `method` in [workload.replies]; did you mean `sendPhoto`?
    method = "sendPhotos"
             ^^^^^^^^^^^^
    "#);
    assert_snapshot!(with(r#"kind = "poisson"
class = "reply"
rate = "1/s""#, r#"kind = "broadcast"
class = "reply"
every = "10min"
chats = { count = "8k" }
grow = 500"#), @r#"
    x.toml:11: `grow` in [workload.replies]: the last of 6 broadcasts would reach 10500 chats, and the scenario declares 10000 of these kinds; let it grow less, or declare more in [chats]
    grow = 500
           ^^^
    "#);
}

#[test]
fn what_is_missing_or_there_twice() {
    assert_snapshot!(with(r#"duration = "1h"
"#, ""), @"x.toml: the scenario lacks `duration`");
    assert_snapshot!(with(r#"[[design]]
strategy = "plain-loop"
"#, ""), @"x.toml: no designs: there is nothing to compare; write a table [[design]]");
    assert_snapshot!(with(r#"[workload.replies]
kind = "poisson"
class = "reply"
rate = "1/s"
"#, ""), @"x.toml: no workloads: there is nothing to send; write a table [workload.NAME]");
    assert_snapshot!(with(r#"rate = "1/s"
"#, ""), @r#"
    x.toml:6: [workload.replies] lacks `rate`
    [workload.replies]
    ^^^^^^^^^^^^^^^^^^
    "#);
    assert_snapshot!(with(r#"class = "reply"
"#, ""), @r#"
    x.toml:6: [workload.replies] lacks `class`
    [workload.replies]
    ^^^^^^^^^^^^^^^^^^
    "#);
    assert_snapshot!(with(r#"strategy = "plain-loop"
"#, r#"name = "empty"
"#), @r#"
    x.toml:11: [[design]] lacks `strategy` (or tables [[design.group]])
    [[design]]
    ^^^^^^^^^^
    "#);
    assert_snapshot!(and(r#"[[design]]
strategy = "plain-loop""#), @r#"
    x.toml:13: there are two designs `plain-loop`; give one of them another `name`
    [[design]]
    ^^^^^^^^^^
    "#);
    assert_snapshot!(with(r#"rate = "1/s""#, r#"rate = "1/s"
rate = "2/s""#), @r#"
    x.toml:10: not TOML: duplicate key
    rate = "2/s"
    ^^^^
    "#);
    assert_snapshot!(with(r#"count = "10k""#, "count = 10k"), @r#"
    x.toml:4: not TOML: string values must be quoted, expected literal string
    count = 10k
            ^^^
    "#);
}

#[test]
fn servers_that_cannot_be() {
    assert_snapshot!(and(r#"[server]
profile = "telegramm""#), @r#"
    x.toml:14: [server]: unknown profile `telegramm`; known are telegram, telegram-observed, market, unlimited; did you mean `telegram`?
    profile = "telegramm"
              ^^^^^^^^^^^
    "#);
    assert_snapshot!(and(r#"[server.limit.tokn]
rate = "30/s""#), @r#"
    x.toml:13: [server]: limit `tokn` is not in profile `telegram` (has token, chat, group, channel) and lacks `algorithm`; did you mean `token`?
    [server.limit.tokn]
    ^^^^^^^^^^^^^^^^^^^
    "#);
    assert_snapshot!(and(r#"[server.limit.token]
window = "1min""#), @r#"
    x.toml:14: [server]: `limit.token.window` has no meaning for a token bucket; it has `rate` and `burst` (or set `algorithm`)
    window = "1min"
             ^^^^^^
    "#);
    assert_snapshot!(and(r#"[[server.fault]]
kind = "html"
rate = "60%"
[[server.fault]]
kind = "empty"
rate = "60%""#), @r#"
    x.toml:13: [[server.fault]]: faults that are active at 0s add up to 120% of all calls; lower a `rate` or move a `from`
    [[server.fault]]
    ^^^^^^^^^^^^^^^^
    "#);
}

#[test]
fn designs_that_send_nothing() {
    assert_snapshot!(and("workers = 0"), @r#"
    x.toml:13: `workers` in [[design]]: with none of them nothing is sent; at least 1
    workers = 0
              ^
    "#);
    assert_snapshot!(with(r#"duration = "1h""#, "duration = \"1h\"\nworkers = 0"), @r#"
    x.toml:2: `workers`: with none of them nothing is sent; at least 1
    workers = 0
              ^
    "#);
    assert_snapshot!(with(r#"duration = "1h""#, "duration = \"1h\"\nprocesses = 0"), @r#"
    x.toml:2: `processes`: with none of them nothing is sent; at least 1
    processes = 0
                ^
    "#);
    assert_snapshot!(with(r#"strategy = "plain-loop""#, "workers = 0\n[[design.group]]\nstrategy = \"plain-loop\""), @r#"
    x.toml:12: `workers` in [[design]]: with none of them nothing is sent; at least 1
    workers = 0
              ^
    "#);
    assert_snapshot!(with(r#"strategy = "plain-loop""#, "[[design.group]]\nstrategy = \"plain-loop\"\nprocesses = 0"), @r#"
    x.toml:14: `processes` in [[design.group]]: with none of them nothing is sent; at least 1
    processes = 0
                ^
    "#);
    assert_snapshot!(and("workers = 99999999999"), @r#"
    x.toml:13: `workers` in [[design]]: a design has at most 1000000 workers in all, not 99999999999
    workers = 99999999999
              ^^^^^^^^^^^
    "#);
    assert_snapshot!(and("processes = -1"), @r#"
    x.toml:13: `processes` in [[design]]: with none of them nothing is sent; at least 1
    processes = -1
                ^^
    "#);
    assert_snapshot!(and(r#"processes = 2000
workers = 501"#), @r#"
    x.toml:14: design `plain-loop` has 1002000 workers; at most 1000000 are possible
    workers = 501
              ^^^
    "#);
    assert_snapshot!(with(r#"strategy = "plain-loop""#, r#"[[design.group]]
strategy = "plain-loop"
workloads = []"#), @r#"
    x.toml:12: no group of design `plain-loop` takes workload `replies`; add it to `workloads`
    [[design.group]]
    ^^^^^^^^^^^^^^^^
    "#);
}

/// Three processes, of whom this happens; the run ends at 1h10min.
fn timeline(entries: &str) -> String {
    with(
        "strategy = \"plain-loop\"",
        &format!("strategy = {{ kind = \"scheduler\" }}\ntimeline = [{entries}]\nprocesses = 3"),
    )
}

#[test]
fn timeline_entries_that_mean_nothing() {
    assert_snapshot!(timeline(r#"{ kill = 0 }"#), @r#"
    x.toml:13: [[design.timeline]] lacks when it happens: write `at`, `after` or `every`
    timeline = [{ kill = 0 }]
                ^^^^^^^^^^^^
    "#);
    assert_snapshot!(timeline(r#"{ at = "5min", every = "1min", kill = 0 }"#), @r#"
    x.toml:13: `every` in [[design.timeline]]: an entry has one when, and here is `at` too; write two entries
    timeline = [{ at = "5min", every = "1min", kill = 0 }]
                                       ^^^^^^
    "#);
    assert_snapshot!(timeline(r#"{ at = "5min" }"#), @r#"
    x.toml:13: [[design.timeline]] lacks what happens: write `add`, `leave`, `kill` or `restart`
    timeline = [{ at = "5min" }]
                ^^^^^^^^^^^^^^^
    "#);
    assert_snapshot!(timeline(r#"{ at = "5min", add = 1, leave = 1 }"#), @r#"
    x.toml:13: `leave` in [[design.timeline]]: an entry has one what, and here is `add` too; write two entries
    timeline = [{ at = "5min", add = 1, leave = 1 }]
                                                ^
    "#);
    assert_snapshot!(timeline(r#"{ every = "5min", restart = 0 }"#), @r#"
    x.toml:13: `restart` in [[design.timeline]]: goes with `at`; what goes with `every` is `kill`
    timeline = [{ every = "5min", restart = 0 }]
                                            ^
    "#);
    assert_snapshot!(timeline(r#"{ at = "5min", count = 3, kill = 0 }"#), @r#"
    x.toml:13: `count` in [[design.timeline]]: goes with `after`; leave it out
    timeline = [{ at = "5min", count = 3, kill = 0 }]
                                       ^
    "#);
    assert_snapshot!(timeline(r#"{ at = "5min", restart = 0, restart_after = "1s" }"#), @r#"
    x.toml:13: `restart_after` in [[design.timeline]]: goes with `kill`; leave it out
    timeline = [{ at = "5min", restart = 0, restart_after = "1s" }]
                                                            ^^^^
    "#);
    assert_snapshot!(timeline(r#"{ at = "5min", add = 0 }"#), @r#"
    x.toml:13: `add` in [[design.timeline]]: 0 processes; write at least 1
    timeline = [{ at = "5min", add = 0 }]
                                     ^
    "#);
    assert_snapshot!(timeline(r#"{ at = "5min", kill = [] }"#), @r#"
    x.toml:13: `kill` in [[design.timeline]]: an empty list; write numbers of processes
    timeline = [{ at = "5min", kill = [] }]
                                      ^^
    "#);
    assert_snapshot!(timeline(r#"{ at = "5min", kill = [0, 1, 0] }"#), @r#"
    x.toml:13: `kill` in [[design.timeline]]: process 0 is there twice
    timeline = [{ at = "5min", kill = [0, 1, 0] }]
                                      ^^^^^^^^^
    "#);
    assert_snapshot!(timeline(r#"{ after = "send", count = 0, kill = 0 }"#), @r#"
    x.toml:13: `count` in [[design.timeline]]: 0 calls; the first one is 1
    timeline = [{ after = "send", count = 0, kill = 0 }]
                                          ^
    "#);
    assert_snapshot!(timeline(r#"{ after = "send", count = "5000M", kill = 0 }"#), @r#"
    x.toml:13: `count` in [[design.timeline]]: 5000000000 calls; at most 4294967295 are counted
    timeline = [{ after = "send", count = "5000M", kill = 0 }]
                                          ^^^^^^^
    "#);
    assert_snapshot!(timeline(r#"{ after = "exchnage", kill = 0 }"#), @r#"
    x.toml:13: `after` in [[design.timeline]]: strategy `scheduler` never calls `exchnage`; did you mean `exchange`?
    timeline = [{ after = "exchnage", kill = 0 }]
                          ^^^^^^^^^^
    "#);
    assert_snapshot!(timeline(r#"{ after = "incr", kill = 0 }"#), @r#"
    x.toml:13: `after` in [[design.timeline]]: strategy `scheduler` never calls `incr`; known are send, exchange, finish, any
    timeline = [{ after = "incr", kill = 0 }]
                          ^^^^^^
    "#);
    assert_snapshot!(timeline(r#"{ every = "0s", kill = 0 }"#), @r#"
    x.toml:13: `every` in [[design.timeline]]: 0s is no life; write how long a process lives on average, as in `2min`
    timeline = [{ every = "0s", kill = 0 }]
                          ^^^^
    "#);
    assert_snapshot!(timeline(r#"{ at = "5min", kil = 0 }"#), @r#"
    x.toml:13: unknown key `kil` in [[design.timeline]]; did you mean `kill`?
    timeline = [{ at = "5min", kil = 0 }]
                               ^^^
    "#);
    assert_snapshot!(timeline(r#"{ at = 5, kill = 0 }"#), @r#"
    x.toml:13: `at` in [[design.timeline]]: `5` has no unit; write `5s` for seconds, `5ms` for milliseconds
    timeline = [{ at = 5, kill = 0 }]
                       ^
    "#);
    assert_snapshot!(timeline(r#""5min""#), @r#"
    x.toml:13: `timeline` in [[design]]: invalid type: string "5min", expected an entry such as { at = "10min", add = 3 }
    timeline = ["5min"]
                ^^^^^^
    "#);
}

#[test]
fn timelines_that_cannot_come_to_pass() {
    assert_snapshot!(timeline(r#"{ at = "2h", kill = 0 }"#), @r#"
    x.toml:13: `at` in [[design.timeline]]: 2h is not before the end of the run at 70min, so it never comes
    timeline = [{ at = "2h", kill = 0 }]
                       ^^^^
    "#);
    assert_snapshot!(timeline(r#"{ at = "1h", kill = 0, restart_after = "10min" }"#), @r#"
    x.toml:13: `restart_after` in [[design.timeline]]: 70min is not before the end of the run at 70min, so nobody comes back; leave it out
    timeline = [{ at = "1h", kill = 0, restart_after = "10min" }]
                                                       ^^^^^^^
    "#);
    assert_snapshot!(timeline(r#"{ every = "1h", kill = 0, restart_after = "70min" }"#), @r#"
    x.toml:13: `restart_after` in [[design.timeline]]: 70min is not before the end of the run at 70min, so nobody comes back; leave it out
    timeline = [{ every = "1h", kill = 0, restart_after = "70min" }]
                                                          ^^^^^^^
    "#);
    assert_snapshot!(timeline(r#"{ at = "10min", add = 1 }, { at = "5min", kill = [0, 3] }"#), @r#"
    x.toml:13: `kill` in [[design.timeline]]: the group has no process 3 at 5min; it has processes 0 to 2
    timeline = [{ at = "10min", add = 1 }, { at = "5min", kill = [0, 3] }]
                                                                 ^^^^^^
    "#);
    assert_snapshot!(timeline(r#"{ after = "send", kill = 3 }"#), @r#"
    x.toml:13: `kill` in [[design.timeline]]: the group never has a process 3; it has processes 0 to 2
    timeline = [{ after = "send", kill = 3 }]
                                         ^
    "#);
    assert_snapshot!(timeline(r#"{ at = "10min", kill = 1 }, { at = "15min", kill = 1 }"#), @r#"
    x.toml:13: `kill` in [[design.timeline]]: process 1 does not run at 15min: it was killed at 10min
    timeline = [{ at = "10min", kill = 1 }, { at = "15min", kill = 1 }]
                                                                   ^
    "#);
    assert_snapshot!(timeline(r#"{ at = "10min", kill = 1 }, { at = "15min", leave = 3 }"#), @r#"
    x.toml:13: `leave` in [[design.timeline]]: 3 processes cannot leave at 15min: 2 run then
    timeline = [{ at = "10min", kill = 1 }, { at = "15min", leave = 3 }]
                                                                    ^
    "#);
    assert_snapshot!(timeline(r#"{ at = "10min", leave = 3 }, { at = "15min", leave = 1 }"#), @r#"
    x.toml:13: `leave` in [[design.timeline]]: 1 process cannot leave at 15min: none runs then
    timeline = [{ at = "10min", leave = 3 }, { at = "15min", leave = 1 }]
                                                                     ^
    "#);
    assert_snapshot!(timeline(r#"{ at = "6min", restart = 0 }, { at = "5min", kill = 0, restart_after = "2min" }"#), @r#"
    x.toml:13: `restart_after` in [[design.timeline]]: process 0 is restarted before it comes back at 7min; leave out this or `restart`
    timeline = [{ at = "6min", restart = 0 }, { at = "5min", kill = 0, restart_after = "2min" }]
                                                                                       ^^^^^^
    "#);
    assert_snapshot!(timeline(r#"{ at = "5min", add = 65536 }"#), @r#"
    x.toml:13: `add` in [[design.timeline]]: 3 and 65536 more processes are more than 65536
    timeline = [{ at = "5min", add = 65536 }]
                                     ^^^^^
    "#);
    assert_snapshot!(timeline(r#"{ every = "100ms", kill = [0, 1, 2], restart_after = "20ms" }"#), @r#"
    x.toml:13: `every` in [[design.timeline]]: 100ms leads to some 105000 deaths in a run; at most 100000 are possible, so make it longer
    timeline = [{ every = "100ms", kill = [0, 1, 2], restart_after = "20ms" }]
                          ^^^^^^^
    "#);
    assert_snapshot!(and(r#"workers = 2000
timeline = [{ every = "500ms", kill = 0, restart_after = "20ms" }]"#), @r#"
    x.toml:14: `every` in [[design.timeline]]: 500ms lets some 16152000 workers start anew in a run, 2000 after each death; at most 10000000 are possible, so make it longer or have fewer `workers`
    timeline = [{ every = "500ms", kill = 0, restart_after = "20ms" }]
                          ^^^^^^^
    "#);
    assert_snapshot!(and(r#"start = "10min"
timeline = [{ at = "5min", restart = 0 }]"#), @r#"
    x.toml:14: `restart` in [[design.timeline]]: process 0 does not run at 5min: it starts at 10min
    timeline = [{ at = "5min", restart = 0 }]
                                         ^
    "#);
    assert_snapshot!(and(r#"start = "2h""#), @r#"
    x.toml:13: `start` in [[design]]: 2h is not before the end of the run at 70min, so its processes never run
    start = "2h"
            ^^^^
    "#);
    // Deaths add up over the groups of a design, and a header is a place too.
    assert_snapshot!(with(r#"strategy = "plain-loop""#, r#"[[design.group]]
strategy = "plain-loop"
timeline = [{ every = "60ms", kill = 0, restart_after = "0s" }]
[[design.group]]
strategy = { kind = "paced", rate = "1/s" }
[[design.group.timeline]]
every = "60ms"
kill = 0
restart_after = "0s""#), @r#"
    x.toml:18: `every` in [[design.group.timeline]]: 60ms leads to some 140000 deaths in a run; at most 100000 are possible, so make it longer
    every = "60ms"
            ^^^^^^
    "#);
    assert_snapshot!(with(r#"strategy = "plain-loop""#, r#"timeline = [{ at = "5min", add = 1 }]
[[design.group]]
strategy = "plain-loop""#), @r#"
    x.toml:12: `timeline` belongs into the tables [[design.group]]
    timeline = [{ at = "5min", add = 1 }]
               ^^^^^^^^^^^^^^^^^^^^^^^^^^
    "#);
    assert_snapshot!(and(r#"processes = 60000
workers = 1
timeline = [{ at = "5min", add = 5000 }]
[[design]]
name = "two"
[[design.group]]
name = "one"
strategy = "plain-loop"
processes = 40000
workers = 1
[[design.group]]
strategy = "plain-loop"
workers = 1
timeline = [{ at = "5min", add = 40000 }]"#), @r#"
    x.toml:16: design `two` has 80001 processes; at most 65536 are possible
    [[design]]
    ^^^^^^^^^^
    "#);
}

#[test]
fn clocks_that_cannot_be() {
    assert_snapshot!(and(r#"skew = ["1s", "2s"]"#), @r#"
    x.toml:13: `skew` in [[design]]: 2 values, more than processes (1); leave some out
    skew = ["1s", "2s"]
           ^^^^^^^^^^^^
    "#);
    assert_snapshot!(and("skew = []"), @r#"
    x.toml:13: `skew` in [[design]]: an empty list; write one for all processes, or one for each
    skew = []
           ^^
    "#);
    assert_snapshot!(and("skew = 2"), @r#"
    x.toml:13: `skew` in [[design]]: `2` has no unit; write `2s` for seconds, `2ms` for milliseconds
    skew = 2
           ^
    "#);
}

#[test]
fn expectations_that_mean_nothing() {
    assert_snapshot!(and(r#"[[expect]]
metric = "lagg"
expect = "p(99) <= 5s""#), @r#"
    x.toml:14: [[expect]]: unknown metric `lagg`; did you mean `lag`?
    metric = "lagg"
             ^^^^^^
    "#);
    assert_snapshot!(and(r#"[[expect]]
metric = "lag"
where = { class = "replies" }
expect = "p(99) <= 5s""#), @r#"
    x.toml:15: [[expect]]: unknown class `replies`; there is only `reply`
    where = { class = "replies" }
            ^^^^^^^^^^^^^^^^^^^^^
    "#);
    assert_snapshot!(and(r#"[[expect]]
metric = "lag"
design = "plain-lopp"
expect = "p(99) <= 5s""#), @r#"
    x.toml:15: [[expect]]: unknown design `plain-lopp`; did you mean `plain-loop`?
    design = "plain-lopp"
             ^^^^^^^^^^^^
    "#);
    assert_snapshot!(and(r#"[[expect]]
metric = "lag"
expect = "p(99) <= plan-loop""#), @r#"
    x.toml:15: [[expect]]: unknown design `plan-loop`; did you mean `plain-loop`?
    expect = "p(99) <= plan-loop"
             ^^^^^^^^^^^^^^^^^^^^
    "#);
    assert_snapshot!(and(r#"[[expect]]
metric = "lag"
expect = ["p(50) <= 1s", "p(99) <= 5"]"#), @r#"
    x.toml:15: [[expect]]: cannot read the right-hand side: `5` has no unit; write `5s` for seconds, `5ms` for milliseconds
    expect = ["p(50) <= 1s", "p(99) <= 5"]
             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    "#);
    assert_snapshot!(and(r#"[[expect]]
metrc = "lag"
expect = "p(99) <= 5s""#), @r#"
    x.toml:14: unknown key `metrc` in [[expect]]; did you mean `metric`?
    metrc = "lag"
    ^^^^^
    "#);
}

#[test]
fn traces_that_cannot_be_played() {
    assert_snapshot!(with(r#"kind = "poisson"
class = "reply"
rate = "1/s""#, r#"kind = "trace"
class = "reply"
file = "nowhere.csv""#), @r#"
    x.toml:9: `file` in [workload.replies]: cannot read nowhere.csv: No such file or directory (os error 2)
    file = "nowhere.csv"
           ^^^^^^^^^^^^^
    "#);
    assert_snapshot!(with(r#"kind = "poisson"
class = "reply"
rate = "1/s""#, r#"kind = "trace"
class = "reply"
file = "broken.csv""#), @r#"
    x.toml:9: `file` in [workload.replies]: broken.csv:3: chat `one` is not a whole number
    2,one,private
    file = "broken.csv"
           ^^^^^^^^^^^^
    "#);
    assert_snapshot!(with(r#"kind = "poisson"
class = "reply"
rate = "1/s""#, r#"kind = "trace"
class = "reply"
file = "unsorted.csv""#), @r#"
    x.toml:9: `file` in [workload.replies]: unsorted.csv:3: not in order of `due_ms`: 4 follows 5
    4,1,private
    file = "unsorted.csv"
           ^^^^^^^^^^^^^^
    "#);
}

#[test]
fn json_is_told_about_like_toml() {
    let valid = r#"{
  "duration": "1h",
  "chats": { "count": "10k" },
  "workload": { "replies": { "kind": "poisson", "class": "reply", "rate": "1/s" } },
  "design": [{ "strategy": "plain-loop" }]
}"#;
    let with = |old: &str, new: &str| told_about("x.json", &valid.replace(old, new));
    assert_snapshot!(with("\"strategy\"", "\"wokers\": 3, \"strategy\""), @r#"
    x.json:5: unknown key `wokers` in [[design]]; did you mean `workers`?
      "design": [{ "wokers": 3, "strategy": "plain-loop" }]
                   ^^^^^^^^
    "#);
    assert_snapshot!(with("\"1/s\"", "1"), @r#"
    x.json:4: `rate` in [workload.replies]: `1` has no unit; write `1/s` or `1/min`
      "workload": { "replies": { "kind": "poisson", "class": "reply", "rate": 1 } },
                                                                              ^
    "#);
    assert_snapshot!(with("\"1/s\"", "null"), @r#"
    x.json:4: `null` is no value; leave the key out
      "workload": { "replies": { "kind": "poisson", "class": "reply", "rate": null } },
                                                                              ^
    "#);
    assert_snapshot!(with("\"1h\",", "\"1h\""), @r#"
    x.json:3: not JSON: expected `,` or `}`
      "chats": { "count": "10k" },
      ^
    "#);
    assert_snapshot!(with("\"chats\"", "\"duration\": \"2h\", \"chats\""), @r#"
    x.json:3: duplicate key `duration`
      "duration": "2h", "chats": { "count": "10k" },
      ^
    "#);
}

#[test]
fn a_file_that_is_missing() {
    let error = Scenario::load("nowhere.toml".as_ref(), &registry()).expect_err("no such file");
    assert_snapshot!(error, @"nowhere.toml: cannot be read: No such file or directory (os error 2)");
}

/// What `check` prints is the scenario itself; comments do not count, and what a trace holds does.
#[test]
fn the_normal_form_reads_back_to_the_same_hash() {
    let directory = tempfile::tempdir().expect("a directory");
    let load = |text: &str| {
        let file = directory.path().join("x.toml");
        std::fs::write(&file, text).expect("written");
        Scenario::load(&file, &registry()).expect("a scenario")
    };
    let trace = |rows: &str| {
        std::fs::write(directory.path().join("t.csv"), format!("due_ms,chat,kind\n{rows}")).expect("written");
    };
    let text = format!(
        "{VALID}{}",
        r#"
[[design]]
name = "two"
[[design.group]]
strategy = { kind = "paced", rate = "25/s" }
[[design.group]]
strategy = "plain-loop"
token = "second"
processes = 2
start = "5min"
skew = ["0s", "2s"]
timeline = [
    { at = "10min", add = 3 },
    { at = "15min", kill = [0, 3], restart_after = "10s" },
    { at = "20min", leave = 2 },
    { at = "21min", restart = 0 },
    { after = "send", kill = 1 },
    { every = "20min", kill = [0, 2], restart_after = "1min" },
]
[[server.fault]]
kind = "html"
rate = "1%"
[server.limit.group]
off = true
[workload.old]
kind = "trace"
class = "old"
file = "t.csv"
speed = 2.5
deadline = "1min"
method = "sendPhoto"
from_user = true
[workload.list]
kind = "broadcast"
class = "broadcast"
every = "20min"
chats = { count = 500 }
grow = "1k"
[workload.promotion]
kind = "broadcast"
class = "broadcast"
at = ["10min", "20min"]
chats = { share = "20%" }
[store]
round_trip_p99 = "20ms"
[[expect]]
metric = "lag"
where = { class = "reply" }
design = "two"
expect = ["p(99) <= 0.1 * plain-loop", "max < 1h"]
"#
    );
    trace("5,1,private\n");
    let scenario = load(&text);
    let again = load(&scenario.to_toml());
    let groups = |scenario: &Scenario| {
        let groups = scenario.designs.iter().flat_map(|design| &design.groups);
        groups.map(|group| (group.processes, group.timeline.clone(), group.skew.clone())).collect::<Vec<_>>()
    };
    assert_eq!(groups(&scenario).iter().map(|(processes, ..)| *processes).collect::<Vec<_>>(), [1, 1, 5]);
    assert_eq!(groups(&again), groups(&scenario));
    assert_eq!(again.to_toml(), scenario.to_toml());
    assert_eq!(again.hash, scenario.hash);
    assert_eq!(load(&format!("# A comment.\n{text}")).hash, scenario.hash);
    assert_ne!(load(&text.replace("1/s", "2/s")).hash, scenario.hash);
    let json: serde_json::Value = toml::from_str(&text).expect("TOML");
    let file = directory.path().join("x.json");
    std::fs::write(&file, json.to_string()).expect("written");
    assert_eq!(
        Scenario::load(&file, &registry()).expect("a scenario").hash,
        scenario.hash,
        "JSON is the same"
    );
    trace("6,1,private\n");
    assert_ne!(load(&text).hash, scenario.hash);
}

/// Each right by itself, and no sender can work with it: said before the run, where it stands.
#[test]
fn strategy_parameters_that_cannot_work() {
    let design = |strategy: &str| with("strategy = \"plain-loop\"", &format!("strategy = {strategy}"));
    assert_snapshot!(design(r#"{ kind = "scheduler", queue = { kind = "lanes", pace = { chat_burst = 0 } } }"#), @r#"
    x.toml:12: `queue.pace.chat_burst` of strategy `scheduler`: rate `1/s` with burst 0 lets nothing through; both must be above 0
    strategy = { kind = "scheduler", queue = { kind = "lanes", pace = { chat_burst = 0 } } }
                                                                                     ^
    "#);
    assert_snapshot!(design(r#"{ kind = "process-bucket", doubt = { kind = "retry", attempts = 0 } }"#), @r#"
    x.toml:12: `doubt.attempts` of strategy `process-bucket`: 0 is not from 1 to 255, and more is not counted of a message; leave it out, and there is no end
    strategy = { kind = "process-bucket", doubt = { kind = "retry", attempts = 0 } }
                                                                               ^
    "#);
    assert_snapshot!(design(r#"{ kind = "bare", limiter = { kind = "window-counter", window = "400d" } }"#), @r#"
    x.toml:12: `limiter.window` of strategy `bare`: 400d is longer than a window can be; at most 366d
    strategy = { kind = "bare", limiter = { kind = "window-counter", window = "400d" } }
                                                                              ^^^^^^
    "#);
    assert_snapshot!(design(r#"{ kind = "bare", limiter = { kind = "window-counter", window = "0s" } }"#), @r#"
    x.toml:12: `limiter.window` of strategy `bare`: 0s is no window; at least 1ms
    strategy = { kind = "bare", limiter = { kind = "window-counter", window = "0s" } }
                                                                              ^^^^
    "#);
}

/// More than is counted would never be reached.
#[test]
fn numbers_that_are_not_counted() {
    let design = |strategy: &str| with("strategy = \"plain-loop\"", &format!("strategy = {strategy}"));
    assert_snapshot!(design(r#"{ kind = "scheduler", retry = { kind = "postpone", most = 255 } }"#), @r#"
    x.toml:12: `retry.most` of strategy `scheduler`: 255 is not from 1 to 254, and more is not counted of a message; leave it out, and there is no end
    strategy = { kind = "scheduler", retry = { kind = "postpone", most = 255 } }
                                                                         ^^^
    "#);
    assert_snapshot!(design(r#"{ kind = "scheduler", retry = { kind = "postpone", most = 300 } }"#), @r#"
    x.toml:12: `most` in [design.strategy.retry]: 300 is not from 1 to 254, and more is not counted of a message; leave it out, and there is no end
    strategy = { kind = "scheduler", retry = { kind = "postpone", most = 300 } }
                                                                         ^^^
    "#);
    assert_snapshot!(design(r#"{ kind = "scheduler", doubt = { kind = "retry", attempts = -1 } }"#), @r#"
    x.toml:12: `attempts` in [design.strategy.doubt]: -1 is not from 1 to 255, and more is not counted of a message; leave it out, and there is no end
    strategy = { kind = "scheduler", doubt = { kind = "retry", attempts = -1 } }
                                                                          ^^
    "#);
    assert_snapshot!(design(r#"{ kind = "shared-bucket", retry = { kind = "release", attempts = 0 } }"#), @r#"
    x.toml:12: `retry.attempts` of strategy `shared-bucket`: 0 is not from 1 to 255, and more is not counted of a message
    strategy = { kind = "shared-bucket", retry = { kind = "release", attempts = 0 } }
                                                                                ^
    "#);
    assert_snapshot!(design(r#"{ kind = "shared-bucket", retry = { kind = "release", attempts = 256 } }"#), @r#"
    x.toml:12: `attempts` in [design.strategy.retry]: 256 is not from 1 to 255, and more is not counted of a message
    strategy = { kind = "shared-bucket", retry = { kind = "release", attempts = 256 } }
                                                                                ^^^
    "#);
}

/// Classes are the scenario's, and calls take as long as they may.
#[test]
fn parameters_that_do_not_fit_the_scenario() {
    let design = |strategy: &str| with("strategy = \"plain-loop\"", &format!("strategy = {strategy}"));
    assert_snapshot!(design(r#"{ kind = "scheduler", doubt = { kind = "retry", at_most_once = ["replay"] } }"#), @r#"
    x.toml:12: `doubt.at_most_once` of strategy `scheduler`: unknown class `replay`; did you mean `reply`?
    strategy = { kind = "scheduler", doubt = { kind = "retry", at_most_once = ["replay"] } }
                                                                              ^^^^^^^^^^
    "#);
    assert_snapshot!(design(r#"{ kind = "scheduler", queue = { kind = "lanes", priority = ["reply", "notification"] } }"#), @r#"
    x.toml:12: `queue.priority` of strategy `scheduler`: unknown class `notification`; there is only `reply`
    strategy = { kind = "scheduler", queue = { kind = "lanes", priority = ["reply", "notification"] } }
                                                                          ^^^^^^^^^^^^^^^^^^^^^^^^^
    "#);
    assert_snapshot!(design(r#"{ kind = "shared-bucket", queue = { kind = "fifo", lease = "30s" } }"#), @r#"
    x.toml:12: `queue.lease` of strategy `shared-bucket`: 30s is not longer than a call may take (`timeout` in [wire], 30s), so messages would be in doubt that are still on the wire; make it longer
    strategy = { kind = "shared-bucket", queue = { kind = "fifo", lease = "30s" } }
                                                                          ^^^^^
    "#);
    assert_snapshot!(with("strategy = \"plain-loop\"", "strategy = \"scheduler\"\n[wire]\ntimeout = \"2min\""), @r#"
    x.toml:12: `queue.lease` of strategy `scheduler`: 1min is not longer than a call may take (`timeout` in [wire], 2min), so messages would be in doubt that are still on the wire; make it longer
    strategy = "scheduler"
               ^^^^^^^^^^^
    "#);
}

/// What a composition says and nothing comes of.
#[test]
fn parts_without_effect() {
    let design = |strategy: &str| with("strategy = \"plain-loop\"", &format!("strategy = {strategy}"));
    assert_snapshot!(design(r#"{ kind = "scheduler", pause = { kind = "store", jitter = "5s" } }"#), @r#"
    x.toml:12: `pause.jitter` of strategy `scheduler`: 5s does nothing with this queue, whose workers wake one by one; leave it out, or use `queue = "none"`
    strategy = { kind = "scheduler", pause = { kind = "store", jitter = "5s" } }
                                                                        ^^^^
    "#);
    assert_snapshot!(design(r#"{ kind = "scheduler", limiter = { kind = "token-bucket", when_unreachable = "send" } }"#), @r#"
    x.toml:12: `limiter.when_unreachable` of strategy `scheduler`: "send" does nothing where the queue is in the store too: without it there is nothing to send; leave it out, or keep the queue in the process
    strategy = { kind = "scheduler", limiter = { kind = "token-bucket", when_unreachable = "send" } }
                                                                                           ^^^^^^
    "#);
    assert_snapshot!(design(r#"{ kind = "bare", limiter = { kind = "token-bucket", keep = "process", when_unreachable = "send" } }"#), @r#"
    x.toml:12: `limiter.when_unreachable` of strategy `bare`: "send" does nothing for a bucket in a process, which can always be reached; leave it out
    strategy = { kind = "bare", limiter = { kind = "token-bucket", keep = "process", when_unreachable = "send" } }
                                                                                                        ^^^^^^
    "#);
    assert_snapshot!(design(r#"{ kind = "backoff", hint = { at_least = "2min", at_most = "1min" } }"#), @r#"
    x.toml:12: `hint.at_least` of strategy `backoff`: 2min is longer than `at_most`, 1min, and no wait can be both; lower it or raise `at_most`
    strategy = { kind = "backoff", hint = { at_least = "2min", at_most = "1min" } }
                                                       ^^^^^^
    "#);
    assert_snapshot!(design(r#"{ kind = "backoff", hint = { fallback = "2min" } }"#), @r#"
    x.toml:12: `hint.fallback` of strategy `backoff`: 2min is longer than `fallback_max`, 1min, so no guess is ever so long; raise `fallback_max`
    strategy = { kind = "backoff", hint = { fallback = "2min" } }
                                                       ^^^^^^
    "#);
    assert_snapshot!(design(r#"{ kind = "scheduler", limiter = "window-counter", retry = "release" }"#), @r#"
    x.toml:12: `retry` of strategy `scheduler`: "release" burns no attempts by waiting for a limiter that is not beside the queue; use a token bucket with the `keep` of the queue, or `retry = "postpone"`
    strategy = { kind = "scheduler", limiter = "window-counter", retry = "release" }
                                                                         ^^^^^^^^^
    "#);
    assert_snapshot!(design(r#"{ kind = "scheduler", limiter = { kind = "token-bucket", keep = "process" }, retry = { kind = "release", delay = "5s" } }"#), @r#"
    x.toml:12: `retry` of strategy `scheduler`: "release" burns no attempts by waiting for a limiter that is not beside the queue; use a token bucket with the `keep` of the queue, or `retry = "postpone"`
    strategy = { kind = "scheduler", limiter = { kind = "token-bucket", keep = "process" }, retry = { kind = "release", delay = "5s" } }
                                                                                                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    "#);
}

/// Jitter where it works, classes that a scenario lacks where nobody asked for them, waits of one length.
#[test]
fn compositions_that_only_look_wrong() {
    for strategy in [
        r#"{ kind = "bare", pause = { kind = "store", jitter = "5s" }, queue = { kind = "fifo", keep = "process", lease = "1s" } }"#,
        r#"{ kind = "scheduler", queue = { kind = "lanes", priority = ["reply", "notification", "broadcast"] } }"#,
        r#"{ kind = "bare", queue = { kind = "fifo", keep = "process" }, limiter = { kind = "token-bucket", when_unreachable = "send" } }"#,
        r#"{ kind = "bare", queue = "fifo", retry = "release" }"#,
        r#"{ kind = "backoff", hint = { at_least = "1min", at_most = "1min", fallback = "1min" } }"#,
        r#"{ kind = "scheduler", retry = { kind = "postpone", most = 254 }, doubt = { kind = "retry", attempts = 255 } }"#,
    ] {
        loads(&VALID.replace("\"plain-loop\"", strategy));
    }
}

/// Every call that a composition makes is one that a process can die after.
#[test]
fn calls_to_the_store_can_be_named() {
    let dies_after = |strategy: &str, calls: &[&str]| {
        let entries = calls.iter().map(|call| format!("{{ after = \"{call}\", kill = 0 }}"));
        let timeline = entries.collect::<Vec<_>>().join(", ");
        loads(&VALID.replace("\"plain-loop\"", &format!("{strategy}\ntimeline = [{timeline}]")));
    };
    dies_after(
        r#"{ kind = "bare", limiter = { kind = "token-bucket", ramp = {} }, pause = "store", retry = "wait" }"#,
        &["take", "slow", "paused", "refuse"],
    );
    dies_after(
        r#"{ kind = "bare", queue = { kind = "fifo", keep = "process" }, pause = "store", retry = "requeue" }"#,
        &["paused", "refuse"],
    );
    let with_queue =
        r#"{ kind = "scheduler", pause = "process", limiter = { kind = "token-bucket", ramp = {} } }"#;
    dies_after(with_queue, &["exchange", "finish"]);
}

#[test]
fn parts_that_do_not_exist() {
    let design = |strategy: &str| with("strategy = \"plain-loop\"", &format!("strategy = {strategy}"));
    assert_snapshot!(design(r#"{ kind = "scheduler", queeu = "fifo" }"#), @r#"
    x.toml:12: unknown key `queeu` in [design.strategy]; did you mean `queue`?
    strategy = { kind = "scheduler", queeu = "fifo" }
                                     ^^^^^
    "#);
    assert_snapshot!(design(r#"{ kind = "scheduler", queue = "fif" }"#), @r#"
    x.toml:12: unknown value `fif` of `queue` in [design.strategy]; did you mean `fifo`?
    strategy = { kind = "scheduler", queue = "fif" }
                                             ^^^^^
    "#);
    assert_snapshot!(design(r#"{ kind = "scheduler", queue = { kind = "lane" } }"#), @r#"
    x.toml:12: unknown value `lane` of `kind` in [design.strategy.queue]; did you mean `lanes`?
    strategy = { kind = "scheduler", queue = { kind = "lane" } }
                                                      ^^^^^^
    "#);
    assert_snapshot!(design(r#"{ kind = "scheduler", queue = { keep = "store" } }"#), @r#"
    x.toml:12: [design.strategy.queue] lacks `kind`
    strategy = { kind = "scheduler", queue = { keep = "store" } }
                                             ^^^^^^^^^^^^^^^^^^
    "#);
    assert_snapshot!(design(r#"{ kind = "bare", limiter = { kind = "none", rate = "5/s" } }"#), @r#"
    x.toml:12: unknown key `rate` in [design.strategy.limiter]; there is only `kind`
    strategy = { kind = "bare", limiter = { kind = "none", rate = "5/s" } }
                                                           ^^^^
    "#);
    assert_snapshot!(design(r#"{ kind = "bare", retry = { kind = "backoff", atempts = 3 } }"#), @r#"
    x.toml:12: unknown key `atempts` in [design.strategy.retry]; did you mean `attempts`?
    strategy = { kind = "bare", retry = { kind = "backoff", atempts = 3 } }
                                                            ^^^^^^^
    "#);
    assert_snapshot!(design(r#"{ kind = "bare", pause = { kind = "store", jitter = 5 } }"#), @r#"
    x.toml:12: `jitter` in [design.strategy.pause]: `5` has no unit; write `5s` for seconds, `5ms` for milliseconds
    strategy = { kind = "bare", pause = { kind = "store", jitter = 5 } }
                                                                   ^
    "#);
    assert_snapshot!(design(r#"{ kind = "scheduler", queue = { kind = "lanes", mark = "before", pace = { chat_rate = 5 } } }"#), @r#"
    x.toml:12: `chat_rate` in [design.strategy.queue.pace]: `5` has no unit; write `5/s` or `5/min`
    strategy = { kind = "scheduler", queue = { kind = "lanes", mark = "before", pace = { chat_rate = 5 } } }
                                                                                                     ^
    "#);
    assert_snapshot!(with("strategy = \"plain-loop\"", "[design.strategy]\nkind = \"scheduler\"\n[design.strategy.retry]\nkind = \"postpone\"\nmost = \"two\""), @r#"
    x.toml:16: `most` in [design.strategy.retry]: invalid type: string "two", expected i64
    most = "two"
           ^^^^^
    "#);
    assert_snapshot!(design(r#"{ kind = "bare", pause = true }"#), @r#"
    x.toml:12: `pause` in [design.strategy]: invalid type: boolean `true`, expected a name, or a table with its `kind`
    strategy = { kind = "bare", pause = true }
                                        ^^^^
    "#);
}

/// Each part right by itself, and together they mean nothing.
#[test]
fn compositions_that_contradict_themselves() {
    let design = |strategy: &str| with("strategy = \"plain-loop\"", &format!("strategy = {strategy}"));
    assert_snapshot!(design(r#"{ kind = "bare", retry = "requeue" }"#), @r#"
    x.toml:12: `retry` of strategy `bare`: puts messages back, and there is no queue; add `queue = "fifo"` or "lanes", or use `retry = "wait"`
    strategy = { kind = "bare", retry = "requeue" }
                                        ^^^^^^^^^
    "#);
    assert_snapshot!(design(r#"{ kind = "scheduler", retry = "wait" }"#), @r#"
    x.toml:12: `retry` of strategy `scheduler`: keeps the message in the worker's hands, and there is a queue; use `retry = "postpone"` or `queue = "none"`
    strategy = { kind = "scheduler", retry = "wait" }
                                             ^^^^^^
    "#);
    assert_snapshot!(design(r#"{ kind = "bare", dead_chats = "remember" }"#), @r#"
    x.toml:12: `dead_chats` of strategy `bare`: the book of dead chats is kept with the queue, and there is none; add `queue = "fifo"` or "lanes"
    strategy = { kind = "bare", dead_chats = "remember" }
                                             ^^^^^^^^^^
    "#);
    assert_snapshot!(design(r#"{ kind = "bare", answers = "unread", pause = "store" }"#), @r#"
    x.toml:12: `pause` of strategy `bare`: with `answers = "unread"` no refusal is ever seen; leave it out
    strategy = { kind = "bare", answers = "unread", pause = "store" }
                                                            ^^^^^^^
    "#);
    assert_snapshot!(design(r#"{ kind = "scheduler", cache = {} }"#), @r#"
    x.toml:12: `cache` of strategy `scheduler`: answers are used again by whoever asks; leave the queue out
    strategy = { kind = "scheduler", cache = {} }
                                             ^^
    "#);
    assert_snapshot!(design(r#"{ kind = "bare", doubt = "as-refused" }"#), @r#"
    x.toml:12: `doubt` of strategy `bare`: `as-refused` and `retry = "drop"` drop what may have arrived; use `"never"`
    strategy = { kind = "bare", doubt = "as-refused" }
                                        ^^^^^^^^^^^^
    "#);
    assert_snapshot!(design(r#"{ kind = "bare", limiter = { kind = "token-bucket", keep = "process", clock = "callers" } }"#), @r#"
    x.toml:12: `limiter.clock` of strategy `bare`: a bucket in a process has no other clock than its own; leave it out
    strategy = { kind = "bare", limiter = { kind = "token-bucket", keep = "process", clock = "callers" } }
                                                                                             ^^^^^^^^^
    "#);
}

/// One token has one queue in the store.
#[test]
fn groups_that_disagree_about_what_they_share() {
    let groups = |parts: &str| {
        let groups = format!(
            "name = \"both\"\n[[design.group]]\nname = \"a\"\nstrategy = \"scheduler\"\n[[design.group]]\nname = \"b\"\nstrategy = {{ kind = \"scheduler\"{parts} }}"
        );
        with("strategy = \"plain-loop\"", &groups)
    };
    assert_snapshot!(groups(r#", queue = "fifo""#), @r#"
    x.toml:18: groups `b` and `a` send with one token and keep different parts `queue` for it in the store; write the same in both, or give one of them another `token`
    strategy = { kind = "scheduler", queue = "fifo" }
               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    "#);
}

/// A name becomes a folder: it cannot lead out of it.
#[test]
fn a_name_is_no_path() {
    assert_snapshot!(told_about("x.toml", &format!("name = \"../x\"\n{VALID}")), @r#"
    x.toml:1: `../x` is no name; use letters, digits, `-`, `_` and `.`, a letter or digit first
    name = "../x"
           ^^^^^^
    "#);
}
