//! The renderers, on results made up by hand.

use floodlab::outcome::{
    ClassOutcome, DesignHost, Distribution, Host, Lag, Metrics, Outcome, Report, SCHEMA_VERSION,
    ScenarioInfo, Series, Verdict,
};
use floodlab::report;
use indexmap::IndexMap;

#[test]
fn the_table_answers_in_one_glance() {
    let text = report::table(&small(), false, 100);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    insta::assert_snapshot!("table", text);
}

#[test]
fn a_narrow_table_says_what_it_left_out() {
    let text = report::table(&small(), false, 72);
    assert!(
        text.lines().filter(|line| !line.contains("reproduce")).all(|line| line.chars().count() <= 72),
        "{text}"
    );
    assert!(text.contains("no room for: "), "{text}");
}

#[test]
fn colours_only_repeat_what_the_text_says() {
    let coloured = report::table(&small(), true, 100);
    assert!(coloured.contains("\u{1b}[31m"), "{coloured}");
    let mut plain = coloured;
    while let Some(at) = plain.find('\u{1b}') {
        let end = at + plain[at..].find('m').expect("a code ends");
        plain.replace_range(at..=end, "");
    }
    let trimmed = |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
    assert_eq!(trimmed(&plain), trimmed(&report::table(&small(), false, 100)));
}

#[test]
fn markdown_holds_the_same() {
    insta::assert_snapshot!("markdown", report::markdown(&small()));
}

#[test]
fn json_reads_back_and_ends_in_a_newline() {
    let text = report::json(&small());
    assert!(text.ends_with("}\n"));
    assert_eq!(serde_json::from_str::<Report>(&text).expect("what was written"), small());
}

/// `interface.md`, "`report.json`, the part that other tools may rely on": key by key, in this order.
#[test]
fn json_has_the_keys_that_other_tools_rely_on() {
    let json: serde_json::Value = serde_json::from_str(&report::json(&small())).expect("JSON");
    let check = |pointer: &str, expected: &str| {
        let object = json.pointer(pointer).and_then(|value| value.as_object()).expect(pointer);
        let expected: Vec<_> = expected.split_whitespace().collect();
        let keys: Vec<_> = object.keys().map(String::as_str).filter(|key| expected.contains(key)).collect();
        assert_eq!(keys, expected, "{pointer}");
    };
    check("", "schema_version tool seed scenario designs gates expectations reproduce host");
    check("/scenario", "name hash horizon_us profile");
    check("/designs/0", "name event_hash metrics classes series host");
    check(
        "/designs/0/metrics",
        "due delivered dead expired dropped pending lost duplicated reordered believed_delivered believed_unknown \
         requests calls_in_penalty early_retries amplification_ppm throttled spent_on_dead penalty_us \
         budget_utilisation_ppm queue_depth_max lag_us",
    );
    check("/designs/0/metrics/throttled", "token chat group");
    check("/designs/0/metrics/penalty_us", "token chat group");
    check("/designs/0/metrics/lag_us", "p50 p90 p99 p999 max samples censored lower_bound");
    check("/designs/0/classes/reply", "due delivered lag_us");
    check("/designs/0/series", "step_us budget_utilisation_ppm lag_p99_us queue_depth_max throttled");
    check("/designs/0/host", "wall_ms speed_up");
    check("/expectations/0", "metric design where expect measured unit passed");
    check("/host", "wall_ms");
}

#[test]
fn the_folder_holds_every_file_once() {
    let names: Vec<_> = report::files(&small()).into_iter().map(|file| file.name).collect();
    let plots = ["budget-utilisation", "lag-p99", "lag-distribution", "throttled", "queue-depth"];
    let stills = plots.iter().flat_map(|name| [format!("{name}.svg"), format!("{name}.png")]);
    let expected: Vec<_> =
        ["report.json", "report.md", "comment.md"].map(str::to_owned).into_iter().chain(stills).collect();
    assert_eq!(names, expected);
}

