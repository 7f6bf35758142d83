//! What all plots share: the frame, the legend, one look per design, and series that keep their gaps.

use crate::outcome::{Outcome, Report};

use super::super::human;
use super::axis::Axis;
use super::picture::{Anchor, Ink, Picture, Point, WIDTH};

/// How a design looks in every plot.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    pub(super) ink: Ink,
    pub(super) mark: usize,
}

/// A rectangle with two axes.
pub(super) struct Panel<'a> {
    pub(super) x: &'a Axis,
    pub(super) y: &'a Axis,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

/// A value over something, `None` where there is none, and whether it is a lower bound.
pub(super) struct Sample {
    pub(super) x: f64,
    pub(super) y: Option<f64>,
    pub(super) lower_bound: bool,
}

/// The picture with its title, what it is of, and a legend of `notes`, one per design.
pub(super) fn picture(report: &Report, title: &str, subtitle: &str, notes: &[String]) -> Picture {
    let scenario = &report.scenario;
    let mut picture = Picture { title: format!("{title}: {}", scenario.name), shapes: Vec::new() };
    picture.bold(title, (LEFT_EDGE, 44.0), 34.0, BLACK);
    let of = format!("{}, profile {}, seed {}. {subtitle}", scenario.name, scenario.profile, report.seed);
    picture.text(of, (LEFT_EDGE, 86.0), 22.0, GREY, Anchor::Left);
    // Legends of many designs are set closer.
    let pitch = (700.0 / report.designs.len().max(1) as f64).min(84.0);
    for (index, (design, note)) in report.designs.iter().zip(notes).enumerate() {
        let (look, y) = (look(index), TOP + 16.0 + index as f64 * pitch);
        picture.line(vec![(LEGEND, y), (LEGEND + 36.0, y)], look.ink, 4.0);
        picture.mark(look.mark, (LEGEND + 18.0, y), look.ink);
        picture.bold(human::elide(&design.name, 20), (LEGEND + 48.0, y), 21.0, BLACK);
        for (line, text) in note.lines().enumerate() {
            picture.text(text, (LEGEND + 48.0, y + 26.0 + line as f64 * 23.0), 19.0, GREY, Anchor::Left);
        }
    }
    picture
}

/// The designs with their looks, the worst by p99 lag first, so that the best is painted over it.
pub(super) fn worst_first(report: &Report) -> Vec<(Look, &Outcome)> {
    let mut designs: Vec<_> =
        report.designs.iter().enumerate().map(|(index, design)| (look(index), design)).collect();
    designs.sort_by_key(|(_, design)| std::cmp::Reverse(design.metrics.lag_us.p99));
    designs
}

fn look(index: usize) -> Look {
    Look { ink: INKS[index % INKS.len()], mark: index }
}

impl Panel<'_> {
    /// Grid, ticks and labels; `title` says what the y axis is.
    pub(super) fn frame(&self, picture: &mut Picture, title: &str, x_labels: bool) {
        for (value, label) in &self.y.ticks {
            let (_, y) = self.place(0.0, *value);
            if self.y.contains(*value) {
                picture.line(vec![(LEFT, y), (RIGHT, y)], GRID, 1.0);
                picture.text(label.as_str(), (LEFT - 14.0, y), 20.0, GREY, Anchor::Right);
            }
        }
        for (value, label) in &self.x.ticks {
            let (x, _) = self.place(*value, 0.0);
            picture.line(vec![(x, self.top), (x, self.bottom)], GRID, 1.0);
            if x_labels {
                picture.text(label.as_str(), (x, self.bottom + 24.0), 20.0, GREY, Anchor::Middle);
            }
        }
        picture.line(vec![(LEFT, self.bottom), (RIGHT, self.bottom)], GREY, 2.0);
        picture.bold(title, (LEFT, self.top - 20.0), 20.0, GREY);
    }

    pub(super) fn x_title(&self, picture: &mut Picture, title: &str) {
        picture.text(title, (RIGHT, self.bottom + 56.0), 20.0, GREY, Anchor::Right);
    }

    pub(super) fn place(&self, x: f64, y: f64) -> Point {
        let across = LEFT + self.x.position(x) * (RIGHT - LEFT);
        (across, self.bottom - self.y.position(y) * (self.bottom - self.top))
    }

    /// A line through the samples: gaps stay gaps, lower bounds are lighter and dashed, and a few marks tell designs
    /// apart without their colour.
    pub(super) fn series(&self, picture: &mut Picture, look: Look, samples: impl Iterator<Item = Sample>) {
        let mut runs: Vec<(bool, Vec<Point>)> = Vec::new();
        let mut gap = true;
        for sample in samples {
            let Some(y) = sample.y else {
                gap = true;
                continue;
            };
            let point = self.place(sample.x, y);
            match runs.last_mut() {
                Some((lower_bound, points)) if !gap && *lower_bound == sample.lower_bound => {
                    points.push(point)
                }
                Some((_, points)) if !gap => {
                    let joint = points[points.len() - 1];
                    runs.push((sample.lower_bound, vec![joint, point]));
                }
                _ => runs.push((sample.lower_bound, vec![point])),
            }
            gap = false;
        }
        for (lower_bound, points) in &runs {
            match (points.as_slice(), lower_bound) {
                // A sample between two gaps.
                ([(x, y)], _) => picture.line(vec![(x - 1.5, *y), (x + 1.5, *y)], look.ink, 3.0),
                (points, true) => picture.dashed(points, look.ink.lighter(0.65), 2.5, (9.0, 6.0)),
                (points, false) => picture.line(points.to_vec(), look.ink, 2.0),
            }
        }
        self.marks(picture, look, runs.iter().flat_map(|(_, points)| points.iter().copied()));
    }

    /// Marks on samples, some way apart; each design begins elsewhere.
    fn marks(&self, picture: &mut Picture, look: Look, points: impl Iterator<Item = Point>) {
        let mut next = LEFT + 20.0 + (look.mark % INKS.len()) as f64 * MARK_PITCH / INKS.len() as f64;
        for point in points {
            if point.0 >= next {
                picture.mark(look.mark, point, look.ink);
                while next <= point.0 {
                    next += MARK_PITCH;
                }
            }
        }
    }
}

const LEFT_EDGE: f64 = 36.0;
const LEFT: f64 = 130.0;
const RIGHT: f64 = 1270.0;
const LEGEND: f64 = WIDTH - 300.0;
/// Where panels begin and end.
pub(super) const TOP: f64 = 158.0;
/// See [`TOP`].
pub(super) const BOTTOM: f64 = 815.0;
const MARK_PITCH: f64 = 210.0;

const BLACK: Ink = Ink(34, 34, 34);
pub(super) const GREY: Ink = Ink(95, 95, 95);
const GRID: Ink = Ink(228, 228, 228);

/// Okabe and Ito's palette, which the colour-blind can tell apart (https://jfly.uni-koeln.de/color/), without its
/// yellow, which is too pale on white.
const INKS: [Ink; 7] = [
    Ink(213, 94, 0),
    Ink(0, 114, 178),
    Ink(230, 159, 0),
    Ink(0, 158, 115),
    Ink(204, 121, 167),
    Ink(86, 180, 233),
    Ink(0, 0, 0),
];
