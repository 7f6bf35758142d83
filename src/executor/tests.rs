use std::cell::{Cell, RefCell};
use std::rc::Rc;

use fake_telegram::time::Duration;
use futures::stream::{FuturesUnordered, StreamExt};
use futures::{FutureExt, future, select_biased};
use proptest::prelude::*;

use super::*;

fn run(executor: &mut Executor) {
    executor.run(&Nothing, Time::MAX).expect("the tasks end");
}

fn log() -> Rc<RefCell<Vec<(u64, u32)>>> {
    Rc::default()
}

proptest! {
    /// Against a stable sort by time: the definition of "in the order in which they were set".
    #[test]
    fn sleeps_end_in_order_of_time_and_ties_in_the_order_set(delays in prop::collection::vec(0_u64..20, 1..200)) {
        let mut executor = Executor::default();
        let ended = log();
        for (i, delay) in delays.iter().enumerate() {
            let (handle, ended, delay) = (executor.handle().clone(), ended.clone(), *delay);
            executor.handle().spawn(format!("task {i}"), async move {
                handle.sleep(Duration::from_micros(delay)).await;
                ended.borrow_mut().push((handle.now().as_micros(), i as u32));
            });
        }
        run(&mut executor);
        let mut expected: Vec<_> = delays.iter().enumerate().map(|(i, delay)| (*delay, i as u32)).collect();
        expected.sort_by_key(|(delay, _)| *delay);
        prop_assert_eq!(&*ended.borrow(), &expected);
    }

    /// A shuffle permutes ties and nothing else, and is a function of its key.
    #[test]
    fn a_shuffle_changes_ties_only(key in any::<u64>()) {
        let order = |key| {
            let mut executor = Executor::new(key);
            let ended = log();
            for i in 0..40_u32 {
                let (handle, ended) = (executor.handle().clone(), ended.clone());
                executor.handle().spawn(format!("task {i}"), async move {
                    handle.sleep(Duration::from_micros(u64::from(i / 20) + 1)).await;
                    ended.borrow_mut().push((handle.now().as_micros(), i));
                });
            }
            run(&mut executor);
            ended.take()
        };
        let shuffled = order(Some(key));
        prop_assert_eq!(&shuffled, &order(Some(key)));
        prop_assert_ne!(&shuffled, &order(None));
        let mut sorted = shuffled.clone();
        sorted.sort_unstable();
        prop_assert_eq!(sorted, order(None));
        prop_assert!(shuffled.is_sorted_by_key(|(at, _)| *at));
    }
}

#[test]
fn a_dropped_sleep_neither_wakes_nor_piles_up() {
    let mut executor = Executor::default();
    let handle = executor.handle().clone();
    let polls = Rc::new(Cell::new(0));
    let counted = polls.clone();
    executor.handle().spawn("canceller".to_owned(), async move {
        for _ in 0..100_000 {
            let mut long = handle.sleep(Duration::from_hours(1)).fuse();
            let mut short = handle.sleep(Duration::from_micros(10)).fuse();
            select_biased! { () = long => unreachable!("an hour is longer"), () = short => {} }
            drop(long);
            counted.set(counted.get() + 1);
            assert!(handle.pending() <= 1, "cancelled sleeps do not count");
            assert!(handle.held() < 300, "cancelled sleeps are swept");
        }
    });
    run(&mut executor);
    assert_eq!(polls.get(), 100_000);
    assert_eq!(executor.handle().now(), Time::from_secs(1), "time stops with the last live event");
}

#[test]
fn a_sleep_dropped_at_its_own_instant_leaves_nothing_behind() {
    let mut executor = Executor::default();
    let handle = executor.handle().clone();
    executor.handle().spawn("both at once".to_owned(), async move {
        let (first, second) = (handle.sleep(Duration::from_secs(1)), handle.sleep(Duration::from_secs(1)));
        future::select(first, second).await;
        assert_eq!(handle.pending(), 0);
        handle.sleep(Duration::from_secs(1)).await;
    });
    run(&mut executor);
    assert_eq!(executor.handle().now(), Time::from_secs(2));
}

#[test]
fn combinators_with_wakers_of_their_own_work() {
    let mut executor = Executor::default();
    let handle = executor.handle().clone();
    let (sender, mut receiver) = futures::channel::mpsc::unbounded();
    let ended = log();
    let seen = ended.clone();
    executor.handle().spawn("unordered".to_owned(), async move {
        let mut sleeps: FuturesUnordered<_> = [3_u32, 1, 2]
            .into_iter()
            .map(|i| handle.sleep(Duration::from_secs(u64::from(i))).map(move |()| i))
            .collect();
        while let Some(i) = sleeps.next().await {
            sender.unbounded_send((handle.now(), i)).expect("the receiver lives");
        }
    });
    executor.handle().spawn("receiver".to_owned(), async move {
        while let Some((at, i)) = receiver.next().await {
            seen.borrow_mut().push((at.as_micros(), i));
        }
    });
    run(&mut executor);
    assert_eq!(*ended.borrow(), [(1_000_000, 1), (2_000_000, 2), (3_000_000, 3)]);
}

#[test]
fn a_deadlock_names_the_task_and_what_it_waits_for() {
    let mut executor = Executor::default();
    executor.handle().spawn("the last worker".to_owned(), future::pending());
    let stalled = executor.run(&Nothing, Time::MAX).expect_err("nothing can happen");
    assert_eq!(
        stalled.to_string(),
        "nothing is left to happen at 0s, and a task waits for ever: the last worker waits for something outside of the run"
    );
}

