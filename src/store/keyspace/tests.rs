use fake_telegram::time::Duration;

use super::*;

/// A keyspace and what time it is.
#[derive(Default)]
struct Redis {
    keyspace: Keyspace,
    now: Time,
}

impl Redis {
    fn sleep(&mut self, us: u64) {
        self.now += Duration::from_micros(us);
    }

    #[track_caller]
    fn check(&mut self, command: Command, expected: impl Expected) {
        let reply = self.keyspace.execute(self.now, &command);
        assert_eq!(reply, expected.into_result(), "{command:?}");
    }
}

trait Expected {
    fn into_result(self) -> Result<Reply>;
}

impl Expected for i64 {
    fn into_result(self) -> Result<Reply> {
        Ok(Reply::Integer(self))
    }
}

impl Expected for &str {
    fn into_result(self) -> Result<Reply> {
        Ok(Reply::Bytes(self.into()))
    }
}

impl<const N: usize> Expected for [&str; N] {
    fn into_result(self) -> Result<Reply> {
        Ok(Reply::Array(self.iter().map(|text| Reply::Bytes((*text).into())).collect()))
    }
}

impl Expected for Reply {
    fn into_result(self) -> Result<Reply> {
        Ok(self)
    }
}

impl Expected for CommandError {
    fn into_result(self) -> Result<Reply> {
        Err(self)
    }
}

