//! The store on a real Redis: it is the simulated one, command by command and run by run.

use std::cell::RefCell;
use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{sleep, spawn};

use fake_telegram::time::{Duration, Time};
use floodlab::Registry;
use floodlab::outcome::{LiveStore, Metrics, Outcome};
use floodlab::run::{Drive, Simulation, drive, simulate};
use floodlab::scenario::Scenario;
use floodlab::store::StoreError;
use floodlab::store::command::{Command, End, Reply};
use floodlab::store::keyspace::Keyspace;
use floodlab::store::redis::Redis;
use floodlab::store::script::{Eval, Name, Request};
use floodlab::store::url::StoreUrl;
use futures::future::join_all;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use redis::{Client, Connection, cmd};

use crate::lab;

/// The Redis of the tests.
pub(crate) fn url() -> StoreUrl {
    let url = env::var("FLOODLAB_REDIS_URL").unwrap_or_else(|_| {
        panic!("this test needs a Redis: run `scripts/with-redis cargo test`, or set FLOODLAB_REDIS_URL")
    });
    url.parse().unwrap_or_else(|error| panic!("FLOODLAB_REDIS_URL: {error}"))
}

fn open() -> Redis {
    Redis::open(&url(), SECOND * 5).unwrap_or_else(|error| panic!("{error}"))
}

/// A connection that looks on.
fn looker() -> Connection {
    Client::open(url().secret()).and_then(|client| client.get_connection()).expect("it is there")
}

fn keys(connection: &mut Connection, prefix: &str) -> Vec<String> {
    cmd("KEYS").arg(format!("{prefix}*")).query(connection).expect("keys")
}

const SECOND: Duration = Duration::from_secs(1);

