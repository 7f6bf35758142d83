//! Do intervals of 95 % hold the truth in 95 of 100 experiments? Asked of a model whose truth is known: M/M/1.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rayon::prelude::*;

use super::*;

const EXPERIMENTS: u64 = 1_000;
const SEEDS: usize = 10;
const CUSTOMERS: usize = 2_000;
/// Arrivals per service: services take 1 on average.
const LOAD: f64 = 0.5;

/// What one seed saw: its mean wait, and the time that each customer spent, in millionths of a mean service, counted.
type Seen = (f64, Vec<(u64, u64)>);

/// Lindley's recursion (Mathematical Proceedings of the Cambridge Philosophical Society 48, 1952), begun in the steady state: the first wait is
/// drawn from the stationary distribution, so there is nothing to warm up and no bias.
fn queue(rng: &mut ChaCha8Rng) -> Seen {
    let mut uniform = || ((rng.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    let mut wait = if uniform() < LOAD { -uniform().ln() / (1.0 - LOAD) } else { 0.0 };
    let (mut waits, mut spent) = (0.0, Vec::with_capacity(CUSTOMERS));
    for _ in 0..CUSTOMERS {
        let service = -uniform().ln();
        waits += wait;
        spent.push((((wait + service) * 1e6) as u64, 1));
        wait = (wait + service + uniform().ln() / LOAD).max(0.0);
    }
    (waits / CUSTOMERS as f64, spent)
}

/// In how many experiments each of the intervals holds the truth.
#[test]
fn intervals_hold_the_truth_about_95_times_in_100() {
    // Kleinrock, Queueing Systems 1 (1975), section 3.2 and 5.12: the mean wait is load / (1 - load) services, and the time spent is
    // exponential with the rate 1 - load.
    let mean_wait = LOAD / (1.0 - LOAD);
    let spent = |share: f64| -(1.0 - share).ln() / (1.0 - LOAD) * 1e6;
    let held = (0..EXPERIMENTS).into_par_iter().map(|experiment| {
        let mut rng = ChaCha8Rng::seed_from_u64(experiment);
        let (means, counts): (Vec<f64>, Vec<_>) = (0..SEEDS).map(|_| queue(&mut rng)).unzip();
        let mean = student(&means).expect("ten seeds");
        let late = |counts: &Vec<(u64, u64)>| {
            let late = counts.iter().filter(|(spent_in, _)| *spent_in as f64 > spent(0.9)).count();
            (late as u64, counts.len() as u64)
        };
        let share = ratio(&counts.iter().map(late).collect::<Vec<_>>()).expect("ten seeds");
        let clusters = Clusters::new(counts);
        let quantile = |ppm| {
            let (low, high) = clusters.quantile(ppm).and_then(|found| found.interval).expect("ten seeds");
            let truth = spent(f64::from(ppm) / 1e6);
            low as f64 <= truth && truth <= high as f64
        };
        [
            mean.low <= mean_wait && mean_wait <= mean.high,
            share.low <= 0.1 && 0.1 <= share.high,
            quantile(500_000),
            quantile(900_000),
            quantile(990_000),
            quantile(999_000),
        ]
    });
    let held = held.map(|held| held.map(u64::from)).reduce(|| [0; 6], add);
    println!("{held:?}");
}

fn add(mut one: [u64; 6], other: [u64; 6]) -> [u64; 6] {
    one.iter_mut().zip(other).for_each(|(one, other)| *one += other);
    one
}
