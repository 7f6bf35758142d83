//! A lane per chat: strictly first in, first out inside a chat, by rank and then in rotation between chats.
//!
//! A lane holds messages, not tasks: an idle chat costs 40 bytes and no event. Its head stays in it while it is in
//! flight, so a refused message loses its place to nobody.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use fake_telegram::api::{ChatIndex, ChatKind};
use fake_telegram::bucket::BucketState;
use fake_telegram::time::{Duration, Time};

use super::leases::Leases;
use super::offer::{Offer, Pace, Postponed};
use crate::world::Message;

/// Ranks of messages: 0 goes first.
pub const RANKS: usize = 4;
/// No node.
const NONE: u32 = u32::MAX;

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
    /// Dead chats whose messages have not left yet.
    closing: Vec<ChatIndex>,
    leases: Leases,
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
    /// Of its offer while it is in flight.
    ticket: u32,
    tries: u8,
    refusals: u8,
}

const EMPTY: Lane = Lane {
    head: NONE,
    tail: NONE,
    bucket: BucketState::from_bits(0),
    latest: [0; RANKS],
    state: State::Empty,
    rank: 0,
};

impl Lanes {
    /// Empty lanes, whose messages may be in flight for as long as `lease`.
    pub fn new(pace: Pace, lease: Duration) -> Self {
        Self {
            pace,
            lanes: Vec::new(),
            nodes: Vec::new(),
            free: NONE,
            pushed: 0,
            ready: Default::default(),
            ready_lanes: 0,
            blocked: BinaryHeap::new(),
            closing: Vec::new(),
            leases: Leases::new(lease),
        }
    }

