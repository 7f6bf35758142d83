//! What the processes of a design share: a simulated Redis, one atomic script at a time.
//!
//! A script is a closure over the [`Keyspace`]; nothing else runs meanwhile. It may execute Redis' commands on ordinary
//! keys ([`Keyspace::execute`]) and, on the hot path, work on values of its own types ([`Keyspace::object`]). A
//! [`Plan`] says what happens to the store in a run.
//!
//! Pure: whoever calls says at which instant of the store's. Getting there and back, which takes a round trip of virtual
//! time, and who is told what when the store is away are the caller's business ([`crate::Env::script`]).

pub mod command;
pub mod keyspace;
mod object;
pub mod plan;

use std::cell::RefCell;

use fake_telegram::time::Time;

use self::command::Command;
use self::keyspace::Keyspace;
use self::plan::{Event, Outage, Plan};

pub use self::object::{Holds, Key};

/// The store of one run.
#[derive(Debug)]
pub struct Store {
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    keyspace: Keyspace,
    /// What is still to happen, in order of time.
    events: std::vec::IntoIter<Event>,
    /// When the first of it happens.
    next_event_at: Time,
    outage: Option<Outage>,
    /// When something last happened here.
    now: Time,
}

/// Why a call was not executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// The caller learns it at once.
    #[error("connection refused")]
    Refused,
    /// The caller learns nothing until it gives up.
    #[error("no answer")]
    Hangs,
}

impl Default for Store {
    /// Nothing ever happens to it.
    fn default() -> Self {
        Self::new(Plan::default())
    }
}

impl Store {
    /// An empty store, to which `plan` will happen.
    pub fn new(plan: Plan) -> Self {
        let events = plan.into_events().into_iter();
        let next_event_at = starts_at(events.as_slice().first());
        let (keyspace, outage, now) = (Keyspace::default(), None, Time::ZERO);
        Self { state: RefCell::new(State { keyspace, events, next_event_at, outage, now }) }
    }

    /// The object called `name`; it begins as `initial()`, now and after each flush. Whoever asks for a name first says
    /// as what.
    ///
    /// # Panics
    /// If the object of that name is of another type.
    pub fn key<V: 'static>(&self, name: &str, initial: impl Fn() -> V + 'static) -> Key<V> {
        self.state.borrow_mut().keyspace.key(name, initial)
    }

    /// The same for an object that holds messages.
    ///
    /// # Panics
    /// As [`key`](Store::key).
    pub fn holder<V: Holds + 'static>(&self, name: &str, initial: impl Fn() -> V + 'static) -> Key<V> {
        self.state.borrow_mut().keyspace.holder(name, initial)
    }

    /// When the plan's next event is; [`Time::MAX`] if there is none any more. An outage's end is no event.
    pub fn next_event_at(&self) -> Time {
        self.state.borrow().next_event_at
    }

    /// Lets happen what is due by `at` and has not happened yet. Whether all data were lost by it, if there were any.
    pub fn advance(&self, at: Time) -> bool {
        self.state.borrow_mut().advance(at)
    }

    /// Executes a script at the store's instant `at`, as a whole.
    ///
    /// # Errors
    /// If the store is away at that instant; the script has not run.
    ///
    /// # Panics
    /// If calls do not arrive in order of time, if the plan has not [advanced](Self::advance) to `at` (somebody has to
    /// learn of lost data), or if the script calls the store.
    #[inline]
    pub fn call<R>(&self, at: Time, run: impl FnOnce(Time, &mut Keyspace) -> R) -> Result<R, Unavailable> {
        let state = &mut *self.state.borrow_mut();
        assert!(state.now <= at, "calls reach the store in order of time");
        assert!(at < state.next_event_at, "the plan is advanced before a call");
        state.now = at;
        match state.outage {
            Some(Outage { until, how }) if at < until => Err(how),
            _ => Ok(run(at, &mut state.keyspace)),
        }
    }

    /// Runs a script on one object: a [call](Self::call) to a store that is never away.
    ///
    /// # Panics
    /// As `call` does, and if the store is away.
    #[inline]
    pub fn run<V: 'static, R>(&self, key: Key<V>, now: Time, script: impl FnOnce(Time, &mut V) -> R) -> R {
        let result = self.call(now, |now, keyspace| script(now, &mut keyspace.object(key)));
        result.expect("a store without a plan is never away")
    }

    /// Shows what is in the store, to whoever keeps the books; this is no call.
    pub fn look<R>(&self, look: impl FnOnce(&Keyspace) -> R) -> R {
        look(&self.state.borrow().keyspace)
    }
}

