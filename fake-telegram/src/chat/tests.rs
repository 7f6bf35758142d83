//! Chats against what their lifecycle says.

use super::*;

const DAY: Duration = Duration::from_hours(24);

fn dead(chats: &mut Chats, now: Time) -> usize {
    (0..chats.len() as u32).filter(|&chat| chats.dead(ChatIndex(chat), now).is_some()).count()
}

#[test]
fn a_chat_is_two_bytes() {
    assert_eq!(size_of::<Cell>(), 2);
}

#[test]
fn the_share_that_is_dead_at_the_start_is_drawn_for_each_chat() {
    let mut chats = Chats::new(5, Lifecycle { dead: Share::from_ppm(100_000), ..Lifecycle::default() });
    chats.add(ChatKind::Private, 10_000);
    // 1,000 expected, standard deviation 30.
    assert!((850..=1_150).contains(&dead(&mut chats, Time::ZERO)));
    assert_eq!(chats.dead(ChatIndex(10_000), Time::ZERO), None, "an unknown chat is not dead");
}

#[test]
fn a_lasting_chat_outlasts_the_others() {
    let all = Share::from_ppm(1_000_000);
    let die = Change { at: DAY, action: Action::Die, share: None, chats: vec![], range: None };
    let (mean_life, schedule) = (Some(Duration::from_secs(1)), vec![die]);
    let mut chats =
        Chats::new(5, Lifecycle { dead: all, unknown: all, mean_life, schedule, ..Lifecycle::default() });
    let lasting = chats.add_lasting(ChatKind::Private);
    chats.happens(lasting, Action::Die, Time::ZERO);
    assert_eq!(chats.look(lasting, Time::ZERO + DAY + DAY), Some((ChatKind::Private, None)));
}

#[test]
fn an_unknown_chat_stays_unknown_whatever_happens_to_the_others() {
    let revive = Change { at: DAY, action: Action::Revive, share: None, chats: vec![], range: None };
    let lifecycle = Lifecycle {
        unknown: Share::from_ppm(100_000),
        mean_life: Some(DAY),
        schedule: vec![revive],
        ..Lifecycle::default()
    };
    let mut chats = Chats::new(5, lifecycle);
    chats.add(ChatKind::Group, 10_000);
    let mut unknown =
        |now| (0..10_000).map(ChatIndex).filter(|&chat| chats.look(chat, now).is_none()).collect::<Vec<_>>();
    let first = unknown(Time::ZERO);
    // 1,000 expected, standard deviation 30.
    assert!((850..=1_150).contains(&first.len()));
    assert_eq!(unknown(Time::ZERO + DAY * 3), first);
    assert_eq!(chats.kind(first[0]), Some(ChatKind::Group), "its sender takes it for a group");
}

#[test]
fn the_share_that_has_nothing_to_tell_is_drawn_for_each_chat() {
    let share = |ppm| Lifecycle {
        empty: Share::from_ppm(ppm),
        dead: Share::from_ppm(300_000),
        ..Lifecycle::default()
    };
    let nothing = |ppm| {
        let mut chats = Chats::new(5, share(ppm));
        chats.add(ChatKind::Private, 10_000);
        let empty = (0..10_000).map(ChatIndex).filter(|&chat| chats.has_nothing_to_tell(chat));
        let empty = empty.collect::<Vec<_>>();
        let dead = empty.iter().filter(|&&chat| chats.dead(chat, Time::ZERO).is_some()).count();
        (empty.len(), dead)
    };
    // 3,000 expected, standard deviation 46; of those 900 dead, as of all: the draws are independent.
    let (empty, dead) = nothing(300_000);
    assert!((2_770..=3_230).contains(&empty) && (770..=1_030).contains(&dead), "{empty}, {dead}");
    assert_eq!(nothing(0).0, 0);
    assert_eq!(nothing(1_000_000).0, 10_000);
}

#[test]
fn a_schedule_is_followed_whenever_somebody_looks() {
    let change = |at, action, chats: &[u32], share| Change {
        at: Duration::from_secs(at),
        action,
        share,
        chats: chats.to_vec(),
        range: None,
    };
    let schedule = vec![
        change(20, Action::Revive, &[0], None),
        change(10, Action::Deactivate, &[0, 1, 77], None),
        change(30, Action::Die, &[], Some(Share::ALL)),
    ];
    let mut chats = Chats::new(1, Lifecycle { schedule, ..Lifecycle::default() });
    chats.add(ChatKind::Private, 3);
    chats.add(ChatKind::Group, 1);
    let mut states = |t| [0, 1, 2, 3].map(|i| chats.dead(ChatIndex(i), Time::from_secs(t)));
    let (blocked, gone) = (Some(Forbidden::Blocked), Some(Forbidden::Deactivated));
    assert_eq!(states(9), [None; 4]);
    assert_eq!(states(10), [gone, gone, None, None]);
    assert_eq!(states(25), [None, gone, None, None]);
    assert_eq!(states(30), [blocked, blocked, blocked, Some(Forbidden::Kicked)]);
}

