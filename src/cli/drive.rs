//! `floodlab drive`.

use std::path::PathBuf;

use fake_telegram::http::state::is_token;
use fake_telegram::time::Duration;

use super::exit::{Exit, Invalid};
use super::job::{self, Choice, Job};
use super::progress::Bars;
use crate::live::{RealTime, Target};
use crate::registry::Registry;
use crate::run::{self, Drive};
use crate::scenario::Scenario;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The scenario's file.
    #[arg(value_name = "SCENARIO")]
    scenario: PathBuf,
    /// The base URL of a Bot API server, as in http://127.0.0.1:8081 [default: a fake server of its own, as the scenario
    /// says].
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// A bot's token, as in 123:abc; once for each token of the scenario, in their order.
    #[arg(long = "token", value_name = "TOKEN", requires = "url")]
    tokens: Vec<String>,
    #[command(flatten)]
    choice: Choice,
}

/// From here on a run says how long it takes.
const LONG: Duration = Duration::from_mins(10);

/// Drives a scenario.
///
/// All that can be known to go wrong is found before the first call.
pub(super) fn drive(arguments: &Arguments, registry: &Registry) -> anyhow::Result<Exit> {
    let Arguments { scenario: file, choice, .. } = arguments;
    choice.check(false);
    if choice.baseline.replaces_the_usual() {
        super::usage(
            "--save-baseline: what real time measures is no baseline for `floodlab run`; say --baseline PATH as well",
        );
    }
    let seed = choice.seed();
    let job = Job::new(file, choice, false, registry)?;
    let scenario = &job.scenario;
    check_questions(scenario)?;
    let target = arguments.url.as_deref().map(|url| {
        check_tokens(arguments, scenario);
        target(url, arguments)
    });
    job.check_folder()?;
    choice.exports.check()?;
    if let Some(target) = &target {
        RealTime::new(scenario.wire.timeout)?.meet(&mut target.clone())?;
    }
    let interrupted = job::interrupts()?;
    let all = scenario.horizon().saturating_mul(job.designs.len() as u64);
    if all > LONG {
        let designs = if job.designs.len() == 1 { "design" } else { "designs" };
        super::tell(&format!(
            "{} {designs} in real time take up to {all}; Ctrl-C ends the run, and the report is written",
            job.designs.len()
        ));
    }
    let drive = Drive {
        seed: seed.unwrap_or(scenario.seed),
        designs: job.designs.clone(),
        target,
        baseline: job.baseline.as_ref(),
        judge: choice.expect,
        interrupted: &interrupted,
    };
    let bars = Bars::new(scenario, 1);
    let result = run::drive(scenario, &drive, &|progress| bars.show(progress), |_| Vec::new());
    drop(bars);
    job.conclude(choice, result)
}

/// Where the calls go; the program ends if they must not.
fn target(url: &str, arguments: &Arguments) -> Target {
    let target = Target::resolve(url, arguments.tokens.clone());
    let target = target.unwrap_or_else(|error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        super::usage(&format!("--url: {error}{cause}"))
    });
    if !target.is_loopback() && !arguments.choice.i_own_this_target {
        super::usage(&format!(
            "--url: {} is not on this machine; if it is yours to flood, say --i-own-this-target",
            target.url()
        ));
    }
    target
}

/// One for each token of the scenario, and each a bot's.
fn check_tokens(arguments: &Arguments, scenario: &Scenario) {
    let (given, wanted) = (arguments.tokens.len(), scenario.tokens.len());
    if given != wanted {
        let (tokens, names) = (if wanted == 1 { "token" } else { "tokens" }, scenario.tokens.join(", "));
        super::usage(&format!(
            "--token: the scenario has {wanted} {tokens} ({names}) and {given} came; say --token once for each, in this \
             order"
        ));
    }
    if !arguments.tokens.iter().all(|token| is_token(token)) {
        super::usage("--token: a token is a number, a colon and letters, digits, - or _, as in 123:abc");
    }
}

/// A market's questions have no method of the Bot API.
fn check_questions(scenario: &Scenario) -> anyhow::Result<()> {
    match scenario.workloads.iter().find(|workload| workload.method.is_question()) {
        None => Ok(()),
        Some(workload) => Err(Invalid(format!(
            "{}: workload `{}` asks questions of a market, which the Bot API does not know; it can be run and not driven",
            scenario.file.display(),
            workload.name
        ))
        .into()),
    }
}
