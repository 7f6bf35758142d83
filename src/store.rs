//! What the processes of a design share: a simulated Redis, one atomic script at a time.
//!
//! A script is a closure over the [`Keyspace`]; nothing else runs meanwhile. It may execute Redis' commands on ordinary
//! keys ([`Keyspace::execute`]) and, on the hot path, work on values of its own types ([`Keyspace::object`]). A
//! [`Plan`] says what happens to the store in a run.
//!
//! Whoever calls says at which instant of the store's. Getting there and back, which takes a round trip of virtual
//! time, and who is told what when the store is away are the caller's business ([`crate::Env::script`]).
//!
//! The data may as well be on a real Redis ([`Store::on_redis`]). What is done to a store is an [`Operation`], which knows
//! both; the plan and the instants are the same.

pub mod command;
mod object;
pub mod keyspace;
pub mod plan;
pub mod script;
mod operation;
pub mod url;
#[cfg(feature = "redis")]
pub mod redis;

use std::cell::RefCell;

#[cfg(feature = "redis")]
use fake_telegram::time::Duration;
use fake_telegram::time::Time;

use self::command::{Command, CommandError};
use self::keyspace::Keyspace;
use self::plan::{Event, Outage, Plan};
#[cfg(feature = "redis")]
use self::redis::{Broken, Redis, RedisStore};
#[cfg(feature = "redis")]
use self::script::Name;
use self::script::{Names, Request};

pub use self::object::{Holds, Key};
pub use self::operation::{Booking, Operation};

/// The store of one run.
#[derive(Debug)]
pub struct Store {
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    keyspace: Keyspace,
    /// Where the data are if not there; the keyspace knows the objects' names then and is empty.
    #[cfg(feature = "redis")]
    redis: Option<Box<Redis>>,
    /// What has happened to the data and was not yet asked for, where others make the calls.
    wishes: Vec<Request>,
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

/// Why a call to the store came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Nobody listens.
    #[error("the store refuses connections")]
    Refused,
    /// No answer within the time-out.
    #[error("the store does not answer")]
    TimedOut,
    /// The command does not fit what is under its key.
    #[error(transparent)]
    Command(CommandError),
    /// A real Redis says what nobody expects: it is no store for us.
    #[error("the store answers with something that makes no sense")]
    Unexpected,
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
        let state = State {
            keyspace: Keyspace::default(),
            #[cfg(feature = "redis")]
            redis: None,
            wishes: Vec::new(),
            events,
            next_event_at,
            outage: None,
            now: Time::ZERO,
        };
        Self { state: RefCell::new(state) }
    }

    /// A store whose data are on a real Redis, to which `plan` will happen.
    #[cfg(feature = "redis")]
    pub fn on_redis(plan: Plan, redis: Redis) -> Self {
        let store = Self::new(plan);
        store.state.borrow_mut().redis = Some(Box::new(redis));
        store
    }

    /// Goes on in real time, from now on, if its data are on a real Redis: what makes the calls, of which every answer takes
    /// `timeout` at most. What is no call is still made here.
    ///
    /// # Errors
    /// If it cannot be reached.
    #[cfg(feature = "redis")]
    pub fn in_real_time(&self, timeout: Duration) -> Result<Option<RedisStore>, Broken> {
        self.state.borrow_mut().redis.as_mut().map(|redis| redis.in_real_time(timeout)).transpose()
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
    ///
    /// In real time on a real Redis nothing has happened to the data yet: that is among the [wishes](Self::wishes).
    pub fn advance(&self, at: Time) -> bool {
        self.state.borrow_mut().advance(at)
    }

    /// What is to be asked of a real Redis in real time, by whoever makes the calls, so that it happens.
    pub fn wishes(&self) -> Vec<Request> {
        std::mem::take(&mut self.state.borrow_mut().wishes)
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
        state.admit(at)?;
        Ok(run(at, &mut state.keyspace))
    }

    /// Does something to the data, wherever they are; otherwise a [call](Self::call).
    ///
    /// # Errors
    /// As `call`. A real Redis that fails refuses from then on; [`failure`](Self::failure) has the reason.
    ///
    /// # Panics
    /// As `call`.
    #[inline]
    pub fn execute<O: Operation>(&self, at: Time, operation: O) -> Result<O::Reply, Unavailable> {
        let state = &mut *self.state.borrow_mut();
        state.admit(at)?;
        #[cfg(feature = "redis")]
        if let Some(redis) = &mut state.redis {
            let done = redis.attempt(|redis| redis.perform(at, operation, Names::new(&state.keyspace)));
            return done.ok_or(Unavailable::Refused);
        }
        Ok(operation.simulated(at, &mut state.keyspace))
    }

    /// How a real Redis is asked for it, at the store's instant `at`, by whoever carries calls there; otherwise a
    /// [call](Self::call). The inner error is that of [`Operation::request`].
    ///
    /// # Errors
    /// As `call`.
    ///
    /// # Panics
    /// As `call`.
    pub fn request(
        &self,
        at: Time,
        operation: &impl Operation,
    ) -> Result<Result<Request, &'static str>, Unavailable> {
        let state = &mut *self.state.borrow_mut();
        state.admit(at)?;
        Ok(operation.request(Names::new(&state.keyspace)))
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

    /// The numbers of all messages in objects that hold some, for whoever keeps the books; this is no call. `None` if a real
    /// Redis does not say ([`failure`](Self::failure) has the reason).
    pub fn held(&self) -> Option<Vec<u32>> {
        let state = &mut *self.state.borrow_mut();
        #[cfg(feature = "redis")]
        if let Some(redis) = &mut state.redis {
            let holders = state.keyspace.holders().map(|name| Name::Object(format!("{name}:messages")));
            return redis.attempt(|redis| redis.held(holders));
        }
        Some(state.keyspace.held())
    }

    /// How many ordinary keys there are at `now`, and how many of them have no TTL; this is no call either.
    pub fn keys(&self, now: Time) -> (usize, usize) {
        let state = &mut *self.state.borrow_mut();
        #[cfg(feature = "redis")]
        if let Some(redis) = &mut state.redis {
            return redis.attempt(|redis| redis.keys(now)).unwrap_or_default();
        }
        (state.keyspace.live_keys(now), state.keyspace.keys_without_ttl(now))
    }

    /// Why a real Redis did not go on, if it did not: what it says counts for nothing from then on.
    #[cfg(feature = "redis")]
    pub fn failure(&self) -> Option<String> {
        self.state.borrow().redis.as_ref().and_then(|redis| redis.failure())
    }
}