#[test]
fn plots_are_the_same_bytes_twice_and_real_pictures() {
    let (day, folder) = (day(), std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("plots"));
    std::fs::create_dir_all(&folder).expect("a folder for people to look at");
    let plots = report::plots(&day);
    assert_eq!(report::plots(&day), plots);
    for plot in &plots {
        assert!(plot.svg.contains("<title>") && plot.svg.trim_end().ends_with("</svg>"));
        assert_eq!(&plot.png[..8], b"\x89PNG\r\n\x1a\n");
        for name in ["naive-loop", "scheduler"] {
            assert!(plot.svg.contains(name), "{} lacks {name}", plot.name);
        }
        std::fs::write(folder.join(format!("{}.png", plot.name)), &plot.png).expect("written");
        std::fs::write(folder.join(format!("{}.svg", plot.name)), &plot.svg).expect("written");
    }
    std::fs::write(folder.join("report.md"), report::markdown(&day)).expect("written");
    std::fs::write(folder.join("table.txt"), report::table(&day, true, 100)).expect("written");
}

#[test]
fn a_report_without_anything_still_renders() {
    let mut empty = small();
    empty.designs.iter_mut().for_each(|design| {
        design.metrics = Metrics::default();
        design.classes.clear();
        design.series = Series::default();
        design.lag_distribution = Distribution::default();
    });
    report::files(&empty);
    report::table(&empty, true, 100);
    empty.designs.clear();
    empty.expectations.clear();
    report::files(&empty);
    report::table(&empty, true, 100);
}

fn lag(quantiles: [u64; 5], samples: u64, censored: u64, lower_bound: &[&str]) -> Lag {
    let [p50, p90, p99, p999, max] = quantiles.map(Some);
    let lower_bound = lower_bound.iter().map(|&name| name.to_owned()).collect();
    Lag { p50, p90, p99, p999, max, samples, censored, lower_bound }
}

fn by_limit(values: [u64; 3]) -> IndexMap<String, u64> {
    ["token", "chat", "group"].map(str::to_owned).into_iter().zip(values).collect()
}

fn class(due: u64, delivered: u64, p99: u64, lower_bound: &[&str]) -> ClassOutcome {
    let lag_us = lag([80_000, 400_000, p99, p99 * 2, p99 * 3], due, due - delivered, lower_bound);
    ClassOutcome { due, delivered, pending: due - delivered, lag_us, ..ClassOutcome::default() }
}

fn classes<const N: usize>(classes: [(&str, ClassOutcome); N]) -> IndexMap<String, ClassOutcome> {
    classes.into_iter().map(|(name, class)| (name.to_owned(), class)).collect()
}

