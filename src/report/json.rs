//! `report.json`: the result as it is.

use crate::outcome::Report;

/// The report as pretty JSON, keys in the order of the types, with a newline at the end.
pub fn json(report: &Report) -> String {
    let mut text = serde_json::to_string_pretty(report).expect("a report is plain data with texts as keys");
    text.push('\n');
    text
}
