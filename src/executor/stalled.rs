//! How a run ends that cannot go on.

use fake_telegram::time::Time;

/// How a run ended before its time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Stalled {
    /// Nothing is left to happen, and tasks still wait.
    #[error("nothing is left to happen at {at}, and {} waits for ever: {}", tally(*count), list(tasks))]
    Deadlock {
        /// When.
        at: Time,
        /// How many wait.
        count: usize,
        /// The first few, each with what it waits for.
        tasks: Vec<(String, &'static str)>,
    },
    /// A task is polled again and again and time does not pass.
    #[error(
        "{task} spins at {at}: polled more than {polls} times without time passing, waiting for {waiting}"
    )]
    Livelock {
        /// When.
        at: Time,
        /// Which task was polled last.
        task: String,
        /// What it said it waits for.
        waiting: &'static str,
        /// The bound that it passed.
        polls: u64,
    },
}

fn tally(tasks: usize) -> String {
    if tasks == 1 { "a task".to_owned() } else { format!("each of {tasks} tasks") }
}

fn list(tasks: &[(String, &'static str)]) -> String {
    tasks.iter().map(|(task, waiting)| format!("{task} waits for {waiting}")).collect::<Vec<_>>().join("; ")
}
