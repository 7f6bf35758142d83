//! What a strategy keeps in the store: a script, and the lanes of a scheduler.
//!
//! Sizes of `lanes` are messages that wait throughout; chats are 300,000, written to at random, in a virtual time in
//! which no pace is exceeded for long. An element is a script or a message.

#[path = "support/size.rs"]
mod size;

use criterion::{BenchmarkId, Criterion, Throughput};
use fake_telegram::api::{ChatIndex, ChatKind, Method};
use fake_telegram::bucket::{BucketState, TokenBucket};
use fake_telegram::units::Rate;
use floodlab::limiter::lanes::Lanes;
use floodlab::limiter::offer::Pace;
use floodlab::rng::draw;
use floodlab::store::Store;
use floodlab::world::{ClassIndex, Message};
use floodlab::{Duration, Time};
use size::size;

const CHATS: u32 = 300_000;
/// 28 messages a second.
const PACE: Duration = Duration::from_micros(35_715);

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let count = size(10_000, 100);
    let mut group = criterion.benchmark_group("store");
    group.throughput(Throughput::Elements(count));

    let store = Store::default();
    let bucket = TokenBucket::new(Rate::per_second(28), 20);
    let state = store.key("bucket", BucketState::default);
    let mut now = Time::ZERO;
    group.bench_function(BenchmarkId::new("script", count), |bencher| {
        bencher.iter(|| {
            for _ in 0..count {
                now += PACE;
                let taken = store.run(state, now, |now, state| {
                    let free = bucket.wait(*state, now).is_zero();
                    if free {
                        bucket.take(state, now);
                    }
                    free
                });
                assert!(taken, "the pace is below the rate");
            }
        });
    });

    for waiting in size([0, 1_000, 100_000], [0, 10, 1_000]) {
        let mut queue = Queue::new(waiting);
        group.bench_function(BenchmarkId::new("lanes", waiting), |bencher| {
            bencher.iter(|| queue.pass(count));
        });
        assert!(queue.popped * 100 >= queue.pushed * 90, "what comes in leaves");
    }
    group.finish();
    criterion.final_summary();
}

/// Lanes through which messages pass.
struct Queue {
    lanes: Lanes,
    now: Time,
    pushed: u64,
    popped: u64,
    expired: Vec<Message>,
}

impl Queue {
    /// With so many messages that wait.
    fn new(waiting: u64) -> Self {
        let private = TokenBucket::new(Rate::per_second(1), 3);
        let group = TokenBucket::new(Rate::per_minute(15), 5);
        let lanes = Lanes::new(Pace { private, group, channel: group }, Duration::from_mins(1));
        let mut queue = Self { lanes, now: Time::ZERO, pushed: 0, popped: 0, expired: Vec::new() };
        for _ in 0..waiting {
            queue.push();
        }
        queue.popped = queue.pushed;
        queue
    }

    /// So many come in, and of those that wait so many leave.
    fn pass(&mut self, count: u64) {
        for _ in 0..count {
            self.now += PACE;
            self.push();
            self.lanes.promote(self.now);
            if let Some(offer) = self.lanes.pop(self.now, &mut self.expired) {
                self.lanes.finish(&offer, self.now);
                self.popped += 1;
            }
        }
    }

    fn push(&mut self) {
        self.pushed += 1;
        let chat = draw(1, self.pushed, 0) % u64::from(CHATS);
        let message = Message {
            number: self.pushed as u32,
            chat: ChatIndex(chat as u32),
            due: self.now,
            deadline: Time::MAX,
            class: ClassIndex(0),
            kind: ChatKind::Private,
            method: Method::SendMessage,
            from_user: false,
        };
        let rank = (self.pushed % 3) as usize;
        assert_eq!(self.lanes.push(message, rank, self.now, true), None, "nobody is dead");
    }
}
