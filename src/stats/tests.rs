use proptest::prelude::*;

use super::*;

fn close(actual: f64, expected: f64, within: f64) -> bool {
    (actual - expected).abs() <= within
}

/// NIST/SEMATECH e-Handbook of Statistical Methods, section 1.3.6.7.2, column 0.975.
#[test]
fn critical_values_are_those_of_the_table() {
    for (freedom, expected) in [
        (1.0, 12.706),
        (2.0, 4.303),
        (3.0, 3.182),
        (4.0, 2.776),
        (5.0, 2.571),
        (9.0, 2.262),
        (10.0, 2.228),
        (19.0, 2.093),
        (30.0, 2.042),
        (60.0, 2.000),
        (100.0, 1.984),
    ] {
        assert!(close(critical(freedom), expected, 5.01e-4), "{freedom}: {}", critical(freedom));
    }
    // With one degree of freedom it is Cauchy's distribution, with two there is a closed form.
    assert!(close(critical(1.0), (std::f64::consts::PI * 0.475).tan(), 1e-6));
    assert!(close(critical(2.0), 0.95 * (2.0 / (1.0 - 0.95 * 0.95_f64)).sqrt(), 1e-6));
    // Nearly the normal distribution's, however many replications there are.
    for freedom in [1e4, 1e5, 3e7, f64::INFINITY] {
        assert!(close(critical(freedom), 1.959_964, 2.5e-4), "{freedom}");
    }
}

/// Student's own example of 1908 (Cushny and Peebles' data): hours of sleep gained with two drugs by the same ten patients.
const DEXTRO: [f64; 10] = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
const LAEVO: [f64; 10] = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];

/// R documents these (`?sleep`, `t.test(extra ~ group)`): 1.58 in 0.70 to 2.46 paired, in -0.205 to 3.365 by Welch with
/// 17.776 degrees of freedom.
#[test]
fn the_sleep_data_give_the_intervals_that_are_known_of_them() {
    let pairs = paired(&LAEVO, &DEXTRO).expect("ten pairs");
    assert!(close(pairs.value, 1.58, 1e-9));
    assert!(close(pairs.low, 0.700_114_2, 1e-6) && close(pairs.high, 2.459_885_8, 1e-6), "{pairs:?}");
    let apart = welch(&LAEVO, &DEXTRO).expect("ten each");
    assert!(close(apart.value, 1.58, 1e-9));
    assert!(close(apart.low, -0.205_483_2, 1e-6) && close(apart.high, 3.365_483_2, 1e-6), "{apart:?}");
}

#[test]
fn a_ratio_of_clusters_of_one_size_is_a_mean() {
    let numerators = [3_u64, 7, 4, 6, 9];
    let clusters = numerators.map(|numerator| (numerator, 10));
    let shares = numerators.map(|numerator| numerator as f64 / 10.0);
    let (ratio, mean) = (ratio(&clusters).expect("five"), student(&shares).expect("five"));
    for (one, other) in [(ratio.value, mean.value), (ratio.low, mean.low), (ratio.high, mean.high)] {
        assert!(close(one, other, 1e-12), "{ratio:?} {mean:?}");
    }
}

/// By hand: the ratio is 6/10, the residuals 0.8, -0.8 and 0; so the error is sqrt(3/2 * 1.28) / 10.
#[test]
fn large_clusters_weigh_more_in_a_ratio() {
    let interval = ratio(&[(2, 2), (1, 3), (3, 5)]).expect("three");
    assert!(close(interval.value, 0.6, 1e-12));
    assert!(close(interval.high - 0.6, 4.302_653 * (1.5 * 1.28_f64).sqrt() / 10.0, 1e-6), "{interval:?}");
    assert_eq!(ratio(&[(1, 2)]), None);
    assert_eq!(ratio(&[(0, 0), (0, 0)]), None);
}

#[test]
fn too_few_values_have_no_interval_and_equal_ones_no_width() {
    assert_eq!(student(&[1.0]), None);
    assert_eq!(welch(&[1.0, 2.0], &[1.0]), None);
    let none = |value| Some(Interval { value, low: value, high: value });
    assert_eq!(student(&[5.0; 4]), none(5.0));
    assert_eq!(welch(&[5.0; 4], &[3.0; 2]), none(2.0));
    assert_eq!(mean(&[]), 0.0);
}

