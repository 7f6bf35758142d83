//! The incidents and cases, with the numbers of their logs.

use fake_telegram::api::{Forbidden, Garbage, LimitIndex};
use fake_telegram::chat::{Action, Change, Lifecycle};
use fake_telegram::fault::{Fault, FaultKind, Phase};
use fake_telegram::units::Share;

use super::*;

/// T1: 25 a second in all, and 24 of them to one chat.
#[test]
fn t1_few_in_all_are_refused_when_one_chat_gets_most() {
    let mut client = Client::new(&Profile::telegram());
    let decisions: Vec<Decision> = (0..25).map(|i| client.send(ms(i * 40), u32::from(i == 24))).collect();
    let refused: Vec<&Decision> = decisions.iter().filter(|decision| !is_delivered(decision)).collect();
    // Burst 5, and not a whole second goes by.
    assert_eq!(refused.len(), 19);
    assert!(refused.iter().all(|decision| client.limit(decision) == Some("chat")));
    assert!(is_delivered(&decisions[24]), "a refusal by one chat's limit speaks of that chat only");
}

/// T3 and the check of `design.md`, round trips apart: a pause of 32 s met with back-off.
#[test]
fn t3_calls_inside_a_penalty_extend_it() {
    let mut client = Client::new(&Profile::telegram());
    for _ in 0..20 {
        assert!(is_delivered(&client.send(s(0), GROUP)));
    }
    let waits = [28, 29, 31, 35, 43].map(|t| retry_after(&client.send(s(t), GROUP)));
    assert_eq!(waits, [32, 64, 128, 256, 512].map(Some));
    // 15 s after the first refusal, 512 s on: 527 s. One penalty, however often it was lengthened.
    let group = LimitIndex(2);
    for (until, length) in [(s(9_999), 527), (s(128), 100)] {
        let length = Duration::from_secs(length);
        assert_eq!(client.model.penalty_time(group, until), length);
        assert_eq!(client.model.penalty_longest(group, until), length);
    }
    assert_eq!(client.model.penalties(group), 1);
    assert!(is_delivered(&client.send(s(28 + 527), GROUP)));

    // Another group's are others: these overlap with each other, and the longest is still the first.
    for (at, chat) in [(1_000, GROUP + 1), (1_010, GROUP + 2)] {
        while is_delivered(&client.send(s(at), chat)) {}
    }
    assert_eq!(client.model.penalties(group), 3);
    assert_eq!(client.model.penalty_time(group, s(1_060)), Duration::from_secs(527 + 60 + 50));
    assert_eq!(client.model.penalty_longest(group, s(1_060)), Duration::from_secs(527));
    let token = LimitIndex(0);
    assert_eq!(
        (client.model.penalties(token), client.model.penalty_longest(token, s(1_060))),
        (0, Duration::ZERO)
    );
}

#[test]
fn a_fixed_deadline_of_32_s_stays() {
    let mut client = Client::new(&profile("profile = \"telegram-observed\"\nhold = { off = true }"));
    for _ in 0..20 {
        client.send(s(0), GROUP);
    }
    let waits = [28, 29, 31, 35, 43].map(|t| retry_after(&client.send(s(t), GROUP)));
    assert_eq!(waits, [32, 31, 29, 25, 17].map(Some));
    assert!(is_delivered(&client.send(s(60), GROUP)));
}

#[test]
fn an_episode_ends_after_an_hour_however_hammered() {
    let mut client = Client::new(&Profile::telegram());
    let mut first = None;
    for t in 0..5_000u64 {
        let decision = client.send(s(0) + Duration::from_millis(777 * t), GROUP);
        if let Some(from) = first {
            if is_delivered(&decision) {
                let ended = decision.at - from;
                assert!(
                    ended >= Duration::from_hours(1) && ended < Duration::from_millis(3_600_777),
                    "{ended}"
                );
                return;
            }
        } else if !is_delivered(&decision) {
            first = Some(decision.at);
        }
    }
    panic!("the episode never ended");
}

