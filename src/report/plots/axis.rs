//! Axes: where a value is along a side of a chart, and the ticks that people can read.

/// One side of a chart.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
    /// Values and their labels, rising.
    pub(super) ticks: Vec<(f64, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scale {
    Linear,
    /// Equal factors, equal distances.
    Log,
    /// As `Log`, from one below: 0 has a place.
    LogFromZero,
    /// Quantiles in parts per million: each nine takes the same room.
    Tail,
}

impl Axis {
    /// Where `value` is, from 0 to 1; beyond the ends it is drawn at the end.
    pub(super) fn position(&self, value: f64) -> f64 {
        let (at, low, high) = (self.scale.of(value), self.scale.of(self.low), self.scale.of(self.high));
        ((at - low) / (high - low)).clamp(0.0, 1.0)
    }

    /// Whether `value` is within the ends.
    pub(super) fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Virtual time from the start to `horizon_us`: a clock up to two days, days beyond.
    pub(super) fn time(horizon_us: u64) -> Self {
        let months = 30 * DAY * (horizon_us / (30 * DAY)).div_ceil(LABELS_MAX).max(1);
        let step = TIME_STEPS.iter().copied().find(|step| horizon_us / step <= LABELS_MAX).unwrap_or(months);
        let label = |us: u64| match (horizon_us, step) {
            (_, DAY..) => format!("day {}", us / DAY + 1),
            (..=7_200_000_000, ..MINUTE) => format!("{}:{:02}", us / MINUTE, us % MINUTE / SECOND),
            (..=7_200_000_000, _) => format!("{} min", us / MINUTE),
            _ => format!("{:02}:{:02}", us / HOUR, us % HOUR / MINUTE),
        };
        let ticks = (0..=horizon_us / step).map(|k| ((k * step) as f64, label(k * step))).collect();
        Self { scale: Scale::Linear, low: 0.0, high: horizon_us.max(1) as f64, ticks }
    }

    /// Lag on a log scale that holds all of `values`.
    pub(super) fn lag(values: impl Iterator<Item = u64> + Clone) -> Self {
        // Below a millisecond nothing in a run is of interest.
        let low = values.clone().min().unwrap_or(1_000).max(1_000);
        let high = values.max().unwrap_or(1_000_000).max(low * 10);
        let (low, high) = (low as f64 * 0.8, high as f64 * 1.25);
        let ticks = LAGS.iter().map(|(us, label)| (*us as f64, (*label).to_owned()));
        Self {
            scale: Scale::Log,
            low,
            high,
            ticks: ticks.filter(|(us, _)| (low..=high).contains(us)).collect(),
        }
    }

    /// Shares in millionths, 0 to 100 %.
    pub(super) fn share() -> Self {
        let ticks = (0..=4).map(|k| (f64::from(k) * 250_000.0, format!("{} %", k * 25))).collect();
        Self { scale: Scale::Linear, low: 0.0, high: 1_000_000.0, ticks }
    }

    /// Counts from 0 to `largest`; on a log scale where they are large.
    pub(super) fn count(largest: u64) -> Self {
        let largest = largest.max(4);
        let label = super::super::human::count;
        if largest > 100 {
            let mut ticks = vec![(0.0, label(0))];
            let mut tick = 1;
            while tick <= largest {
                ticks.push((tick as f64, label(tick)));
                tick *= 10;
            }
            return Self { scale: Scale::LogFromZero, low: 0.0, high: largest as f64 * 1.25, ticks };
        }
        let step = [1, 2, 5, 10, 20, 25, 50].into_iter().find(|step| largest / step <= 5).unwrap_or(50);
        let ticks = (0..=largest / step).map(|k| ((k * step) as f64, label(k * step))).collect();
        Self { scale: Scale::Linear, low: 0.0, high: largest as f64 * 1.05, ticks }
    }

    /// Quantiles in parts per million, up to `highest` (short of all).
    pub(super) fn tail(highest: u32) -> Self {
        let high = f64::from(highest.clamp(990_000, 999_999));
        let all = [(0, "0 %"), (500_000, "50 %"), (900_000, "90 %"), (990_000, "99 %")];
        let nines = [(999_000, "99.9 %"), (999_900, "99.99 %"), (999_990, "99.999 %")];
        let ticks = all.into_iter().chain(nines).map(|(ppm, label)| (f64::from(ppm), label.to_owned()));
        Self { scale: Scale::Tail, low: 0.0, high, ticks: ticks.filter(|(ppm, _)| *ppm <= high).collect() }
    }
}

impl Scale {
    fn of(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Log => value.max(1.0).log10(),
            Self::LogFromZero => (value + 1.0).log10(),
            Self::Tail => -((1_000_000.0 - value).max(1.0) / 1_000_000.0).log10(),
        }
    }
}