impl State {
    /// A call arrives at `at`.
    #[inline]
    fn admit(&mut self, at: Time) -> Result<(), Unavailable> {
        assert!(self.now <= at, "calls reach the store in order of time");
        assert!(at < self.next_event_at, "the plan is advanced before a call");
        self.now = at;
        match self.outage {
            Some(Outage { until, how }) if at < until => Err(how),
            _ => Ok(()),
        }
    }

    /// Does the same to the real Redis as to the simulated store, if there is one: `request` if others make its calls.
    /// Whether they do.
    #[cfg(feature = "redis")]
    fn tell_redis<R>(&mut self, request: Request, run: impl FnOnce(&mut Redis) -> Result<R, Broken>) -> bool {
        let Some(redis) = &mut self.redis else { return false };
        if redis.is_live() {
            self.wishes.push(request);
            return true;
        }
        redis.attempt(run);
        false
    }

    fn advance(&mut self, at: Time) -> bool {
        let mut lost = false;
        while self.next_event_at <= at
            && let Some(event) = self.events.next()
        {
            self.next_event_at = starts_at(self.events.as_slice().first());
            lost |= self.happen(&event);
        }
        lost
    }

    /// Whether all data are lost by it now.
    fn happen(&mut self, event: &Event) -> bool {
        self.now = event.starts_at();
        let lost = event.loses_data();
        if lost {
            self.keyspace.flush();
        }
        #[cfg(feature = "redis")]
        let lost = lost && !self.tell_redis(Request::Flush, Redis::flush);
        if let Some(outage) = event.outage() {
            self.outage = Some(outage);
        }
        if let Some(key) = event.key.clone() {
            let delete = Command::Del { key };
            let deleted = self.keyspace.execute(self.now, &delete);
            deleted.expect("any key can be deleted");
            #[cfg(feature = "redis")]
            self.tell_redis(Request::Commands(vec![delete.clone()]), |redis| {
                redis.execute(event.starts_at(), &delete)
            });
        }
        lost
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
