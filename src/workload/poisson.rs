//! Independent messages: a Poisson process whose rate follows the day.

use std::sync::Arc;

use fake_telegram::api::ChatIndex;
use fake_telegram::time::{Duration, Time};
use fake_telegram::units::Rate;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::audience::{Audience, pick};
use super::factor::Factor;
use super::popularity::{AliasTable, Popularity};
use super::profile::{MINUTES, Profile};
use super::{Arrival, Site, Source, Workload, WorkloadError};
use crate::rng::{self, fixed};

/// Independent messages at a rate that follows the day, few chats getting most of them.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Poisson {
    /// The mean over a whole day.
    pub rate: Rate,
    /// How the rate varies over the day: 24 hourly weights, or a wave; constant without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// The first message is due after this.
    #[serde(default)]
    pub from: Duration,
    /// The last message is due before this; the end of the workloads without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Duration>,
    /// To whom; the same chats throughout the run.
    #[serde(default)]
    pub chats: Audience,
    /// How unequal these chats are.
    #[serde(default)]
    pub popularity: Popularity,
}

impl Workload for Poisson {
    const KIND: &'static str = "poisson";
    const SUMMARY: &'static str = "independent messages, the rate follows the day, few chats get most";

    fn prepare(self, site: &mut Site<'_>) -> Result<Source, WorkloadError> {
        let until = self.until.unwrap_or(site.duration).min(site.duration);
        if self.from >= until {
            let message = format!("{} is not before {until}, where the workload ends", self.from);
            return Err(WorkloadError::new("from", message));
        }
        let day: Arc<[Minute]> = self.day()?.into();
        let blocks = self.chats.blocks(site)?;
        let mut weights = Vec::new();
        for block in &blocks {
            let of_kind = self.popularity.weights(block.kind, block.picked);
            weights.extend(of_kind.map_err(|message| WorkloadError::new("popularity", message))?);
        }
        let popularity = Arc::new(AliasTable::new(&weights));
        let purpose = site.purpose();
        Ok(Box::new(move |seed| {
            // Which chats take part, and which of them is how popular, is drawn too: popularity must have nothing to
            // do with a chat's index.
            let mut stream = rng::stream(seed, &format!("{purpose}/chats"));
            let mut chats = Vec::with_capacity(weights.len());
            for block in &blocks {
                let mut candidates: Vec<u32> = block.chats.clone().collect();
                pick(&mut stream, &mut candidates, block.picked as usize);
                chats.extend_from_slice(&candidates[..block.picked as usize]);
            }
            Box::new(Stream {
                clock: Clock::new(&day, self.from, until),
                due: rng::stream(seed, &format!("{purpose}/due")),
                chat: rng::stream(seed, &format!("{purpose}/chat")),
                popularity: Arc::clone(&popularity),
                chats,
            })
        }))
    }
}

impl Poisson {
    fn day(&self) -> Result<Vec<Minute>, WorkloadError> {
        let rate = self.rate;
        let wrong = |key, message: &str| Err(WorkloadError::new(key, message));
        if rate.count == 0 {
            return wrong("rate", "nothing ever falls due at a rate of zero");
        }
        if u128::from(rate.count) * 1_000_000 > u128::from(rate.period.as_micros()) * 10_000_000 {
            return wrong("rate", "more than 10M/s is not supported");
        }
        let weights = match &self.profile {
            None => vec![fixed::ONE; MINUTES],
            Some(Profile::Wave(wave)) if wave.busiest_over_quietest < Factor::ONE => {
                return wrong("profile", "`busiest_over_quietest` must be at least 1");
            }
            Some(Profile::Wave(wave)) if wave.peak >= Duration::from_hours(24) => {
                return wrong("profile", "`peak` is a time of day, below 24h");
            }
            Some(profile) => match profile.minutes() {
                Some(weights) => weights,
                None => return wrong("profile", "at least one hour must have a positive weight"),
            },
        };
        Ok(weights.into_iter().map(|weight| Minute::new(rate, weight)).collect())
    }
}