    /// A message joins its lane. Returns it if its chat is known to be dead; if `revives`, one that answers its user
    /// tells that the chat is not.
    pub fn push(&mut self, message: Message, rank: usize, now: Time, revives: bool) -> Option<Message> {
        let chat = message.chat.0 as usize;
        if chat >= self.lanes.len() {
            self.lanes.resize(chat + 1, EMPTY);
        }
        if self.lanes[chat].state == State::Dead {
            if !(revives && message.from_user) {
                return Some(message);
            }
            self.lanes[chat].state = State::Empty;
            if self.lanes[chat].head != NONE {
                // What has not left yet may go after all.
                self.closing.retain(|closing| *closing != message.chat);
                self.resume(message.chat, message.kind, now, Time::ZERO);
            }
        }
        self.pushed += 1;
        let node =
            self.node(Node { message, pushed: self.pushed, next: NONE, ticket: 0, tries: 0, refusals: 0 });
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

    /// The next message to send, of the highest rank that is ready; it is in flight from now on, and its lane waits for
    /// [`finish`](Lanes::finish), [`postpone`](Lanes::postpone) or [`close`](Lanes::close). Messages whose deadline is
    /// over and those to chats that were closed go to `expired`.
    pub fn pop(&mut self, now: Time, expired: &mut Vec<Message>) -> Option<Offer> {
        while let Some(chat) = self.closing.pop() {
            while self.lanes[chat.0 as usize].head != NONE {
                expired.push(self.nodes[self.lanes[chat.0 as usize].head as usize].message);
                self.unlink(chat);
            }
        }
        for rank in 0..RANKS {
            while let Some(chat) = self.ready[rank].pop_front() {
                let lane = &self.lanes[chat.0 as usize];
                if lane.state != State::Ready || usize::from(lane.rank) != rank {
                    continue;
                }
                self.ready_lanes -= 1;
                let head = lane.head as usize;
                let Node { message, tries, refusals, .. } = self.nodes[head];
                if message.deadline < now {
                    expired.push(message);
                    self.advance(chat, now, Time::ZERO);
                    continue;
                }
                let lane = &mut self.lanes[chat.0 as usize];
                lane.state = State::InFlight;
                self.pace.of(message.kind).take(&mut lane.bucket, now);
                let (leased_until, ticket) = self.leases.begin(now, chat.0);
                self.nodes[head].ticket = ticket;
                return Some(Offer { message, tries, refusals, leased_until, ticket, slot: chat.0 });
            }
        }
        None
    }

    /// The message in flight is done with. An offer whose lease has ended means nothing any more, here and below.
    pub fn finish(&mut self, offer: &Offer, now: Time) {
        if self.is_in_flight(offer) {
            self.advance(offer.message.chat, now, Time::ZERO);
        }
    }

    /// The message in flight stays the head of its lane and does not go before `until`.
    /// Whether it did.
    pub fn postpone(&mut self, offer: &Offer, now: Time, until: Time, why: Postponed) -> bool {
        if !self.is_in_flight(offer) {
            return false;
        }
        let chat = offer.message.chat;
        let lane = &mut self.lanes[chat.0 as usize];
        if why == Postponed::HeldBack {
            self.pace.of(offer.message.kind).put_back(&mut lane.bucket);
        }
        let node = &mut self.nodes[lane.head as usize];
        why.count(&mut node.tries, &mut node.refusals);
        let kind = node.message.kind;
        self.resume(chat, kind, now, until);
        true
    }

    /// The chat of the message in flight cannot receive: the message is done with, and what waits behind it leaves with
    /// the next [`pop`](Lanes::pop). Whatever is pushed later comes back at once. If `revives`, a message behind it that
    /// answers the user keeps the lane open: the user has written meanwhile.
    pub fn close(&mut self, offer: &Offer, now: Time, revives: bool) {
        if !self.is_in_flight(offer) {
            return;
        }
        let chat = offer.message.chat;
        let head = self.lanes[chat.0 as usize].head as usize;
        if revives && self.waits_for_user(self.nodes[head].next) {
            return self.advance(chat, now, Time::ZERO);
        }
        if self.unlink(chat) != NONE {
            self.closing.push(chat);
        }
        self.lanes[chat.0 as usize].state = State::Dead;
    }

    /// Whether a message from `node` on answers its user.
    fn waits_for_user(&self, mut node: u32) -> bool {
        while node != NONE {
            let Node { message, next, .. } = self.nodes[node as usize];
            if message.from_user {
                return true;
            }
            node = next;
        }
        false
    }

    /// A message whose lease has ended while it was in flight: it still is, and it is for the caller to
    /// [`finish`](Lanes::finish) or [`postpone`](Lanes::postpone) it.
    pub fn overdue(&mut self, now: Time) -> Option<Offer> {
        while let Some((until, chat, ticket)) = self.leases.ended(now) {
            if let Some(&Node { message, tries, refusals, ticket: current, .. }) = self.in_flight(chat)
                && current == ticket
            {
                return Some(Offer { message, tries, refusals, leased_until: until, ticket, slot: chat });
            }
        }
        None
    }

    fn is_in_flight(&self, offer: &Offer) -> bool {
        self.in_flight(offer.slot).is_some_and(|node| {
            // After a loss of data the tickets begin again.
            node.ticket == offer.ticket && node.message.number == offer.message.number
        })
    }

    fn in_flight(&self, chat: u32) -> Option<&Node> {
        let lane = self.lanes.get(chat as usize).filter(|lane| lane.state == State::InFlight)?;
        Some(&self.nodes[lane.head as usize])
    }

    /// The numbers of all messages, waiting or in flight.
    pub fn held(&self) -> Vec<u32> {
        let mut held = Vec::new();
        for lane in &self.lanes {
            let mut node = lane.head;
            while node != NONE {
                held.push(self.nodes[node as usize].message.number);
                node = self.nodes[node as usize].next;
            }
        }
        held
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

    /// When the next message may go: `now` if one may now, [`Time::MAX`] if no lane waits for its date.
    pub fn next_at(&self, now: Time) -> Time {
        if self.ready_lanes > 0 || !self.closing.is_empty() {
            return now;
        }
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
