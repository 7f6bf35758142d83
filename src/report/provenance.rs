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

/// The seeds of the run: `1`, `1..20`, `1, 5, 9`, `3, 1, 4, … (12)`.
pub(super) fn seeds(report: &Report) -> String {
    match &report.replications {
        None => report.seed.to_string(),
        Some(replications) => listed(&replications.seeds),
    }
}

/// The same with a noun: `seed 1`, `seeds 1..20`.
pub(super) fn seeds_named(report: &Report) -> String {
    let several = report.replications.as_ref().is_some_and(|replications| replications.seeds.len() > 1);
    format!("{} {}", if several { "seeds" } else { "seed" }, seeds(report))
}

/// Seeds as `--seeds` takes them where they follow one another; at most six of others.
pub(super) fn listed(seeds: &[u64]) -> String {
    const SHOWN: usize = 6;
    let follow = seeds.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]));
    if let ([first, _, .., last], true) = (seeds, follow) {
        return format!("{first}..{last}");
    }
    let shown: Vec<String> = seeds.iter().take(SHOWN).map(u64::to_string).collect();
    let rest = if seeds.len() > SHOWN { format!(", … ({})", seeds.len()) } else { String::new() };
    format!("{}{rest}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_that_follow_one_another_are_a_range() {
        let check = |seeds: &[u64], expected: &str| assert_eq!(listed(seeds), expected);
        check(&[7], "7");
        check(&[1, 2], "1..2");
        check(&[1, 2, 3, 4], "1..4");
        check(&[2, 1], "2, 1");
        check(&[1, 3, 5, 7, 9, 11, 13], "1, 3, 5, 7, 9, 11, … (7)");
        check(&[u64::MAX, 0], "18446744073709551615, 0");
    }
}