/// One minute of the day, in which the rate is constant.
#[derive(Debug, Clone, Copy)]
struct Minute {
    /// Expected messages x log2(e), in Q32: in these units a gap is the negative binary logarithm of a uniform draw.
    mass: u64,
    /// Microseconds per unit of mass, times 2^shift.
    pace: u64,
    shift: u8,
}

const MINUTE: u64 = 60_000_000;

/// log2(e) in Q32.
const LOG2_E: u128 = 6_196_328_019;

impl Minute {
    fn new(rate: Rate, weight: u64) -> Self {
        let expected = u128::from(rate.count) * u128::from(MINUTE) * u128::from(weight)
            / u128::from(rate.period.as_micros());
        let mass = ((expected * LOG2_E) >> 32) as u64;
        if mass == 0 {
            return Self { mass, pace: 0, shift: 0 };
        }
        // As many binary places as fit; rounded down, so that no message leaves its minute.
        let shift = (mass.ilog2() + 63 - MINUTE.ilog2()).min(127 - MINUTE.ilog2() - 1);
        let pace = ((u128::from(MINUTE) << shift) / u128::from(mass)) as u64;
        Self { mass, pace, shift: shift as u8 }
    }

    /// When, after its start, a part of its mass is used up.
    fn instant(self, used: u64) -> Duration {
        Duration::from_micros(((u128::from(used) * u128::from(self.pace)) >> self.shift) as u64)
    }
}

/// Maps a unit-rate process onto the day: exponential gaps are used up by the mass of the minutes that pass (time
/// rescaling; exact for a rate that is constant in each minute).
#[derive(Debug)]
struct Clock {
    day: Arc<[Minute]>,
    /// The current minute of the run, and how much of its mass is used up.
    minute: u64,
    used: u64,
    until: Time,
}

impl Clock {
    fn new(day: &Arc<[Minute]>, from: Duration, until: Duration) -> Self {
        let minute = from.as_micros() / MINUTE;
        let mass = day[(minute % MINUTES as u64) as usize].mass;
        let used = u128::from(mass) * u128::from(from.as_micros() % MINUTE) / u128::from(MINUTE);
        Self { day: Arc::clone(day), minute, used: used as u64, until: Time::ZERO + until }
    }

    /// The instant `gap` (Q32, times log2(e)) after the last.
    fn after(&mut self, gap: u64) -> Option<Time> {
        self.used += gap;
        loop {
            let minute = self.day[(self.minute % MINUTES as u64) as usize];
            let start = Time::from_micros(self.minute * MINUTE);
            if self.used < minute.mass {
                return Some(start + minute.instant(self.used)).filter(|due| *due < self.until);
            }
            if start >= self.until {
                return None;
            }
            self.used -= minute.mass;
            self.minute += 1;
        }
    }
}

struct Stream {
    clock: Clock,
    due: ChaCha8Rng,
    chat: ChaCha8Rng,
    popularity: Arc<AliasTable>,
    chats: Vec<u32>,
}

