//! `report.json`: the result as it is.

use serde::Serialize;

/// A report, or another result, as pretty JSON, keys in the order of the types, with a newline at the end.
pub fn json(result: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(result).expect("results are plain data with texts as keys");
    text.push('\n');
    text
}
