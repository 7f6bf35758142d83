//! Numbers as people read them. Rounded: what decides is elsewhere.

/// Microseconds in about three digits: `35ms`, `1.2s`, `3m12s`, `3h12m`, `2d03h`.
pub(super) fn lag(us: u64) -> String {
    // Each branch ends where rounding would give the next one's first value.
    match us {
        0 => "0ms".to_owned(),
        ..9_950 => format!("{}ms", tenths(us, 1_000)),
        ..999_500 => format!("{}ms", rounded(us, 1_000)),
        ..9_950_000 => format!("{}s", tenths(us, 1_000_000)),
        ..59_500_000 => format!("{}s", rounded(us, 1_000_000)),
        ..3_599_500_000 => two(rounded(us, 1_000_000), 60, "m", "s"),
        ..86_370_000_000 => two(rounded(us, 60_000_000), 60, "h", "m"),
        _ => two(rounded(us, 3_600_000_000), 24, "d", "h"),
    }
}

/// A lag that may be missing, or larger in truth (`≥`).
pub(super) fn bounded_lag(us: Option<u64>, lower_bound: bool) -> String {
    match us {
        None => "-".to_owned(),
        Some(us) if lower_bound => format!("≥{}", lag(us)),
        Some(us) => lag(us),
    }
}

/// A whole number in groups of three digits: `310,000`.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A part of a whole in per cent. Never rounded to none or to all of it: `<0.01%`, `>99.99%`.
pub(super) fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    let hundredths = rounded_wide(u128::from(part) * 10_000, whole.into());
    match hundredths {
        0 if part > 0 => "<0.01%".to_owned(),
        10_000 if part < whole => ">99.99%".to_owned(),
        0 => "0%".to_owned(),
        10_000 => "100%".to_owned(),
        ..1_000 => format!("{}.{:02}%", hundredths / 100, hundredths % 100),
        // Beyond 99 % the second decimal is the news.
        9_900.. if part <= whole => format!("{}.{:02}%", hundredths / 100, hundredths % 100),
        _ => {
            let tenths = rounded_wide(u128::from(part) * 1_000, whole.into());
            format!("{}.{}%", tenths / 10, tenths % 10)
        }
    }
}

/// Millionths as a ratio with two decimals: `1.05`.
pub(super) fn ratio(ppm: u64) -> String {
    let hundredths = rounded(ppm, 10_000);
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// A length of time in words: `1 day`, `1 day 2 h`, `90 min`, `45 s`.
pub(super) fn span(us: u64) -> String {
    let seconds = us / 1_000_000;
    let (days, hours, minutes) = (seconds / 86_400, seconds % 86_400 / 3_600, seconds % 3_600 / 60);
    let mut parts = Vec::new();
    match days {
        0 => {}
        1 => parts.push("1 day".to_owned()),
        _ => parts.push(format!("{days} days")),
    }
    for (number, unit) in [(hours, "h"), (minutes, "min"), (seconds % 60, "s")] {
        if number > 0 {
            parts.push(format!("{number} {unit}"));
        }
    }
    if parts.is_empty() {
        parts.push(format!("{} ms", us / 1_000));
    }
    parts.join(" ")
}

/// At most `length` characters, the rest as `…`.
pub(super) fn elide(text: &str, length: usize) -> String {
    if text.chars().count() <= length {
        return text.to_owned();
    }
    text.chars().take(length - 1).chain(['…']).collect()
}

fn rounded(value: u64, unit: u64) -> u64 {
    rounded_wide(value.into(), unit.into()) as u64
}

fn rounded_wide(value: u128, unit: u128) -> u128 {
    (value + unit / 2) / unit
}

fn tenths(value: u64, unit: u64) -> String {
    let tenths = rounded(value, unit / 10);
    format!("{}.{}", tenths / 10, tenths % 10)
}

fn two(small: u64, per: u64, large_unit: &str, small_unit: &str) -> String {
    format!("{}{large_unit}{:02}{small_unit}", small / per, small % per)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lag_has_about_three_digits() {
        let check = |us, expected: &str| assert_eq!(lag(us), expected, "{us} us");
        check(0, "0ms");
        check(40, "0.0ms");
        check(4_240, "4.2ms");
        check(9_950, "10ms");
        check(35_400, "35ms");
        check(999_499, "999ms");
        check(999_500, "1.0s");
        check(1_240_000, "1.2s");
        check(9_950_000, "10s");
        check(59_499_999, "59s");
        check(59_500_000, "1m00s");
        check(192_000_000, "3m12s");
        check(3_599_499_999, "59m59s");
        check(3_599_500_000, "1h00m");
        check(11_520_000_000, "3h12m");
        check(86_369_999_999, "23h59m");
        check(86_370_000_000, "1d00h");
        check(183_600_000_000, "2d03h");
        assert_eq!(bounded_lag(Some(11_520_000_000), true), "≥3h12m");
        assert_eq!(bounded_lag(None, false), "-");
    }

    #[test]
    fn a_share_is_none_or_all_only_if_it_is() {
        let check =
            |part, whole, expected: &str| assert_eq!(share(part, whole), expected, "{part} of {whole}");
        check(0, 5, "0%");
        check(5, 5, "100%");
        check(1, 1_000_000, "<0.01%");
        check(999_999, 1_000_000, ">99.99%");
        check(998, 1_000, "99.80%");
        check(15, 1_000, "1.50%");
        check(700_000, 1_000_000, "70.0%");
        check(12, 10, "120.0%");
        check(1, 0, "-");
    }

    #[test]
    fn counts_spans_and_ratios() {
        assert_eq!(
            ["0", "999", "1,000", "1,234,567"],
            [0, 999, 1_000, 1_234_567].map(count).each_ref().map(String::as_str)
        );
        assert_eq!(span(86_400_000_000), "1 day");
        assert_eq!(span(93_600_000_000), "1 day 2 h");
        assert_eq!(span(5_445_000_000), "1 h 30 min 45 s");
        assert_eq!(span(250_000), "250 ms");
        assert_eq!(ratio(1_054_999), "1.05");
        assert_eq!(elide("single-process-scheduler-with-lanes", 12), "single-proc…");
    }
}
