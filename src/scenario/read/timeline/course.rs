//! The run as far as it is known before: who runs when, and whether what is asked for can be done then.

use std::collections::BTreeSet;
use std::iter;

use fake_telegram::time::{Duration, Time};

use super::entry::What;
use super::{Frame, numbers};
use crate::scenario::read::designs::PROCESSES_MAX;
use crate::world::{Change, Step};

/// What happens at an instant, to the group or to one process.
pub(super) enum Act {
    /// The first processes start.
    Begin,
    Add(u32),
    Leave(u32),
    Kill(u32),
    Restart(u32),
    /// A process that was killed comes back.
    Return(u32),
}

impl Act {
    /// What happens when an entry comes to pass at `at`.
    pub(super) fn all(at: Time, what: &What<'_>, restart_after: Option<Duration>) -> Vec<(Time, Self)> {
        match *what {
            What::Add(count) => vec![(at, Self::Add(count))],
            What::Leave(count) => vec![(at, Self::Leave(count))],
            What::Restart(processes) => {
                processes.iter().map(|process| (at, Self::Restart(*process))).collect()
            }
            What::Kill(processes) => {
                let kills = processes.iter().map(|process| (at, Self::Kill(*process)));
                let back = restart_after.map(|pause| at + pause).into_iter();
                let back =
                    back.flat_map(|at| processes.iter().map(move |process| (at, Self::Return(*process))));
                kills.chain(back).collect()
            }
        }
    }
}

/// Where a process is in its life, as far as entries say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Unborn,
    Running,
    /// It takes nothing new; nobody knows before the run when it is through.
    Leaving,
    Dead(Time),
}

/// Who runs when.
pub(super) struct Course<'a> {
    frame: &'a Frame<'a>,
    /// Processes that may die at instants that nobody knows before the run.
    by_chance: BTreeSet<u32>,
    /// By number: when it first starts, and where it is in its life.
    processes: Vec<(Time, Life)>,
    /// What happened so far.
    pub(super) steps: Vec<Step>,
}

impl<'a> Course<'a> {
    /// Before anything happens: nobody runs yet.
    pub(super) fn new(frame: &'a Frame<'a>, by_chance: BTreeSet<u32>) -> Self {
        let processes = vec![(frame.start, Life::Unborn); frame.processes as usize];
        Self { frame, by_chance, processes, steps: Vec::new() }
    }

    /// When each process starts for the first time, by number.
    pub(super) fn born(&self) -> Vec<Time> {
        self.processes.iter().map(|(born, _)| *born).collect()
    }

    /// Something happens; the key and what is wrong with it if it cannot.
    pub(super) fn act(&mut self, at: Time, act: Act) -> Result<(), (&'static str, String)> {
        match act {
            Act::Begin => (0..self.frame.processes).for_each(|process| self.step(at, process, Change::Start)),
            Act::Add(count) => {
                let first = self.processes.len() as u32;
                if u64::from(first) + u64::from(count) > PROCESSES_MAX {
                    let message = format!("{first} and {count} more processes are more than {PROCESSES_MAX}");
                    return Err(("add", message));
                }
                self.processes.extend(iter::repeat_n((at, Life::Unborn), count as usize));
                (first..first + count).for_each(|process| self.step(at, process, Change::Start));
            }
            Act::Leave(count) => {
                let running = |process: &u32| self.processes[*process as usize].1 == Life::Running;
                let all = (0..self.processes.len() as u32).rev().filter(running);
                let youngest: Vec<u32> = all.take(count as usize).collect();
                if youngest.len() < count as usize {
                    let leavers = match count {
                        1 => "1 process".to_owned(),
                        count => format!("{count} processes"),
                    };
                    let running = match youngest.len() {
                        0 => "none runs".to_owned(),
                        1 => "1 runs".to_owned(),
                        running => format!("{running} run"),
                    };
                    let message = format!("{leavers} cannot leave at {at}: {running} then");
                    return Err(("leave", message));
                }
                youngest.into_iter().for_each(|process| self.step(at, process, Change::Leave));
            }
            Act::Kill(process) => match self.life("kill", process, at)? {
                Life::Dead(since) if !self.by_chance.contains(&process) => {
                    let message = format!("process {process} does not run at {at}: it was killed at {since}");
                    return Err(("kill", message));
                }
                _ => self.step(at, process, Change::Kill),
            },
            Act::Restart(process) => {
                let life = self.life("restart", process, at)?;
                if !matches!(life, Life::Dead(_)) || self.by_chance.contains(&process) {
                    self.step(at, process, Change::Kill);
                }
                self.step(at, process, Change::Start);
            }
            Act::Return(process) => match self.processes[process as usize].1 {
                Life::Dead(_) | Life::Unborn => self.step(at, process, Change::Start),
                Life::Running | Life::Leaving => {
                    let message = format!(
                        "process {process} is restarted before it comes back at {at}; leave out this or `restart`"
                    );
                    return Err(("restart_after", message));
                }
            },
        }
        Ok(())
    }

    fn step(&mut self, at: Time, process: u32, change: Change) {
        self.steps.push(Step { at, process, change });
        self.processes[process as usize].1 = match change {
            Change::Start => Life::Running,
            Change::Leave => Life::Leaving,
            Change::Kill => Life::Dead(at),
        };
    }

    /// Where a process that has been started is in its life.
    fn life(&self, key: &'static str, process: u32, at: Time) -> Result<Life, (&'static str, String)> {
        match self.processes.get(process as usize) {
            Some((_, Life::Unborn)) => {
                let start = self.frame.start;
                Err((key, format!("process {process} does not run at {at}: it starts at {start}")))
            }
            Some((_, life)) => Ok(*life),
            None => {
                let has = numbers(self.processes.len());
                Err((key, format!("the group has no process {process} at {at}; it has {has}")))
            }
        }
    }
}
