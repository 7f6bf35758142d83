//! `floodlab run`.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use super::exit::{Exit, Invalid};
use super::job::{self, Choice, Job};
use super::progress::Bars;
use super::seeds::Replicate;
use crate::registry::Registry;
use crate::run::{self, Options};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Scenario files.
    #[arg(required = true, value_name = "SCENARIO")]
    scenarios: Vec<PathBuf>,
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    replicate: Replicate,
    /// Run everything twice and compare.
    #[arg(long)]
    check_determinism: bool,
    /// Shuffle simultaneous events with this key: finds senders that live off their order.
    #[arg(long, value_name = "N")]
    shuffle_ties: Option<u64>,
    /// How many runs there are at a time [default: one a core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
}

/// Runs every scenario; the gravest exit code decides.
///
/// All that can be known to go wrong is found before the first is run: nobody waits for an hour to hear of a slip of the
/// keyboard.
pub(super) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<Exit> {
    let several = arguments.scenarios.len() > 1;
    arguments.choice.check(several);
    let seed = arguments.choice.seed();
    let interrupted = job::interrupts()?;
    let jobs = arguments.scenarios.iter().map(|file| Job::new(file, &arguments.choice, several, registry));
    let jobs = jobs.collect::<anyhow::Result<Vec<_>>>()?;
    check_folders(&jobs)?;
    arguments.choice.exports.check()?;
    let mut exit = Exit::Passed;
    for (done, job) in jobs.iter().enumerate() {
        if interrupted.load(Ordering::Relaxed) {
            if several {
                super::tell(&format!("interrupted: {done} of {} scenarios were run", jobs.len()));
            }
            return Ok(Exit::Interrupted);
        }
        exit = exit.max(run_one(job, arguments, seed, &interrupted)?);
    }
    Ok(exit)
}

/// Whether every report has a folder of its own, and it can be written.
fn check_folders(jobs: &[Job]) -> anyhow::Result<()> {
    for (index, job) in jobs.iter().enumerate() {
        if let Some(other) = jobs[..index].iter().find(|other| other.folder == job.folder) {
            let (one, two, name) =
                (other.scenario.file.display(), job.scenario.file.display(), &job.scenario.name);
            let message = if job.scenario.file == other.scenario.file {
                format!("{one} is given twice, and the second report would replace the first; give it once")
            } else {
                format!(
                    "{one} and {two} are both called `{name}`, so the report of one would replace the other's; \
                     give one of them another `name`, or run them one by one with --output"
                )
            };
            return Err(Invalid(message).into());
        }
    }
    jobs.iter().try_for_each(|job| job.check_folder())
}

/// Runs it, writes and prints what was finished, then says what was not.
fn run_one(
    job: &Job,
    arguments: &Arguments,
    seed: Option<u64>,
    interrupted: &AtomicBool,
) -> anyhow::Result<Exit> {
    #[expect(clippy::disallowed_methods, reason = "the `host` blocks say how long it took")]
    let begun = std::time::Instant::now();
    let options = Options {
        seeds: arguments.replicate.seeds(seed.unwrap_or(job.scenario.seed)),
        baseline: job.baseline.as_ref(),
        designs: job.designs.clone(),
        jobs: arguments.jobs.map(usize::from),
        check_determinism: arguments.check_determinism,
        shuffle_ties: arguments.shuffle_ties,
        interrupted,
        wall_us: &move || u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX),
    };
    let runs = options.seeds.len() as u64 * if options.check_determinism { 2 } else { 1 };
    let bars = Bars::new(&job.scenario, runs);
    let result = run::run(&job.scenario, &options, &|progress| bars.show(progress));
    drop(bars);
    job.conclude(&arguments.choice, result)
}