#[test]
fn a_range_adds_up_with_lists_and_shares() {
    let dead = |change: &str| {
        let change: Change =
            toml::from_str(&format!("at = \"0s\"\naction = \"die\"\n{change}")).expect(change);
        let mut chats = Chats::new(1, Lifecycle { schedule: vec![change], ..Lifecycle::default() });
        chats.add(ChatKind::Private, 2_000);
        (0..2_000).filter(|&chat| chats.dead(ChatIndex(chat), Time::ZERO).is_some()).collect::<Vec<_>>()
    };
    assert_eq!(dead("range = { first = 0, count = 1000 }"), (0..1_000).collect::<Vec<_>>());
    assert_eq!(dead("range = { first = 3, count = 2 }\nchats = [0, 4, 7]"), [0, 3, 4, 7]);
    assert_eq!(dead("range = { first = 1999, count = \"1k\" }"), [1_999]);
    for nobody in ["first = 0, count = 0", "first = 2000, count = 1", "first = 4294967295, count = 9"] {
        assert!(dead(&format!("range = {{ {nobody} }}")).is_empty());
    }
    assert_eq!(dead(""), (0..2_000).collect::<Vec<_>>());
    // Half of the other 1,000: standard deviation 16.
    let both = dead("range = { first = 500, count = 1000 }\nshare = \"50%\"");
    assert!((500..1_500).all(|chat| both.contains(&chat)));
    assert!((1_420..=1_580).contains(&both.len()));
}

/// T6: a user may unblock and write again.
#[test]
fn who_writes_again_can_be_written_to_again_unless_the_account_is_gone() {
    let change = |at, action, chats: &[u32]| Change {
        at: Duration::from_secs(at),
        action,
        share: None,
        chats: chats.to_vec(),
        range: None,
    };
    let schedule = vec![
        change(10, Action::Die, &[0, 2]),
        change(10, Action::Deactivate, &[1]),
        change(30, Action::Die, &[0]),
    ];
    let mut chats = Chats::new(1, Lifecycle { schedule: schedule.clone(), ..Lifecycle::default() });
    chats.add(ChatKind::Private, 2);
    chats.add(ChatKind::Group, 1);
    let (blocked, gone, kicked) =
        (Some(Forbidden::Blocked), Some(Forbidden::Deactivated), Some(Forbidden::Kicked));
    let states = |chats: &mut Chats, t| [0, 1, 2].map(|i| chats.dead(ChatIndex(i), Time::from_secs(t)));
    let write = |chats: &mut Chats, t| {
        (0..4).for_each(|chat| chats.wrote(ChatIndex(chat), Time::from_secs(t)));
    };
    // Who is alive, or beyond the declared chats, changes nothing by writing.
    write(&mut chats, 9);
    assert_eq!(states(&mut chats, 9), [None; 3]);
    assert_eq!(states(&mut chats, 19), [blocked, gone, kicked]);
    write(&mut chats, 20);
    assert_eq!(states(&mut chats, 20), [None, gone, None]);
    assert_eq!(states(&mut chats, 30), [blocked, gone, None], "what is scheduled happens");

    let mut chats = Chats::new(1, Lifecycle { unknown: Share::ALL, schedule, ..Lifecycle::default() });
    chats.add(ChatKind::Private, 1);
    chats.wrote(ChatIndex(0), Time::from_secs(20));
    assert_eq!(chats.look(ChatIndex(0), Time::from_secs(20)), None);
}

/// After they wrote, chats live as long as new ones.
#[test]
fn a_chat_that_wrote_lives_anew() {
    let lifecycle = Lifecycle {
        dead: Share::ALL,
        mean_life: Some(DAY * 30),
        mean_absence: Some(DAY * 10_000),
        ..Lifecycle::default()
    };
    let mut chats = Chats::new(11, lifecycle);
    chats.add(ChatKind::Private, 10_000);
    let at = |days| Time::ZERO + DAY * days;
    for chat in (0..10_000).map(ChatIndex) {
        chats.wrote(chat, at(5));
    }
    assert_eq!(dead(&mut chats, at(5)), 0);
    // The chain of the test below: 1 / (1 + 30 / 10,000) x (1 - exp(-1.003)) = 63.13%. Standard deviation 48.
    assert!((6_073..=6_553).contains(&dead(&mut chats, at(35))));
}

