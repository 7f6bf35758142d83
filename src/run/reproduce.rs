//! The commands that give a result again, for a POSIX shell.

use crate::gate::{self, Rule};
use crate::outcome::{Runs, Verdict};
use crate::scenario::Scenario;
use crate::store::url::StoreUrl;

use super::Options;

/// The whole of it.
pub(super) fn run(scenario: &Scenario, options: &Options<'_>) -> String {
    let gates = scenario.asked_gates.iter().map(String::as_str);
    with_rest(command("run", scenario, &options.designs, &options.seeds), gates, scenario, options)
}

/// What shows a verdict: its design, and that which its condition refers to, under one seed.
pub(super) fn verdict(scenario: &Scenario, options: &Options<'_>, verdict: &Verdict, seed: u64) -> String {
    let its = scenario.rules().filter(|rule| rule.metric.name == verdict.metric);
    let its = its.flat_map(|rule| &rule.conditions).filter(|condition| condition.written == verdict.expect);
    let others: Vec<&str> = its.filter_map(|condition| condition.design()).collect();
    let is_needed = |design: &&usize| {
        let name = scenario.designs[**design].name.as_str();
        name == verdict.design || others.contains(&name)
    };
    let designs: Vec<usize> = options.designs.iter().filter(is_needed).copied().collect();
    // Those that were asked for with this condition.
    let is_its = |gate: &&str| {
        let written =
            |rule: &Rule| rule.conditions.iter().any(|condition| condition.written == verdict.expect);
        gate.parse().is_ok_and(|rule: Rule| rule.metric.name == verdict.metric && written(&rule))
    };
    let gates = scenario.asked_gates.iter().map(String::as_str).filter(is_its);
    with_rest(command("run", scenario, &designs, &[seed]), gates, scenario, options)
}

fn with_rest<'a>(
    mut command: String,
    gates: impl Iterator<Item = &'a str>,
    scenario: &Scenario,
    options: &Options<'_>,
) -> String {
    command.extend(gates.map(|gate| format!(" --gate {}", quoted(gate))));
    if let Some(saved) = options.baseline {
        command += &format!(" --baseline {}", quoted(&saved.file));
    }
    let designs: Vec<&str> =
        options.designs.iter().map(|design| scenario.designs[*design].name.as_str()).collect();
    let saved = options.baseline.map(|saved| Runs::of(&saved.report)).unwrap_or_default();
    if !gate::lacking(&scenario.gates, &designs, &saved).is_empty() {
        command += " --baseline-lenient";
    }
    command += owned(scenario, true);
    if let Some(key) = options.shuffle_ties {
        command += &format!(" --shuffle-ties {key}");
    }
    command
}

/// The beginning of such a command.
pub(super) fn command(verb: &str, scenario: &Scenario, designs: &[usize], seeds: &[u64]) -> String {
    let mut command = format!("floodlab {verb} {} {}", quoted(&scenario.file.to_string_lossy()), seed(seeds));
    if designs.len() < scenario.designs.len() {
        let names = designs.iter().map(|design| scenario.designs[*design].name.as_str());
        // Names have no characters that a shell would read.
        command += &format!(" --design {}", names.collect::<Vec<_>>().join(","));
    }
    if let Some(url) = &scenario.store.url {
        command += &format!(" --store {}", quoted(&url.to_string()));
    }
    command
}

fn seed(seeds: &[u64]) -> String {
    match seeds {
        [seed] => format!("--seed {seed}"),
        [first, .., last] if seeds.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1])) => {
            format!("--seeds {first}..{last}")
        }
        seeds => format!("--seeds {}", seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(",")),
    }
}

/// Its end, if it calls another machine: the store's, or a target that is not a `local` one.
pub(super) fn owned(scenario: &Scenario, local: bool) -> &'static str {
    let is_here = local && scenario.store.url.as_ref().is_none_or(StoreUrl::is_loopback);
    if is_here { "" } else { " --i-own-this-target" }
}

/// A text as one word of a POSIX shell.
pub(super) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+:@%,=".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    /// What the command line needs to let it through, and nothing secret.
    #[test]
    fn a_real_store_is_part_of_the_command() {
        let end = |store: &str, local| {
            let directory = tempfile::tempdir().expect("a directory");
            let file = directory.path().join("it.toml");
            let text = format!(
                "duration = \"1s\"\n{store}\n[chats]\ncount = 1\n[workload.all]\nkind = \"broadcast\"\n\
                 class = \"all\"\n[[design]]\nstrategy = \"bare\"\n"
            );
            std::fs::write(&file, text).expect("written");
            let scenario = Scenario::load(&file, &Registry::builtin()).expect("a scenario");
            let command = command("run", &scenario, &[0], &[7]) + owned(&scenario, local);
            command.split_once(" --seed 7").expect("the seed").1.to_owned()
        };
        let (here, there) =
            (r#"store = "redis://127.0.0.1:1/2""#, r#"store = "redis://me:secret@192.0.2.1:1""#);
        assert_eq!(end("", true), "");
        assert_eq!(end("", false), " --i-own-this-target");
        assert_eq!(end(here, true), " --store redis://127.0.0.1:1/2");
        assert_eq!(end(here, false), " --store redis://127.0.0.1:1/2 --i-own-this-target");
        assert_eq!(end(there, true), " --store redis://me@192.0.2.1:1 --i-own-this-target");
    }

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        let check = |path, expected: &str| assert_eq!(quoted(path), expected);
        check("scenarios/three-pods.toml", "scenarios/three-pods.toml");
        check("häfen/ß.toml", "häfen/ß.toml");
        check("my scenarios/a.toml", "'my scenarios/a.toml'");
        check("it's $HOME.toml", r"'it'\''s $HOME.toml'");
        check("", "''");
    }

    #[test]
    fn seeds_are_a_range_where_they_are_one() {
        assert_eq!(seed(&[7]), "--seed 7");
        assert_eq!(seed(&[1, 2, 3]), "--seeds 1..3");
        assert_eq!(seed(&[1, 3]), "--seeds 1,3");
        assert_eq!(seed(&[u64::MAX, 0]), "--seeds 18446744073709551615,0");
    }
}
