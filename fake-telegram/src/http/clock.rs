//! The server's clock: real time, real time sped up, or time that stands until somebody moves it.

#![expect(clippy::disallowed_methods, reason = "this is where real time comes in")]

use std::sync::Mutex;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

use crate::time::{Duration, Time};

/// The server's clock. It begins at [`Time::ZERO`].
#[derive(Debug)]
pub struct Clock {
    /// What time it was when the hands were last set, and how they move since.
    hands: Mutex<Hands>,
    /// Told whenever the hands are set.
    set: watch::Sender<()>,
    unix_start: u64,
}

#[derive(Debug, Clone, Copy)]
struct Hands {
    at: Time,
    since: Instant,
    /// Server seconds in a real one; 0 while it is frozen.
    speed: u32,
    /// The speed when it is not frozen.
    running: u32,
}

/// How a clock goes, for whoever looks at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// What time it is.
    pub now: Time,
    /// Server seconds in a real one, at least 1.
    pub speed: u32,
    /// Whether it stands.
    pub frozen: bool,
}

impl Clock {
    /// A clock on which `speed` seconds pass in a real one, at least 1; `frozen`: on which none pass for now.
    pub fn new(speed: u32, frozen: bool) -> Self {
        let running = speed.max(1);
        let hands =
            Hands { at: Time::ZERO, since: Instant::now(), speed: if frozen { 0 } else { running }, running };
        let unix_start = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self { hands: Mutex::new(hands), set: watch::Sender::new(()), unix_start }
    }

    /// What time it is. It never goes back.
    pub fn now(&self) -> Time {
        self.hands().now()
    }

    /// How it goes.
    pub fn read(&self) -> Reading {
        let hands = self.hands();
        Reading { now: hands.now(), speed: hands.running, frozen: hands.speed == 0 }
    }

    /// The server's Unix time at `at`, in seconds: that of its host at the start, and on by its own clock.
    pub fn unix(&self, at: Time) -> i64 {
        (self.unix_start + at.as_micros() / 1_000_000) as i64
    }

    /// The host's time of day.
    pub fn wall(&self) -> SystemTime {
        SystemTime::now()
    }

    /// How long a client has to wait, in real time, for `wait` to pass on this clock.
    pub fn real(&self, wait: Duration) -> Duration {
        Duration::from_micros(wait.as_micros().div_ceil(self.hands().running.into()))
    }

    /// Stops it.
    pub fn freeze(&self) {
        self.change(|hands| hands.speed = 0);
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.change(|hands| hands.speed = hands.running);
    }

    /// Sets it forward.
    pub fn advance(&self, by: Duration) {
        self.change(|hands| hands.at = hands.at.saturating_add(by));
    }

    /// Completes when it is `deadline`, however the hands are moved meanwhile.
    pub async fn sleep_until(&self, deadline: Time) {
        let mut set = self.set.subscribe();
        loop {
            let wait = {
                let hands = self.hands();
                let left = deadline.saturating_since(hands.now());
                if left.is_zero() {
                    return;
                }
                (hands.speed > 0).then(|| left.as_micros().div_ceil(hands.speed.into()))
            };
            let passed = async {
                match wait {
                    Some(us) => tokio::time::sleep(std::time::Duration::from_micros(us)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = passed => {}
                // The sender lives as long as `self`.
                _ = set.changed() => {}
            }
        }
    }

    fn hands(&self) -> Hands {
        *self.hands.lock().expect("nobody panics while the hands are set")
    }

    fn change(&self, change: impl FnOnce(&mut Hands)) {
        {
            let mut hands = self.hands.lock().expect("nobody panics while the hands are set");
            hands.at = hands.now();
            hands.since = Instant::now();
            change(&mut hands);
        }
        self.set.send_replace(());
    }
}

impl Hands {
    fn now(&self) -> Time {
        let real = self.since.elapsed().as_micros() as u64;
        self.at.saturating_add(Duration::from_micros(real.saturating_mul(self.speed.into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_frozen_clock_moves_when_it_is_moved_and_wakes_who_waits() {
        let clock = Clock::new(1, true);
        assert_eq!(clock.now(), Time::ZERO);
        let (later, ()) = tokio::join!(
            async {
                clock.sleep_until(Time::from_secs(3600)).await;
                clock.now()
            },
            async {
                clock.advance(Duration::from_mins(59));
                tokio::task::yield_now().await;
                clock.advance(Duration::from_mins(2));
            }
        );
        assert_eq!(later, Time::from_secs(3_660));
        assert_eq!(clock.read(), Reading { now: Time::from_secs(3_660), speed: 1, frozen: true });
    }

    #[tokio::test]
    async fn a_fast_clock_is_fast() {
        let clock = Clock::new(1_000, false);
        let before = Instant::now();
        clock.sleep_until(Time::from_secs(20)).await;
        assert!(before.elapsed() < std::time::Duration::from_secs(15), "20 s of its own are 20 ms");
        assert_eq!(clock.real(Duration::from_secs(20)), Duration::from_millis(20));
        clock.freeze();
        let stands = clock.now();
        assert!(stands >= Time::from_secs(20));
        assert_eq!(clock.now(), stands);
        clock.resume();
    }
}