/// T10: who sends at once when the pause is over is refused at once, and longer than the first time.
#[test]
fn t10_the_second_ban_is_longer() {
    let mut client = Client::new(&Profile::telegram());
    let burst = |client: &mut Client, at| (0..7).filter_map(|_| retry_after(&client.send(at, 0))).max();
    assert_eq!(burst(&mut client, s(0)), Some(1));
    // One early call: 2 s from 0.6 s on.
    assert_eq!(retry_after(&client.send(ms(600), 0)), Some(2));
    assert_eq!(burst(&mut client, ms(2_600)), Some(2));
}

/// C09: matterbridge#2121. The window opens 22 s after the first refusal.
#[test]
fn c09_the_answer_counts_down_by_the_clock() {
    let mut client = Client::new(&Profile::telegram_observed());
    for _ in 0..20 {
        client.send(s(0), GROUP);
    }
    let log = [0, 1, 5, 6, 7, 7, 9].map(|t| retry_after(&client.send(s(38 + t), GROUP)));
    assert_eq!(log, [22, 21, 17, 16, 15, 15, 13].map(Some));
}

/// C01: PTB#1045.
#[test]
fn c01_a_fast_burst_to_one_chat_becomes_slow_and_is_delivered() {
    let mut client = Client::new(&Profile::telegram_observed());
    for number in 1..=30 {
        let called = client.now;
        let decision = client.send(called, 0);
        assert!(is_delivered(&decision), "message {number}");
        let held = decision.at - called;
        let expected = if number <= 20 { Duration::ZERO } else { Duration::from_secs(1) };
        assert_eq!(held, expected, "message {number}");
    }
}

/// C23: 2 sends a second give 50 s, 1 a second gives 40 s; other chats are not concerned.
#[test]
fn c23_the_21st_message_to_a_group_is_refused_until_the_first_is_a_minute_old() {
    for profile in [Profile::telegram(), Profile::telegram_observed()] {
        for (gap, expected) in [(500, 50), (1_000, 40), (100, 58)] {
            let mut client = Client::new(&profile);
            for i in 0..20 {
                assert!(is_delivered(&client.send(ms(i * gap), GROUP)));
            }
            let decision = client.send(ms(20 * gap), GROUP);
            assert_eq!(retry_after(&decision), Some(expected));
            assert_eq!(client.limit(&decision), Some("group"));
            assert!(is_delivered(&client.send(client.now, GROUP + 1)));
        }
    }
}

/// C19: all that stand behind a head fail with it, untried; other methods and chats are not concerned.
#[test]
fn c19_a_wait_fails_everybody_in_the_queue() {
    let text = |cascade| {
        profile(&format!(
            "profile = \"unlimited\"\nhold = {{ budget = \"8s\", cascade = {cascade} }}\n[limit.text]\nkey = \"chat\"\nmethods = [\"sendMessage\"]\nalgorithm = \"sliding-window\"\nlimit = 1\nwindow = \"5s\""
        ))
    };
    let mut client = Client::new(&text(true));
    for _ in 0..10 {
        client.call(s(0), 0, Method::SendMessage);
    }
    let photo = client.call(s(0), 0, Method::SendPhoto);
    let other = client.call(s(0), 1, Method::SendMessage);
    let at_once = client.decided(s(0));
    assert!(at_once.iter().all(is_delivered));
    assert_eq!(at_once.iter().map(|d| d.call).collect::<Vec<_>>(), [CallId(0), photo, other]);
    // The second is tried at 5 s and delivered; the third, tried then, meets 5 s, as do all behind it. At 10 s the
    // third is delivered, and the fourth, tried then, meets its second 5 s: 10 s are more than 8, for all.
    let later = client.decided(s(60));
    let seen: Vec<_> = later.iter().map(|d| (d.call.0, d.at, retry_after(d))).collect();
    let mut expected = vec![(1, s(5), None), (2, s(10), None)];
    expected.extend((3..10).map(|call| (call, s(10), Some(5))));
    assert_eq!(seen, expected);

    // Without the cascade each is tried on its own, with its own budget: one every 5 s.
    let mut client = Client::new(&text(false));
    for _ in 0..10 {
        client.call(s(0), 0, Method::SendMessage);
    }
    let all = client.decided(s(60));
    assert!(all.iter().all(is_delivered));
    assert_eq!(all.iter().map(|d| d.at).collect::<Vec<_>>(), (0..10).map(|i| s(5 * i)).collect::<Vec<_>>());
}

