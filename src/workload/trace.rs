//! Recorded traffic, played again.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::Read;
use std::sync::Arc;

use fake_telegram::api::{ChatIndex, ChatKind};
use fake_telegram::time::{Duration, Time};
use fake_telegram::units::Count;
use flate2::read::MultiGzDecoder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::audience::below;
use super::factor::Factor;
use super::{Arrival, Site, Source, Workload, WorkloadError};
use crate::rng;

/// Recorded traffic, played again into chats of its own.
///
/// The file is CSV with the header `due_ms,chat,kind`, plain or gzip, in order of `due_ms`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// The path, relative to the scenario's file.
    pub file: String,
    /// How many times faster than recorded.
    #[serde(default = "as_recorded")]
    pub speed: Factor,
    /// So many copies at once, each with chats of its own.
    #[serde(default = "once")]
    pub repeat: Count,
    /// Each copy starts later by a time below this, drawn from the seed.
    #[serde(default)]
    pub stagger: Duration,
    /// Each row becomes this many messages, one to each of as many private chats: the subscribers of the row's chat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fan_out: Option<Count>,
}

impl Workload for Trace {
    const KIND: &'static str = "trace";
    const SUMMARY: &'static str = "recorded traffic (`due_ms,chat,kind`), faster, in copies, or fanned out";

    fn prepare(self, site: &mut Site<'_>) -> Result<Source, WorkloadError> {
        let end = Time::ZERO + site.duration;
        let recording = Recording::parse(&self.file, site.read("file", &self.file)?)
            .map_err(|message| WorkloadError::new("file", message))?;
        let rows = recording.at_speed(self.speed, end);
        let fan_out = match self.fan_out {
            Some(Count(0)) => return Err(WorkloadError::new("fan_out", "a message to nobody; at least 1")),
            fan_out => fan_out.map_or(1, |Count(n)| n),
        };
        if self.repeat.0 == 0 {
            return Err(WorkloadError::new("repeat", "no copy at all; at least 1"));
        }
        // Chats of a copy lie together, and in it the subscribers of a chat.
        let kinds = match self.fan_out {
            Some(_) => vec![ChatKind::Private; recording.kinds.len()],
            None => recording.kinds,
        };
        let size = kinds.len() as u64 * fan_out;
        let Some(total) = size.checked_mul(self.repeat.0).filter(|total| *total <= CHATS_MAX) else {
            let key = if self.fan_out.is_some() { "fan_out" } else { "repeat" };
            return Err(WorkloadError::new(key, format!("more than {CHATS_MAX} chats")));
        };
        let first = site.chats.add(
            kinds
                .iter()
                .flat_map(|kind| std::iter::repeat_n(*kind, fan_out as usize))
                .cycle()
                .take(total as usize),
        );
        let (copies, fan_out, size) = (self.repeat.0 as u32, fan_out as u32, size as u32);
        let rows: Arc<[Row]> = rows.into();
        let purpose = site.purpose();
        Ok(Box::new(move |seed| {
            let mut stream = rng::stream(seed, &format!("{purpose}/stagger"));
            let mut shift = || {
                let shift = below(&mut stream, 1 << 31);
                Duration::from_micros(
                    ((u128::from(self.stagger.as_micros()) * u128::from(shift)) >> 31) as u64,
                )
            };
            let cursors =
                (0..copies).map(|copy| Cursor { shift: shift(), chats: first.0 + copy * size, row: 0 });
            let mut player = Player {
                rows: Arc::clone(&rows),
                end,
                fan_out,
                cursors: cursors.collect(),
                next: BinaryHeap::with_capacity(copies as usize),
                current: None,
            };
            (0..copies).for_each(|copy| player.queue(copy));
            Box::new(player)
        }))
    }
}

fn as_recorded() -> Factor {
    Factor::ONE
}

fn once() -> Count {
    Count(1)
}

/// More chats than any platform has; a guard against a slip of the keyboard.
const CHATS_MAX: u64 = 100_000_000;

/// A trace as it stands in its file.
#[derive(Debug)]
struct Recording {
    /// Milliseconds and chat of each row; chats are numbered in order of first appearance.
    rows: Vec<(u64, u32)>,
    /// The kind of each chat.
    kinds: Vec<ChatKind>,
}

#[derive(Debug, Clone, Copy)]
struct Row {
    due: Time,
    chat: u32,
}

/// One line of the file.
struct Line {
    due_ms: u64,
    chat: u64,
    kind: ChatKind,
}