/// Alive share of a two-state chain: at rest `life / (life + absence)`.
#[test]
fn churn_comes_to_rest_where_theory_says() {
    let lifecycle =
        Lifecycle { mean_life: Some(DAY * 30), mean_absence: Some(DAY * 10), ..Lifecycle::default() };
    let mut chats = Chats::new(11, lifecycle);
    chats.add(ChatKind::Private, 10_000);
    // After 30 days of 30-day lives without returns 63.2% would be dead; with returns the share is
    // 1/4 (1 - exp(-t (1/30 + 1/10))): at 30 days 24.5%, at 300 days 25%. Standard deviation 43.
    let at = |days| Time::ZERO + DAY * days;
    assert!((2_237..=2_667).contains(&dead(&mut chats, at(30))));
    assert!((2_285..=2_715).contains(&dead(&mut chats, at(300))));
}

#[test]
fn the_state_does_not_depend_on_when_somebody_looked() {
    let lifecycle = Lifecycle {
        dead: Share::from_ppm(100_000),
        mean_life: Some(DAY),
        mean_absence: Some(DAY),
        schedule: vec![Change {
            at: DAY * 3,
            action: Action::Revive,
            share: Some(Share::from_ppm(500_000)),
            chats: Vec::new(),
            range: None,
        }],
        ..Lifecycle::default()
    };
    let chats = || {
        let mut chats = Chats::new(3, lifecycle.clone());
        chats.add(ChatKind::Private, 500);
        chats
    };
    let (mut often, mut once) = (chats(), chats());
    for hour in 0..150 {
        dead(&mut often, Time::ZERO + Duration::from_hours(hour));
    }
    let at = Time::ZERO + Duration::from_hours(150);
    for chat in (0..500).map(ChatIndex) {
        assert_eq!(often.dead(chat, at), once.dead(chat, at));
    }
}

/// A copy lives as its original does; what happens to the copy alone does not concern the original.
#[test]
fn a_copy_follows_its_original_until_something_happens_to_it() {
    let schedule = vec![
        Change {
            at: DAY,
            action: Action::Die,
            share: Some(Share::from_ppm(500_000)),
            chats: vec![],
            range: None,
        },
        Change { at: DAY + DAY, action: Action::Revive, share: None, chats: vec![3], range: None },
    ];
    let (mean_life, mean_absence) = (Some(DAY), Some(Duration::from_hours(2)));
    let lifecycle = Lifecycle { mean_life, mean_absence, schedule, ..Lifecycle::default() };
    let mut chats = Chats::new(5, lifecycle);
    chats.add(ChatKind::Private, 50);
    let at = |hour: u64| Time::ZERO + Duration::from_hours(hour);
    let copies: Vec<ChatIndex> = (0..50).map(|chat| chats.copy(ChatIndex(chat), at(1))).collect();
    for hour in 1..72 {
        for (chat, copy) in (0..50).zip(&copies) {
            assert_eq!(
                chats.dead(ChatIndex(chat), at(hour)),
                chats.dead(*copy, at(hour)),
                "{chat} at {hour} h"
            );
        }
    }
    chats.happens(ChatIndex(0), Action::Deactivate, at(72));
    assert_eq!(chats.dead(copies[0], at(72)), Some(Forbidden::Deactivated));
    chats.happens(copies[0], Action::Revive, at(72));
    assert_eq!(chats.dead(ChatIndex(0), at(72)), Some(Forbidden::Deactivated));
    assert_eq!(chats.dead(copies[0], at(72)), None);
}

/// What is told is what changes for somebody who asks all the time.
#[test]
fn whoever_watches_is_told_of_every_change_in_its_time() {
    let schedule = vec![Change { at: DAY, action: Action::Die, share: None, chats: vec![], range: None }];
    let (mean_life, mean_absence) = (Some(DAY), Some(Duration::from_hours(2)));
    let mut chats = Chats::new(5, Lifecycle { mean_life, mean_absence, schedule, ..Lifecycle::default() });
    chats.add(ChatKind::Private, 1);
    chats.watch();
    let copy = chats.copy(ChatIndex(0), Time::ZERO);
    let other = chats.add(ChatKind::Private, 1);
    let (mut told, mut is_dead) = (0, [false; 2]);
    while let Some(at) = chats.next_change().filter(|at| *at < Time::ZERO + DAY + DAY + DAY) {
        chats.follow(at);
        assert!(chats.next_change() > Some(at), "it goes on");
        for Happening { chat, at: when, before, after } in chats.take_happened() {
            let dead = &mut is_dead[usize::from(chat == other)];
            assert!(chat == copy || chat == other, "nobody watches the first");
            assert_eq!((when, before.is_some(), after.is_some()), (at, *dead, !*dead));
            *dead = !*dead;
            assert_eq!(chats.dead(chat, at), after);
            told += 1;
        }
    }
    assert!(told >= 4, "both die on the first day, and come back within the next two");
}
