//! The lives of a group's processes: the entries of a timeline become steps, as far as they are known before the run.

mod entry;
mod course;
#[cfg(test)]
mod tests;

use std::iter;
use std::ops::Range;

use fake_telegram::time::{Duration, Time};

use self::course::{Act, Course};
use self::entry::{ONCE, Reading, What, When};
use super::{Reader, Result, value};
use crate::one_or_many::OneOrMany;
use crate::scenario::Timeline;
use crate::scenario::document::Table;
use crate::scenario::settings::{Entry, GroupSettings};
use crate::strategy::Configured;
use crate::world::{KillPoint, Kills};

/// More deaths by chance than this in one run are a slip of the keyboard.
const DEATHS_MAX: u64 = 100_000;

/// More tasks than this, started by those who come back in one run, are a slip of the keyboard.
const STARTS_MAX: u64 = 10_000_000;

/// What deaths by chance are to be expected in a run of a design, and what they cost.
#[derive(Debug, Default)]
pub(super) struct Toll {
    deaths: u64,
    /// Workers that start anew.
    starts: u64,
}

/// What is known of a group when its timeline is read.
pub(super) struct Frame<'a> {
    pub(super) strategy: &'a dyn Configured,
    /// How many processes it has without its timeline.
    pub(super) processes: u32,
    /// Workers in each.
    pub(super) workers: u32,
    /// When these start.
    pub(super) start: Time,
    /// The end of the run.
    pub(super) horizon: Time,
}

impl Frame<'_> {
    fn too_late(&self, at: Time) -> String {
        format!("{at} is not before the end of the run at {}", self.horizon)
    }
}