#[test]
fn a_loop_in_which_no_time_passes_is_named() {
    let mut executor = Executor::default().with_polls_per_instant_max(1_000);
    let handle = executor.handle().clone();
    executor.handle().spawn("the spinner".to_owned(), async move {
        handle.sleep(Duration::from_secs(5)).await;
        loop {
            handle.sleep(Duration::ZERO).await;
        }
    });
    let stalled = executor.run(&Nothing, Time::MAX).expect_err("it spins");
    assert_eq!(
        stalled.to_string(),
        "the spinner spins at 5s: polled more than 1000 times without time passing, waiting for a sleep to end"
    );
}

#[test]
fn stops_before_the_end_and_goes_on() {
    let mut executor = Executor::default();
    let handle = executor.handle().clone();
    executor.handle().spawn("sleeper".to_owned(), async move { handle.sleep(Duration::from_secs(10)).await });
    executor.run(&Nothing, Time::from_secs(10)).expect("it only waits");
    assert_eq!((executor.handle().now(), executor.alive), (Time::from_secs(10), 1));
    run(&mut executor);
    assert_eq!(executor.alive, 0);
}

#[test]
fn a_hundred_thousand_tasks_run() {
    let mut executor = Executor::default();
    let done = Rc::new(Cell::new(0));
    for i in 0..100_000_u64 {
        let (handle, done) = (executor.handle().clone(), done.clone());
        executor.handle().spawn(format!("worker {i}"), async move {
            for _ in 0..3 {
                handle.sleep(Duration::from_micros(1 + i % 977)).await;
            }
            done.set(done.get() + 1);
        });
    }
    run(&mut executor);
    assert_eq!(done.get(), 100_000);
}

/// The memory of a run does not grow with the tasks that have ended.
#[test]
fn a_task_that_ends_makes_room_for_the_next() {
    let mut executor = Executor::default();
    let handle = executor.handle().clone();
    executor.handle().spawn("parent".to_owned(), async move {
        for i in 0..1_000 {
            let child = handle.clone();
            handle.spawn(format!("child {i}"), async move { child.sleep(Duration::from_millis(1)).await });
            handle.sleep(Duration::from_millis(2)).await;
        }
    });
    run(&mut executor);
    assert!(executor.tasks.len() <= 2, "{} slots", executor.tasks.len());
}

/// A source with a million events at one instant, each of which wakes a task.
#[test]
fn much_work_at_one_instant_is_not_a_spin() {
    struct Crowd(Handle, Cell<u32>, RefCell<Vec<Waiter>>);
    impl Source for Crowd {
        fn next_at(&self) -> Time {
            if self.1.get() > 0 { Time::ZERO } else { Time::MAX }
        }
        fn fire(&self) {
            self.1.set(self.1.get() - 1);
            for waiter in self.2.borrow_mut().drain(..) {
                self.0.wake(waiter);
            }
        }
        fn external(&self, _: u32) {}
    }
    let mut executor = Executor::default().with_polls_per_instant_max(1_000);
    let crowd = Rc::new(Crowd(executor.handle().clone(), Cell::new(50_000), RefCell::default()));
    let seen = crowd.clone();
    executor.handle().spawn("worker".to_owned(), async move {
        future::poll_fn(|context| {
            if seen.1.get() == 0 {
                return Poll::Ready(());
            }
            seen.2.borrow_mut().push(seen.0.waiter(context, "the crowd"));
            Poll::Pending
        })
        .await;
    });
    executor.run(&*crowd, Time::MAX).expect("it is work");
}

/// Two tasks of a group and one outside of it; each notes every second that it lives.
#[test]
fn a_killed_group_ends_at_once_and_nobody_else_does() {
    let mut executor = Executor::default();
    let handle = executor.handle().clone();
    let seen = Rc::new(RefCell::new(Vec::new()));
    for (group, name) in [(1, "a"), (1, "b"), (2, "c")] {
        let (handle, seen) = (handle.clone(), seen.clone());
        executor.handle().spawn_in(group, name.to_owned(), async move {
            loop {
                seen.borrow_mut().push(name);
                handle.sleep(Duration::from_secs(1)).await;
            }
        });
    }
    let killer = handle.clone();
    handle.spawn_in(3, "killer".to_owned(), async move {
        killer.sleep(Duration::from_millis(1_500)).await;
        killer.kill(1);
    });
    executor.run(&Nothing, Time::from_secs(3)).expect("nothing stalls");
    assert_eq!(*seen.borrow(), ["a", "b", "c", "a", "b", "c", "c"]);
    assert_eq!(handle.pending(), 1, "the timers of the dead are gone");
}

#[test]
fn a_task_that_kills_its_own_group_takes_its_children_along() {
    let mut executor = Executor::default();
    let handle = executor.handle().clone();
    let late = Rc::new(Cell::new(false));
    let (inner, flag) = (handle.clone(), late.clone());
    handle.spawn_in(7, "parent".to_owned(), async move {
        inner.spawn("child".to_owned(), async move { flag.set(true) });
        inner.kill(7);
        std::future::pending::<()>().await;
    });
    executor.run(&Nothing, Time::MAX).expect("nobody is left to wait");
    assert!(!late.get());
}