#[test]
fn c19_concurrent_calls_meet_one_long_wait() {
    let mut client = Client::new(&Profile::telegram_observed());
    for _ in 0..20 {
        client.send(s(0), GROUP);
    }
    for _ in 0..10 {
        client.call(s(20), GROUP, Method::SendMessage);
    }
    client.call(s(20), GROUP + 1, Method::SendMessage);
    let waits: Vec<_> = client.decided(s(20)).iter().map(retry_after).collect();
    assert_eq!(waits, [vec![Some(40); 10], vec![None]].concat());
}

/// `telegram.md` 3.1: what is left of a pause is waited for silently once it fits.
#[test]
fn the_effect_of_a_held_call_comes_at_the_end_of_its_hold() {
    let mut client = Client::new(&Profile::telegram_observed());
    for _ in 0..20 {
        client.send(s(0), GROUP);
    }
    assert_eq!(retry_after(&client.send(ms(51_900), GROUP)), Some(9));
    client.call(ms(53_500), GROUP, Method::SendMessage);
    assert_eq!(client.model.next_timeout(), Some(ms(61_500)), "7.4 s are 8 whole ones");
    assert_eq!(client.decided(ms(61_499)), []);
    let decision = client.decided(ms(61_500))[0];
    assert!(is_delivered(&decision) && decision.in_penalty && decision.at == ms(61_500));
}

/// Offending again within ten minutes doubles; a hold is no offence.
#[test]
fn re_offences_double_and_holds_do_not() {
    let mut client = Client::new(&Profile::telegram_observed());
    let mut offend = |at: u64| {
        for _ in 0..20 {
            assert!(is_delivered(&client.send(s(at), GROUP)));
        }
        retry_after(&client.send(s(at), GROUP))
    };
    assert_eq!([0, 60, 180].map(&mut offend), [Some(60), Some(120), Some(240)]);
    // The last deadline is 420; later than 10 minutes: as long again; 30 minutes: one level less.
    assert_eq!(offend(1_100), Some(240));
    assert_eq!(offend(1_340 + 1_800), Some(120));
}

/// A call that is held and refused in the end is an offence; those that fail with it, untried, are none of their own.
#[test]
fn a_hold_that_fails_is_one_offence() {
    let mut client = Client::new(&profile(
        "profile = \"unlimited\"\nhold = { budget = \"8s\" }\n[limit.text]\nkey = \"chat\"\nalgorithm = \"sliding-window\"\nlimit = 1\nwindow = \"5s\"\npenalty = { rule = \"reoffence\" }",
    ));
    for _ in 0..10 {
        client.call(s(0), 0, Method::SendMessage);
    }
    assert_eq!(client.decided(s(10)).iter().filter_map(retry_after).collect::<Vec<_>>(), [5; 7]);
    assert!(is_delivered(&client.send(s(15), 0)));
    // The second offence: 5 s x 2, more than is held.
    assert_eq!(retry_after(&client.send(s(15), 0)), Some(10));
}

