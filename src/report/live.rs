//! What real time brought, as text: nothing for a simulation.

use crate::outcome::{Live, LiveCalls, LiveStore, Outcome, Report};

use super::human;

/// One line on the server, then one for each design that real time has told something about.
pub(super) fn lines(report: &Report) -> Vec<String> {
    let designs: Vec<(&Outcome, &Live)> =
        report.designs.iter().filter_map(|design| Some((design, design.live.as_ref()?))).collect();
    let Some((_, first)) = designs.first() else { return Vec::new() };
    let server = first.server.as_deref().unwrap_or("another server");
    let mut lines = vec![format!("real time, over HTTP: {} ({server})", first.url)];
    if !first.told_truth {
        lines.push(
            "the server tells no truth: its answers are taken for it, and each 429 counts for the first limit"
                .to_owned(),
        );
    }
    lines.extend(designs.into_iter().map(|(design, live)| line(&design.name, live)));
    lines
}

fn line(name: &str, Live { interrupted_us, late_us, calls, store, .. }: &Live) -> String {
    let mut line = format!(
        "{name}: things ran up to {} late, 99% of them at most {}",
        human::lag(late_us.max),
        human::lag(late_us.p99)
    );
    let LiveCalls { unconnected, unsent, lost, timed_out, .. } = *calls;
    for (count, what) in [
        (unconnected, "calls without a connection"),
        (unsent, "not sent"),
        (lost, "cut off after they were sent"),
        (timed_out, "timed out after they were sent"),
    ] {
        if count > 0 {
            line += &format!("; {} {what}", human::count(count));
        }
    }
    if let Some(LiveStore { missing, silent }) = store {
        if *missing > 0 {
            line += &format!("; {} lost that should be in the store", human::count(*missing));
        }
        if let Some(why) = silent {
            line +=
                &format!("; what should be in the store counts as pending, since nobody could look ({why})");
        }
    }
    if let Some(at) = interrupted_us {
        line += &format!("; interrupted after {}", human::lag(*at));
    }
    line
}
