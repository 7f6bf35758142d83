//! A lane per chat: strictly first in, first out inside a chat, by rank and then in rotation between chats.
//!
//! A lane holds messages, not tasks: an idle chat costs 40 bytes and no event. Its head stays in it while it is in
//! flight, so a refused message loses its place to nobody.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use fake_telegram::api::{ChatIndex, ChatKind};
use fake_telegram::bucket::{BucketState, TokenBucket};
use fake_telegram::time::Time;

use crate::world::Message;

/// Ranks of messages: 0 goes first.
pub const RANKS: usize = 4;
/// No node.
const NONE: u32 = u32::MAX;

/// How fast each kind of chat is written to.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Private chats.
    pub private: TokenBucket,
    /// Groups.
    pub group: TokenBucket,
    /// Channels.
    pub channel: TokenBucket,
}

/// A message to be sent now, and how often it was tried in vain before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// The message.
    pub message: Message,
    /// Attempts so far after which nobody knows whether it arrived.
    pub tries: u8,
}

/// The lanes of all chats.
#[derive(Debug)]
pub struct Lanes {
    pace: Pace,
    lanes: Vec<Lane>,
    nodes: Vec<Node>,
    free: u32,
    pushed: u32,
    /// By rank: lanes that may send now. An entry counts only while its lane is ready and of that rank.
    ready: [VecDeque<ChatIndex>; RANKS],
    ready_lanes: usize,
    /// Lanes that wait for their date.
    blocked: BinaryHeap<Reverse<(Time, u32)>>,
}

#[derive(Debug, Clone, Copy)]
struct Lane {
    head: u32,
    tail: u32,
    bucket: BucketState,
    /// By rank: the latest message pushed, as its number in the order of pushes. A rank waits in the lane while that
    /// is not before the head.
    latest: [u32; RANKS],
    state: State,
    rank: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Empty,
    Ready,
    Blocked,
    InFlight,
    /// The chat cannot receive.
    Dead,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    message: Message,
    pushed: u32,
    next: u32,
    tries: u8,
}

const EMPTY: Lane = Lane {
    head: NONE,
    tail: NONE,
    bucket: BucketState::from_bits(0),
    latest: [0; RANKS],
    state: State::Empty,
    rank: 0,
};

impl Pace {
    const fn of(&self, kind: ChatKind) -> &TokenBucket {
        match kind {
            ChatKind::Private => &self.private,
            ChatKind::Group => &self.group,
            ChatKind::Channel => &self.channel,
        }
    }
}

impl Lanes {
    /// Empty lanes.
    pub fn new(pace: Pace) -> Self {
        Self {
            pace,
            lanes: Vec::new(),
            nodes: Vec::new(),
            free: NONE,
            pushed: 0,
            ready: Default::default(),
            ready_lanes: 0,
            blocked: BinaryHeap::new(),
        }
    }

    /// A message joins its lane. Returns it if its chat is known to be dead.
    pub fn push(&mut self, message: Message, rank: usize, now: Time) -> Option<Message> {
        let chat = message.chat.0 as usize;
        if chat >= self.lanes.len() {
            self.lanes.resize(chat + 1, EMPTY);
        }
        if self.lanes[chat].state == State::Dead {
            return Some(message);
        }
        self.pushed += 1;
        let node = self.node(Node { message, pushed: self.pushed, next: NONE, tries: 0 });
        let lane = &mut self.lanes[chat];
        lane.latest[rank] = self.pushed;
        if lane.head == NONE {
            (lane.head, lane.tail) = (node, node);
            self.resume(message.chat, message.kind, now, Time::ZERO);
            return None;
        }
        let before = std::mem::replace(&mut lane.tail, node);
        self.nodes[before as usize].next = node;
        if rank < usize::from(lane.rank) {
            lane.rank = rank as u8;
            if lane.state == State::Ready {
                self.ready[rank].push_back(message.chat);
            }
        }
        None
    }

    /// The next message to send, of the highest rank that is ready; its lane then waits for
    /// [`finish`](Lanes::finish) or [`postpone`](Lanes::postpone). Messages whose deadline is over go to `expired`.
    pub fn pop(&mut self, now: Time, expired: &mut Vec<Message>) -> Option<Offer> {
        for rank in 0..RANKS {
            while let Some(chat) = self.ready[rank].pop_front() {
                let lane = &self.lanes[chat.0 as usize];
                if lane.state != State::Ready || usize::from(lane.rank) != rank {
                    continue;
                }
                self.ready_lanes -= 1;
                let Node { message, tries, .. } = self.nodes[lane.head as usize];
                if message.deadline < now {
                    expired.push(message);
                    self.advance(chat, now, Time::ZERO);
                    continue;
                }
                let lane = &mut self.lanes[chat.0 as usize];
                lane.state = State::InFlight;
                self.pace.of(message.kind).take(&mut lane.bucket, now);
                return Some(Offer { message, tries });
            }
        }
        None
    }

