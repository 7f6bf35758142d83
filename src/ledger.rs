//! The ledger: what really happened to each message, beside what the sender believes.
//!
//! It balances: `due = delivered + dead + expired + dropped + pending + lost`, each message counted once, by the
//! first that applies.

use fake_telegram::api::{Answer, Truth};
use fake_telegram::time::Time;

use crate::event::{Event, Observer};
use crate::world::{Belief, ClassIndex, GiveUp};

/// What became of a message by the end of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// In the chat, in truth.
    Delivered,
    /// The chat could not receive when it fell due, or its last attempt was answered so.
    Dead,
    /// Given up because of its deadline.
    Expired,
    /// Given up for another reason.
    Dropped,
    /// Not finished: in the outbox, on the wire, held by a live worker or in a queue of the store.
    Pending,
    /// All else: the sender is done with it and it is not in the chat, or it is gone with a process or with the store.
    Lost,
}

/// One message's line.
#[derive(Debug, Clone, Copy)]
pub struct Line {
    /// When it fell due.
    pub due: Time,
    /// When it was first delivered; [`Time::MAX`] if it was not.
    pub delivered: Time,
    /// Its class.
    pub class: ClassIndex,
    /// Whether its chat could receive when it fell due.
    pub alive: bool,
    state: State,
    answered_dead: bool,
    /// Who holds it, as an index into the holders of the ledger.
    holder: u32,
}

/// What the sender's side knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// Whoever held it is gone.
    Gone,
    Delivered,
    Unknown,
    Expired,
    Dropped,
}

/// The books on all messages of a run.
#[derive(Debug, Default)]
pub struct Ledger {
    lines: Vec<Line>,
    /// By token and chat: the number of the latest message delivered into it, plus one.
    latest: Vec<Vec<u32>>,
    /// By class: deliveries beyond a message's first.
    pub duplicated: Vec<u64>,
    /// Messages first delivered after a later one of their bot in their chat.
    pub reordered: u64,
    /// Messages whose answer was used again: delivered without a call.
    pub reused: u64,
    /// By holder, the constant ones first: whether it is gone. A process that starts again is another holder, and so is the
    /// store after its data were lost.
    gone: Vec<bool>,
    /// Which holder the store is now.
    store: u32,
    /// By process: which holder it is now.
    processes: Vec<u32>,
}

/// The holder of what no process has taken.
const OUTBOX: u32 = 0;
/// The holder of what nobody has: it was never there.
const NOBODY: u32 = 1;
/// The store, before its data were ever lost.
const STORE: u32 = 2;

impl Line {
    /// What became of it.
    pub fn fate(&self) -> Fate {
        if self.delivered < Time::MAX {
            return Fate::Delivered;
        }
        if !self.alive || self.answered_dead {
            return Fate::Dead;
        }
        match self.state {
            State::Expired => Fate::Expired,
            State::Dropped => Fate::Dropped,
            State::Open => Fate::Pending,
            State::Gone | State::Delivered | State::Unknown => Fate::Lost,
        }
    }

    /// What the sender believes, if it is done with the message and has not given it up.
    pub const fn belief(&self) -> Option<Belief> {
        match self.state {
            State::Delivered => Some(Belief::Delivered),
            State::Unknown => Some(Belief::Unknown),
            State::Open | State::Gone | State::Expired | State::Dropped => None,
        }
    }
}

impl Ledger {
    /// The books for so many chats, classes and tokens.
    pub fn new(chats: usize, classes: usize, tokens: usize) -> Self {
        let duplicated = vec![0; classes];
        let latest = vec![vec![0; chats]; tokens];
        Self { latest, duplicated, gone: vec![false, true, false], store: STORE, ..Self::default() }
    }

    /// The store has turned out not to hold this message, which it was taken to hold.
    pub fn lose(&mut self, message: u32) {
        self.line(message).state = State::Gone;
    }

    /// The run is over, with calls for `on_the_wire` not yet decided: nothing changes any more.
    pub fn close(&mut self, on_the_wire: &[u32]) {
        for line in &mut self.lines {
            if line.state == State::Open && self.gone[line.holder as usize] {
                line.state = State::Gone;
            }
        }
        for message in on_the_wire {
            let line = &mut self.lines[*message as usize];
            if line.state == State::Gone {
                line.state = State::Open;
            }
        }
    }

