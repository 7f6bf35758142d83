use super::*;
use crate::registry::Registry;
use crate::world::{Change, Step};

/// What happens to three processes from 1 min on in a run of an hour.
fn lives(timeline: &str) -> Result<(u32, Timeline), Wrong> {
    #[derive(serde::Deserialize)]
    struct File {
        timeline: Vec<Entry>,
    }
    let file: File = toml::from_str(&format!("timeline = [{timeline}]")).expect("entries");
    let nothing = toml::de::ValueDeserializer::parse("{}").expect("an empty table");
    let registry = Registry::builtin();
    let strategy = (registry.strategy("scheduler").expect("built in").read)(nothing).expect("defaults");
    let (start, horizon) = (Time::from_secs(60), Time::from_secs(3_600));
    resolve(
        &file.timeline,
        &Frame { strategy: &*strategy, processes: 3, workers: 16, start, horizon },
        &mut Toll::default(),
    )
}

/// The steps after the first three starts, in words.
fn steps(timeline: &str) -> String {
    let (_, timeline) = lives(timeline).expect("a timeline that can be");
    let starts = (0..3).map(|process| Step { at: Time::from_secs(60), process, change: Change::Start });
    let steps = timeline.steps.into_iter().filter(|step| !starts.clone().any(|start| start == *step));
    let words = steps.map(|Step { at, process, change }| format!("{at} {change:?} {process}"));
    words.collect::<Vec<_>>().join(", ")
}

#[test]
fn the_first_processes_start_together() {
    let (processes, timeline) = lives("").expect("nothing happens");
    assert_eq!(processes, 3);
    let start = |process| Step { at: Time::from_secs(60), process, change: Change::Start };
    assert_eq!(timeline, Timeline { steps: vec![start(0), start(1), start(2)], ..Timeline::default() });
}

#[test]
fn entries_happen_by_time_then_as_written() {
    assert_eq!(
        steps(r#"{ at = "9min", leave = 1 }, { at = "5min", add = 2 }, { at = "9min", kill = 0 }"#),
        "5min Start 3, 5min Start 4, 9min Leave 4, 9min Kill 0"
    );
    let (processes, _) = lives(r#"{ at = "5min", add = 2 }, { at = "6min", leave = 5 }"#).expect("all leave");
    assert_eq!(processes, 5, "all that ever are");
}

/// The youngest has the highest number: a restart makes nobody younger.
#[test]
fn the_youngest_that_run_leave() {
    assert_eq!(
        steps(
            r#"{ at = "2min", add = 1 }, { at = "3min", kill = 3 }, { at = "4min", restart = 0 },
            { at = "5min", leave = 1 }, { at = "6min", leave = 1 }"#
        ),
        "2min Start 3, 3min Kill 3, 4min Kill 0, 4min Start 0, 5min Leave 2, 6min Leave 1"
    );
}

#[test]
fn a_restart_kills_what_runs_and_starts_what_is_dead() {
    assert_eq!(
        steps(r#"{ at = "5min", kill = [0, 2] }, { at = "6min", restart = [1, 2] }"#),
        "5min Kill 0, 5min Kill 2, 6min Kill 1, 6min Start 1, 6min Start 2"
    );
    assert_eq!(
        steps(r#"{ at = "5min", kill = [0, 2], restart_after = "30s" }, { at = "5min30s", leave = 1 }"#),
        "5min Kill 0, 5min Kill 2, 330s Start 0, 330s Start 2, 330s Leave 2"
    );
}

/// Nobody knows when a process that leaves is through, so the grace period may end with a kill.
#[test]
fn one_that_leaves_may_be_killed() {
    assert_eq!(
        steps(r#"{ at = "5min", leave = 1 }, { at = "6min", kill = 2 }"#),
        "5min Leave 2, 6min Kill 2"
    );
}

/// What chance may do first is no error, and a restart is right either way.
#[test]
fn chance_is_allowed_for() {
    let certain = r#"{ at = "5min", kill = 0 }, { at = "6min", kill = 0 }, { at = "7min", restart = 0 }"#;
    let error = lives(certain).expect_err("it is dead already");
    assert_eq!((error.entry, error.key), (1, Some("kill")));
    assert_eq!(error.message, "process 0 does not run at 6min: it was killed at 5min");
    for chance in [r#"{ every = "1h", kill = 0, restart_after = "1s" }"#, r#"{ after = "send", kill = 0 }"#] {
        assert_eq!(
            steps(&format!("{certain}, {chance}")),
            "5min Kill 0, 6min Kill 0, 7min Kill 0, 7min Start 0"
        );
    }
}

#[test]
fn deaths_between_calls_and_by_chance_go_by_process() {
    let (_, timeline) = lives(
        r#"{ after = "exchange", count = "1k", kill = [0, 1], restart_after = "10s" }, { after = "any", kill = 2 },
        { every = "2min", kill = [1, 3] }, { at = "5min", add = 1 }"#,
    )
    .expect("a timeline that can be");
    let point = |process, after: &str, count, restart_after| KillPoint {
        process,
        after: after.to_owned(),
        count,
        restart_after,
    };
    let ten = Some(Duration::from_secs(10));
    assert_eq!(
        timeline.kill_points,
        [point(0, "exchange", 1_000, ten), point(1, "exchange", 1_000, ten), point(2, "any", 1, None)]
    );
    let kills = |process| Kills { process, every: Duration::from_mins(2), restart_after: None };
    assert_eq!(timeline.kills, [kills(1), kills(3)]);
}

/// From its start to the end of the run, less the pauses in which it is dead; for good without a restart.
#[test]
fn deaths_by_chance_are_limited() {
    let deaths = |timeline: &str| lives(timeline).map(|_| ()).map_err(|error| (error.entry, error.key));
    // 3,540 s and 3,000 s.
    let two = |every: &str| {
        format!(
            r#"{{ at = "10min", add = 1 }}, {{ every = "{every}", kill = [0, 3], restart_after = "0s" }}"#
        )
    };
    assert_eq!(deaths(&two("65.4ms")), Ok(()));
    assert_eq!(deaths(&two("65.3ms")), Err((1, Some("every"))));
    assert_eq!(deaths(r#"{ every = "30ms", kill = [0, 1, 2] }"#), Ok(()));
    let pause = r#"{ every = "30ms", kill = 0, restart_after = "6ms" }"#;
    assert_eq!(deaths(pause), Ok(()));
    assert_eq!(deaths(&format!("{pause}, {pause}")), Err((1, Some("every"))));
}

#[test]
fn the_last_skew_holds_for_all_further_processes() {
    let second = Duration::from_secs;
    assert_eq!(skews(&[second(1), second(2)], 4), Ok([1, 2, 2, 2].map(second).to_vec()));
    assert_eq!(skews(&[second(0)], 2), Ok([0, 0].map(second).to_vec()));
    assert!(skews(&[second(1), second(2)], 1).is_err());
    assert!(skews(&[], 1).is_err());
    assert!(skews(&[Duration::MAX], 1).is_err());
}
