//! The server model: one call, from [`Model::handle`] to [`Model::poll`].
//!
//! 300,000 private chats of which 5 % are dead, written to at random, as fast as the token allows (`accepted`) or far
//! too fast, so that almost every call meets a penalty or a full hold (`refused`). An element is a call.

#[path = "support/size.rs"]
mod size;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput};
use fake_telegram::api::{CallId, ChatIndex, ChatKind, Draws, Method, Request, TokenIndex, Truth};
use fake_telegram::chat::{Chats, Lifecycle};
use fake_telegram::draw::draw;
use fake_telegram::fault::Faults;
use fake_telegram::model::Model;
use fake_telegram::profile::Profile;
use fake_telegram::time::{Duration, Time};
use fake_telegram::units::Share;
use size::size;

/// As on a platform's day.
const CHATS: u32 = 300_000;
/// 28 calls a second: below the 30 that the profiles allow.
const ALLOWED: Duration = Duration::from_micros(35_715);
/// 1,000 calls a second.
const TOO_FAST: Duration = Duration::from_millis(1);

fn main() {
    let calls = size(10_000, 1_000);
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("server");
    group.throughput(Throughput::Elements(calls));
    for (profile, pace, what) in [
        ("unlimited", ALLOWED, "accepted"),
        ("telegram", ALLOWED, "accepted"),
        ("telegram", TOO_FAST, "refused"),
        ("telegram-observed", ALLOWED, "accepted"),
        ("telegram-observed", TOO_FAST, "refused"),
    ] {
        let mut client = Client::new(profile, pace);
        // Budgets are used up, penalties run, and holds are full before anything is measured.
        let (accepted, refused) = client.call(100_000);
        let expected = if what == "accepted" { accepted } else { refused };
        assert!(
            expected * 10 >= (accepted + refused) * 9,
            "{profile}: {accepted} calls accepted and {refused} refused"
        );
        group.bench_function(BenchmarkId::new(format!("{profile}-{what}"), "300k-chats"), |bencher| {
            bencher.iter(|| client.call(calls));
        });
    }
    group.finish();
    criterion.final_summary();
}

/// Calls at an even pace, whatever it is told.
struct Client {
    model: Model,
    now: Time,
    pace: Duration,
    calls: u64,
}

impl Client {
    fn new(profile: &str, pace: Duration) -> Self {
        let profile = Profile::named(profile).expect("a built-in profile");
        let mut chats = Chats::new(1, Lifecycle { dead: Share::from_ppm(50_000), ..Lifecycle::default() });
        chats.add(ChatKind::Private, CHATS);
        let model = Model::new(&profile, Faults::default(), chats, 1);
        Self { model, now: Time::ZERO, pace, calls: 0 }
    }

    /// How many of the next `calls` were accepted (by a chat or by a dead one's 403) and how many refused.
    fn call(&mut self, calls: u64) -> (u64, u64) {
        let (mut accepted, mut refused) = (0, 0);
        for _ in 0..calls {
            self.calls += 1;
            self.now += self.pace;
            let draw = draw(1, self.calls, 0);
            let chat = ChatIndex((draw >> 32) as u32 % CHATS);
            let (token, method) = (TokenIndex(0), Method::SendMessage);
            let request = Request { token, chat, method, idempotency: None, items: 1 };
            self.model.handle(self.now, CallId(self.calls as u32), request, Draws { fault: draw as u32 });
            while let Some(decision) = self.model.poll() {
                match black_box(decision).truth {
                    Truth::Refused { .. } => refused += 1,
                    _ => accepted += 1,
                }
            }
        }
        (accepted, refused)
    }
}