/// The processes of a group.
#[derive(Debug)]
pub(super) struct Lives {
    /// How many there ever are.
    pub(super) processes: u32,
    pub(super) timeline: Timeline,
    /// How far the clock of each is ahead.
    pub(super) skew: Vec<Duration>,
    /// The keys `start`, `skew` and `timeline` with everything filled in.
    pub(super) normal: [(&'static str, toml::Value); 3],
}

impl Reader<'_> {
    /// Reads `start`, `skew` and `timeline`. `toll` adds up over the design's groups.
    pub(super) fn lives(
        &self,
        settings: &GroupSettings,
        frame: &Frame<'_>,
        written: &Table<'_>,
        toll: &mut Toll,
    ) -> Result<Lives> {
        let wrong = |span: Range<usize>, key: Option<&str>, message: String| {
            let table = self.document.header(span.start);
            let message = match key {
                Some(key) => format!("`{key}` in {table}: {message}"),
                None => format!("{table} {message}"),
            };
            self.document.wrong(span, message)
        };
        if frame.start >= frame.horizon {
            let message = format!("{}, so its processes never run", frame.too_late(frame.start));
            return Err(wrong(written.at("start"), Some("start"), message));
        }
        let mut entries = settings.timeline.clone().unwrap_or_default();
        let (processes, timeline) = resolve(&entries, frame, toll)
            .map_err(|error| wrong(place(written, error.entry, error.key), error.key, error.message))?;
        for entry in entries.iter_mut().filter(|entry| entry.after.is_some()) {
            entry.count.get_or_insert(ONCE);
        }
        let given = settings.skew.clone().unwrap_or_else(|| OneOrMany(vec![Duration::ZERO]));
        let skew =
            skews(&given.0, processes).map_err(|message| wrong(written.at("skew"), Some("skew"), message))?;
        let normal = [
            ("start", value(&(frame.start - Time::ZERO))),
            ("skew", value(&given)),
            ("timeline", value(&entries)),
        ];
        Ok(Lives { processes, timeline, skew, normal })
    }
}

/// What is wrong with an entry, and with which of its keys.
#[derive(Debug)]
struct Wrong {
    entry: usize,
    key: Option<&'static str>,
    message: String,
}

/// All processes that ever are, and what happens to them.
fn resolve(entries: &[Entry], frame: &Frame<'_>, toll: &mut Toll) -> Result<(u32, Timeline), Wrong> {
    let mut acts = vec![(frame.start, 0, Act::Begin)];
    let (mut kill_points, mut kills) = (Vec::new(), Vec::new());
    for (index, entry) in entries.iter().enumerate() {
        let restart_after = entry.restart_after;
        match (Reading { entry, index, frame }).read()? {
            (When::At(at), what) => {
                acts.extend(Act::all(at, &what, restart_after).into_iter().map(|(at, act)| (at, index, act)));
            }
            (When::After { call, count }, What::Kill(processes)) => {
                let point = |process| KillPoint { process, after: call.to_owned(), count, restart_after };
                kill_points.extend(processes.iter().map(|process| (index, point(*process))));
            }
            (When::Every(every), What::Kill(processes)) => {
                let of = |process| Kills { process, every, restart_after };
                kills.extend(processes.iter().map(|process| (index, of(*process))));
            }
            _ => unreachable!("what does not happen `at` an instant is a `kill`"),
        }
    }
    let named = kill_points.iter().map(|(entry, point): &(usize, KillPoint)| (*entry, point.process));
    let named = named.chain(kills.iter().map(|(entry, kills): &(usize, Kills)| (*entry, kills.process)));
    let mut course = Course::new(frame, named.clone().map(|(_, process)| process).collect());
    acts.sort_by_key(|(at, ..)| *at);
    for (at, entry, act) in acts {
        course.act(at, act).map_err(|(key, message)| Wrong { entry, key: Some(key), message })?;
    }
    let born = course.born();
    if let Some((entry, process)) = named.clone().find(|(_, process)| *process as usize >= born.len()) {
        let message = format!("the group never has a process {process}; it has {}", numbers(born.len()));
        return Err(Wrong { entry, key: Some("kill"), message });
    }
    for (entry, kills) in &kills {
        let life = frame.horizon - born[kills.process as usize];
        toll.add(life, kills, frame.workers).map_err(|message| Wrong {
            entry: *entry,
            key: Some("every"),
            message,
        })?;
    }
    let timeline = Timeline {
        steps: course.steps,
        kill_points: kill_points.into_iter().map(|(_, point)| point).collect(),
        kills: kills.into_iter().map(|(_, kills)| kills).collect(),
    };
    Ok((born.len() as u32, timeline))
}

impl Toll {
    /// Adds what is to be expected in so long a life of a process with so many workers; what is wrong if that is too
    /// much.
    fn add(&mut self, life: Duration, kills: &Kills, workers: u32) -> Result<(), String> {
        let every = kills.every;
        let (deaths, starts) = match kills.restart_after {
            Some(pause) => {
                let deaths = life / every.saturating_add(pause);
                (deaths, deaths.saturating_mul(workers.into()))
            }
            None => (1, 0),
        };
        self.deaths = self.deaths.saturating_add(deaths);
        self.starts = self.starts.saturating_add(starts);
        let Self { deaths, starts } = *self;
        if deaths > DEATHS_MAX {
            return Err(format!(
                "{every} leads to some {deaths} deaths in a run; at most {DEATHS_MAX} are possible, so make it longer"
            ));
        }
        if starts > STARTS_MAX {
            return Err(format!(
                "{every} lets some {starts} workers start anew in a run, {workers} after each death; at most {STARTS_MAX} are possible, so make it longer or have fewer `workers`"
            ));
        }
        Ok(())
    }
}

/// The skew of each process: the last one that is given holds for all further ones.
fn skews(given: &[Duration], processes: u32) -> Result<Vec<Duration>, String> {
    let Some(last) = given.last() else {
        return Err("an empty list; write one for all processes, or one for each".to_owned());
    };
    if given.len() > processes as usize {
        return Err(format!("{} values, more than processes ({processes}); leave some out", given.len()));
    }
    if let Some(skew) = given.iter().find(|skew| **skew > SKEW_MAX) {
        return Err(format!("{skew} is longer than a run can be"));
    }
    Ok(given.iter().chain(iter::repeat(last)).take(processes as usize).copied().collect())
}

/// Where a key of an entry stands.
fn place(written: &Table<'_>, entry: usize, key: Option<&str>) -> Range<usize> {
    let entries = written.entries.get("timeline").and_then(|timeline| timeline.get_ref().as_array());
    let Some(entry) = entries.and_then(|entries| entries.get(entry)) else { return written.at("timeline") };
    let value = key.and_then(|key| entry.get_ref().as_table()?.get(key));
    value.unwrap_or(entry).span()
}

/// The numbers of so many processes, at least 1.
fn numbers(processes: usize) -> String {
    match processes {
        1 => "process 0 alone".to_owned(),
        processes => format!("processes 0 to {}", processes - 1),
    }
}

/// As long as the longest run, so that adding it to an instant does not overflow.
const SKEW_MAX: Duration = Duration::from_micros(1 << 62);
