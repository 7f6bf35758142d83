//! The grid of the series.

use fake_telegram::time::{Duration, Time};

/// A series has at most this many points.
const POINTS_MAX: u64 = 2_000;

/// How a run is cut: samples are taken every 1 s, 10 s or 60 s, and a point of a series is the maximum of one or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steps {
    horizon: Duration,
    sample: Duration,
    per_point: u64,
}

impl Steps {
    /// The grid for a run of this length: the step is the smallest of 1 s, 10 s, 60 s, then multiples of 60 s, that
    /// gives at most 2,000 points.
    pub fn new(horizon: Duration) -> Self {
        let points = |step: Duration| horizon.as_micros().div_ceil(step.as_micros());
        for seconds in [1, 10, 60] {
            let sample = Duration::from_secs(seconds);
            if points(sample) <= POINTS_MAX {
                return Self { horizon, sample, per_point: 1 };
            }
        }
        let sample = Duration::from_secs(60);
        Self { horizon, sample, per_point: points(sample).div_ceil(POINTS_MAX) }
    }

    /// The distance of two samples.
    pub const fn sample(self) -> Duration {
        self.sample
    }

    /// The distance of two points.
    pub fn step(self) -> Duration {
        self.sample * self.per_point
    }

    /// The length of the run.
    pub const fn horizon(self) -> Duration {
        self.horizon
    }

    /// Which sample an instant belongs to.
    pub fn sample_of(self, at: Time) -> usize {
        ((at - Time::ZERO) / self.sample) as usize
    }

    /// How many samples a run has.
    pub const fn samples(self) -> usize {
        self.horizon.as_micros().div_ceil(self.sample.as_micros()) as usize
    }

    /// Samples to points: the maximum.
    pub fn fold(self, samples: &[u32]) -> Vec<u64> {
        let points = samples.chunks(self.per_point as usize);
        points.map(|point| point.iter().copied().max().unwrap_or(0).into()).collect()
    }

    /// Samples to points: the maximum of those that have a value.
    pub fn fold_option(self, samples: &[Option<u64>]) -> Vec<Option<u64>> {
        samples.chunks(self.per_point as usize).map(|point| point.iter().copied().max().flatten()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule of interface.md.
    #[test]
    fn the_step_is_the_smallest_that_gives_at_most_2000_points() {
        let check = |horizon, step| assert_eq!(Steps::new(horizon).step(), step, "{horizon}");
        check(Duration::from_secs(2_000), Duration::from_secs(1));
        check(Duration::from_secs(2_001), Duration::from_secs(10));
        check(Duration::from_secs(20_000), Duration::from_secs(10));
        check(Duration::from_hours(24), Duration::from_mins(1));
        check(Duration::from_hours(24 * 7), Duration::from_mins(6));
    }

    #[test]
    fn a_point_is_the_maximum_of_its_samples() {
        let steps = Steps::new(Duration::from_mins(6_000));
        assert_eq!(steps.step(), Duration::from_mins(3));
        assert_eq!(steps.fold(&[1, 5, 2, 7]), [5, 7]);
        assert_eq!(steps.fold_option(&[None, Some(5), Some(2), None]), [Some(5), None]);
    }
}
