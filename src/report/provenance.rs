//! What a report is of: designs and seeds, as text.

use crate::outcome::Report;

/// The names of all designs that were to run: those with a result, then those without.
pub(super) fn designs(report: &Report) -> Vec<&str> {
    let mut names: Vec<&str> = report.designs.iter().map(|design| design.name.as_str()).collect();
    for unfinished in &report.unfinished {
        if !names.contains(&unfinished.design.as_str()) {
            names.push(&unfinished.design);
        }
    }
    names
}

/// `seed 1`, `20 seeds (1 to 20)`, `3 seeds (1, 5, 9)`.
pub(super) fn seeds(seeds: &[u64]) -> String {
    match seeds {
        [seed] => format!("seed {seed}"),
        [first, .., last] if seeds.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1])) => {
            format!("{} seeds ({first} to {last})", seeds.len())
        }
        _ => {
            let list: Vec<_> = seeds.iter().take(8).map(u64::to_string).collect();
            let more = if seeds.len() > 8 { ", …" } else { "" };
            format!("{} seeds ({}{more})", seeds.len(), list.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_that_follow_one_another_are_a_range() {
        let check = |list: &[u64], expected: &str| assert_eq!(seeds(list), expected);
        check(&[7], "seed 7");
        check(&[1, 2, 3], "3 seeds (1 to 3)");
        check(&[2, 1], "2 seeds (2, 1)");
        check(&[1, 3, 5, 7, 9, 11, 13, 15, 17], "9 seeds (1, 3, 5, 7, 9, 11, 13, 15, …)");
        check(&[u64::MAX, 0], "2 seeds (18446744073709551615, 0)");
    }
}
