//! A drawing as plain shapes on a canvas of 1600 x 900 units, in painting order.

/// The width of every picture.
pub(super) const WIDTH: f64 = 1600.0;
/// The height of every picture.
pub(super) const HEIGHT: f64 = 900.0;

/// A place on the canvas: right, then down.
pub(super) type Point = (f64, f64);

const WHITE: Ink = Ink(255, 255, 255);

/// Red, green, blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ink(pub(super) u8, pub(super) u8, pub(super) u8);

/// Something to paint.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shape {
    Line { points: Vec<Point>, ink: Ink, width: f64 },
    Fill { points: Vec<Point>, ink: Ink, opacity: f64 },
    Text { text: String, at: Point, size: f64, ink: Ink, bold: bool, anchor: Anchor },
}

/// Which end of a text is at its place; vertically it is always the middle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Left,
    Middle,
    Right,
}

/// What is painted.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Picture {
    /// What it shows, for those who cannot see it.
    pub(super) title: String,
    pub(super) shapes: Vec<Shape>,
    /// Painted over the shapes.
    pub(super) marks: Vec<Shape>,
}

impl Ink {
    /// Mixed with white: `share` of it remains.
    pub(super) fn lighter(self, share: f64) -> Self {
        let mix = |part: u8| (255.0 - (255.0 - f64::from(part)) * share).round() as u8;
        Self(mix(self.0), mix(self.1), mix(self.2))
    }
}

impl Picture {
    pub(super) fn new(title: String) -> Self {
        Self { title, shapes: Vec::new(), marks: Vec::new() }
    }

    /// A box that lets through what is under it.
    pub(super) fn veil(&mut self, (left, top): Point, (right, bottom): Point, ink: Ink) {
        let points = vec![(left, top), (right, top), (right, bottom), (left, bottom)];
        self.shapes.push(Shape::Fill { points, ink, opacity: 0.25 });
    }

    pub(super) fn line(&mut self, points: Vec<Point>, ink: Ink, width: f64) {
        if points.len() > 1 {
            self.shapes.push(Shape::Line { points, ink, width });
        }
    }

    /// A line of dashes: `on` units drawn, `off` units not.
    pub(super) fn dashed(&mut self, points: &[Point], ink: Ink, width: f64, (on, off): (f64, f64)) {
        let (mut dash, mut drawing, mut left) = (Vec::new(), true, on);
        for pair in points.windows(2) {
            let (mut from, to) = (pair[0], pair[1]);
            loop {
                if drawing && dash.is_empty() {
                    dash.push(from);
                }
                let length = (to.0 - from.0).hypot(to.1 - from.1);
                if length <= left {
                    left -= length;
                    if drawing {
                        dash.push(to);
                    }
                    break;
                }
                let share = left / length;
                from = (from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share);
                if drawing {
                    dash.push(from);
                    self.line(std::mem::take(&mut dash), ink, width);
                }
                drawing = !drawing;
                left = if drawing { on } else { off };
            }
        }
        self.line(dash, ink, width);
    }

    pub(super) fn text(&mut self, text: impl Into<String>, at: Point, size: f64, ink: Ink, anchor: Anchor) {
        self.shapes.push(Shape::Text { text: text.into(), at, size, ink, bold: false, anchor });
    }

    pub(super) fn bold(&mut self, text: impl Into<String>, at: Point, size: f64, ink: Ink) {
        self.shapes.push(Shape::Text { text: text.into(), at, size, ink, bold: true, anchor: Anchor::Left });
    }

    /// The `index`-th of five marks, with a white edge.
    pub(super) fn mark(&mut self, index: usize, at: Point, ink: Ink) {
        self.form(index, at, &[(2.0, WHITE), (0.0, ink)]);
    }

    /// The same in small; hollow for a lower bound.
    pub(super) fn dot(&mut self, index: usize, at: Point, ink: Ink, hollow: bool) {
        let inside = if hollow { WHITE } else { ink };
        self.form(index, at, &[(-1.0, WHITE), (-2.0, ink), (-4.0, inside)]);
    }

    /// The `index`-th of five forms, one over the other, each so much larger than usual.
    fn form(&mut self, index: usize, (x, y): Point, layers: &[(f64, Ink)]) {
        // Corners on a circle, from an angle: circle, square, triangle, diamond, triangle on its tip.
        const FORMS: [(u32, f64, f64); 5] =
            [(16, 0.0, 7.0), (4, 45.0, 8.5), (3, -90.0, 9.0), (4, 0.0, 8.5), (3, 90.0, 9.0)];
        let (corners, turn, radius) = FORMS[index % FORMS.len()];
        for (larger, ink) in layers {
            let radius = radius + larger;
            let corner = |k: u32| {
                let angle = (f64::from(k) * 360.0 / f64::from(corners) + turn).to_radians();
                (x + radius * angle.cos(), y + radius * angle.sin())
            };
            self.marks.push(Shape::Fill {
                points: (0..corners).map(corner).collect(),
                ink: *ink,
                opacity: 1.0,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_follow_the_line_around_corners() {
        let mut picture = Picture::new(String::new());
        picture.dashed(&[(0.0, 0.0), (4.0, 0.0), (4.0, 10.0)], Ink(0, 0, 0), 1.0, (6.0, 2.0));
        let lines: Vec<_> = picture
            .shapes
            .into_iter()
            .map(|shape| if let Shape::Line { points, .. } = shape { points } else { Vec::new() })
            .collect();
        assert_eq!(lines, [vec![(0.0, 0.0), (4.0, 0.0), (4.0, 2.0)], vec![(4.0, 4.0), (4.0, 10.0)]]);
    }
}