const SECOND: u64 = 1_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Steps between ticks of time.
const TIME_STEPS: [u64; 18] = [
    SECOND,
    5 * SECOND,
    10 * SECOND,
    30 * SECOND,
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    6 * HOUR,
    DAY,
    2 * DAY,
    7 * DAY,
    14 * DAY,
];

/// Labels beside the first that a time axis has room for.
const LABELS_MAX: u64 = 9;

/// Ticks of lag: decades, in the units that people count in.
const LAGS: [(u64, &str); 13] = [
    (1_000, "1 ms"),
    (10_000, "10 ms"),
    (100_000, "100 ms"),
    (SECOND, "1 s"),
    (10 * SECOND, "10 s"),
    (MINUTE, "1 min"),
    (10 * MINUTE, "10 min"),
    (HOUR, "1 h"),
    (6 * HOUR, "6 h"),
    (DAY, "1 day"),
    (7 * DAY, "1 week"),
    (30 * DAY, "30 days"),
    (365 * DAY, "1 year"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn ticks_are_what_people_read() {
        assert_eq!(
            labels(&Axis::time(DAY)),
            ["00:00", "03:00", "06:00", "09:00", "12:00", "15:00", "18:00", "21:00", "24:00"]
        );
        assert_eq!(labels(&Axis::time(4 * DAY)), ["day 1", "day 2", "day 3", "day 4", "day 5"]);
        assert_eq!(
            labels(&Axis::time(511 * DAY)),
            ["day 1", "day 61", "day 121", "day 181", "day 241", "day 301", "day 361", "day 421", "day 481"]
        );
        assert_eq!(
            labels(&Axis::time(45 * SECOND)),
            ["0:00", "0:05", "0:10", "0:15", "0:20", "0:25", "0:30", "0:35", "0:40", "0:45"]
        );
        assert_eq!(
            labels(&Axis::time(HOUR)),
            ["0 min", "10 min", "20 min", "30 min", "40 min", "50 min", "60 min"]
        );
        assert_eq!(labels(&Axis::count(7)), ["0", "2", "4", "6"]);
        assert_eq!(labels(&Axis::count(12_000)), ["0", "1", "10", "100", "1,000", "10,000"]);
        assert_eq!(labels(&Axis::tail(999_900)), ["0 %", "50 %", "90 %", "99 %", "99.9 %", "99.99 %"]);
        assert_eq!(labels(&Axis::lag([40_000, 7_000_000].into_iter())), ["100 ms", "1 s"]);
    }

    #[test]
    fn each_nine_takes_the_same_room() {
        let axis = Axis::tail(999_900);
        let at = |ppm: f64| (axis.position(ppm) * 100.0).round();
        assert_eq!(
            [0.0, 900_000.0, 990_000.0, 999_000.0, 1_000_000.0].map(at),
            [0.0, 25.0, 50.0, 75.0, 100.0]
        );
    }

    #[test]
    fn zero_has_a_place_on_a_log_scale_of_counts() {
        let axis = Axis::count(1_000);
        assert_eq!(axis.position(0.0), 0.0);
        assert!(axis.position(1.0) > 0.05);
    }
}