    /// The lines, by message number: in order of due instants.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The messages that nobody is done with and that the store is taken to hold, by number.
    pub fn in_store(&self) -> impl Iterator<Item = u32> {
        let lines = self.lines.iter().enumerate();
        let held = lines.filter(|(_, line)| line.state == State::Open && line.holder == self.store);
        held.map(|(number, _)| number as u32)
    }

    fn new_holder(&mut self) -> u32 {
        self.gone.push(false);
        self.gone.len() as u32 - 1
    }

    fn line(&mut self, message: u32) -> &mut Line {
        &mut self.lines[message as usize]
    }

    #[cold]
    fn change_holders(&mut self, event: &Event) {
        match *event {
            Event::Started { process } => {
                let (index, holder) = (usize::from(process.0), self.new_holder());
                if self.processes.len() <= index {
                    self.processes.resize(index + 1, OUTBOX);
                }
                self.processes[index] = holder;
            }
            Event::Killed { process } => self.gone[self.processes[usize::from(process.0)] as usize] = true,
            Event::Flushed => {
                self.gone[self.store as usize] = true;
                self.store = self.new_holder();
            }
            _ => {}
        }
    }
}

impl Observer for Ledger {
    #[inline(always)]
    fn observe(&mut self, at: Time, event: &Event) {
        match *event {
            Event::Due { message, alive } => {
                assert_eq!(
                    message.number as usize,
                    self.lines.len(),
                    "messages are numbered in order of due"
                );
                self.lines.push(Line {
                    due: message.due,
                    delivered: Time::MAX,
                    class: message.class,
                    alive,
                    state: State::Open,
                    answered_dead: false,
                    holder: OUTBOX,
                });
            }
            Event::Decided { message, token, decision } if decision.truth == Truth::Delivered => {
                let line = &mut self.lines[message.number as usize];
                if line.delivered < Time::MAX {
                    self.duplicated[usize::from(message.class.0)] += 1;
                    return;
                }
                line.delivered = decision.at;
                // A chat that no scenario declares cannot be delivered to, so the index is in range.
                let latest = &mut self.latest[usize::from(token.0)][message.chat.0 as usize];
                if *latest > message.number {
                    self.reordered += 1;
                } else {
                    *latest = message.number + 1;
                }
            }
            Event::Answered { message, answer, .. } => {
                self.line(message.number).answered_dead = matches!(answer, Answer::Forbidden(_));
            }
            Event::Settled { message, belief } => {
                let line = self.line(message.number);
                // Who has given a message up may die before its queue hears of it, and another settles what it finds.
                if !matches!(line.state, State::Expired | State::Dropped) {
                    line.state = match belief {
                        Belief::Delivered => State::Delivered,
                        Belief::Unknown => State::Unknown,
                    };
                }
            }
            Event::GivenUp { message, why } => {
                self.line(message.number).state = match why {
                    GiveUp::Expired => State::Expired,
                    GiveUp::ChatDead | GiveUp::Rejected | GiveUp::Attempts => State::Dropped,
                };
            }
            Event::Taken { message, process } => {
                self.line(message).holder = self.processes[usize::from(process.0)];
            }
            Event::Stored { message } => self.line(message).holder = self.store,
            Event::Vanished { message } => self.line(message).holder = NOBODY,
            Event::Reused { message } => {
                self.reused += 1;
                let line = self.line(message.number);
                (line.delivered, line.state) = (line.delivered.min(at), State::Delivered);
            }
            Event::Started { .. } | Event::Killed { .. } | Event::Flushed => self.change_holders(event),
            Event::Decided { .. } | Event::Sent { .. } | Event::Sample { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use fake_telegram::api::{CallId, ChatIndex, ChatKind, Decision, Forbidden, Method, TokenIndex};

    use super::*;
    use crate::world::{Message, ProcessIndex};

    fn message(number: u32) -> Message {
        Message {
            number,
            chat: ChatIndex(0),
            due: Time::from_secs(1),
            deadline: Time::MAX,
            class: ClassIndex(0),
            kind: ChatKind::Private,
            method: Method::SendMessage,
            from_user: false,
        }
    }

    fn delivered(number: u32) -> Event {
        let answer = Answer::Message { message_id: 1 };
        let (call, at, truth) = (CallId(0), Time::from_secs(2), Truth::Delivered);
        let decision = Decision { call, at, answer, truth, in_penalty: false, taken: 1 };
        Event::Decided { message: message(number), token: TokenIndex(0), decision }
    }

    fn answered(number: u32, answer: Answer) -> Event {
        Event::Answered { message: message(number), process: ProcessIndex(0), answer, decision: None }
    }

    fn fate_of(alive: bool, events: &[Event]) -> Fate {
        let mut ledger = Ledger::new(1, 1, 1);
        ledger.observe(Time::ZERO, &Event::Due { message: message(0), alive });
        for event in events {
            ledger.observe(Time::from_secs(3), event);
        }
        ledger.close(&[]);
        ledger.lines()[0].fate()
    }

    /// The order of the definition in interface.md: delivered, dead, expired, dropped, pending, lost.
    #[test]
    fn the_first_fate_that_applies_counts() {
        let settled = |belief| Event::Settled { message: message(0), belief };
        let given_up = |why| Event::GivenUp { message: message(0), why };
        let forbidden = answered(0, Answer::Forbidden(Forbidden::Blocked));
        assert_eq!(fate_of(true, &[]), Fate::Pending);
        assert_eq!(fate_of(true, &[delivered(0), given_up(GiveUp::Expired)]), Fate::Delivered);
        assert_eq!(fate_of(false, &[given_up(GiveUp::Expired)]), Fate::Dead);
        assert_eq!(fate_of(true, &[forbidden, settled(Belief::Delivered)]), Fate::Dead);
        assert_eq!(fate_of(true, &[forbidden, answered(0, Answer::TimedOut)]), Fate::Pending);
        assert_eq!(fate_of(true, &[given_up(GiveUp::Expired)]), Fate::Expired);
        assert_eq!(fate_of(true, &[given_up(GiveUp::Attempts)]), Fate::Dropped);
        assert_eq!(fate_of(true, &[settled(Belief::Delivered)]), Fate::Lost);
        assert_eq!(fate_of(true, &[settled(Belief::Unknown)]), Fate::Lost);
        let (unknown, dropped) = (settled(Belief::Unknown), given_up(GiveUp::Attempts));
        assert_eq!(fate_of(true, &[unknown, dropped]), Fate::Dropped);
        assert_eq!(fate_of(true, &[dropped, unknown]), Fate::Dropped);
    }

    #[test]
    fn what_a_process_held_is_gone_with_it_and_what_the_store_holds_is_not() {
        let process = ProcessIndex(3);
        let (started, killed) = (Event::Started { process }, Event::Killed { process });
        let (taken, stored) = (Event::Taken { message: 0, process }, Event::Stored { message: 0 });
        assert_eq!(fate_of(true, &[started, killed]), Fate::Pending, "it is still in the outbox");
        assert_eq!(fate_of(true, &[started, taken, killed]), Fate::Lost);
        assert_eq!(fate_of(true, &[started, taken, killed, started]), Fate::Lost, "its memory is empty");
        assert_eq!(fate_of(true, &[started, taken, killed, delivered(0)]), Fate::Delivered, "on the wire");
        assert_eq!(fate_of(true, &[started, taken, stored, killed]), Fate::Pending);
        assert_eq!(fate_of(true, &[started, taken, stored, Event::Flushed]), Fate::Lost);
        let vanished = Event::Vanished { message: 0 };
        assert_eq!(
            fate_of(true, &[started, stored, killed, started, vanished]),
            Fate::Lost,
            "of an earlier life"
        );
        assert_eq!(fate_of(true, &[started, vanished, delivered(0)]), Fate::Delivered);
        assert_eq!(fate_of(true, &[started, vanished, stored]), Fate::Pending, "it was put back");
        assert_eq!(fate_of(true, &[Event::Flushed, started, taken, stored]), Fate::Pending);
        assert_eq!(fate_of(true, &[started, taken, Event::Flushed]), Fate::Pending);
        let mut ledger = Ledger::new(1, 1, 1);
        for event in [Event::Due { message: message(0), alive: true }, started, taken, killed] {
            ledger.observe(Time::ZERO, &event);
        }
        ledger.close(&[0]);
        assert_eq!(ledger.lines()[0].fate(), Fate::Pending, "its call is on the wire");
    }

    #[test]
    fn a_line_is_24_bytes() {
        assert_eq!(size_of::<Line>(), 24);
    }

    #[test]
    fn counts_duplicates_and_what_overtakes() {
        let mut ledger = Ledger::new(1, 1, 1);
        for number in 0..3 {
            ledger.observe(Time::ZERO, &Event::Due { message: message(number), alive: true });
        }
        for number in [1, 0, 2, 1] {
            ledger.observe(Time::from_secs(2), &delivered(number));
        }
        assert_eq!((ledger.duplicated, ledger.reordered), (vec![1], 1));
    }
}
