//! Nothing that a client can send is a panic.

use fake_telegram::chat::Lifecycle;
use fake_telegram::fault::{Fault, FaultKind, Phase};
use fake_telegram::units::Share;
use proptest::prelude::*;

use super::*;

fn any_request() -> impl Strategy<Value = Request> {
    let method = prop::sample::select(Method::ALL.to_vec());
    let token = prop_oneof![4 => 0u16..2, 1 => any::<u16>()];
    let chat = prop_oneof![8 => 0u32..10, 1 => any::<u32>()];
    let key = prop::option::of(0u32..9);
    let items = prop_oneof![4 => Just(1u16), 1 => any::<u16>()];
    (token, chat, method, key, items).prop_map(|(token, chat, method, idempotency, items)| Request {
        token: TokenIndex(token),
        chat: ChatIndex(chat),
        method,
        idempotency,
        items,
    })
}

fn any_gap() -> impl Strategy<Value = Duration> {
    const TEN_YEARS: u64 = 3_653 * 86_400 * 1_000_000;
    prop_oneof![4 => Just(0), 4 => 0u64..10_000_000, 1 => 0..TEN_YEARS].prop_map(Duration::from_micros)
}

proptest! {
    #[test]
    fn any_call_at_any_time_is_answered(
        calls in prop::collection::vec((any_gap(), any_request(), any::<u32>()), 1..200),
        profile in 0..Profile::ALL.len(),
        idempotency_keys: bool,
    ) {
        let fault = |kind, phase| Fault {
            kind,
            phase,
            rate: Share::from_ppm(100_000),
            from: Duration::from_secs(1),
            r#for: Some(Duration::from_hours(24 * 365)),
        };
        let faults = Faults::new(&[
            fault(FaultKind::Lost, Phase::Before),
            fault(FaultKind::Truncated, Phase::After),
            fault(FaultKind::Phantom, Phase::InsteadOf429),
        ]);
        let mut chats = Chats::new(1, Lifecycle {
            dead: Share::from_ppm(200_000),
            unknown: Share::from_ppm(100_000),
            empty: Share::from_ppm(300_000),
            mean_life: Some(Duration::from_hours(24 * 30)),
            mean_absence: Some(Duration::from_hours(24)),
            ..Lifecycle::default()
        });
        chats.add(ChatKind::Private, 5);
        chats.add(ChatKind::Group, 3);
        let profile = Profile::named(Profile::ALL[profile].0).expect("a listed profile");
        let profile = Profile { idempotency_keys, ..profile };
        let mut model = Model::new(&profile, faults.expect("30% at most"), chats, 1);
        let mut now = Time::ZERO;
        for (number, (gap, request, fault)) in calls.iter().enumerate() {
            now = now.saturating_add(*gap);
            model.handle(now, CallId(number as u32), *request, Draws { fault: *fault });
        }
        while let Some(at) = model.next_timeout() {
            model.advance(at);
        }
        let decided = std::iter::from_fn(|| model.poll()).count();
        prop_assert_eq!(decided, calls.len());
        prop_assert!(model.poll().is_none());
    }
}

/// A chat that appears while the server runs has budgets of its own.
#[test]
fn chats_and_tokens_come_on_use() {
    let mut model = Model::new(&Profile::telegram(), Faults::default(), Chats::default(), 0);
    let chat = model.chats().add(ChatKind::Private, 1);
    for token in [0, 7, u16::MAX] {
        let request = Request {
            token: TokenIndex(token),
            chat,
            method: Method::SendMessage,
            idempotency: None,
            items: 1,
        };
        model.handle(Time::ZERO, CallId(0), request, Draws { fault: 0 });
        assert!(model.poll().is_some_and(|decision| is_delivered(&decision)));
        let level = model.token_level(TokenIndex(token), Time::ZERO).expect("a token-wide limit");
        assert_eq!(level.available, 29_000_000);
    }
}

#[test]
#[should_panic(expected = "time runs forward")]
fn only_time_that_runs_backward_is_a_defect() {
    let mut client = Client::new(&Profile::telegram());
    client.call(s(2), 0, Method::SendMessage);
    client.call(s(1), 0, Method::SendMessage);
}
