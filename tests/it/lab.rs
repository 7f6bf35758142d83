//! Small experiments: a scenario from a text, and runs whose events are kept.

use std::cell::RefCell;
use std::fs;
use std::rc::Rc;

use fake_telegram::time::Time;
use floodlab::event::{Event, Observer};
use floodlab::outcome::Outcome;
use floodlab::run::{RunError, Simulation, simulate};
use floodlab::scenario::Scenario;
use floodlab::{Registry, Strategy};

/// The names of the strategies that come with floodlab.
pub(crate) const BUILTIN: [&str; 5] =
    ["naive-loop", "backoff", "process-bucket", "shared-bucket", "scheduler"];

/// What happened in a run, in order.
pub(crate) type Tape = Vec<(Time, Event)>;

/// The result of a run, and all that happened in it.
#[derive(Debug, PartialEq)]
pub(crate) struct Run {
    pub(crate) outcome: Outcome,
    pub(crate) tape: Tape,
}

/// Appends what it sees.
struct Recorder(Rc<RefCell<Tape>>);

impl Observer for Recorder {
    fn observe(&mut self, at: Time, event: &Event) {
        self.0.borrow_mut().push((at, *event));
    }
}

/// The scenario that a text describes, with the built-in strategies.
pub(crate) fn scenario(text: &str) -> Scenario {
    load(text, &[], &Registry::builtin())
}

/// The scenario that a text describes, with a strategy of the test's own beside the built-in ones.
pub(crate) fn scenario_with<S: Strategy>(text: &str) -> Scenario {
    load(text, &[], &Registry::builtin().with_strategy::<S>())
}

/// The scenario that a text describes; `files` (name and content) lie beside it.
pub(crate) fn load(text: &str, files: &[(&str, &str)], registry: &Registry) -> Scenario {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, content) in files.iter().chain(&[("lab.toml", text)]) {
        fs::write(directory.path().join(name), content).expect("written");
    }
    Scenario::load(&directory.path().join("lab.toml"), registry)
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// `[[design]]` tables, one for each strategy.
pub(crate) fn designs<'a>(strategies: impl IntoIterator<Item = &'a str>) -> String {
    strategies.into_iter().map(|kind| format!("\n[[design]]\nstrategy = \"{kind}\"\n")).collect()
}

/// Which of the scenario's designs has this name.
pub(crate) fn index(scenario: &Scenario, design: &str) -> usize {
    scenario.designs.iter().position(|known| known.name == design).expect("the scenario has this design")
}

/// Runs one design and keeps everything that happened.
pub(crate) fn run(scenario: &Scenario, design: &str, seed: u64) -> Run {
    run_shuffled(scenario, design, seed, None)
}

/// The same, with simultaneous events in another order.
pub(crate) fn run_shuffled(scenario: &Scenario, design: &str, seed: u64, shuffle: Option<u64>) -> Run {
    let tape = Rc::new(RefCell::new(Tape::new()));
    let simulation = Simulation { scenario, design: index(scenario, design), seed, shuffle_ties: shuffle };
    let outcome = simulate(&simulation, vec![Box::new(Recorder(tape.clone()))], |_| true)
        .unwrap_or_else(|error| panic!("{error}"))
        .expect("nobody interrupts it");
    let tape = tape.take();
    Run { outcome, tape }
}

/// Runs one design and tells `observer` everything.
pub(crate) fn watch(
    scenario: &Scenario,
    design: &str,
    seed: u64,
    observer: impl Observer + 'static,
) -> Outcome {
    let simulation = Simulation { scenario, design: index(scenario, design), seed, shuffle_ties: None };
    simulate(&simulation, vec![Box::new(observer)], |_| true)
        .unwrap_or_else(|error| panic!("{error}"))
        .expect("nobody interrupts it")
}

/// Runs one design that does not reach its end.
pub(crate) fn fail(scenario: &Scenario, design: &str) -> RunError {
    let simulation = Simulation { scenario, design: index(scenario, design), seed: 1, shuffle_ties: None };
    simulate(&simulation, Vec::new(), |_| true).expect_err("it cannot end well")
}