/// Any command, mostly on a key that is for such values, so that they grow; its TTL is one of `ttls`.
fn commands(ttls: impl Strategy<Value = Duration>) -> impl Strategy<Value = Command> {
    let numbers = prop_oneof![
        8 => -3..4_i64,
        1 => prop::sample::select(vec![i64::MAX, i64::MIN, 1 << 53, -(1 << 53), (1 << 53) + 1, i64::MAX - 1]),
    ];
    let texts = prop_oneof![
        6 => (-2..3_i64).prop_map(|number| number.to_string().into_bytes()),
        1 => prop::sample::select(vec!["", "x", "+1", " 1", "-0", "007", "1.0", "9223372036854775807", "-9223372036854775808"])
            .prop_map(Vec::from),
        1 => Just(vec![0xff, 0, b'\r', b'\n']),
    ];
    let home = prop_oneof![7 => Just(None), 1 => (0..4_usize).prop_map(Some)];
    let fields = (any::<bool>(), any::<bool>(), numbers.clone(), numbers, texts.clone(), texts, ttls);
    (0..Command::NAMES.len(), home, 0..2_usize, 0..2_usize, 0..4_usize, fields).prop_map(
        |(name, home, which, other, any, (flag, end, number, second, item, value, ttl))| {
            let name = Command::NAMES[name];
            let own = match name {
                "expire" | "persist" | "pttl" | "exists" | "del" => any,
                _ => {
                    ["h", "l", "z"].iter().position(|kind| name.starts_with(kind)).map_or(0, |kind| kind + 1)
                }
            };
            let own = if name.starts_with('r') { 2 } else { own };
            let key = |which: usize| format!("{}{which}", ["t", "h", "l", "z"][home.unwrap_or(own)]);
            let (key, destination) = (key(which), key(other));
            let side = |end| if end { End::Left } else { End::Right };
            match name {
                "get" => Command::Get { key },
                "set" => Command::Set { key, value, only_if_absent: flag, ttl: end.then_some(ttl) },
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
                "lmove" => Command::LMove { source: key, destination, from: side(flag), to: side(end) },
                "zadd" => Command::ZAdd { key, only_if_absent: flag, score: number, member: item },
                "zpopmin" => Command::ZPopMin { key, count: number.unsigned_abs() % 4 },
                "zrangebyscore" => Command::ZRangeByScore {
                    key,
                    min: number,
                    max: second,
                    limit: flag.then_some(second.unsigned_abs() % 4),
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
    /// In virtual time a real Redis answers as the simulated one, to the microsecond of a TTL.
    #[test]
    fn any_commands_at_any_time_have_the_same_answers(
        steps in prop::collection::vec((0..1_500_u64, commands((0..6_000_u64).prop_map(Duration::from_micros))), 1..150)
    ) {
        let (mut simulated, mut redis, mut now) = (Keyspace::default(), open(), Time::ZERO);
        for (pause, command) in steps {
            now += Duration::from_micros(pause);
            let expected = simulated.execute(now, &command);
            let said = redis.execute(now, &command).map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(said, expected, "{:?} at {}", command, now);
        }
    }
}

/// What lives for a short time, and what lives for a long one; a batch of commands takes much less than the first.
const SHORT: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_secs(1_000);
/// What has to happen before something short is over, in microseconds.
const AT_ONCE_US: u64 = 150_000;

/// In real time the TTLs are Redis' own. Between batches nothing passes, or all that is short.
#[test]
fn any_commands_have_the_same_answers_by_the_clock_of_redis() {
    let ttls = prop_oneof![Just(SHORT), Just(LONG), Just(Duration::ZERO)];
    let batch = prop::collection::vec(commands(ttls), 1..60);
    let batches = prop::collection::vec((prop::bool::weighted(0.4), batch), 1..5);
    let config = ProptestConfig {
        cases: 24,
        max_shrink_iters: 40,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let world = world();
    let clock = RefCell::new(looker());
    let time = || server_time(&mut clock.borrow_mut());
    let result = TestRunner::new(config).run(&batches, |batches| {
        let (mut simulated, mut redis) = (Keyspace::default(), open());
        let store = redis.in_real_time(SECOND * 5).expect("it is there");
        let begin = time();
        let mut passed_at = begin;
        for (passes, batch) in batches {
            if passes {
                let until = time() + SHORT.as_micros() * 5 / 4;
                while time() < until {
                    std::thread::yield_now();
                }
                passed_at = time();
            }
            let now = Time::from_micros(time() - begin);
            let said = world.block_on(store.start(Request::Commands(batch.clone()))).expect("it is there");
            // On a machine that stands still something short may be over too early.
            prop_assume!(time() < passed_at + AT_ONCE_US);
            for (command, said) in batch.iter().zip(said) {
                let expected = simulated.execute(now, command);
                match (command, &said, &expected) {
                    // How much is left of a TTL: the server's clock goes on inside of a batch.
                    (Command::Ttl { .. }, Ok(Reply::Integer(said @ 0..)), Ok(Reply::Integer(left @ 0..))) => {
                        prop_assert!(said.abs_diff(*left) <= AT_ONCE_US / 1_000, "{} and {}", said, left);
                    }
                    _ => prop_assert_eq!(&said, &expected, "{:?} at {}", command, now),
                }
            }
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

fn server_time(connection: &mut Connection) -> u64 {
    let (seconds, micros): (u64, u64) = cmd("TIME").query(connection).expect("a time");
    seconds * 1_000_000 + micros
}

fn world() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// The scenario's designs, each on the simulated store and on a real one: everything that happens is the same.
fn is_the_same(text: &str) {
    let mut scenario = lab::scenario(text);
    let names: Vec<String> = scenario.designs.iter().map(|design| design.name.clone()).collect();
    for name in names {
        scenario.store.url = None;
        let simulated = lab::run(&scenario, &name, 3);
        scenario.store.url = Some(url());
        let real = lab::run(&scenario, &name, 3);
        let differs = simulated.tape.iter().zip(&real.tape).find(|(one, other)| one != other);
        assert_eq!(differs, None, "{name}");
        assert_eq!(simulated.outcome, real.outcome, "{name}");
    }
}

/// Three processes whose clocks differ, and more to send than the server allows; chats die, some come back, calls fail.
const STORM: &str = r#"
    duration = "40s"
    drain = "80s"
    processes = 3
    workers = 3
    wire = { median = "120ms", p99 = "900ms", timeout = "3s" }
    chats = { count = 60, groups = "20%", channels = "10%", dead = "10%", mean_life = "2min", mean_absence = "20s" }
    store = { round_trip = "2ms", round_trip_p99 = "20ms" }
    [workload.reply]
    kind = "poisson"
    class = "reply"
    rate = "6/s"
    from_user = true
    [workload.notification]
    kind = "broadcast"
    class = "notification"
    at = "5s"
    chats = { count = 50 }
    deadline = "20s"
    [workload.broadcast]
    kind = "poisson"
    class = "broadcast"
    rate = "3/s"
    method = "sendPhoto"
    [server]
    limit.token = { rate = "7/s", burst = 5 }
    [[server.fault]]
    kind = "lost"
    phase = "after"
    rate = "5%"
"#;

#[test]
fn every_shared_strategy_runs_as_on_the_simulated_store() {
    let bucket = "kind = 'token-bucket', rate = '8/s', burst = 10";
    let lease = "lease = '5s'";
    let pace = "pace = { chat_rate = '1/2s', chat_burst = 2 }";
    let designs = [
        ("shared-bucket", "'shared-bucket'".to_owned()),
        ("scheduler", format!("{{ kind = 'scheduler', queue = {{ kind = 'lanes', {lease} }} }}")),
        ("ramp", format!("{{ kind = 'shared-bucket', limiter = {{ {bucket}, ramp = {{}} }} }}")),
        ("callers", format!("{{ kind = 'shared-bucket', limiter = {{ {bucket}, clock = 'callers' }} }}")),
        ("pause", "{ kind = 'backoff', pause = { kind = 'store', key = 'learned' } }".to_owned()),
        ("pause-of-chats", "{ kind = 'backoff', pause = { kind = 'store', key = 'chat', jitter = '200ms' } }".to_owned()),
        ("before", format!("{{ kind = 'scheduler', queue = {{ kind = 'lanes', mark = 'before', {lease} }} }}")),
        ("fifo", format!("{{ kind = 'scheduler', limiter = {{ {bucket}, ramp = {{}} }}, queue = {{ kind = 'fifo', {lease}, {pace} }}, pause = {{ kind = 'store', key = 'method' }} }}")),
        ("jobs", format!("{{ kind = 'bare', limiter = {{ {bucket} }}, queue = {{ kind = 'fifo', {lease} }}, retry = {{ kind = 'release', delay = '2s', attempts = 4 }}, dead_chats = 'revive', deadlines = true }}")),
        ("jobs-of-callers", format!("{{ kind = 'bare', limiter = {{ {bucket}, clock = 'callers' }}, queue = {{ kind = 'fifo', mark = 'before', {lease} }}, retry = 'postpone', doubt = 'retry' }}")),
        ("counter", "{ kind = 'shared-bucket', limiter = { kind = 'window-counter', limit = 7, form = 'incr-expire' } }".to_owned()),
        ("counter-set", "{ kind = 'shared-bucket', limiter = { kind = 'window-counter', limit = 7, form = 'set-incr', keyed_by = 'name' } }".to_owned()),
        ("counter-script", "{ kind = 'scheduler', queue = 'none', retry = 'wait', dead_chats = 'forget', limiter = { kind = 'window-counter', limit = 14, window = '2s', form = 'script' } }".to_owned()),
    ];
    let designs = designs.map(|(name, strategy)| {
        format!("[[design]]\nname = '{name}'\nskew = ['0s', '300ms', '20ms']\nstrategy = {strategy}\n")
    });
    is_the_same(&format!("{STORM}\n{}", designs.concat()));
}

/// What happens to the store in a run, and to those that use it, happens to a real one as well.
#[test]
fn outages_losses_and_deaths_are_as_on_the_simulated_store() {
    let events = r#"
        [store]
        round_trip = "2ms"
        round_trip_p99 = "60ms"
        timeout = "100ms"
        event = [
            { at = "4s", action = "fail", for = "2s" },
            { at = "8s", action = "delete", key = "limiter/0" },
            { at = "10s", action = "hang", for = "1s" },
            { at = "14s", action = "restart", for = "1s", persistent = true },
            { at = "20s", action = "flush" },
            { at = "30s", action = "restart", for = "2s" },
        ]"#;
    let storm = STORM.replace("store = { round_trip = \"2ms\", round_trip_p99 = \"20ms\" }\n", "");
    let counter = "limiter = { kind = 'window-counter', limit = 7, form = 'incr-expire', keyed_by = 'name' }";
    let designs = [
        ("'scheduler'", "exchange"),
        ("{ kind = 'scheduler', queue = { kind = 'fifo', mark = 'before' } }", "finish"),
        (
            "{ kind = 'bare', limiter = { kind = 'token-bucket', ramp = {} }, pause = { kind = 'store', key = 'learned' }, retry = 'wait' }",
            "take",
        ),
        (&format!("{{ kind = 'bare', {counter}, retry = 'wait' }}"), "incr"),
    ];
    let designs = designs.iter().enumerate().map(|(index, (strategy, call))| {
        let timeline = format!("{{ after = '{call}', count = 20, kill = 1, restart_after = '5s' }}, {{ at = '18s', kill = 0, restart_after = '3s' }}");
        format!("[[design]]\nname = 'd{index}'\nstrategy = {strategy}\ntimeline = [{timeline}]\n")
    });
    is_the_same(&format!("{storm}\n{events}\n{}", designs.collect::<String>()));
}

/// The store's part in incidents, as shipped; those that take seconds are left out.
#[test]
fn incidents_of_the_store_come_out_as_on_the_simulated_one() {
    for name in ["same-millisecond", "clock-skew-mints", "counter-without-ttl", "counter-expires-in-between"]
    {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("scenarios/{name}.toml"));
        let mut scenario =
            Scenario::load(&file, &Registry::builtin()).unwrap_or_else(|error| panic!("{error}"));
        for design in 0..scenario.designs.len() {
            let mut run = |url| {
                scenario.store.url = url;
                let simulation =
                    Simulation { scenario: &scenario, design, seed: scenario.seed, shuffle_ties: None };
                simulate(&simulation, Vec::new(), |_| true).unwrap_or_else(|error| panic!("{name}: {error}"))
            };
            let simulated = run(None);
            assert_eq!(run(Some(url())), simulated, "{name}");
        }
    }
}

/// The count is Redis' own: of a database that nothing else in these tests uses.
#[test]
fn a_run_leaves_nothing_behind_and_meets_no_other() {
    let text = format!("{STORM}\n[[design]]\nstrategy = 'scheduler'\n");
    let mut scenario = lab::scenario(&text);
    let database: StoreUrl = format!("{}/9", url().secret()).parse().expect("an address");
    scenario.store.url = Some(database.clone());
    let mut looker =
        Client::open(database.secret()).and_then(|client| client.get_connection()).expect("it is there");
    let () = cmd("SET").arg("somebody's").arg(1).query(&mut looker).expect("set");
    let alone = lab::run(&scenario, "scheduler", 5);
    let both: Vec<_> = std::thread::scope(|scope| {
        let run = |seed| {
            scope.spawn({
                let scenario = &scenario;
                move || lab::run(scenario, "scheduler", seed).outcome
            })
        };
        let runs = [run(5), run(6)];
        runs.map(|run| run.join().expect("it ends")).into()
    });
    assert_eq!(both[0], alone.outcome);
    assert_ne!(both[1].event_hash, both[0].event_hash);
    let left: Vec<String> = cmd("KEYS").arg("*").query(&mut looker).expect("keys");
    assert_eq!(left, ["somebody's"]);
    let () = cmd("DEL").arg("somebody's").query(&mut looker).expect("deleted");
}

const ECHO: &str = "return redis.call('SET', KEYS[1], ARGV[1] .. ARGV[3]) and ARGV[3]";

fn echo(text: &str) -> Eval {
    Eval { source: ECHO, keys: vec![Name::Ordinary("echo".to_owned())], args: vec![text.to_owned()] }
}

/// `SCRIPT FLUSH`, a restart, a replica that took over: the server does not know the script any more.
#[test]
fn a_script_that_is_forgotten_is_loaded_again() {
    let (mut redis, mut looker, world) = (open(), looker(), world());
    let store = redis.in_real_time(SECOND * 5).expect("it is there");
    for text in ["once", "twice"] {
        let () = cmd("SCRIPT").arg("FLUSH").query(&mut looker).expect("forgotten");
        let said = Ok(Reply::Bytes(text.into()));
        assert_eq!(redis.eval(Time::ZERO, &echo(text)), Ok(said.clone()));
        let () = cmd("SCRIPT").arg("FLUSH").query(&mut looker).expect("forgotten");
        assert_eq!(world.block_on(store.start(Request::Eval(echo(text)))), Ok(vec![said]));
    }
    let prefix = redis.prefix().to_owned();
    assert_eq!(keys(&mut looker, &prefix).len(), 1);
    drop(redis);
    assert_eq!(keys(&mut looker, &prefix), [""; 0]);
}

/// A script by the server's clock: how long it is since the run began, in microseconds.
#[test]
fn in_real_time_a_script_is_told_when_the_run_began() {
    let source = "local time = redis.call('TIME') return time[1] * 1000000 + time[2] - ARGV[2]";
    let (mut redis, world) = (open(), world());
    let store = redis.in_real_time(SECOND * 5).expect("it is there");
    let eval = Eval { source, keys: Vec::new(), args: Vec::new() };
    let said = world.block_on(store.start(Request::Eval(eval))).expect("it is there");
    let [Ok(Reply::Integer(elapsed))] = said.as_slice() else { panic!("{said:?}") };
    assert!((0..60_000_000).contains(elapsed), "{elapsed}");
    // It begins when it is said to, and not when all was prepared.
    let (mut looker, begin) =
        (looker(), Eval { source: "return tonumber(ARGV[2])", keys: Vec::new(), args: Vec::new() });
    let before = server_time(&mut looker);
    world.block_on(store.begin()).expect("it is there");
    let said = world.block_on(store.start(Request::Eval(begin))).expect("it is there");
    let [Ok(Reply::Integer(begin))] = said.as_slice() else { panic!("{said:?}") };
    let begin = u64::try_from(*begin).expect("a time");
    assert!((before..=server_time(&mut looker)).contains(&begin), "{begin}");
}

/// Stands between a client and the Redis of the tests.
struct Proxy {
    address: SocketAddr,
    connections: Arc<Mutex<Vec<TcpStream>>>,
    swallows: Arc<AtomicBool>,
    /// How much later answers come, in milliseconds.
    delay: Arc<AtomicU64>,
}

impl Proxy {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (connections, swallows) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let delay = Arc::new(AtomicU64::new(0));
        let proxy = Self {
            address,
            connections: Arc::clone(&connections),
            swallows: Arc::clone(&swallows),
            delay: Arc::clone(&delay),
        };
        let url = url();
        let server =
            url.secret().trim_start_matches("redis://").split('/').next().expect("it has a host").to_owned();
        spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                let server = TcpStream::connect(&server).expect("it is there");
                let clone = |stream: &TcpStream| stream.try_clone().expect("a clone");
                connections.lock().expect("nobody panics").extend([clone(&client), clone(&server)]);
                let swallows = Arc::clone(&swallows);
                carry(clone(&client), clone(&server), move || swallows.load(Ordering::SeqCst));
                let delay = Arc::clone(&delay);
                carry(server, client, move || {
                    #[expect(clippy::disallowed_methods, reason = "a server that is slow")]
                    sleep(std::time::Duration::from_millis(delay.load(Ordering::SeqCst)));
                    false
                });
            }
        });
        proxy
    }

    fn url(&self) -> StoreUrl {
        format!("redis://{}", self.address).parse().expect("an address")
    }

    /// Closes all connections.
    fn cut(&self) {
        for connection in self.connections.lock().expect("nobody panics").drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    /// Answers come so much later from now on.
    fn delay(&self, milliseconds: u64) {
        self.delay.store(milliseconds, Ordering::SeqCst);
    }

    /// Whether what is asked from now on reaches nobody.
    fn swallow(&self, swallows: bool) {
        self.swallows.store(swallows, Ordering::SeqCst);
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, swallows: impl Fn() -> bool + Send + 'static) {
    spawn(move || {
        let mut buffer = [0; 4_096];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            if !swallows() && to.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}

fn incr() -> Request {
    Request::Commands(vec![Command::Incr { key: "count".to_owned() }])
}

/// Whoever used it learns that nobody knows, and the next call has a new one.
#[test]
fn a_broken_connection_is_made_again() {
    let (proxy, mut looker, world) = (Proxy::start(), looker(), world());
    let mut redis = Redis::open(&proxy.url(), SECOND * 5).expect("it is there");
    let store = redis.in_real_time(SECOND * 5).expect("it is there");
    assert_eq!(world.block_on(store.start(incr())), Ok(vec![Ok(Reply::Integer(1))]));
    proxy.cut();
    // The end may be noticed before the next call or by it.
    let said = world.block_on(store.start(incr()));
    assert!(matches!(said.as_deref(), Err(StoreError::TimedOut) | Ok([Ok(Reply::Integer(2))])), "{said:?}");
    let again = world.block_on(store.start(incr()));
    assert!(matches!(again.as_deref(), Ok([Ok(Reply::Integer(2..=3))])), "{again:?}");
    // What is no call has a new one too, and so nothing is left behind.
    let prefix = redis.prefix().to_owned();
    assert_eq!(keys(&mut looker, &prefix).len(), 1);
    drop(redis);
    assert_eq!(keys(&mut looker, &prefix), [""; 0]);
}

/// As in virtual time: a call without an answer is one of which nobody knows whether it was heard.
#[test]
fn an_answer_that_does_not_come_is_not_waited_for() {
    let (proxy, world) = (Proxy::start(), world());
    let mut redis = Redis::open(&proxy.url(), SECOND * 5).expect("it is there");
    let store = redis.in_real_time(Duration::from_millis(300)).expect("it is there");
    assert_eq!(world.block_on(store.start(incr())), Ok(vec![Ok(Reply::Integer(1))]));
    proxy.swallow(true);
    assert_eq!(world.block_on(store.start(incr())), Err(StoreError::TimedOut));
    assert_eq!(world.block_on(store.start(Request::Eval(echo("x")))), Err(StoreError::TimedOut));
    proxy.swallow(false);
    assert_eq!(
        world.block_on(store.start(incr())),
        Ok(vec![Ok(Reply::Integer(2))]),
        "the lost one was not heard"
    );
}

/// One attempt to connect is everybody's, so many wait no longer than one.
#[test]
fn callers_of_a_store_that_is_silent_do_not_wait_for_each_other() {
    let (proxy, world) = (Proxy::start(), world());
    let mut redis = Redis::open(&proxy.url(), SECOND * 5).expect("it is there");
    let store = redis.in_real_time(Duration::from_millis(400)).expect("it is there");
    assert_eq!(world.block_on(store.start(incr())), Ok(vec![Ok(Reply::Integer(1))]));
    proxy.swallow(true);
    let mut looker = looker();
    let mut time = |callers: usize| {
        let begin = server_time(&mut looker);
        let calls = join_all((0..callers).map(|_| store.start(incr())));
        for said in world.block_on(calls) {
            assert_eq!(said, Err(StoreError::TimedOut));
        }
        server_time(&mut looker) - begin
    };
    // The first is on the connection that was there, the others make one.
    let (_, alone, together) = (time(1), time(1), time(12));
    assert!(together < alone * 3, "{together} us, and {alone} us alone");
    proxy.swallow(false);
    assert_eq!(world.block_on(store.start(incr())), Ok(vec![Ok(Reply::Integer(2))]));
}

/// Answers every command as `answer` says, on any number of connections.
fn server(answer: impl Fn(&[String]) -> String + Clone + Send + 'static) -> StoreUrl {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let answer = answer.clone();
            spawn(move || {
                let mut lines = BufReader::new(stream.try_clone().expect("a clone")).lines();
                while let Some(Ok(head)) = lines.next() {
                    let count: usize = head.trim_start_matches('*').parse().expect("an array");
                    let words: Vec<String> = (0..count).filter_map(|_| lines.nth(1)?.ok()).collect();
                    if stream.write_all(answer(&words).as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    format!("redis://{address}").parse().expect("an address")
}

/// What a server that loads, is demoted or has no memory says is over some time; what it has not executed was refused.
#[test]
fn a_server_that_will_not_for_now_refuses() {
    let errors = [
        ("LOADING Redis is loading the dataset in memory", StoreError::Refused),
        ("NOREPLICAS Not enough good replicas to write.", StoreError::Refused),
        ("READONLY You can't write against a read only replica.", StoreError::Refused),
        (
            "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist",
            StoreError::Refused,
        ),
        ("BUSY Redis is busy running a script.", StoreError::Refused),
        (
            "OOM command not allowed when used memory > 'maxmemory'. script: 0f, on @user_script:1.",
            StoreError::Refused,
        ),
        ("TRYAGAIN Multiple keys request during rehashing of slot", StoreError::Refused),
        ("MASTERDOWN Link with MASTER is down", StoreError::Refused),
        ("ERR unknown command", StoreError::Unexpected),
        ("NOPERM User default has no permissions", StoreError::Unexpected),
    ];
    for (text, expected) in errors {
        let info = "redis_version:7.4.0\r\n";
        let url = server(move |words| match words[0].as_str() {
            "INFO" => format!("${}\r\n{info}\r\n", info.len()),
            "CLIENT" if words[1] == "ID" => ":7\r\n".to_owned(),
            "TIME" => "*2\r\n$2\r\n17\r\n$1\r\n5\r\n".to_owned(),
            "EVALSHA" | "INCR" => format!("-{text}\r\n"),
            _ => "+OK\r\n".to_owned(),
        });
        let (mut redis, world) = (Redis::open(&url, SECOND * 5).expect("it is there"), world());
        let store = redis.in_real_time(SECOND * 5).expect("it is there");
        for request in [incr(), Request::Eval(echo("x"))] {
            assert_eq!(world.block_on(store.start(request)), Err(expected), "{text}");
        }
        assert_eq!(store.unexpected().is_some(), expected == StoreError::Unexpected, "{text}");
    }
}

/// Drives the only design of a scenario with its store at `url`; `look` is told now and then what time it is.
fn driven(text: &str, url: StoreUrl, look: impl Fn(Time)) -> (Metrics, LiveStore) {
    let mut scenario = lab::scenario(text);
    scenario.store.url = Some(url);
    let interrupted = AtomicBool::new(false);
    let how = Drive {
        seed: 1,
        designs: vec![0],
        target: None,
        baseline: None,
        judge: false,
        interrupted: &interrupted,
    };
    let report = drive(&scenario, &how, &|progress| look(progress.now), |_| Vec::new());
    let Outcome { metrics, live, .. } = report.unwrap_or_else(|error| panic!("{error}")).designs.remove(0);
    (metrics, live.and_then(|live| live.store).expect("its store was real"))
}

const fn ms(milliseconds: u64) -> Time {
    Time::from_micros(milliseconds * 1_000)
}

/// So many messages after 600 ms, which a process brings to a queue in the store; the run ends so long after that.
fn broadcast(messages: u32, end: &str, store: &str, queue: &str, rest: &str) -> String {
    format!(
        r#"
        duration = "601ms"
        drain = "{end}"
        workers = 3
        chats = {{ count = {messages} }}
        server = {{ profile = "unlimited" }}
        wire = {{ timeout = "400ms" }}
        store = {{ {store} }}
        [workload.all]
        kind = "broadcast"
        class = "all"
        at = "600ms"
        [[design]]
        strategy = {{ kind = "scheduler", {queue} }}
        {rest}"#
    )
}

/// What the store did counts when it did it, although nobody hears of it: the process dies while the question that
/// brings all messages is answered.
#[test]
fn whoever_dies_while_the_store_answers_has_asked() {
    let proxy = Proxy::start();
    proxy.delay(500);
    let run = |queue: &str| {
        let dies = "timeline = [ { at = '850ms', kill = 0, restart_after = '300ms' } ]";
        driven(&broadcast(3, "9s", "timeout = '3s'", queue, dies), proxy.url(), |_| {})
    };
    // They are in the queue, and the one that it offered is in doubt until its lease is over.
    let (metrics, store) = run("queue = { kind = 'lanes', lease = '1s' }");
    assert_eq!((metrics.delivered, metrics.lost, store), (3, 0, LiveStore::default()), "{metrics:?}");
    // The one that it offered had left the queue.
    let (metrics, store) = run("queue = { kind = 'lanes', lease = '1s', mark = 'before' }");
    assert_eq!((metrics.delivered, metrics.lost, store), (2, 1, LiveStore::default()), "{metrics:?}");
}

/// The question whose answer nobody hears takes a message that the store was known to hold, and at the end of its lease the store
/// gives it up.
#[test]
fn what_leaves_the_store_for_the_dead_is_lost_with_them() {
    let proxy = Proxy::start();
    proxy.delay(400);
    let queue = "queue = { kind = 'lanes', lease = '1s', mark = 'before' }, limiter = { kind = 'token-bucket', rate = '2/s', burst = 1 }";
    let dies = "timeline = [ { at = '1700ms', kill = 0, restart_after = '300ms' } ]";
    let (metrics, store) = driven(&broadcast(3, "6s", "timeout = '3s'", queue, dies), proxy.url(), |_| {});
    // The second question is asked after 1.5 s and answered after 1.9 s, if the machine has time.
    assert!(metrics.lost <= 1 && metrics.delivered + metrics.lost == 3, "{metrics:?}");
    assert_eq!(store, LiveStore::default(), "what is lost is so by the books");
}

/// The answers that are on their way at the end are waited for, and what the store has done is in the books.
#[test]
fn a_run_may_end_while_the_store_answers() {
    let proxy = Proxy::start();
    proxy.delay(300);
    for mark in ["before", "after"] {
        let queue = format!("queue = {{ kind = 'lanes', mark = '{mark}' }}");
        // What the question is answered comes after 300 ms, and then that of the first message.
        for end in ["150ms", "450ms"] {
            let (metrics, store) =
                driven(&broadcast(5, end, "timeout = '2s'", &queue, ""), proxy.url(), |_| {});
            assert_eq!(
                (metrics.delivered + metrics.pending, metrics.lost),
                (5, 0),
                "{mark}, {end}: {metrics:?}"
            );
            assert_eq!(store, LiveStore::default(), "{mark}, {end}");
        }
    }
    // The second question finds messages that are too old, when it is asked after 1.25 s; the run ends before the answer.
    proxy.delay(150);
    let slow = "deadlines = true, limiter = { kind = 'token-bucket', rate = '2/s', burst = 1 }";
    let text = broadcast(5, "730ms", "timeout = '2s'", slow, "");
    let text = text.replace("at = \"600ms\"", "at = \"600ms\"\n        deadline = \"400ms\"");
    let (metrics, store) = driven(&text, proxy.url(), |_| {});
    assert_eq!((metrics.delivered + metrics.expired + metrics.pending, metrics.lost), (5, 0), "{metrics:?}");
    assert_eq!(store, LiveStore::default());
}

/// One a minute: what is not sent at once stays in the queue.
const SLOW: &str = "limiter = { kind = 'token-bucket', rate = '1/min', burst = 1 }";

/// Somebody else deletes everything: what was there is lost, and the report says how many.
#[test]
fn what_is_gone_from_the_store_is_lost() {
    let database: StoreUrl = format!("{}/8", url().secret()).parse().expect("an address");
    let mut looker =
        Client::open(database.secret()).and_then(|client| client.get_connection()).expect("it is there");
    let done = std::cell::Cell::new(false);
    let looker = RefCell::new(&mut looker);
    let (metrics, store) = driven(&broadcast(9, "2s", "", SLOW, ""), database, |now| {
        if now > ms(1_300) && !done.replace(true) {
            let () = cmd("FLUSHDB").query(*looker.borrow_mut()).expect("flushed");
        }
    });
    assert_eq!((metrics.delivered, metrics.lost, metrics.pending), (1, 8, 0), "{metrics:?}");
    assert_eq!(store, LiveStore { missing: 8, silent: None });
}

/// A flush by plan is booked when Redis has flushed, so nothing is missing that nobody expects to miss.
#[test]
fn a_planned_flush_is_a_call_of_its_own() {
    let flush = "timeout = '300ms', event = [ { at = '1200ms', action = 'flush' } ]";
    let (metrics, store) = driven(&broadcast(9, "2s", flush, SLOW, ""), url(), |_| {});
    assert_eq!((metrics.delivered, metrics.lost, metrics.pending), (1, 8, 0), "{metrics:?}");
    assert_eq!(store, LiveStore::default());
    // On a store that is silent just then the run goes on, and nothing is flushed.
    let proxy = Proxy::start();
    let (metrics, store) = driven(&broadcast(9, "3s", flush, SLOW, ""), proxy.url(), |now| {
        proxy.swallow((ms(1_000)..ms(1_800)).contains(&now));
    });
    assert_eq!((metrics.delivered, metrics.lost, metrics.pending), (1, 0, 8), "{metrics:?}");
    assert_eq!(store, LiveStore::default());
}

/// The books are closed on what they say, and the report says so.
#[test]
fn a_store_that_is_away_at_the_end_is_believed_to_hold_what_it_should() {
    let proxy = Proxy::start();
    let (metrics, store) = driven(&broadcast(9, "1s", "timeout = '200ms'", SLOW, ""), proxy.url(), |now| {
        proxy.swallow(now > ms(1_200));
    });
    assert_eq!((metrics.delivered, metrics.lost, metrics.pending), (1, 0, 8), "{metrics:?}");
    assert!(store.missing == 0 && store.silent.is_some_and(|why| why.contains("no answer")));
}

/// Answers every command like a Redis of that version.
fn server_of_version(version: &'static str) -> StoreUrl {
    server(move |words| {
        let info = format!("# Server\r\nredis_version:{version}\r\n");
        match words[0].as_str() {
            "INFO" => format!("${}\r\n{info}\r\n", info.len()),
            _ => "+OK\r\n".to_owned(),
        }
    })
}

#[test]
fn a_server_that_cannot_be_used_says_why_and_what_to_do() {
    let error = |url: &StoreUrl| {
        let error = Redis::open(url, Duration::from_millis(500)).expect_err("it cannot be used");
        error.to_string().replace(url.secret(), "URL")
    };
    let nobody = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let nobody: StoreUrl = format!("redis://{nobody}").parse().expect("an address");
    insta::assert_snapshot!(error(&nobody), @"the store at URL: Connection refused (os error 111); start a Redis there, or leave the store simulated (`scripts/with-redis` starts one for a command)");
    insta::assert_snapshot!(error(&server_of_version("6.2.14")), @"the store at URL: its version is 6.2.14, and scripts need Redis 7 or newer; use another server");
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent_url =
        format!("redis://{}", silent.local_addr().expect("an address")).parse().expect("an address");
    insta::assert_snapshot!(error(&silent_url), @"the store at URL: no answer; is it the right address, and a Redis that answers?");
    let database: StoreUrl = format!("{}/99999", url().secret()).parse().expect("an address");
    insta::assert_snapshot!(error(&database), @"the store at URL: Redis server refused to switch database - Server(ResponseError): DB index is out of range");
}

/// Nothing is run, and the exit code is that of an unexpected error; a text that is no address is a wrong command line.
#[test]
fn the_command_line_says_so_before_the_run() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("small.toml");
    let run = |scenario: &str, arguments: &[&str]| {
        std::fs::write(&file, scenario).expect("written");
        let mut command = assert_cmd::Command::cargo_bin("floodlab").expect("the binary");
        let output = command
            .current_dir(&directory)
            .args(["run", "small.toml", "--format", "quiet"])
            .args(arguments)
            .output();
        let output = output.expect("it runs");
        (output.status.code().expect("a code"), String::from_utf8(output.stderr).expect("text"))
    };
    let small = "duration = '10s'\ndrain = '10s'\nchats = { count = 9 }\n[workload.all]\nkind = 'broadcast'\nclass = 'all'\n[[design]]\nstrategy = 'shared-bucket'\n";
    let on = |url: &str| format!("store = '{url}'\n{small}");
    let real = url();
    assert_eq!(run(small, &["--store", real.secret()]), (0, String::new()));
    assert_eq!(run(&on(real.secret()), &[]), (0, String::new()));
    insta::assert_snapshot!(format!("{:?}", run(small, &["--store", "redis://127.0.0.1:1"])), @r#"(1, "error: the store at redis://127.0.0.1:1: Connection refused (os error 111); start a Redis there, or leave the store simulated (`scripts/with-redis` starts one for a command)\n")"#);
    insta::assert_snapshot!(format!("{:?}", run(small, &["--store", "rediss://me:secret@127.0.0.1"])), @r#"(2, "error: --store: TLS is not supported; write the address of a Redis as in `redis://127.0.0.1:6379`\n\nUsage: floodlab [OPTIONS] [COMMAND]\n\nFor more information, try '--help'.\n")"#);
    insta::assert_snapshot!(format!("{:?}", run(small, &["--store", "redis://me:secret@192.0.2.1:6379"])), @r#"(104, "error: small.toml: the store redis://me@192.0.2.1:6379 is not on this machine; a run puts load on it, so say --i-own-this-target if it is yours\n")"#);
    for secret in
        ["rediss://me:secret@127.0.0.1", "redis://me:se/secret@127.0.0.1", "redis://me:se#secret@127.0.0.1"]
    {
        for (code, said) in [run(&on(secret), &[]), run(small, &["--store", secret])] {
            assert!(matches!(code, 2 | 104) && !said.contains("secret"), "{code}: {said}");
        }
    }
    insta::assert_snapshot!(format!("{:?}", run(&on("rediss://me:secret@127.0.0.1"), &[])), @r#"(104, "error: small.toml:1: `store`: TLS is not supported; write the address of a Redis as in `redis://127.0.0.1:6379`\n  |\n1 | store = 'rediss://…@127.0.0.1'\n  |         ^^^^^^^^^^^^^^^^^^^^^^\n")"#);
    insta::assert_snapshot!(format!("{:?}", run(&on("http://127.0.0.1:6379"), &[])), @r#"(104, "error: small.toml:1: `store`: this is no address of a Redis; write it as in `redis://127.0.0.1:6379`\n  |\n1 | store = 'http://127.0.0.1:6379'\n  |         ^^^^^^^^^^^^^^^^^^^^^^^\n")"#);
}
