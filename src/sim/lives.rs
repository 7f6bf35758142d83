//! The lives of processes: when each starts, leaves and dies.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fake_telegram::time::{Duration, Time};

use crate::world::{Change, KillPoint, ProcessIndex};

/// What is planned, and who lives.
#[derive(Debug, Default)]
pub(super) struct Lives {
    /// By time, then in the order in which it was planned.
    planned: BinaryHeap<Reverse<(Time, u32, u32, Plan)>>,
    plans: u32,
    processes: Vec<Life>,
    begun: u32,
    points: Vec<Point>,
}

/// What is to happen to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Plan {
    /// What the scenario says.
    Change(Change),
    /// It dies by chance.
    Death,
    /// It starts again after such a death or one between two calls, unless it has left since.
    Return,
}

#[derive(Debug, Clone, Copy, Default)]
struct Life {
    /// Which life of all this is, from 1: also the group of the process' tasks.
    number: u32,
    runs: bool,
    leaves: bool,
}

#[derive(Debug)]
struct Point {
    process: u32,
    after: String,
    left: Cell<u32>,
    restart_after: Option<Duration>,
}

impl Lives {
    /// Nobody lives yet; process numbers are those of the design.
    pub(super) fn new(
        processes: usize,
        steps: impl IntoIterator<Item = (Time, u32, Plan)>,
        points: Vec<KillPoint>,
    ) -> Self {
        let points = points.into_iter().map(|point| Point {
            process: point.process,
            after: point.after,
            left: Cell::new(point.count),
            restart_after: point.restart_after,
        });
        let mut lives =
            Self { processes: vec![Life::default(); processes], points: points.collect(), ..Self::default() };
        for (at, process, plan) in steps {
            lives.plan(at, process, plan);
        }
        lives
    }

    pub(super) fn plan(&mut self, at: Time, process: u32, plan: Plan) {
        self.plans += 1;
        self.planned.push(Reverse((at, self.plans, process, plan)));
    }

    /// When something is next planned.
    pub(super) fn next_at(&self) -> Time {
        self.planned.peek().map_or(Time::MAX, |Reverse((at, ..))| *at)
    }

    /// What is planned for `now` or before, one at a time.
    pub(super) fn due(&mut self, now: Time) -> Option<(u32, Plan)> {
        if self.next_at() > now {
            return None;
        }
        self.planned.pop().map(|Reverse((_, _, process, plan))| (process, plan))
    }

    /// A process starts, unless it runs, or only `returns` and has left; the number of its life.
    pub(super) fn start(&mut self, process: u32, returns: bool) -> Option<u32> {
        let life = &mut self.processes[process as usize];
        if life.runs || returns && life.leaves {
            return None;
        }
        self.begun += 1;
        *life = Life { number: self.begun, runs: true, leaves: false };
        Some(self.begun)
    }

    /// A process dies, if it runs; the number of the life that ends.
    pub(super) fn kill(&mut self, process: u32) -> Option<u32> {
        let life = &mut self.processes[process as usize];
        std::mem::take(&mut life.runs).then_some(life.number)
    }

    /// A process is to leave; whether it runs.
    pub(super) fn leave(&mut self, process: u32) -> bool {
        let life = &mut self.processes[process as usize];
        life.leaves = true;
        life.runs
    }

    /// A process is gone until the scenario says otherwise: it does not come back from another death.
    pub(super) fn stay_away(&mut self, process: u32) {
        self.processes[process as usize].leaves = true;
    }

    /// Whether a process is in the life of this number.
    pub(super) fn is_in(&self, process: ProcessIndex, life: u32) -> bool {
        let current = &self.processes[usize::from(process.0)];
        current.runs && current.number == life
    }

    pub(super) fn leaves(&self, process: ProcessIndex) -> bool {
        self.processes[usize::from(process.0)].leaves
    }

    /// An answer to a call named `name` has come back to `process`. Whether it dies of it, and when it is to start
    /// again.
    pub(super) fn dies_after(&self, process: ProcessIndex, name: &str) -> Option<Option<Duration>> {
        let mut dies = None;
        for point in &self.points {
            let meant =
                point.process == u32::from(process.0) && (point.after == name || point.after == "any");
            if meant && point.left.get() > 0 {
                point.left.set(point.left.get() - 1);
                if point.left.get() == 0 {
                    dies = Some(point.restart_after);
                }
            }
        }
        dies
    }

    /// The kill points that did not come: process, name of the call, calls that were still to come.
    pub(super) fn missed(&self) -> Vec<(u32, String, u32)> {
        let missed = self.points.iter().filter(|point| point.left.get() > 0);
        missed.map(|point| (point.process, point.after.clone(), point.left.get())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_planned_comes_in_order_and_means_nothing_where_it_cannot() {
        let (s, start) = (Time::from_secs, Plan::Change(Change::Start));
        let steps = [(s(5), 0, Plan::Death), (s(0), 0, start), (s(5), 0, Plan::Return), (s(9), 0, start)];
        let mut lives = Lives::new(1, steps, Vec::new());
        assert_eq!(lives.due(s(0)), Some((0, start)));
        assert_eq!((lives.start(0, false), lives.due(s(4)), lives.next_at()), (Some(1), None, s(5)));
        assert_eq!(lives.due(s(5)), Some((0, Plan::Death)));
        assert_eq!((lives.kill(0), lives.kill(0)), (Some(1), None));
        assert_eq!(lives.due(s(5)), Some((0, Plan::Return)));
        assert_eq!((lives.start(0, true), lives.start(0, true)), (Some(2), None), "it runs already");
    }

    #[test]
    fn who_has_left_comes_back_only_if_told_to() {
        let mut lives = Lives::new(1, [], Vec::new());
        assert_eq!((lives.start(0, false), lives.leave(0)), (Some(1), true));
        assert_eq!((lives.kill(0), lives.start(0, true)), (Some(1), None));
        assert_eq!((lives.start(0, false), lives.leaves(ProcessIndex(0))), (Some(2), false));
        lives.kill(0);
        lives.stay_away(0);
        assert_eq!((lives.start(0, true), lives.start(0, false)), (None, Some(3)), "it was killed for good");
    }

    #[test]
    fn a_kill_point_counts_the_calls_of_its_process_with_its_name() {
        let point = KillPoint { process: 1, after: "incr".to_owned(), count: 2, restart_after: None };
        let any = KillPoint { process: 1, after: "any".to_owned(), count: 9, restart_after: None };
        let lives = Lives::new(2, [], vec![point, any]);
        let dies = |process, name| lives.dies_after(ProcessIndex(process), name).is_some();
        assert!(!dies(1, "incr") && !dies(0, "incr") && !dies(1, "expire"));
        assert!(dies(1, "incr"));
        assert!(!dies(1, "incr"), "once");
        assert_eq!(lives.missed(), [(1, "any".to_owned(), 5)]);
    }
}
