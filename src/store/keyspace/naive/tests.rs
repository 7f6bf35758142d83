use fake_telegram::time::{Duration, Time};
use proptest::prelude::*;

use super::Naive;
use crate::store::command::{Command, End};
use crate::store::keyspace::Keyspace;

/// What a command is about, in numbers: turned into one of any kind.
fn command() -> impl Strategy<Value = Command> {
    let numbers = prop_oneof![4 => -3..4_i64, 1 => Just(i64::MAX), 1 => Just(i64::MIN), 1 => Just(1 << 53)];
    let text = prop_oneof![
        6 => (-2..3_i64).prop_map(|number| number.to_string().into_bytes()),
        1 => prop::sample::select(vec!["", "x", "+1", "-0", "007", "9223372036854775807", "-9223372036854775808"])
            .prop_map(Vec::from),
        1 => Just(vec![0xff, 0]),
    ];
    let ttl = prop_oneof![1 => Just(0), 6 => 1..6_000_u64];
    // Mostly on a key that is for such values, so that they grow.
    let owner = prop_oneof![7 => Just(None), 1 => (0..4_usize).prop_map(Some)];
    let fields = (any::<bool>(), any::<bool>(), numbers.clone(), numbers, text.clone(), text, ttl);
    (0..Command::NAMES.len(), owner, 0..2_usize, 0..2_usize, fields).prop_map(
        |(name, owner, which, other, (flag, end, number, second, item, value, ttl))| {
            let name = Command::NAMES[name];
            let own = match name.as_bytes()[0] {
                b'h' => 1,
                b'r' | b'l' => 2,
                b'z' => 3,
                // Keys of all types live, die and are looked at.
                _ if ["expire", "persist", "pttl", "exists", "del"].contains(&name) => number as usize % 4,
                _ => 0,
            };
            let key = |which: usize| format!("{}{which}", ["t", "h", "l", "z"][owner.unwrap_or(own)]);
            let (key, destination) = (key(which), key(other));
            let ttl = Duration::from_micros(ttl);
            let ends = |end| if end { End::Left } else { End::Right };
            match name {
                "get" => Command::Get { key },
                "set" => Command::Set { key, value, only_if_absent: flag, ttl: Some(ttl).filter(|_| end) },
                "incr" => Command::Incr { key },
                "incrby" => Command::IncrBy { key, by: number },
                "expire" => Command::Expire { key, ttl },
                "persist" => Command::Persist { key },
                "pttl" => Command::Ttl { key },
                "exists" => Command::Exists { key },
                "del" => Command::Del { key },
                "hset" => Command::HSet { key, field: item, value },
                "hget" => Command::HGet { key, field: item },
                "hdel" => Command::HDel { key, field: item },
                "hincrby" => Command::HIncrBy { key, field: item, by: number },
                "hgetall" => Command::HGetAll { key },
                "hlen" => Command::HLen { key },
                "rpush" => Command::RPush { key, value },
                "lpush" => Command::LPush { key, value },
                "lpop" => Command::LPop { key },
                "rpop" => Command::RPop { key },
                "llen" => Command::LLen { key },
                "lrange" => Command::LRange { key, start: number, stop: second },
                "lmove" => Command::LMove { source: key, destination, from: ends(flag), to: ends(end) },
                "zadd" => Command::ZAdd { key, only_if_absent: flag, score: number, member: item },
                "zpopmin" => Command::ZPopMin { key, count: number.unsigned_abs() % 4 },
                "zrangebyscore" => Command::ZRangeByScore {
                    key,
                    min: number,
                    max: second,
                    limit: flag.then_some(second.unsigned_abs()),
                },
                "zrem" => Command::ZRem { key, member: item },
                "zcard" => Command::ZCard { key },
                "zscore" => Command::ZScore { key, member: item },
                other => unreachable!("`{other}` is not drawn"),
            }
        },
    )
}

proptest! {
    /// Whatever is asked, and whenever; and what has failed has changed nothing, since the model says so too.
    #[test]
    fn agrees_with_a_naive_model(steps in prop::collection::vec((0..1_500_u64, command()), 1..150)) {
        let (mut keyspace, mut model, mut now) = (Keyspace::default(), Naive::default(), Time::ZERO);
        for (pause, command) in steps {
            now += Duration::from_micros(pause);
            model.pass(now);
            let expected = model.execute(now, &command);
            prop_assert_eq!(keyspace.execute(now, &command), expected, "{:?}", command);
            prop_assert_eq!(keyspace.live_keys(now), model.live_keys());
            prop_assert_eq!(keyspace.keys_without_ttl(now), model.keys_without_ttl());
        }
    }
}