#[test]
fn quantiles_of_clusters_are_those_of_all_values() {
    let clusters = Clusters::new([vec![(10, 1), (30, 2)], vec![], vec![(20, 1), (30, 1), (10, 0)]]);
    let value = |ppm| clusters.quantile(ppm).expect("values").value;
    // 10 20 30 30 30
    assert_eq!([1, 200_000, 200_001, 400_000, 400_001, 999_999].map(value), [10, 10, 20, 20, 30, 30]);
    assert_eq!(Clusters::new([vec![]]).quantile(500_000), None);
    assert_eq!(Clusters::new([vec![(7, 3)]]).quantile(500_000), Some(Quantile { value: 7, interval: None }));
}

/// By hand: 1 to 50 and 51 to 100 have the median 50, at which the shares are 1 and 0. So the error of the share is 1/2,
/// and t with one degree of freedom takes the ends beyond the sample. Twins have no error.
#[test]
fn clusters_that_are_unlike_widen_the_interval_of_a_quantile() {
    let range = |values: &mut dyn Iterator<Item = u64>| values.map(|value| (value, 1)).collect::<Vec<_>>();
    let apart = Clusters::new([range(&mut (1..=50)), range(&mut (51..=100))]);
    assert_eq!(apart.quantile(500_000), Some(Quantile { value: 50, interval: Some((1, 100)) }));
    let alike = Clusters::new([range(&mut (1..=100)), range(&mut (1..=100))]);
    assert_eq!(alike.quantile(500_000), Some(Quantile { value: 50, interval: Some((50, 50)) }));
}

fn width(interval: Option<Interval>) -> f64 {
    let interval = interval.expect("enough values");
    interval.high - interval.low
}

proptest! {
    /// What pairs have in common cancels: it widens the unpaired interval only.
    #[test]
    fn pairing_takes_out_what_both_sides_share(
        shared in prop::collection::vec(-1e3..1e3_f64, 12),
        noise in prop::collection::vec(-1.0..1.0_f64, 24),
    ) {
        let spread = shared.iter().map(|s| (s - mean(&shared)).powi(2)).sum::<f64>();
        prop_assume!(spread > 1e3);
        let side = |noise: &[f64]| shared.iter().zip(noise).map(|(s, n)| s + n).collect::<Vec<_>>();
        let (to, from) = (side(&noise[..12]), side(&noise[12..]));
        prop_assert!(width(paired(&to, &from)) < width(welch(&to, &from)));
        // And the paired one is what it would be without the shared part.
        let bare = paired(&noise[..12], &noise[12..]);
        prop_assert!((width(paired(&to, &from)) - width(bare)).abs() < 1e-6);
    }

    #[test]
    fn intervals_hold_their_estimate_and_move_with_the_unit(
        values in prop::collection::vec(0.0..1e12_f64, 2..30),
    ) {
        let interval = student(&values).expect("two or more");
        prop_assert!(interval.low <= interval.value && interval.value <= interval.high);
        let twice = student(&values.iter().map(|value| value * 2.0).collect::<Vec<_>>()).expect("as many");
        let Interval { value, low, high } = interval;
        prop_assert_eq!(twice, Interval { value: value * 2.0, low: low * 2.0, high: high * 2.0 });
    }

    #[test]
    fn the_ends_of_a_quantile_surround_it(
        clusters in prop::collection::vec(prop::collection::vec((0..1_000_u64, 0..5_u64), 0..40), 0..6),
        ppm in 1..1_000_000_u32,
    ) {
        let mut all: Vec<u64> = clusters
            .iter()
            .flatten()
            .flat_map(|(value, count)| std::iter::repeat_n(*value, *count as usize))
            .collect();
        all.sort_unstable();
        match Clusters::new(clusters).quantile(ppm) {
            None => prop_assert!(all.is_empty()),
            Some(Quantile { value, interval }) => {
                prop_assert_eq!(value, all[rank(all.len() as u64, ppm) as usize - 1]);
                if let Some((low, high)) = interval {
                    prop_assert!(low <= value && value <= high);
                    prop_assert!(all.contains(&low) && all.contains(&high));
                }
            }
        }
    }
}