/// T6: blocked chats spend budget, and a refusal comes before a 403; who is kicked costs nothing.
#[test]
fn t6_dead_chats_spend_budget() {
    let lifecycle = || {
        let die = |action, chats: &[u32]| Change {
            at: Duration::ZERO,
            action,
            share: None,
            chats: chats.to_vec(),
            range: None,
        };
        let revive = Change { at: Duration::from_secs(50), ..die(Action::Revive, &[0]) };
        let schedule = vec![die(Action::Die, &[0, 2]), die(Action::Deactivate, &[1]), revive];
        let mut chats = Chats::new(0, Lifecycle { schedule, ..Lifecycle::default() });
        chats.add(ChatKind::Private, 2);
        chats.add(ChatKind::Group, 1);
        chats
    };
    let mut client = Client::with(&Profile::telegram(), Faults::default(), lifecycle());
    for _ in 0..5 {
        let decision = client.send(s(0), 0);
        assert_eq!(decision.answer, Answer::Forbidden(Forbidden::Blocked));
        assert_eq!((decision.truth, decision.taken), (Truth::Dead, 1));
    }
    let sixth = client.send(s(0), 0);
    assert_eq!((retry_after(&sixth), client.limit(&sixth), sixth.taken), (Some(1), Some("chat"), 0));
    assert_eq!(client.send(s(0), 1).answer, Answer::Forbidden(Forbidden::Deactivated));
    let level = |client: &Client| client.model.token_level(TokenIndex(0), s(0)).map(|level| level.available);
    assert_eq!(level(&client), Some(24_000_000));
    let kicked = client.send(s(0), 2);
    assert_eq!((kicked.answer, kicked.taken), (Answer::Forbidden(Forbidden::Kicked), 0));
    assert_eq!(client.send(s(0), 9).answer, Answer::ChatNotFound);
    assert_eq!(level(&client), Some(24_000_000));
    assert!(!client.model.can_receive(ChatIndex(0), s(49)) && client.model.can_receive(ChatIndex(0), s(50)));
    assert!(is_delivered(&client.send(s(50), 0)));

    let free = profile("remote_403_costs = false");
    let mut client = Client::with(&free, Faults::default(), lifecycle());
    assert!((0..50).all(|_| client.send(s(0), 0).answer == Answer::Forbidden(Forbidden::Blocked)));
    assert_eq!(level(&client), Some(30_000_000));
}

/// T6: a user may unblock and write again. What wakes before that is still a 403.
#[test]
fn t6_who_writes_again_receives_again() {
    let mut chats = Chats::new(0, Lifecycle { dead: Share::ALL, ..Lifecycle::default() });
    chats.add(ChatKind::Private, 2);
    let mut client = Client::with(
        &profile(
            "profile = \"unlimited\"\nhold = { budget = \"8s\" }\n[limit.one]\nalgorithm = \"sliding-window\"\nlimit = 1\nwindow = \"5s\"",
        ),
        Faults::default(),
        chats,
    );
    for _ in 0..3 {
        client.call(s(0), 0, Method::SendMessage);
    }
    client.model.wrote(ChatIndex(0), s(7));
    let seen: Vec<_> = client.decided(s(60)).iter().map(|d| (d.at, d.truth)).collect();
    assert_eq!(seen, [(s(0), Truth::Dead), (s(5), Truth::Dead), (s(10), Truth::Delivered)]);
    assert!(client.model.can_receive(ChatIndex(0), s(60)) && !client.model.can_receive(ChatIndex(1), s(60)));
}