impl Recording {
    /// Reads CSV, packed if `bytes` begin like gzip does. The error names file and line and shows the line.
    fn parse(file: &str, bytes: &[u8]) -> Result<Self, String> {
        let mut unpacked = Vec::new();
        let text = if bytes.starts_with(&[0x1f, 0x8b]) {
            MultiGzDecoder::new(bytes)
                .read_to_end(&mut unpacked)
                .map_err(|error| format!("{file} cannot be unpacked: {error}"))?;
            unpacked.as_slice()
        } else {
            bytes
        };
        let wrong = |line: u64, what: &str| {
            let content =
                text.split(|byte| *byte == b'\n').nth(line.saturating_sub(1) as usize).unwrap_or_default();
            let content = String::from_utf8_lossy(content);
            format!("{file}:{line}: {what}\n{}", content.trim_end().chars().take(100).collect::<String>())
        };
        let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text);
        let headers = reader.headers().map_err(|error| wrong(1, &error.to_string()))?.clone();
        if headers != vec!["due_ms", "chat", "kind"] {
            return Err(wrong(1, "the first line must be `due_ms,chat,kind`"));
        }
        let mut this = Self { rows: Vec::new(), kinds: Vec::new() };
        let mut numbers = BTreeMap::new();
        let mut last = 0;
        let mut record = csv::StringRecord::new();
        loop {
            // The reader skips empty lines, so the line is where the record began.
            match reader.read_record(&mut record) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    return Err(wrong(error.position().map_or(1, csv::Position::line), "not UTF-8"));
                }
            }
            let at = record.position().map_or(1, csv::Position::line);
            if record.len() != 3 {
                return Err(wrong(at, "not three fields `due_ms,chat,kind`"));
            }
            let line = Line::read(&record).map_err(|what| wrong(at, &what))?;
            if line.due_ms < last {
                return Err(wrong(at, &format!("not in order of `due_ms`: {} follows {last}", line.due_ms)));
            }
            last = line.due_ms;
            let number = *numbers.entry(line.chat).or_insert_with(|| {
                this.kinds.push(line.kind);
                this.kinds.len() as u32 - 1
            });
            if this.kinds[number as usize] != line.kind {
                return Err(wrong(at, &format!("chat {} was of another kind before", line.chat)));
            }
            this.rows.push((line.due_ms, number));
        }
        if this.rows.is_empty() {
            return Err(format!("{file} has no rows"));
        }
        Ok(this)
    }

    /// The rows that fall due before `end`, `speed` times as fast.
    fn at_speed(&self, speed: Factor, end: Time) -> Vec<Row> {
        let rows = self.rows.iter().map(|(due_ms, chat)| {
            let micros = u128::from(*due_ms) * 1_000 * u128::from(Factor::ONE.as_millionths())
                / u128::from(speed.as_millionths());
            Row { due: Time::from_micros(u64::try_from(micros).unwrap_or(u64::MAX)), chat: *chat }
        });
        rows.take_while(|row| row.due < end).collect()
    }
}

impl Line {
    fn read(record: &csv::StringRecord) -> Result<Self, String> {
        let number = |index: usize, name: &str| {
            record[index]
                .trim()
                .parse()
                .map_err(|_| format!("{name} `{}` is not a whole number", &record[index]))
        };
        let kind = match record[2].trim() {
            "private" => ChatKind::Private,
            "group" => ChatKind::Group,
            "channel" => ChatKind::Channel,
            other => return Err(format!("kind `{other}` is none of private, group, channel")),
        };
        Ok(Self { due_ms: number(0, "due_ms")?, chat: number(1, "chat")?, kind })
    }
}

/// One copy of the trace.
#[derive(Debug)]
struct Cursor {
    shift: Duration,
    /// Its first chat.
    chats: u32,
    row: usize,
}

/// Plays the copies, merged by time; ties in the copies' order.
struct Player {
    rows: Arc<[Row]>,
    end: Time,
    fan_out: u32,
    cursors: Vec<Cursor>,
    next: BinaryHeap<Reverse<(Time, u32)>>,
    /// The row being fanned out: when, its first chat, and how many are still to come.
    current: Option<(Time, u32, u32)>,
}

impl Player {
    /// Puts the next row of a copy into the queue, if it has one before the end.
    fn queue(&mut self, copy: u32) {
        let cursor = &self.cursors[copy as usize];
        let due = self.rows.get(cursor.row).map(|row| row.due.saturating_add(cursor.shift));
        if let Some(due) = due.filter(|due| *due < self.end) {
            self.next.push(Reverse((due, copy)));
        }
    }
}

