//! From shapes to bytes, by plotters. The fonts come with the program, so that every machine paints the same.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontStyle, register_font};

use super::picture::{Anchor, HEIGHT, Ink, Picture, Shape, WIDTH};

/// The picture as an SVG document.
pub(super) fn svg(picture: &Picture) -> String {
    let mut text = String::new();
    {
        let backend = SVGBackend::with_string(&mut text, (WIDTH as u32, HEIGHT as u32));
        paint(picture, backend, Lines::Whole, 1.0);
    }
    // What plotters has no words for: joins without spikes, and a title for those who cannot see it.
    let title = picture.title.replace('&', "&amp;").replace('<', "&lt;");
    let root = "<svg role=\"img\" stroke-linejoin=\"round\" stroke-linecap=\"round\" ";
    let text = text.replacen("<svg ", root, 1);
    match text.split_once(">\n") {
        Some((head, body)) => format!("{head}>\n<title>{title}</title>\n{body}"),
        None => text,
    }
}

/// The picture as a PNG of 1600 x 900 pixels, each the mean of four.
pub(super) fn png(picture: &Picture) -> Vec<u8> {
    let (width, height) = (WIDTH as usize, HEIGHT as usize);
    let mut fine = vec![255; width * height * 3 * 4];
    paint(
        picture,
        BitMapBackend::with_buffer(&mut fine, (width as u32 * 2, height as u32 * 2)),
        Lines::BySegment,
        2.0,
    );
    let mut pixels = Vec::with_capacity(width * height * 3);
    for y in 0..height {
        for x in 0..width {
            for channel in 0..3 {
                let at = |dx, dy| u32::from(fine[((2 * y + dy) * width * 2 + 2 * x + dx) * 3 + channel]);
                pixels.push(((at(0, 0) + at(1, 0) + at(0, 1) + at(1, 1) + 2) / 4) as u8);
            }
        }
    }
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width as u32, height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_compression(png::Compression::Best);
    let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(&pixels));
    written.expect("a picture in memory has the size that it says");
    bytes
}

/// How lines are handed to the backend.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lines {
    Whole,
    /// The bitmap backend turns a whole line into one polygon, which gets spikes at sharp angles.
    BySegment,
}

fn paint<B: DrawingBackend>(picture: &Picture, backend: B, lines: Lines, scale: f64) {
    let fonts = [(FontStyle::Normal, REGULAR), (FontStyle::Bold, BOLD)];
    for (style, bytes) in fonts {
        assert!(register_font(FAMILY, style, bytes).is_ok(), "the fonts that come with us are fonts");
    }
    let area = backend.into_drawing_area();
    let place = |(x, y): (f64, f64)| ((x * scale).round() as i32, (y * scale).round() as i32);
    let colour = |Ink(red, green, blue)| RGBColor(red, green, blue);
    let painted = || -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
        area.fill(&WHITE)?;
        for shape in &picture.shapes {
            match shape {
                Shape::Line { points, ink, width } => {
                    let style = colour(*ink).stroke_width((width * scale).round().max(1.0) as u32);
                    let points: Vec<_> = points.iter().copied().map(place).collect();
                    match lines {
                        Lines::Whole => area.draw(&PathElement::new(points, style))?,
                        Lines::BySegment => {
                            for pair in points.windows(2).filter(|pair| pair[0] != pair[1]) {
                                area.draw(&PathElement::new(pair.to_vec(), style))?;
                            }
                        }
                    }
                }
                Shape::Fill { points, ink } => {
                    let points: Vec<_> = points.iter().copied().map(place).collect();
                    area.draw(&Polygon::new(points, colour(*ink).filled()))?;
                }
                Shape::Text { text, at, size, ink, bold, anchor } => {
                    let weight = if *bold { FontStyle::Bold } else { FontStyle::Normal };
                    let font = FontDesc::new(FontFamily::Name(FAMILY), size * scale, weight);
                    let across = match anchor {
                        Anchor::Left => HPos::Left,
                        Anchor::Middle => HPos::Center,
                        Anchor::Right => HPos::Right,
                    };
                    let ink = colour(*ink);
                    let style = TextStyle::from(font).color(&ink).pos(Pos::new(across, VPos::Center));
                    area.draw(&Text::new(text.as_str(), place(*at), style))?;
                }
            }
        }
        area.present()
    };
    painted().unwrap_or_else(|error| panic!("painting into memory cannot fail: {error}"));
}

/// The name of our font, and for an SVG elsewhere those that are like it.
const FAMILY: &str = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif";
const REGULAR: &[u8] = include_bytes!("../../../assets/fonts/DejaVuSans.ttf");
const BOLD: &[u8] = include_bytes!("../../../assets/fonts/DejaVuSans-Bold.ttf");
