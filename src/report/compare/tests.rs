use super::*;
use crate::gate::Metric;

#[test]
fn changes_have_about_three_digits() {
    let check = |change, from, expected: &str| assert_eq!(percent(change, from), expected);
    check(0, 7, "0%");
    check(1, 1_000_000, "+0.00%");
    check(-15, 10_000, "-0.15%");
    check(-999, 10_000, "-9.99%");
    check(1_234, 10_000, "+12.3%");
    check(-10_000, 10_000, "-100%");
    check(9_900, 100, "+9,900%");
    assert_eq!([1_500, -35_000, 0].map(|us| Kind::Lag.signed(us)), ["+1.5ms", "-35ms", "0"]);
    assert_eq!([3_000, 3_140, 49, 1_234_567].map(|n| Kind::Count.text(n)), ["3", "3.1", "<0.1", "1,235"]);
    assert_eq!(Kind::Ratio.signed(1_054_999), "+1.05");
}

#[test]
fn every_dial_is_a_metric() {
    for (metric, aggregate, labelled) in DIALS {
        let metric = Metric::named(metric).expect("it is in the list");
        assert!(metric.aggregates().contains(&aggregate) && (!labelled || metric.label.is_some()));
    }
}