impl Iterator for Player {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        if self.current.is_none() {
            let Reverse((due, copy)) = self.next.pop()?;
            let cursor = &mut self.cursors[copy as usize];
            let chat = cursor.chats + self.rows[cursor.row].chat * self.fan_out;
            cursor.row += 1;
            self.queue(copy);
            self.current = Some((due, chat, self.fan_out));
        }
        let (due, chat, left) = self.current?;
        self.current = (left > 1).then_some((due, chat + 1, left - 1));
        Some(Arrival { due, chat: ChatIndex(chat) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::population::Population;

    const CSV: &str = "due_ms,chat,kind\n0,7,group\n1000,3,private\n1000,7,group\n2500,9,channel\n";

    /// (milliseconds, chat) of every arrival of [`CSV`], and the kinds of the chats declared.
    fn play(toml: &str) -> (Vec<(u64, u32)>, Vec<ChatKind>) {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("trace.csv"), CSV).expect("written");
        let mut chats = Population::new(10, 0, 0);
        let duration = Duration::from_secs(60);
        let mut site =
            Site { name: "t", duration, chats: &mut chats, directory: directory.path(), files: Vec::new() };
        let trace: Trace = toml::from_str(&format!("file = 'trace.csv'\n{toml}")).expect("parameters");
        let source = trace.prepare(&mut site).expect("fits");
        (source(1).map(|a| (a.due.as_micros() / 1_000, a.chat.0)).collect(), chats.kinds()[10..].to_vec())
    }

    #[test]
    fn rows_are_played_exactly() {
        use ChatKind::{Channel, Group, Private};
        let (arrivals, kinds) = play("");
        assert_eq!(arrivals, [(0, 10), (1_000, 11), (1_000, 10), (2_500, 12)]);
        assert_eq!(kinds, [Group, Private, Channel]);
        assert_eq!(play("speed = 2.5").0, [(0, 10), (400, 11), (400, 10), (1_000, 12)]);
    }

    #[test]
    fn copies_have_chats_of_their_own() {
        let (arrivals, kinds) = play("repeat = 2");
        let expected =
            [(0, 10), (0, 13), (1_000, 11), (1_000, 14), (1_000, 10), (1_000, 13), (2_500, 12), (2_500, 15)];
        let sorted = |mut list: Vec<(u64, u32)>| {
            list.sort_unstable();
            list
        };
        assert!(arrivals.is_sorted_by_key(|(due, _)| *due));
        assert_eq!(sorted(arrivals), sorted(expected.to_vec()));
        assert_eq!(kinds.len(), 6);
        let (shifted, _) = play("repeat = 2\nstagger = '10s'");
        assert_eq!(shifted.len(), 8);
        assert!(shifted.is_sorted_by_key(|(due, _)| *due) && shifted[0].0 > 0);
    }

    #[test]
    fn each_row_fans_out_to_the_subscribers_of_its_chat() {
        let (arrivals, kinds) = play("fan_out = 2");
        assert_eq!(arrivals[..4], [(0, 10), (0, 11), (1_000, 12), (1_000, 13)]);
        assert_eq!(arrivals[4..], [(1_000, 10), (1_000, 11), (2_500, 14), (2_500, 15)]);
        assert_eq!(kinds, [ChatKind::Private; 6]);
    }

    #[test]
    fn errors_name_the_line_and_show_it() {
        let check = |rest: &str, expected: &str| {
            let text = format!("due_ms,chat,kind\n5,1,private\n{rest}\n");
            assert_eq!(Recording::parse("t.csv", text.as_bytes()).expect_err(rest), expected);
        };
        check("6,x,private", "t.csv:3: chat `x` is not a whole number\n6,x,private");
        check("6,1,room", "t.csv:3: kind `room` is none of private, group, channel\n6,1,room");
        check("4,1,private", "t.csv:3: not in order of `due_ms`: 4 follows 5\n4,1,private");
        check("6,1", "t.csv:3: not three fields `due_ms,chat,kind`\n6,1");
        check("6,1,group", "t.csv:3: chat 1 was of another kind before\n6,1,group");
        assert!(Recording::parse("t.csv", b"a,b\n").expect_err("header").contains("the first line must be"));
        assert_eq!(Recording::parse("t.csv", b"due_ms,chat,kind\n").expect_err("empty"), "t.csv has no rows");
        assert!(Recording::parse("t.csv.gz", &[0x1f, 0x8b, 1]).expect_err("gzip").contains("unpacked"));
    }
}
