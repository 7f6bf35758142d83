//! The chats of a scenario.

use fake_telegram::api::{ChatIndex, ChatKind};

/// The chats of a scenario by index: those that it declares (private chats, then groups, then channels), then those
/// that workloads bring along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Population {
    kinds: Vec<ChatKind>,
    declared: [u32; 3],
}

/// The kinds, in the order in which declared chats are numbered.
pub const KINDS: [ChatKind; 3] = [ChatKind::Private, ChatKind::Group, ChatKind::Channel];

impl Population {
    /// A population of `private`, `groups` and `channels` declared chats.
    pub fn new(private: u32, groups: u32, channels: u32) -> Self {
        let declared = [private, groups, channels];
        let of = |kind, count: u32| std::iter::repeat_n(kind, count as usize);
        let kinds = KINDS.into_iter().zip(declared).flat_map(|(kind, count)| of(kind, count)).collect();
        Self { kinds, declared }
    }

    /// The declared chats of one kind.
    pub fn declared(&self, kind: ChatKind) -> std::ops::Range<u32> {
        let rank = kind as usize;
        let first = self.declared[..rank].iter().sum();
        first..first + self.declared[rank]
    }

    /// Adds chats of these kinds, which only their workload writes to; answers the index of the first.
    pub fn add(&mut self, kinds: impl IntoIterator<Item = ChatKind>) -> ChatIndex {
        let first = u32::try_from(self.kinds.len()).expect("a scenario has fewer than 2^32 chats");
        self.kinds.extend(kinds);
        ChatIndex(first)
    }

    /// The kind of each chat, by index.
    pub fn kinds(&self) -> &[ChatKind] {
        &self.kinds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chats_are_numbered_kind_by_kind_and_added_ones_follow() {
        let mut chats = Population::new(3, 2, 1);
        assert_eq!(chats.declared(ChatKind::Private), 0..3);
        assert_eq!(chats.declared(ChatKind::Group), 3..5);
        assert_eq!(chats.declared(ChatKind::Channel), 5..6);
        assert_eq!(chats.add([ChatKind::Group; 2]), ChatIndex(6));
        assert_eq!(chats.kinds().len(), 8);
        assert_eq!(chats.kinds()[4], ChatKind::Group);
        assert_eq!(chats.declared(ChatKind::Group), 3..5, "an added chat is not a declared one");
    }
}
