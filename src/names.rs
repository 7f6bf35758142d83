//! "Did you mean": what an error about an unknown name adds.

/// How the error goes on: the nearest of the `known` names, or all of them if none is near.
pub(crate) fn hint<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let distances = known.iter().map(|known| (strsim::damerau_levenshtein(name, known), *known));
    match distances.min().filter(|(distance, known)| *distance <= known.chars().count().max(3) / 3) {
        Some((_, nearest)) => format!("; did you mean `{nearest}`?"),
        None if known.is_empty() => "; there are none".to_owned(),
        None if known.len() == 1 => format!("; there is only `{}`", known[0]),
        None => format!("; known are {}", known.join(", ")),
    }
}
