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

/// Which of the samples in a column of the picture the line goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Through {
    /// The middle one; a veil spans all of them.
    Middle,
    /// The largest, as in a series whose points are maxima already.
    Largest,
}

/// The samples in one column of the picture, at least one.
struct Column {
    left: f64,
    samples: Vec<(Point, bool)>,
}

impl Column {
    fn pick(&self, through: Through) -> (Point, bool) {
        let at = match through {
            Through::Middle => self.samples.len() / 2,
            Through::Largest => self.samples.len() - 1,
        };
        let ((_, y), lower_bound) = self.samples[at];
        match self.samples.as_slice() {
            [(point, _)] => (*point, lower_bound),
            _ => ((self.left + COLUMN / 2.0, y), lower_bound),
        }
    }
}

/// The picture with its title, what it is of, and a legend of `notes`, one per design.
pub(super) fn picture(report: &Report, title: &str, subtitle: &str, notes: &[String]) -> Picture {
    let scenario = &report.scenario;
    let mut picture = Picture::new(format!("{title}: {}", scenario.name));
    picture.bold(title, (LEFT_EDGE, 44.0), 34.0, BLACK);
    let of = format!("{}, profile {}, seed {}. {subtitle}", scenario.name, scenario.profile, report.seed);
    picture.text(of, (LEFT_EDGE, 86.0), 22.0, GREY, Anchor::Left);
    // Legends of many designs are set closer.
    let pitch = (700.0 / report.designs.len().max(1) as f64).min(100.0);
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

    /// Samples as a line: gaps stay gaps, what stands between two of them is a dot, lower bounds are lighter and dashed
    /// (dots: hollow), and a few marks tell designs apart
    /// without their colour. Where several samples share a column of the picture, the line goes through one of them,
    /// as `through` says.
    pub(super) fn series(
        &self,
        picture: &mut Picture,
        look: Look,
        through: Through,
        samples: impl Iterator<Item = Sample>,
    ) {
        let runs = self.columns(samples);
        if through == Through::Middle {
            for column in runs.iter().flatten().filter(|column| column.samples.len() > 1) {
                let (low, high) = (column.samples[0].0.1, column.samples[column.samples.len() - 1].0.1);
                picture.veil((column.left, high - 0.5), (column.left + COLUMN, low + 0.5), look.ink);
            }
        }
        for run in &runs {
            let points: Vec<(Point, bool)> = run.iter().map(|column| column.pick(through)).collect();
            if let [(point, lower_bound)] = points.as_slice() {
                // A sample between two gaps: no line would show it.
                picture.dot(look.mark, *point, look.ink, *lower_bound);
            }
            // Stretches of segments of one kind: those that touch a lower bound, and the others.
            let kinds: Vec<bool> = points.windows(2).map(|pair| pair[0].1 || pair[1].1).collect();
            let mut start = 0;
            for kind in kinds.chunk_by(bool::eq) {
                let stretch: Vec<Point> =
                    points[start..=start + kind.len()].iter().map(|(point, _)| *point).collect();
                if kind[0] {
                    picture.dashed(&stretch, look.ink.lighter(0.65), 2.5, (9.0, 6.0));
                } else {
                    picture.line(stretch, look.ink, 2.0);
                }
                start += kind.len();
            }
        }
        let lines = runs.iter().filter(|run| run.len() > 1).flatten();
        self.marks(picture, look, lines.map(|column| column.pick(through).0));
    }

    /// The samples by column of the picture, parted at gaps; those of a column from the least to the largest. Few
    /// samples have a column each.
    fn columns(&self, samples: impl Iterator<Item = Sample>) -> Vec<Vec<Column>> {
        let samples: Vec<_> = samples.collect();
        let crowded = samples.len() as f64 * COLUMN > 2.0 * (RIGHT - LEFT);
        let mut runs = Vec::new();
        for run in samples.split(|sample| sample.y.is_none()).filter(|run| !run.is_empty()) {
            let mut columns: Vec<Column> = Vec::new();
            for sample in run {
                let point = self.place(sample.x, sample.y.expect("runs are parted at gaps"));
                let left = LEFT + ((point.0 - LEFT) / COLUMN).floor() * COLUMN;
                match columns.last_mut() {
                    Some(column) if crowded && column.left == left => {
                        column.samples.push((point, sample.lower_bound))
                    }
                    _ => columns.push(Column { left, samples: vec![(point, sample.lower_bound)] }),
                }
            }
            for column in &mut columns {
                // Down is larger on the canvas.
                column.samples.sort_by(|(one, _), (other, _)| other.1.total_cmp(&one.1));
            }
            runs.push(columns);
        }
        runs
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
/// The width of a column; whole units, so that veils have no seams.
const COLUMN: f64 = 5.0;
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

#[cfg(test)]
mod tests {
    use super::super::picture::Shape;
    use super::*;

    /// A series with these values and lower bounds.
    fn drawn(samples: &[(Option<u32>, bool)]) -> Picture {
        let (x, y) = (Axis::time(10_000_000), Axis::count(10));
        let panel = Panel { x: &x, y: &y, top: TOP, bottom: BOTTOM };
        let mut picture = Picture::new(String::new());
        let samples = samples.iter().enumerate().map(|(index, (y, lower_bound))| Sample {
            x: index as f64 * 1e6,
            y: y.map(f64::from),
            lower_bound: *lower_bound,
        });
        panel.series(&mut picture, look(0), Through::Largest, samples);
        picture
    }

    /// How many points each line has.
    fn lines(samples: &[(Option<u32>, bool)]) -> Vec<usize> {
        let line = |shape: &Shape| match shape {
            Shape::Line { points, ink, .. } if *ink == look(0).ink => Some(points.len()),
            _ => None,
        };
        drawn(samples).shapes.iter().filter_map(line).collect()
    }

    #[test]
    fn a_gap_parts_a_line_and_a_lone_sample_shows() {
        let (some, none) = ((Some(3), false), (None, false));
        assert_eq!(lines(&[some, some, some, none, some, some]), [3, 2]);
        // The inks of what is drawn there, of a sample alone.
        let inks = |lower_bound| {
            let ink = |shape: &Shape| match shape {
                Shape::Fill { ink, .. } => Some(*ink),
                _ => None,
            };
            let lone = drawn(&[none, (Some(3), lower_bound), none]);
            assert!(lone.shapes.is_empty(), "no line");
            lone.marks.iter().filter_map(ink).collect::<Vec<_>>()
        };
        let (white, ink) = (Ink(255, 255, 255), look(0).ink);
        assert_eq!(inks(false), [white, ink, ink]);
        assert_eq!(inks(true), [white, ink, white], "hollow");
        let dots = drawn(&[none, some, none, some, none, some, none]).marks.len();
        assert_eq!(dots, 3 * inks(false).len(), "each of three, however near");
    }

    #[test]
    fn no_solid_line_touches_a_lower_bound() {
        let (exact, bound) = ((Some(3), false), (Some(9), true));
        assert_eq!(lines(&[exact, exact, bound, exact, exact, exact, bound]), [2, 3]);
    }
}
