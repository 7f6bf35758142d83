//! Several workloads as one stream.

use fake_telegram::api::ChatIndex;
use fake_telegram::time::Time;

use super::{Arrival, Arrivals};

/// Merges streams by due instant; ties in the streams' order. Allocates nothing per arrival.
pub struct Merge {
    streams: Vec<Stream>,
}

struct Stream {
    /// When its next arrival is due; [`Time::MAX`] at its end, so that finding the earliest reads one array.
    due: Time,
    next: Option<Arrival>,
    rest: Arrivals,
}

impl Merge {
    /// Merges `streams`, each in order of time.
    pub fn new(streams: impl IntoIterator<Item = Arrivals>) -> Self {
        let streams = streams.into_iter().map(|rest| {
            let mut stream = Stream { due: Time::MAX, next: None, rest };
            stream.advance();
            stream
        });
        Self { streams: streams.collect() }
    }
}

impl Stream {
    fn advance(&mut self) -> Option<Arrival> {
        let arrival = self.next;
        self.next = self.rest.next();
        self.due = self.next.map_or(Time::MAX, |next| next.due);
        assert!(
            arrival.is_none_or(|arrival| arrival.due <= self.due),
            "a workload's arrivals come in order of time"
        );
        arrival
    }
}

impl std::fmt::Debug for Merge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.streams.iter().map(|stream| stream.next)).finish()
    }
}

/// When, in which chat, and the index of the stream.
impl Iterator for Merge {
    type Item = (Time, ChatIndex, usize);

    fn next(&mut self) -> Option<Self::Item> {
        // A scenario has a handful of workloads: looking at all heads beats a heap.
        let (index, stream) = self.streams.iter_mut().enumerate().min_by_key(|(_, stream)| stream.due)?;
        let Arrival { due, chat } = stream.advance()?;
        Some((due, chat, index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_in_order_of_time_and_ties_in_order_of_streams() {
        let stream = |dues: &'static [u64]| -> Arrivals {
            Box::new(dues.iter().map(|due| Arrival { due: Time::from_micros(*due), chat: ChatIndex(0) }))
        };
        let merged: Vec<(u64, usize)> = Merge::new([stream(&[1, 4, 4]), stream(&[]), stream(&[0, 1, 4, 9])])
            .map(|(due, _, index)| (due.as_micros(), index))
            .collect();
        assert_eq!(merged, [(0, 2), (1, 0), (1, 2), (4, 0), (4, 0), (4, 2), (9, 2)]);
    }
}