    /// The message in flight in `chat` is done with.
    pub fn finish(&mut self, chat: ChatIndex, now: Time) {
        self.advance(chat, now, Time::ZERO);
    }

    /// The message in flight in `chat` stays the head of its lane and is not sent before `until`. `in_vain` if
    /// nobody knows whether it arrived.
    pub fn postpone(&mut self, chat: ChatIndex, now: Time, until: Time, in_vain: bool) {
        let node = &mut self.nodes[self.lanes[chat.0 as usize].head as usize];
        node.tries += u8::from(in_vain);
        let kind = node.message.kind;
        self.resume(chat, kind, now, until);
    }

    /// `chat` cannot receive: the message in flight is done with, and what waits behind it is returned. Whatever is
    /// pushed later comes back at once.
    pub fn close(&mut self, chat: ChatIndex) -> Vec<Message> {
        let mut waiting = Vec::new();
        let mut node = self.unlink(chat);
        while node != NONE {
            waiting.push(self.nodes[node as usize].message);
            node = self.unlink(chat);
        }
        self.lanes[chat.0 as usize].state = State::Dead;
        waiting
    }

    /// Lanes whose date has come become ready.
    pub fn promote(&mut self, now: Time) {
        while let Some(Reverse((at, chat))) = self.blocked.peek().copied()
            && at <= now
        {
            self.blocked.pop();
            self.make_ready(ChatIndex(chat));
        }
    }

    /// Whether some lane may send now.
    pub const fn is_ready(&self) -> bool {
        self.ready_lanes > 0
    }

    /// When the next blocked lane becomes ready; [`Time::MAX`] if none waits for its date.
    pub fn next_at(&self) -> Time {
        self.blocked.peek().map_or(Time::MAX, |Reverse((at, _))| *at)
    }

    /// The head of `chat`'s lane leaves it, and the lane goes on, not before `until`.
    fn advance(&mut self, chat: ChatIndex, now: Time, until: Time) {
        let next = self.unlink(chat);
        if next == NONE {
            self.lanes[chat.0 as usize].state = State::Empty;
        } else {
            self.resume(chat, self.nodes[next as usize].message.kind, now, until);
        }
    }

    /// A lane with messages becomes ready, or waits for its date.
    fn resume(&mut self, chat: ChatIndex, kind: ChatKind, now: Time, until: Time) {
        let lane = &mut self.lanes[chat.0 as usize];
        let at = until.max(now + self.pace.of(kind).wait(lane.bucket, now));
        if at > now {
            lane.state = State::Blocked;
            // Ranked when it becomes ready: until then it may be joined by others.
            lane.rank = 0;
            self.blocked.push(Reverse((at, chat.0)));
        } else {
            self.make_ready(chat);
        }
    }

    fn make_ready(&mut self, chat: ChatIndex) {
        let lane = &mut self.lanes[chat.0 as usize];
        let head = self.nodes[lane.head as usize].pushed;
        let rank = lane.latest.iter().position(|latest| *latest >= head).expect("a lane has a head");
        (lane.state, lane.rank) = (State::Ready, rank as u8);
        self.ready[rank].push_back(chat);
        self.ready_lanes += 1;
    }

    /// Takes the head out of a lane; the new head.
    fn unlink(&mut self, chat: ChatIndex) -> u32 {
        let lane = &mut self.lanes[chat.0 as usize];
        let head = lane.head;
        lane.head = self.nodes[head as usize].next;
        if lane.head == NONE {
            lane.tail = NONE;
        }
        self.nodes[head as usize].next = self.free;
        self.free = head;
        lane.head
    }

    fn node(&mut self, node: Node) -> u32 {
        if self.free == NONE {
            self.nodes.push(node);
            return (self.nodes.len() - 1) as u32;
        }
        let index = self.free;
        self.free = self.nodes[index as usize].next;
        self.nodes[index as usize] = node;
        index
    }
}

#[cfg(test)]
mod tests;