impl State {
    fn advance(&mut self, at: Time) -> bool {
        let mut lost = false;
        while self.next_event_at <= at
            && let Some(event) = self.events.next()
        {
            self.next_event_at = starts_at(self.events.as_slice().first());
            self.happen(&event);
            lost |= event.loses_data();
        }
        lost
    }

    fn happen(&mut self, event: &Event) {
        self.now = event.starts_at();
        if event.loses_data() {
            self.keyspace.flush();
        }
        if let Some(outage) = event.outage() {
            self.outage = Some(outage);
        }
        if let Some(key) = event.key.clone() {
            let deleted = self.keyspace.execute(self.now, &Command::Del { key });
            deleted.expect("any key can be deleted");
        }
    }
}

fn starts_at(event: Option<&Event>) -> Time {
    event.map_or(Time::MAX, Event::starts_at)
}

#[cfg(test)]
mod tests {
    use fake_telegram::time::Duration;

    use super::command::Reply;
    use super::plan::Action;
    use super::*;

    const US: Duration = Duration::from_micros(1);

    fn event(at_s: u64, action: Action) -> Event {
        Event { at: Duration::from_secs(at_s), action, r#for: None, persistent: false, key: None }
    }

    fn outage(at_s: u64, action: Action, length_s: u64) -> Event {
        Event { r#for: Some(Duration::from_secs(length_s)), ..event(at_s, action) }
    }

    fn store(events: impl Into<Vec<Event>>) -> Store {
        Store::new(Plan::new(events.into()).unwrap())
    }

    fn set(store: &Store, at: Time, key: &str) {
        let (key, value) = (key.to_owned(), b"1".to_vec());
        let command = Command::Set { key, value, only_if_absent: false, ttl: None };
        assert_eq!(store.call(at, |now, keyspace| keyspace.execute(now, &command)), Ok(Ok(Reply::Ok)));
    }

    fn exists(store: &Store, at: Time, key: &str) -> bool {
        let command = Command::Exists { key: key.to_owned() };
        let reply = store.call(at, |now, keyspace| keyspace.execute(now, &command));
        reply.unwrap().unwrap() == Reply::Integer(1)
    }

    #[test]
    fn a_name_is_one_value_whoever_asks() {
        let store = Store::default();
        let first = store.key("counter", || 1_u32);
        store.run(first, Time::ZERO, |_, value| *value += 1);
        let second = store.key("counter", || 100_u32);
        assert_eq!(
            store.run(second, Time::from_secs(9), |now, value| (now, *value)),
            (Time::from_secs(9), 2)
        );
    }

    #[test]
    #[should_panic(expected = "of another type")]
    fn a_name_has_one_type() {
        let store = Store::default();
        store.key("counter", || 1_u32);
        store.key("counter", || 1_u64);
    }

    #[test]
    fn an_outage_is_on_from_its_begin_until_just_before_its_end() {
        for (action, how) in [
            (Action::Fail, Unavailable::Refused),
            (Action::Hang, Unavailable::Hangs),
            (Action::Restart, Unavailable::Refused),
        ] {
            let store = store([outage(10, action, 5)]);
            let (begin, end) = (Time::from_secs(10), Time::from_secs(15));
            let runs = std::cell::Cell::new(0);
            let call = |at| {
                store.advance(at);
                store.call(at, |_, _| runs.set(runs.get() + 1))
            };
            assert_eq!(call(begin - US), Ok(()));
            assert_eq!(call(begin), Err(how));
            assert_eq!(call(end - US), Err(how));
            assert_eq!(runs.get(), 1, "nothing is executed meanwhile");
            assert_eq!(call(end), Ok(()));
        }
    }

    #[test]
    fn an_outage_without_length_lasts_to_the_end() {
        let store = store([event(10, Action::Hang)]);
        assert!(!store.advance(Time::from_secs(10)), "nothing is lost");
        assert_eq!(store.call(Time::from_secs(1 << 40), |_, _| ()), Err(Unavailable::Hangs));
    }

    #[test]
    fn outages_may_follow_each_other_at_once() {
        let store = store([outage(10, Action::Fail, 5), outage(15, Action::Hang, 5)]);
        let call = |at| {
            store.advance(at);
            store.call(at, |_, _| ())
        };
        assert_eq!(call(Time::from_secs(15) - US), Err(Unavailable::Refused));
        assert_eq!(call(Time::from_secs(15)), Err(Unavailable::Hangs));
        assert_eq!(call(Time::from_secs(20)), Ok(()));
    }

    #[test]
    fn a_flush_takes_keys_and_lets_objects_begin_again() {
        let store = store([event(10, Action::Flush)]);
        let object = store.key("object", || vec![7]);
        store.run(object, Time::ZERO, |_, value| value.push(8));
        set(&store, Time::ZERO, "key");
        assert!(store.advance(Time::from_secs(10)));
        assert!(!exists(&store, Time::from_secs(10), "key"));
        assert_eq!(store.run(object, Time::from_secs(10), |_, value| value.clone()), [7]);
    }

    #[test]
    fn a_restart_loses_data_unless_it_is_persistent() {
        for persistent in [false, true] {
            let store = store([Event { persistent, ..outage(10, Action::Restart, 5) }]);
            let object = store.key("object", || 0);
            store.run(object, Time::ZERO, |_, value| *value = 1);
            set(&store, Time::ZERO, "key");
            assert_eq!(store.advance(Time::from_secs(10)), !persistent);
            assert_eq!(exists(&store, Time::from_secs(15), "key"), persistent);
            assert_eq!(store.run(object, Time::from_secs(15), |_, value| *value == 1), persistent);
        }
    }

    #[test]
    fn a_delete_takes_one_ordinary_key_even_in_an_outage() {
        let delete = |key: &str| Event { key: Some(key.to_owned()), ..event(12, Action::Delete) };
        let store = store([outage(10, Action::Fail, 5), delete("key"), delete("object"), delete("none")]);
        let object = store.key("object", || 0);
        store.run(object, Time::ZERO, |_, value| *value = 1);
        set(&store, Time::ZERO, "key");
        set(&store, Time::ZERO, "other");
        assert!(!store.advance(Time::from_secs(15)), "that is not all data");
        assert!(!exists(&store, Time::from_secs(15), "key"));
        assert!(exists(&store, Time::from_secs(15), "other"));
        assert_eq!(store.run(object, Time::from_secs(15), |_, value| *value), 1);
    }

    #[test]
    fn advance_tells_of_each_loss_once() {
        let flush = event(10, Action::Flush);
        let store =
            store([flush.clone(), event(20, Action::Hang), Event { at: Duration::from_secs(9), ..flush }]);
        assert_eq!(store.next_event_at(), Time::from_secs(9));
        assert!(!store.advance(Time::from_secs(9) - US));
        assert!(store.advance(Time::from_secs(9)));
        assert!(!store.advance(Time::from_secs(9)));
        assert_eq!(store.next_event_at(), Time::from_secs(10));
        assert!(store.advance(Time::from_secs(25)), "with what came after it");
        assert_eq!(store.next_event_at(), Time::MAX);
        assert!(!store.advance(Time::MAX));
    }

    #[test]
    #[should_panic(expected = "in order of time")]
    fn a_call_that_comes_too_late_is_a_defect() {
        let store = Store::default();
        let _ = store.call(Time::from_secs(1), |_, _| ());
        let _ = store.call(Time::ZERO, |_, _| ());
    }

    #[test]
    #[should_panic(expected = "advanced before a call")]
    fn a_call_past_an_event_is_a_defect() {
        let _ = store([event(10, Action::Flush)]).call(Time::from_secs(10), |_, _| ());
    }
}