/// Two designs and three classes; every number chosen by hand.
pub(crate) fn small() -> Report {
    let naive = Metrics {
        due: 310_000,
        delivered: 301_744,
        dead: 1_200,
        expired: 0,
        dropped: 0,
        pending: 6_000,
        lost: 1_056,
        duplicated: 12,
        reordered: 340,
        believed_delivered: 303_000,
        believed_unknown: 0,
        believed_falsely: 1_256,
        reused: 0,
        penalties: by_limit([3, 41, 0]),
        penalty_max_us: by_limit([3_600_000_000, 64_000_000, 0]),
        calls_per_ms_max: 48,
        kills: 0,
        store_keys: 0,
        store_keys_without_ttl: 0,
        requests: 1_240_000,
        calls_in_penalty: 410_200,
        early_retries: 402_118,
        amplification_ppm: 4_000_000,
        throttled: by_limit([902_118, 31_400, 0]),
        spent_on_dead: 3_600,
        penalty_us: by_limit([7_200_000_000, 900_000_000, 0]),
        budget_utilisation_ppm: Some(118_300),
        queue_depth_max: 10_412,
        lag_us: lag(
            [310_000, 41_000_000, 11_520_000_000, 15_000_000_000, 15_120_000_000],
            308_800,
            7_056,
            &["p99", "p999", "max"],
        ),
    };
    let scheduler = Metrics {
        due: 310_000,
        delivered: 308_800,
        dead: 1_200,
        believed_delivered: 308_800,
        requests: 310_420,
        amplification_ppm: 1_001_354,
        throttled: by_limit([0, 420, 0]),
        spent_on_dead: 1_200,
        penalty_us: by_limit([0, 420_000_000, 0]),
        budget_utilisation_ppm: Some(119_400),
        queue_depth_max: 41,
        lag_us: lag([92_000, 610_000, 3_900_000, 61_000_000, 412_000_000], 308_800, 0, &[]),
        ..Metrics::default()
    };
    let designs = [
        ("naive-loop", naive, [11_000_000_000, 12_000_000_000, 11_520_000_000], true),
        ("scheduler", scheduler, [840_000, 1_200_000, 5_800_000], false),
    ];
    let designs = designs.into_iter().map(|(name, metrics, p99s, censored)| {
        let bound: &[&str] = if censored { &["p99", "p999", "max"] } else { &[] };
        let missing = u64::from(censored) * 352;
        Outcome {
            name: name.to_owned(),
            event_hash: if censored { "00c0ffee00c0ffee" } else { "feedfacecafebeef" }.to_owned(),
            metrics,
            classes: classes([
                ("reply", class(9_000, 9_000 - missing, p99s[0], bound)),
                ("alert", class(1_000, 1_000 - missing, p99s[1], bound)),
                ("broadcast", class(300_000, 300_000 - missing, p99s[2], bound)),
            ]),
            series: Series::default(),
            lag_distribution: Distribution::default(),
            live: None,
            windows: Vec::new(),
            lag_counts: IndexMap::new(),
            host: DesignHost { wall_ms: 1_400, speed_up: 61_714 },
        }
    });
    let reply = |expect: &str, measured, unit: &str, metric: &str, passed| Verdict {
        metric: metric.to_owned(),
        design: "scheduler".to_owned(),
        r#where: if metric == "lag" {
            [("class".to_owned(), "reply".to_owned())].into_iter().collect()
        } else {
            IndexMap::new()
        },
        expect: expect.to_owned(),
        measured,
        unit: unit.to_owned(),
        passed,
        ..Verdict::default()
    };
    Report {
        schema_version: SCHEMA_VERSION,
        tool: "floodlab 0.1.0".to_owned(),
        seed: 1,
        scenario: ScenarioInfo {
            name: "platform-day".to_owned(),
            hash: "0123456789abcdef".to_owned(),
            horizon_us: 93_600_000_000,
            warm_up_us: 0,
            profile: "telegram".to_owned(),
            store: None,
        },
        designs: designs.collect(),
        gates: Vec::new(),
        replications: None,
        baseline: None,
        expectations: vec![
            reply("p(99) <= 0.1 * naive-loop", Some(840_000), "us", "lag", true),
            reply("rate <= 0.1%", Some(1_353), "ppm", "throttled", false),
            reply("<= 1", Some(1_001_354), "ppm", "amplification", false),
            Verdict {
                design: "naive-loop".to_owned(),
                lower_bound: true,
                ..reply("p(99) <= 4h", Some(11_000_000_000), "us", "lag", false)
            },
        ],
        unfinished: Vec::new(),
        reproduce: "floodlab run scenarios/platform-day.toml --seed 1".to_owned(),
        host: Host { wall_ms: 3_000 },
    }
}

