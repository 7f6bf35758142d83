//! A drawing as plain shapes on a canvas of 1600 x 900 units, in painting order.

/// The width of every picture.
pub(super) const WIDTH: f64 = 1600.0;
/// The height of every picture.
pub(super) const HEIGHT: f64 = 900.0;

/// A place on the canvas: right, then down.
pub(super) type Point = (f64, f64);

/// Red, green, blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ink(pub(super) u8, pub(super) u8, pub(super) u8);

/// Something to paint.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shape {
    Line { points: Vec<Point>, ink: Ink, width: f64 },
    Fill { points: Vec<Point>, ink: Ink },
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
}

impl Ink {
    /// Mixed with white: `share` of it remains.
    pub(super) fn lighter(self, share: f64) -> Self {
        let mix = |part: u8| (255.0 - (255.0 - f64::from(part)) * share).round() as u8;
        Self(mix(self.0), mix(self.1), mix(self.2))
    }
}

impl Picture {
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
    pub(super) fn mark(&mut self, index: usize, (x, y): Point, ink: Ink) {
        // Corners on a circle, from an angle: circle, square, triangle, diamond, triangle on its tip.
        const FORMS: [(u32, f64, f64); 5] =
            [(16, 0.0, 7.0), (4, 45.0, 8.5), (3, -90.0, 9.0), (4, 0.0, 8.5), (3, 90.0, 9.0)];
        let (corners, turn, radius) = FORMS[index % FORMS.len()];
        for (radius, ink) in [(radius + 2.0, Ink(255, 255, 255)), (radius, ink)] {
            let corner = |k: u32| {
                let angle = (f64::from(k) * 360.0 / f64::from(corners) + turn).to_radians();
                (x + radius * angle.cos(), y + radius * angle.sin())
            };
            self.shapes.push(Shape::Fill { points: (0..corners).map(corner).collect(), ink });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_follow_the_line_around_corners() {
        let mut picture = Picture { title: String::new(), shapes: Vec::new() };
        picture.dashed(&[(0.0, 0.0), (4.0, 0.0), (4.0, 10.0)], Ink(0, 0, 0), 1.0, (6.0, 2.0));
        let lines: Vec<_> = picture
            .shapes
            .into_iter()
            .map(|shape| if let Shape::Line { points, .. } = shape { points } else { Vec::new() })
            .collect();
        assert_eq!(lines, [vec![(0.0, 0.0), (4.0, 0.0), (4.0, 2.0)], vec![(4.0, 4.0), (4.0, 10.0)]]);
    }
}