fn faults(kind: FaultKind, phase: Phase, ppm: u32) -> Faults {
    let fault = Fault { kind, phase, rate: Share::from_ppm(ppm), from: Duration::ZERO, r#for: None };
    Faults::new(&[fault]).expect("one fault")
}

/// T5: before and after delivery; a phantom is a lie.
#[test]
fn t5_the_answer_and_the_truth_may_differ() {
    let one = |kind, phase| {
        let mut client = Client::with(&Profile::telegram(), faults(kind, phase, 1_000_000), chats());
        let decision = client.send(s(0), 0);
        let level = client.model.token_level(TokenIndex(0), s(0)).expect("a token-wide limit");
        assert_eq!(level.available, if phase == Phase::After { 29_000_000 } else { 30_000_000 });
        (decision.answer, decision.truth)
    };
    assert_eq!(one(FaultKind::Lost, Phase::Before), (Answer::ConnectionLost, Truth::Nothing));
    assert_eq!(one(FaultKind::Lost, Phase::After), (Answer::ConnectionLost, Truth::Delivered));
    let html = Answer::Garbage(Garbage::Html);
    assert_eq!(one(FaultKind::Html, Phase::After), (html, Truth::Delivered));
    assert_eq!(
        one(FaultKind::Status502, Phase::Before),
        (Answer::ServerError { status: 502, page: false }, Truth::Nothing)
    );
    let cut = Answer::Garbage(Garbage::CutList);
    assert_eq!(one(FaultKind::CutList, Phase::After), (cut, Truth::Delivered));
    let phantom = one(FaultKind::Phantom, Phase::Before);
    assert_eq!(phantom, (Answer::Message { message_id: 1 }, Truth::Nothing));
}

/// T7: garbage in the place of a 429, for half of the refused; a fault after the effect leaves a 429 alone.
#[test]
fn t7_a_refusal_may_look_like_success() {
    let refused = |faults| {
        let mut client = Client::with(&profile("penalties = false"), faults, chats());
        let decisions: Vec<Decision> = (0..1_005).map(|_| client.send(s(0), 0)).skip(5).collect();
        assert!(decisions.iter().all(|d| matches!(d.truth, Truth::Refused { .. })));
        decisions.iter().filter(|d| retry_after(d).is_none()).count()
    };
    // 500 expected, standard deviation 16.
    let hidden = refused(faults(FaultKind::Empty, Phase::InsteadOf429, 500_000));
    assert!((420..=580).contains(&hidden), "{hidden} of 1,000 hidden");
    assert_eq!(refused(faults(FaultKind::Empty, Phase::After, 1_000_000)), 0);
}

#[test]
fn faults_hit_as_often_as_they_say() {
    let mut client =
        Client::with(&Profile::unlimited(), faults(FaultKind::Lost, Phase::After, 50_000), chats());
    let hits = (0..100_000u64).filter(|_| client.send(s(0), 0).answer == Answer::ConnectionLost).count();
    // 5,000 expected, standard deviation 69; the draws here are equidistributed.
    assert!((4_655..=5_345).contains(&hits), "{hits} of 100,000");
}

/// T9: a limit may hang on the path of a call, or on the host whatever the token.
#[test]
fn t9_whose_budget_it_is_is_a_parameter() {
    // Whether, after a search with token 0, these calls are accepted.
    let accepted = |key: &str| {
        let one = "algorithm = \"fixed-window\"\nlimit = 1\nwindow = \"1h\"";
        let profile = profile(&format!("profile = \"unlimited\"\n[limit.one]\nkey = \"{key}\"\n{one}"));
        let mut model = Model::new(&profile, Faults::default(), chats(), 2);
        let mut call = |token, chat, method| {
            let request = Request {
                token: TokenIndex(token),
                chat: ChatIndex(chat),
                method,
                idempotency: None,
                items: 1,
            };
            model.handle(s(0), CallId(0), request, Draws { fault: 0 });
            model.poll().is_some_and(|decision| is_delivered(&decision))
        };
        assert!(call(0, 0, Method::Search));
        [(0, 0, Method::Search), (0, 0, Method::GetPrice), (0, 1, Method::Search), (1, 0, Method::Search)]
            .map(|(token, chat, method)| call(token, chat, method))
    };
    assert_eq!(accepted("host"), [false, false, false, false]);
    assert_eq!(accepted("token"), [false, false, false, true]);
    assert_eq!(accepted("method"), [false, true, false, true]);
    assert_eq!(accepted("chat"), [false, false, true, true]);
}

/// T9: about 20 requests a minute, then several minutes of ban, and no word of how many.
#[test]
fn t9_a_ban_of_minutes() {
    let refused = |decision: Decision| match decision {
        Decision { truth: Truth::Refused { wait, .. }, answer, .. } => {
            assert_eq!(answer, Answer::TooManyRequests { hint: RetryHint::Absent });
            Some(wait)
        }
        _ => None,
    };
    let mut client = Client::new(&Profile::market());
    // Serialised calls 3.5 s apart, as its client makes them, are at most 18 in any minute.
    assert!((0..1_000).all(|i| is_delivered(&client.send(ms(3_500 * i), 0))));
    let begin = client.now + Duration::from_hours(1);
    assert!((0..20).all(|i| is_delivered(&client.send(begin, i % 4))));
    let ban = Duration::from_mins(5);
    assert_eq!(refused(client.send(begin, 0)), Some(ban));
    // Who sleeps for 5 minutes is heard again; who asks after 4 is banned for 10 from then on.
    let mut patient = client.model.clone();
    let (token, chat) = (TokenIndex(0), ChatIndex(0));
    let request = Request { token, chat, method: Method::Search, idempotency: None, items: 1 };
    patient.handle(begin + ban, CallId(0), request, Draws { fault: 0 });
    assert!(patient.poll().is_some_and(|decision| is_delivered(&decision)));
    assert_eq!(refused(client.send(begin + Duration::from_mins(4), 0)), Some(Duration::from_mins(10)));
    assert_eq!(refused(client.send(begin + ban, 0)), Some(Duration::from_mins(20)));
}

/// S13: with keys a time-out may be repeated; what the repetition gets is what was lost.
#[test]
fn s13_what_was_delivered_under_a_key_is_not_delivered_again() {
    let keys = profile("idempotency_keys = true\npenalties = false");
    let say = |client: &mut Client, token, key| {
        let (token, chat, method) = (TokenIndex(token), ChatIndex(0), Method::SendMessage);
        client.request(client.now, Request { token, chat, method, idempotency: key, items: 1 });
        let decision = client.model.poll().expect("nothing is held");
        (decision.answer, decision.truth, decision.taken)
    };
    let message = |message_id| Answer::Message { message_id };
    let mut client = Client::new(&keys);
    let first = say(&mut client, 0, Some(7));
    assert_eq!(first, (message(1), Truth::Delivered, 1));
    // Of a chat's 5 four are left, and with them gone a repetition is still answered.
    for id in 2..=5 {
        assert_eq!(say(&mut client, 0, Some(7)), (message(1), Truth::Replayed, 0));
        assert_eq!(say(&mut client, 0, Some(id)), (message(id), Truth::Delivered, 1));
    }
    assert!(matches!(say(&mut client, 0, Some(9)).1, Truth::Refused { .. }));
    assert_eq!(say(&mut client, 0, Some(7)), (message(1), Truth::Replayed, 0));
    // Another token knows nothing of it; a refusal is no delivery; no key, no memory.
    assert_eq!(say(&mut client, 1, Some(7)), (message(6), Truth::Delivered, 1));
    client.now = s(1);
    assert_eq!(say(&mut client, 0, Some(9)), (message(7), Truth::Delivered, 1));
    client.now = s(3);
    assert_eq!([say(&mut client, 0, None), say(&mut client, 0, None)].map(|d| d.1), [Truth::Delivered; 2]);

    // Telegram has no keys.
    let mut client = Client::new(&Profile::telegram());
    assert_eq!([1, 2].map(|_| say(&mut client, 0, Some(7)).0), [1, 2].map(message));
}

/// S13: of two equal calls in one queue the second does nothing.
#[test]
fn s13_a_held_call_is_delivered_once() {
    let mut client = Client::new(&profile(
        "profile = \"unlimited\"\nidempotency_keys = true\nhold = { budget = \"8s\" }\n[limit.text]\nkey = \"chat\"\nalgorithm = \"sliding-window\"\nlimit = 1\nwindow = \"5s\"",
    ));
    for key in [0, 1, 1] {
        let (token, chat, method) = (TokenIndex(0), ChatIndex(0), Method::SendMessage);
        client.request(s(0), Request { token, chat, method, idempotency: Some(key), items: 1 });
    }
    let seen: Vec<_> = client.decided(s(60)).iter().map(|d| (d.at, d.answer, d.truth)).collect();
    let message = |message_id| Answer::Message { message_id };
    let expected = [
        (s(0), message(1), Truth::Delivered),
        (s(5), message(2), Truth::Delivered),
        (s(5), message(2), Truth::Replayed),
    ];
    assert_eq!(seen, expected);
}

/// S14: a question costs what a call costs, whether there is anything to tell or not; who sends does not notice.
#[test]
fn s14_a_question_may_be_answered_with_nothing() {
    let mut chats = Chats::new(0, Lifecycle { empty: Share::ALL, ..Lifecycle::default() });
    chats.add(ChatKind::Private, 2);
    let mut client = Client::with(&Profile::telegram(), Faults::default(), chats);
    let mut ask = |method| {
        client.call(s(0), 0, method);
        let decision = client.decided(s(0))[0];
        (decision.answer, decision.truth, decision.taken)
    };
    for question in [Method::Search, Method::GetPrice] {
        assert_eq!(ask(question), (Answer::Nothing, Truth::Delivered, 1));
    }
    assert_eq!(ask(Method::SendMessage), (Answer::Message { message_id: 1 }, Truth::Delivered, 1));
    let level = client.model.token_level(TokenIndex(0), s(0)).expect("a token-wide limit");
    assert_eq!(level.available, 27_000_000);

    let mut client = Client::new(&Profile::telegram());
    client.call(s(0), 0, Method::Search);
    assert_eq!(
        client.decided(s(0))[0].answer,
        Answer::Message { message_id: 1 },
        "there is something to tell"
    );
}

/// T8: what is said about the wait changes, and the wait does not.
#[test]
fn t8_many_dialects_and_one_deadline() {
    let hints = |rule: &str| {
        // Five at once, and the sixth leads to a pause of 20 s from 0.5 s on.
        let pause = "[limit.chat.penalty]\nminimum = \"20s\"\ncap = \"20s\"";
        let mut client = Client::new(&profile(&format!("retry_hint = {{ {rule} }}\n{pause}")));
        assert!((0..5).all(|_| is_delivered(&client.send(s(0), 0))));
        let hints = [500, 7_250, 20_000].map(|at| {
            let decision = client.send(ms(at), 0);
            let Truth::Refused { wait, .. } = decision.truth else { panic!("{decision:?}") };
            assert_eq!(decision.at + wait, ms(20_500), "the ground truth is exact");
            let Answer::TooManyRequests { hint } = decision.answer else { panic!("{decision:?}") };
            hint
        });
        assert!(is_delivered(&client.send(ms(20_500), 0)));
        hints
    };
    assert_eq!(hints("kind = \"exact\""), [20, 14, 1].map(RetryHint::Seconds));
    assert_eq!(hints("kind = \"date\""), [21; 3].map(RetryHint::Date));
    assert_eq!(hints("kind = \"absent\""), [RetryHint::Absent; 3]);
    assert_eq!(hints("kind = \"constant\", after = \"3s\""), [3; 3].map(RetryHint::Seconds));
    assert_eq!(hints("kind = \"short\", share = \"50%\""), [10, 7, 0].map(RetryHint::Seconds));
}

/// 400 costs nothing, whatever it is asked for, and no limit sees it.
#[test]
fn an_unknown_chat_is_a_400_and_spends_nothing() {
    let lifecycle = Lifecycle { unknown: Share::ALL, dead: Share::ALL, ..Lifecycle::default() };
    let mut chats = Chats::new(0, lifecycle);
    chats.add(ChatKind::Group, 1);
    let mut client = Client::with(&Profile::telegram(), Faults::default(), chats);
    for _ in 0..100 {
        let decision = client.send(s(0), 0);
        assert_eq!((decision.answer, decision.truth), (Answer::ChatNotFound, Truth::Unknown));
        assert_eq!(decision.taken, 0);
    }
    assert!(!client.model.can_receive(ChatIndex(0), s(0)));
    let level = client.model.token_level(TokenIndex(0), s(0)).expect("a token-wide limit");
    assert_eq!(level.available, 30_000_000);
}