/// A command on the key "k": its name, and its fields.
macro_rules! on_k {
    ($name:ident $(, $field:ident: $value:expr)*) => {
        Command::$name { key: "k".to_owned() $(, $field: $value.into())* }
    };
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn set(value: &str, ttl: Option<Duration>) -> Command {
    on_k!(Set, value: value, only_if_absent: false, ttl: ttl)
}

fn set_if_absent(value: &str, ttl: Option<Duration>) -> Command {
    on_k!(Set, value: value, only_if_absent: true, ttl: ttl)
}

fn zadd(score: i64, member: &str) -> Command {
    on_k!(ZAdd, only_if_absent: false, score: score, member: member)
}

fn lmove(source: &str, destination: &str) -> Command {
    let (source, destination) = (source.to_owned(), destination.to_owned());
    Command::LMove { source, destination, from: End::Right, to: End::Left }
}

/// <https://redis.io/docs/latest/commands/set/>: "Any previous time to live associated with the key is discarded on
/// successful SET operation."
#[test]
fn set_discards_the_ttl_and_overwrites_any_type() {
    let mut redis = Redis::default();
    redis.check(on_k!(RPush, value: "a"), 1);
    redis.check(set("1", Some(ms(10))), Reply::Ok);
    redis.check(on_k!(Ttl), 10);
    redis.check(set("2", None), Reply::Ok);
    redis.check(on_k!(Ttl), -1);
    redis.check(on_k!(Get), "2");
    redis.check(set("3", Some(Duration::ZERO)), CommandError::InvalidExpireTime);
    redis.check(on_k!(Get), "2");
}

/// <https://redis.io/docs/latest/commands/set/>: "NX -- Only set the key if it does not already exist"; nil if it does.
/// A lock.
#[test]
fn set_nx_is_for_the_first_until_its_time_is_over() {
    let mut redis = Redis::default();
    redis.check(set_if_absent("mine", Some(ms(10))), Reply::Ok);
    redis.sleep(9_999);
    redis.check(set_if_absent("yours", Some(ms(10))), Reply::Nil);
    redis.check(on_k!(Get), "mine");
    redis.sleep(1);
    redis.check(set_if_absent("yours", Some(ms(10))), Reply::Ok);
    redis.check(on_k!(Ttl), 10);
    redis.check(on_k!(Del), 1);
    redis.check(on_k!(LPush, value: "a"), 1);
    redis.check(set_if_absent("ours", None), Reply::Nil);
}

/// <https://redis.io/docs/latest/commands/expire/>: "all the operations that conceptually alter the value stored at the
/// key without replacing it with a new one will leave the timeout untouched", INCR, LPUSH and HSET among them.
#[test]
fn what_alters_a_value_leaves_its_ttl() {
    for alter in [on_k!(Incr), on_k!(LPush, value: "a"), on_k!(HSet, field: "f", value: "1"), zadd(1, "m")] {
        let mut redis = Redis::default();
        redis.check(alter.clone(), 1);
        redis.check(on_k!(Expire, ttl: ms(10)), 1);
        redis.sleep(4_000);
        redis.keyspace.execute(redis.now, &alter).unwrap();
        redis.check(on_k!(Ttl), 6);
        redis.sleep(6_000);
        redis.check(on_k!(Exists), 0);
        redis.check(alter, 1);
        redis.check(on_k!(Ttl), -1);
    }
}

/// <https://redis.io/docs/latest/commands/incr/>: "If the key does not exist, it is set to 0 before performing the
/// operation."
#[test]
fn a_number_counts_from_nothing_and_does_not_wrap() {
    let mut redis = Redis::default();
    redis.check(on_k!(Incr), 1);
    redis.check(on_k!(IncrBy, by: -3), -2);
    redis.check(on_k!(Get), "-2");
    redis.check(set("9223372036854775806", None), Reply::Ok);
    redis.check(on_k!(Incr), i64::MAX);
    redis.check(on_k!(Incr), CommandError::Overflow);
    redis.check(on_k!(Get), "9223372036854775807");
    for text in ["", " 1", "1 ", "+1", "01", "-0", "1.0", "9223372036854775808", "x"] {
        redis.check(set(text, None), Reply::Ok);
        redis.check(on_k!(Incr), CommandError::NotAnInteger);
        redis.check(on_k!(HSet, field: "f", value: text), CommandError::WrongType);
    }
}

/// <https://redis.io/docs/latest/commands/expire/>: 0 if there is no such key; "calling EXPIRE/PEXPIRE with a
/// non-positive timeout [...] will result in the key being deleted rather than expired".
#[test]
fn expire_needs_a_key_and_deletes_it_if_the_time_is_over() {
    let mut redis = Redis::default();
    redis.check(on_k!(Expire, ttl: ms(1)), 0);
    redis.check(on_k!(Expire, ttl: Duration::ZERO), 0);
    redis.check(set("1", None), Reply::Ok);
    redis.check(on_k!(Expire, ttl: Duration::ZERO), 1);
    redis.check(on_k!(Exists), 0);
}

/// <https://redis.io/docs/latest/commands/pttl/>: -1 without a TTL, -2 without a key;
/// <https://redis.io/docs/latest/commands/persist/>: 0 if the key "does not exist or does not have an associated
/// timeout".
#[test]
fn a_key_lives_until_just_before_its_deadline() {
    let mut redis = Redis::default();
    redis.check(on_k!(Ttl), -2);
    redis.check(on_k!(Persist), 0);
    redis.check(set("1", Some(ms(2))), Reply::Ok);
    redis.sleep(1_999);
    redis.check(on_k!(Ttl), 1);
    redis.check(on_k!(Get), "1");
    redis.sleep(1);
    redis.check(on_k!(Ttl), -2);
    redis.check(set("1", Some(ms(2))), Reply::Ok);
    redis.check(on_k!(Persist), 1);
    redis.check(on_k!(Persist), 0);
    redis.check(on_k!(Ttl), -1);
    redis.check(on_k!(Expire, ttl: Duration::MAX), 1);
    redis.sleep(1 << 60);
    redis.check(on_k!(Exists), 1);
}

/// <https://redis.io/docs/latest/develop/data-types/>: "When we remove elements from an aggregate data type, if the
/// value remains empty, the key is automatically destroyed."
#[test]
fn an_empty_collection_vanishes_with_its_ttl() {
    let popped = Reply::Array(vec![Reply::Bytes(b"x".to_vec()), Reply::Integer(1)]);
    for (fill, drain, drained) in [
        (on_k!(RPush, value: "x"), on_k!(LPop), Reply::Bytes(b"x".to_vec())),
        (on_k!(HSet, field: "x", value: "1"), on_k!(HDel, field: "x"), Reply::Integer(1)),
        (zadd(1, "x"), on_k!(ZRem, member: "x"), Reply::Integer(1)),
        (zadd(1, "x"), on_k!(ZPopMin, count: 5_u64), popped),
    ] {
        let mut redis = Redis::default();
        redis.check(fill.clone(), 1);
        redis.check(on_k!(Expire, ttl: ms(1)), 1);
        redis.check(drain, drained);
        redis.check(on_k!(Exists), 0);
        redis.check(fill, 1);
        redis.check(on_k!(Ttl), -1);
    }
}

/// <https://redis.io/docs/latest/commands/lrange/>: "Out of range indexes will not produce an error."
#[test]
fn lrange_counts_from_either_end() {
    let mut redis = Redis::default();
    redis.check(on_k!(RPush, value: "b"), 1);
    redis.check(on_k!(RPush, value: "c"), 2);
    redis.check(on_k!(LPush, value: "a"), 3);
    redis.check(on_k!(LRange, start: 0, stop: -1), ["a", "b", "c"]);
    redis.check(on_k!(LRange, start: -2, stop: 1), ["b"]);
    redis.check(on_k!(LRange, start: i64::MIN, stop: i64::MAX), ["a", "b", "c"]);
    redis.check(on_k!(LRange, start: 2, stop: 1), []);
    redis.check(on_k!(LRange, start: 3, stop: 9), []);
    redis.check(on_k!(LRange, start: 0, stop: -4), []);
}

/// <https://redis.io/docs/latest/commands/rpoplpush/>: "If source does not exist, the value nil is returned and no
/// operation is performed"; with one key "the operation is equivalent to removing the last element from the list and
/// pushing it as first element of the list".
#[test]
fn lmove_moves_or_turns_round() {
    let mut redis = Redis::default();
    redis.check(lmove("k", "other"), Reply::Nil);
    redis.check(on_k!(RPush, value: "a"), 1);
    redis.check(on_k!(Expire, ttl: ms(5)), 1);
    redis.check(lmove("k", "k"), "a");
    redis.check(on_k!(Ttl), 5);
    redis.check(on_k!(RPush, value: "b"), 2);
    redis.check(lmove("k", "k"), "b");
    redis.check(on_k!(LRange, start: 0, stop: -1), ["b", "a"]);
    redis.check(lmove("k", "other"), "a");
    redis.check(lmove("k", "other"), "b");
    redis.check(on_k!(Exists), 0);
    let other = Command::LRange { key: "other".to_owned(), start: 0, stop: -1 };
    redis.check(other.clone(), ["b", "a"]);
    redis.check(set("text", None), Reply::Ok);
    redis.check(lmove("other", "k"), CommandError::WrongType);
    redis.check(lmove("k", "other"), CommandError::WrongType);
    redis.check(lmove("none", "k"), Reply::Nil);
    redis.check(other, ["b", "a"]);
}

/// <https://redis.io/docs/latest/commands/zadd/>: of one score in the order of the bytes; scores are doubles, which hold
/// whole numbers from -(2^53) to +(2^53).
#[test]
fn a_sorted_set_is_by_score_and_then_by_bytes() {
    let mut redis = Redis::default();
    redis.check(zadd(5, "b"), 1);
    redis.check(zadd(5, "a"), 1);
    redis.check(zadd(5, "B"), 1);
    redis.check(zadd(-1, "z"), 1);
    redis.check(zadd(7, "z"), 0);
    redis.check(on_k!(ZAdd, only_if_absent: true, score: 1, member: "z"), 0);
    redis.check(on_k!(ZScore, member: "z"), 7);
    redis.check(on_k!(ZScore, member: "none"), Reply::Nil);
    redis.check(on_k!(ZRangeByScore, min: i64::MIN, max: i64::MAX, limit: None::<u64>), ["B", "a", "b", "z"]);
    redis.check(on_k!(ZRangeByScore, min: 5, max: 6, limit: 2_u64), ["B", "a"]);
    redis.check(on_k!(ZRangeByScore, min: 7, max: 5, limit: None::<u64>), []);
    redis.check(on_k!(ZPopMin, count: 0_u64), []);
    redis.check(on_k!(ZCard), 4);
    redis.check(zadd(SCORE_MAX, "most"), 1);
    redis.check(zadd(-SCORE_MAX, "least"), 1);
    redis.check(zadd(SCORE_MAX + 1, "more"), CommandError::ScoreOutOfRange);
    redis.check(zadd(i64::MIN, "less"), CommandError::ScoreOutOfRange);
}

#[test]
fn errors_have_the_words_of_redis() {
    let check = |error: CommandError, text: &str| assert_eq!(error.to_string(), text);
    check(CommandError::WrongType, "WRONGTYPE Operation against a key holding the wrong kind of value");
    check(CommandError::NotAnInteger, "ERR value is not an integer or out of range");
    check(CommandError::Overflow, "ERR increment or decrement would overflow");
}

#[test]
fn every_name_is_listed_once_in_order() {
    let lmove = Command::LMove {
        source: "k".to_owned(),
        destination: "k".to_owned(),
        from: End::Left,
        to: End::Left,
    };
    let all = [
        on_k!(Get),
        set("1", None),
        on_k!(Incr),
        on_k!(IncrBy, by: 1),
        on_k!(Expire, ttl: ms(1)),
        on_k!(Persist),
        on_k!(Ttl),
        on_k!(Exists),
        on_k!(Del),
        on_k!(HSet, field: "f", value: "1"),
        on_k!(HGet, field: "f"),
        on_k!(HDel, field: "f"),
        on_k!(HIncrBy, field: "f", by: 1),
        on_k!(HGetAll),
        on_k!(HLen),
        on_k!(RPush, value: "a"),
        on_k!(LPush, value: "a"),
        on_k!(LPop),
        on_k!(RPop),
        on_k!(LLen),
        on_k!(LRange, start: 0, stop: 1),
        lmove,
        zadd(1, "m"),
        on_k!(ZPopMin, count: 1_u64),
        on_k!(ZRangeByScore, min: 0, max: 1, limit: None::<u64>),
        on_k!(ZRem, member: "m"),
        on_k!(ZCard),
        on_k!(ZScore, member: "m"),
    ];
    assert_eq!(all.each_ref().map(Command::name), Command::NAMES);
}

#[test]
fn an_object_and_a_key_of_one_name_do_not_see_each_other() {
    let mut redis = Redis::default();
    let object = redis.keyspace.key("k", || 7);
    redis.check(on_k!(Del), 0);
    redis.check(on_k!(Incr), 1);
    assert_eq!(redis.keyspace.live_keys(redis.now), 1);
    *redis.keyspace.object(object) += 1;
    redis.check(on_k!(Del), 1);
    assert_eq!(*redis.keyspace.object(object), 8);
    redis.keyspace.flush();
    assert_eq!(*redis.keyspace.object(object), 7);
}