/// Five designs over a day of minutes, with two bursts, a quiet hour and noise: to look at.
fn day() -> Report {
    const MINUTES: usize = 1_440;
    let names = ["naive-loop", "fixed-gap", "per-process-bucket", "shared-bucket", "scheduler"];
    let mut noise = 42_u64;
    let mut random = move || {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (noise >> 40) as f64 / (1u64 << 24) as f64
    };
    // Messages a minute: a day's curve with a mailing at 09:00 and an incident at 18:20.
    let demand: Vec<f64> = (0..MINUTES)
        .map(|minute| {
            let hour = minute as f64 / 60.0;
            let wave = 250.0 + 200.0 * ((hour - 14.0) / 24.0 * std::f64::consts::TAU).cos();
            let burst = if (540..600).contains(&minute) { 2_400.0 } else { 0.0 };
            let incident = if (1_100..1_115).contains(&minute) { 6_000.0 } else { 0.0 };
            (wave + burst + incident) * (0.7 + 0.6 * random())
        })
        .collect();
    let designs = names.iter().enumerate().map(|(index, name)| {
        let quality = [0.35, 0.6, 0.8, 0.96, 1.0][index];
        let floor = [300_000.0, 1_500_000.0, 180_000.0, 160_000.0, 90_000.0][index];
        let mut backlog = 0.0_f64;
        let mut series = Series { step_us: 60_000_000, ..Series::default() };
        for limit in ["token", "chat", "group"] {
            series.throttled.insert(limit.to_owned(), Vec::new());
        }
        for (minute, due) in demand.iter().enumerate() {
            let quiet = (185..228).contains(&minute);
            let due = if quiet { 0.0 } else { *due };
            let capacity = 1_800.0 * quality;
            let sent = (backlog + due).min(capacity * (0.92 + 0.08 * random()));
            backlog += due - sent;
            let wait = backlog / capacity * 60e6 * if index == 4 { 0.05 } else { 1.0 };
            let lag = floor * (1.0 + 1.5 * random().powi(4) * 8.0) + wait;
            let age = (MINUTES - minute) as f64 * 60e6 - 30e6;
            let stuck = index == 0 && random() < 0.012 && minute > 540;
            series.budget_utilisation_ppm.push(Some((sent / 1_800.0 * 1e6) as u64));
            series.lag_p99_us.push((!quiet).then_some(if stuck { age } else { lag.min(age) } as u64));
            series
                .queue_depth_max
                .push((backlog / [3.0, 6.0, 10.0, 12.0, 90.0][index]) as u64 + (random() * 3.0) as u64);
            let early = [3.0, 1.0, 0.6, 0.0, 0.0][index];
            let token =
                if backlog > 0.0 { early * (300.0 + 600.0 * random()) } else { early * 4.0 * random() };
            let chat = if random() < 0.15 { [9.0, 3.0, 6.0, 5.0, 1.0][index] * random() * 3.0 } else { 0.0 };
            series.throttled["token"].push(token as u64);
            series.throttled["chat"].push(chat as u64);
            series.throttled["group"].push(if index < 3 { (chat * random()) as u64 } else { 0 });
        }
        let mut sorted: Vec<u64> = series.lag_p99_us.iter().copied().flatten().collect();
        sorted.sort_unstable();
        let ppm: Vec<u32> =
            (0..=100).map(|k| (1e6 * (1.0 - 10f64.powf(-f64::from(k) / 20.0))) as u32).collect();
        let at = |ppm: u32| sorted[((sorted.len() - 1) as f64 * f64::from(ppm) / 1e6) as usize];
        let us: Vec<u64> = ppm.iter().map(|ppm| at(*ppm) / 3 * if *ppm > 990_000 { 3 } else { 1 }).collect();
        let lower_bound_from_ppm = [Some(968_000), Some(999_400), None, None, None][index];
        let sum = |limit: &str| series.throttled[limit].iter().sum();
        let throttled = by_limit([sum("token"), sum("chat"), sum("group")]);
        let due: u64 = demand.iter().map(|due| *due as u64).sum();
        let lost = [1_056, 12, 0, 0, 0][index];
        let pending = [due / 40, 300, 0, 0, 0][index];
        let requests = due + throttled.values().sum::<u64>();
        let bounds: &[&str] = [&["p99", "p999", "max"][..], &["p999", "max"], &[], &[], &[]][index];
        let lag_us =
            lag([500_000, 900_000, 990_000, 999_000, 1_000_000].map(at), due - 1_200, lost + pending, bounds);
        let metrics = Metrics {
            due,
            delivered: due - 1_200 - lost - pending,
            dead: 1_200,
            pending,
            lost,
            duplicated: [12, 0, 3, 0, 0][index],
            believed_delivered: due - 1_200 - pending,
            requests,
            early_retries: throttled["token"] / 3,
            calls_in_penalty: throttled["token"] / 2,
            amplification_ppm: requests * 1_000_000 / due,
            spent_on_dead: [3_600, 3_600, 2_000, 1_300, 1_200][index],
            penalty_us: by_limit([1, 2, 3]),
            budget_utilisation_ppm: Some(212_345),
            queue_depth_max: series.queue_depth_max.iter().copied().max().expect("minutes"),
            throttled,
            lag_us: lag_us.clone(),
            ..Metrics::default()
        };
        let of = |share: u64| ClassOutcome {
            due: due / share,
            delivered: due / share,
            lag_us: lag_us.clone(),
            ..ClassOutcome::default()
        };
        Outcome {
            name: (*name).to_owned(),
            event_hash: format!("{:016x}", 0x1234_5678_9abc_def0_u64.rotate_left(index as u32 * 8)),
            metrics,
            classes: classes([("reply", of(20)), ("alert", of(90)), ("broadcast", of(2))]),
            series,
            lag_distribution: Distribution { ppm, us, lower_bound_from_ppm },
            live: None,
            windows: Vec::new(),
            lag_counts: IndexMap::new(),
            host: DesignHost { wall_ms: 900, speed_up: 96_000 },
        }
    });
    let mut report = small();
    report.scenario.horizon_us = MINUTES as u64 * 60_000_000;
    report.designs = designs.collect();
    report
}
