//! Queue depth by chat, the maximum: messages due in one chat that the sender is not done with.

use fake_telegram::api::ChatIndex;

/// Follows the longest queue in constant time a message: chats are counted by the length of their queue.
#[derive(Debug)]
pub(super) struct Depth {
    by_chat: Vec<u32>,
    /// How many chats have a queue of each length.
    chats_at: Vec<u32>,
    max: u32,
    /// The maximum since the last cut.
    max_since: u32,
    /// By message: whether the sender is done with it, a bit each.
    done: Vec<u64>,
    /// The maximum within each sample.
    pub(super) samples: Vec<u32>,
}

impl Depth {
    pub(super) fn new(chats: usize) -> Self {
        Self {
            by_chat: vec![0; chats],
            chats_at: vec![0; 2],
            max: 0,
            max_since: 0,
            done: Vec::new(),
            samples: Vec::new(),
        }
    }

    pub(super) fn joins(&mut self, chat: ChatIndex) {
        let Some(depth) = self.by_chat.get_mut(chat.0 as usize) else { return };
        *depth += 1;
        let new = *depth as usize;
        if new == self.chats_at.len() {
            self.chats_at.push(0);
        }
        self.chats_at[new] += 1;
        if new > 1 {
            self.chats_at[new - 1] -= 1;
        }
        if *depth > self.max {
            self.max = *depth;
            self.max_since = self.max_since.max(self.max);
            if let Some(sample) = self.samples.last_mut() {
                *sample = (*sample).max(self.max);
            }
        }
    }

    pub(super) fn leaves(&mut self, message: u32, chat: ChatIndex) {
        let (word, bit) = ((message / 64) as usize, 1_u64 << (message % 64));
        if self.done.len() <= word {
            self.done.resize(word + 1, 0);
        }
        if self.done[word] & bit != 0 {
            return;
        }
        self.done[word] |= bit;
        let Some(depth) = self.by_chat.get_mut(chat.0 as usize) else { return };
        let old = *depth as usize;
        *depth -= 1;
        self.chats_at[old] -= 1;
        if old > 1 {
            self.chats_at[old - 1] += 1;
        }
        while self.max > 0 && self.chats_at[self.max as usize] == 0 {
            self.max -= 1;
        }
    }

    pub(super) fn sample(&mut self) {
        self.samples.push(self.max);
    }

    /// The maximum since the last cut.
    pub(super) const fn max_since(&self) -> u32 {
        self.max_since
    }

    /// The maximum begins anew, with what is there.
    pub(super) const fn cut(&mut self) {
        self.max_since = self.max;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a scan over all chats.
        #[test]
        fn agrees_with_a_scan(steps in prop::collection::vec((0_u32..4, any::<bool>()), 1..300)) {
            let mut depth = Depth::new(4);
            depth.sample();
            let mut queues: [Vec<u32>; 4] = Default::default();
            let mut ever = 0;
            for (number, (chat, joins)) in steps.into_iter().enumerate() {
                let queue = &mut queues[chat as usize];
                if joins {
                    queue.push(number as u32);
                    depth.joins(ChatIndex(chat));
                } else if let Some(message) = queue.pop() {
                    depth.leaves(message, ChatIndex(chat));
                    depth.leaves(message, ChatIndex(chat));
                }
                let longest = queues.iter().map(Vec::len).max().unwrap_or(0) as u32;
                ever = ever.max(longest);
                prop_assert_eq!(depth.max, longest);
                prop_assert_eq!(depth.max_since(), ever);
                prop_assert_eq!(depth.samples[0], ever);
            }
        }
    }
}