impl Iterator for Stream {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        let due = self.clock.after(fixed::neg_log2(self.due.next_u64()))?;
        Some(Arrival { due, chat: ChatIndex(self.chats[self.popularity.draw(&mut self.chat)]) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::tests::{arrivals, prepare};

    /// Of a Poisson variable mean and variance are equal: over 400 days the mean count is within 5 standard errors,
    /// and the variance within 5 of its own (the standard deviation of a variance of 400 is about sqrt(2/400)).
    #[test]
    fn counts_have_the_mean_and_variance_of_the_law() {
        let source =
            prepare::<Poisson>(r#"rate = "1k/24h", profile = { peak = "19h", busiest_over_quietest = 3.3 }"#)
                .expect("fits");
        let counts: Vec<f64> = (0..400).map(|seed| source(seed).count() as f64).collect();
        let mean = counts.iter().sum::<f64>() / 400.0;
        let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / 399.0;
        assert!((mean - 1_000.0).abs() < 5.0 * (1_000.0f64 / 400.0).sqrt(), "mean {mean}");
        assert!((variance / 1_000.0 - 1.0).abs() < 5.0 * (2.0f64 / 400.0).sqrt(), "variance {variance}");
    }

    /// Kolmogorov and Smirnov's statistic of the gaps against the exponential law, at the 0.1 % level.
    #[test]
    fn gaps_are_exponential() {
        let all = arrivals::<Poisson>(r#"rate = "2/s""#, 1);
        let mut gaps: Vec<f64> =
            all.windows(2).map(|pair| (pair[1].due - pair[0].due).as_secs_f64()).collect();
        gaps.sort_by(f64::total_cmp);
        let count = gaps.len() as f64;
        let law = |gap: f64| 1.0 - (-2.0 * gap).exp();
        let distance = gaps
            .iter()
            .enumerate()
            .map(|(i, gap)| (law(*gap) - (i as f64 + 0.5) / count).abs())
            .fold(0.0, f64::max);
        assert!(distance < 1.95 / count.sqrt(), "{distance} over {count} gaps");
    }

    #[test]
    fn the_day_follows_its_profile() {
        let mut weights = [2; 24];
        (weights[3], weights[12]) = (0, 8);
        let total: u32 = weights.iter().sum();
        let all = arrivals::<Poisson>(&format!(r#"rate = "500k/24h", profile = {weights:?}"#), 1);
        let mut hours = [0u32; 24];
        all.iter().for_each(|arrival| hours[(arrival.due.as_micros() / 3_600_000_000) as usize] += 1);
        for (count, weight) in hours.into_iter().zip(weights) {
            let expected = f64::from(weight) * 500_000.0 / f64::from(total);
            assert!(
                (f64::from(count) - expected).abs() <= 5.0 * expected.sqrt(),
                "{count} against {expected}"
            );
        }
    }

    #[test]
    fn a_window_cuts_the_stream_and_does_not_thin_it() {
        let all = arrivals::<Poisson>(r#"rate = "10/s", from = "90s", until = "1h90s""#, 1);
        assert!(all.iter().all(|a| a.due >= Time::from_secs(90) && a.due < Time::from_secs(3_690)));
        assert!((all.len() as f64 - 36_000.0).abs() < 5.0 * 36_000.0f64.sqrt(), "{}", all.len());
    }

    #[test]
    fn extreme_rates_keep_their_mean() {
        let count = |rate: &str| arrivals::<Poisson>(&format!(r#"rate = "{rate}", until = "1s""#), 1).len();
        assert!((count("1M/s") as f64 - 1e6).abs() < 5e3);
        let rare = prepare::<Poisson>(r#"rate = "1/w""#).expect("fits");
        let total: usize = (0..700).map(|seed| rare(seed).count()).sum();
        assert!((60..=140).contains(&total), "{total} in 700 days at one a week");
    }

    /// Discrete maximum likelihood is biased for small counts, so the tail is fitted where counts are large: Hill's
    /// estimate over the chats with at least ten times the least expected count.
    #[test]
    fn messages_per_chat_have_the_tail_that_is_asked_for() {
        let toml = r#"rate = "1M/24h", chats = { kinds = ["private"] },
            popularity = { private = { exponent = 2, cutoff = 1000000 } }"#
            .replace('\n', " ");
        let mut counts = vec![0u32; 10_000];
        arrivals::<Poisson>(&toml, 1).iter().for_each(|arrival| counts[arrival.chat.0 as usize] += 1);
        let least = 100.0;
        let tail: Vec<f64> = counts
            .into_iter()
            .map(f64::from)
            .filter(|c| *c >= least)
            .map(|c| (c / (least - 0.5)).ln())
            .collect();
        let estimate = 1.0 + tail.len() as f64 / tail.iter().sum::<f64>();
        let error = (estimate - 1.0) / (tail.len() as f64).sqrt();
        assert!((estimate - 2.0).abs() < 4.0 * error, "{estimate} +- {error}");
    }

    #[test]
    fn a_share_of_the_chats_gets_everything() {
        let all = arrivals::<Poisson>(r#"rate = "10/s", chats = { share = "10%", kinds = ["group"] }"#, 1);
        let mut chats: Vec<u32> = all.iter().map(|arrival| arrival.chat.0).collect();
        chats.sort_unstable();
        chats.dedup();
        assert_eq!(chats.len(), 20);
        assert!(chats.iter().all(|chat| (9_700..9_900).contains(chat)));
    }
}
