use super::*;

fn counts(delivered: &[(u64, u64)], censored: &[(u64, u64)], max: u64) -> LagCounts {
    LagCounts { delivered: delivered.to_vec(), censored: censored.to_vec(), max }
}

#[test]
fn seeds_are_merged_and_classes_summed() {
    // 1 to 100 in two classes of two seeds; the bucket of the largest ends above it.
    let a = counts(&[(10, 40)], &[], 10);
    let b = counts(&[(20, 30), (30, 20)], &[], 30);
    let c = counts(&[(1_001, 10)], &[], 1_000);
    let pooled = Pooled::new(&[vec![&a, &c], vec![&b]]);
    let value = |ppm| pooled.quantile(ppm).expect("lags").value;
    assert_eq!([400_000, 400_001, 700_000, 900_000, 900_001].map(value), [10, 20, 20, 30, 1_000]);
    let quantile = pooled.quantile(500_000).expect("lags");
    assert!(quantile.low.is_some() && quantile.high.is_some() && !quantile.lower_bound);
    assert_eq!(Pooled::new(&[vec![&a]]).quantile(500_000).expect("lags").low, None);
    assert_eq!(Pooled::new(&[vec![], vec![]]).quantile(500_000), None);
}

#[test]
fn a_quantile_is_a_lower_bound_if_an_age_without_end_would_move_it() {
    let check = |censored: &[(u64, u64)], ppm, expected| {
        // Three seeds alike: intervals without width, but for what rounding to a rank does.
        let seed = counts(&[(10, 50), (20, 40), (30, 8)], censored, 30);
        let pooled = Pooled::new(&[vec![&seed], vec![&seed], vec![&seed]]);
        let quantile = pooled.quantile(ppm).expect("lags");
        assert_eq!((quantile.value, quantile.lower_bound), expected, "{censored:?} {ppm}");
    };
    check(&[], 990_000, (30, false));
    // Two ages below all lags: were they infinite, the median would move from 10 to 20, and the 99th percentile beyond all.
    check(&[(5, 2)], 500_000, (10, false));
    check(&[(5, 2)], 510_000, (10, true));
    check(&[(5, 2)], 990_000, (30, true));
    // Ages above all lags: only what lies beyond the lags is unknown.
    check(&[(40, 2)], 980_000, (30, false));
    check(&[(40, 2)], 990_000, (30, true));
}

/// The median is certain, the upper end is not.
#[test]
fn an_upper_end_among_the_ages_is_a_lower_bound_too() {
    let early = counts(&[(10, 100)], &[], 10);
    let late = counts(&[(20, 60)], &[(90, 40)], 90);
    let pooled = Pooled::new(&[vec![&early], vec![&early], vec![&late]]);
    let quantile = pooled.quantile(500_000).expect("lags");
    assert_eq!((quantile.value, quantile.high), (10, Some(90)));
    assert!(quantile.lower_bound);
}
