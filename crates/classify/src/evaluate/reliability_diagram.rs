//! Reliability diagram as SVG.
//!
//! The SVG is self-contained: no style sheet, no script, no embedded font. It has a white background, so that it looks
//! the same on a dark page.

use std::fmt::Write;

use super::{Bin, Calibration};

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 600.0;

/// The upper panel shows accuracy over confidence, the lower one the number of texts per bin.
const ACCURACY: Panel = Panel { left: 64.0, top: 64.0, width: 384.0, height: 384.0 };
const COUNTS: Panel = Panel { left: 64.0, top: 484.0, width: 384.0, height: 64.0 };

const INK: &str = "#24292f";
const FAINT: &str = "#8c959f";
const GRID: &str = "#e4e7eb";
const BAR: &str = "#4c8bd6";
const GAP: &str = "#d1495b";

/// Title length that fits above the diagram.
const MAX_TITLE_CHARS: usize = 56;

/// The diagram as a complete SVG file. The title is escaped, and truncated if it would not fit.
pub fn svg(calibration: &Calibration, title: &str) -> String {
    let texts: usize = calibration.bins.iter().map(|bin| bin.count).sum();
    let summary = match calibration.error {
        Some(error) => format!("Expected calibration error {:.2} %, {texts} texts", 100.0 * error),
        None => "No texts in scope".to_owned(),
    };
    let mut drawing = Drawing { svg: String::new() };
    drawing.text(WIDTH / 2.0, 26.0, "middle", 15, &truncate_title(title));
    drawing.text(WIDTH / 2.0, 46.0, "middle", 12, &summary);
    draw_accuracy(&mut drawing, &calibration.bins);
    draw_counts(&mut drawing, &calibration.bins);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
         height=\"{HEIGHT}\" font-family=\"sans-serif\">\n<title>{}. {summary}</title>\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n{}</svg>\n",
        escaped(title),
        drawing.svg
    )
}

fn draw_accuracy(drawing: &mut Drawing, bins: &[Bin]) {
    let panel = &ACCURACY;
    for tick in 0..=5 {
        let share = f64::from(tick) / 5.0;
        let (x, y) = (panel.x(share), panel.y(share));
        drawing.line((panel.left, y), (panel.x(1.0), y), GRID);
        drawing.line((x, panel.y(0.0)), (x, panel.y(0.0) + 4.0), INK);
        drawing.line((panel.left - 4.0, y), (panel.left, y), INK);
        drawing.text(x, panel.y(0.0) + 17.0, "middle", 11, &format!("{share:.1}"));
        drawing.text(panel.left - 8.0, y + 4.0, "end", 11, &format!("{share:.1}"));
    }
    for bin in bins {
        let (Some(accuracy), Some(confidence)) = (bin.accuracy, bin.confidence) else { continue };
        let about = format!(
            "Confidence {:.2} to {:.2}: {} texts, accuracy {:.1} %, mean confidence {:.1} %",
            bin.lower,
            bin.upper,
            bin.count,
            100.0 * accuracy,
            100.0 * confidence
        );
        drawing.bar(panel.column(bin, 0.0, accuracy), BAR, 1.0, &about);
        let gap = panel.column(bin, accuracy.min(confidence), accuracy.max(confidence));
        drawing.bar(gap, GAP, 0.35, &about);
        // Marks the accuracy even if the gap has no height.
        let (left, right, y) = (gap.left, gap.left + gap.width, panel.y(accuracy));
        drawing.line((left, y), (right, y), INK);
    }
    drawing.dashed_line((panel.x(0.0), panel.y(0.0)), (panel.x(1.0), panel.y(1.0)));
    draw_axes(drawing, panel);
    drawing.rotated_text(20.0, panel.y(0.5), "Accuracy");
    draw_legend(drawing);
}

/// Drawn in the upper left, where the bars of a useful classifier are low.
fn draw_legend(drawing: &mut Drawing) {
    let (left, top) = (ACCURACY.left + 12.0, ACCURACY.top + 10.0);
    drawing.rect(Panel { left: left - 4.0, top: top - 4.0, width: 158.0, height: 56.0 }, "#ffffff", 0.85);
    drawing.rect(Panel { left, top, width: 14.0, height: 10.0 }, BAR, 1.0);
    drawing.text(left + 20.0, top + 9.0, "start", 11, "accuracy");
    drawing.rect(Panel { left, top: top + 17.0, width: 14.0, height: 10.0 }, GAP, 0.35);
    drawing.text(left + 20.0, top + 26.0, "start", 11, "gap to mean confidence");
    drawing.dashed_line((left, top + 39.0), (left + 14.0, top + 39.0));
    drawing.text(left + 20.0, top + 43.0, "start", 11, "perfect calibration");
}

fn draw_counts(drawing: &mut Drawing, bins: &[Bin]) {
    let panel = &COUNTS;
    let most = bins.iter().map(|bin| bin.count).max().unwrap_or(0);
    for bin in bins.iter().filter(|bin| bin.count > 0) {
        let about = format!("Confidence {:.2} to {:.2}: {} texts", bin.lower, bin.upper, bin.count);
        drawing.bar(panel.column(bin, 0.0, bin.count as f64 / most as f64), FAINT, 1.0, &about);
    }
    draw_axes(drawing, panel);
    drawing.text(panel.left - 8.0, panel.y(0.0) + 4.0, "end", 11, "0");
    if most > 0 {
        drawing.text(panel.left - 8.0, panel.y(1.0) + 4.0, "end", 11, &most.to_string());
    }
    drawing.rotated_text(20.0, panel.y(0.5), "Texts");
    drawing.text(panel.x(0.5), HEIGHT - 24.0, "middle", 12, "Confidence");
}

fn draw_axes(drawing: &mut Drawing, panel: &Panel) {
    let origin = (panel.x(0.0), panel.y(0.0));
    drawing.line(origin, (panel.x(1.0), panel.y(0.0)), INK);
    drawing.line(origin, (panel.x(0.0), panel.y(1.0)), INK);
}

/// A region of the diagram; its coordinates run from 0 to 1, rightwards and upwards.
#[derive(Clone, Copy)]
struct Panel {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

impl Panel {
    fn x(&self, share: f64) -> f64 {
        self.left + self.width * share
    }

    fn y(&self, share: f64) -> f64 {
        self.top + self.height * (1.0 - share)
    }

    /// A bar as wide as its bin, minus a small margin.
    fn column(&self, bin: &Bin, from: f64, to: f64) -> Panel {
        let (left, right) = (self.x(bin.lower) + 1.0, self.x(bin.upper) - 1.0);
        Panel { left, top: self.y(to), width: right - left, height: self.y(from) - self.y(to) }
    }
}

struct Drawing {
    svg: String,
}

impl Drawing {
    fn rect(&mut self, place: Panel, fill: &str, opacity: f64) {
        self.add(format_args!("<rect {} fill=\"{fill}\" fill-opacity=\"{opacity}\"/>", attributes(place)));
    }

    /// A rectangle with a tooltip.
    fn bar(&mut self, place: Panel, fill: &str, opacity: f64, about: &str) {
        self.add(format_args!(
            "<rect {} fill=\"{fill}\" fill-opacity=\"{opacity}\"><title>{}</title></rect>",
            attributes(place),
            escaped(about)
        ));
    }

    fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), stroke: &str) {
        self.add(format_args!(
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{stroke}\"/>"
        ));
    }

    fn dashed_line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        self.add(format_args!(
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{INK}\" \
             stroke-dasharray=\"5 4\"/>"
        ));
    }

    fn text(&mut self, x: f64, y: f64, anchor: &str, size: u32, text: &str) {
        self.add(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\" fill=\"{INK}\">{}</text>",
            escaped(text)
        ));
    }

    /// Label of a vertical axis, rotated to read from bottom to top.
    fn rotated_text(&mut self, x: f64, y: f64, text: &str) {
        self.add(format_args!(
            "<text transform=\"translate({x:.1} {y:.1}) rotate(-90)\" text-anchor=\"middle\" font-size=\"12\" \
             fill=\"{INK}\">{}</text>",
            escaped(text)
        ));
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        writeln!(self.svg, "{element}").expect("writing to a string cannot fail");
    }
}

fn attributes(place: Panel) -> String {
    let Panel { left, top, width, height } = place;
    format!("x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"")
}

fn truncate_title(title: &str) -> String {
    match title.char_indices().nth(MAX_TITLE_CHARS) {
        Some((end, _)) => format!("{}…", &title[..end]),
        None => title.to_owned(),
    }
}

/// Escapes text for XML. Characters that XML 1.0 cannot represent even escaped become U+FFFD: a title may be any file
/// name.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\t' | '\n' | '\r' => safe.push(' '),
            '\0'..'\u{20}' | '\u{fffe}' | '\u{ffff}' => safe.push('\u{fffd}'),
            _ => safe.push(character),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::tests::known;

    fn calibration() -> Calibration {
        Calibration::of(&[known(0, 0, 0.75), known(0, 0, 0.75), known(0, 1, 0.75), known(0, 1, 0.5)])
    }

    /// Minimal XML check: every element is closed by its own tag, and every `&` begins an entity we use.
    fn assert_is_well_formed(xml: &str) {
        let mut open = Vec::new();
        let mut rest = xml;
        while let Some(start) = rest.find('<') {
            let text = &rest[..start];
            assert!(!text.contains('>'), "{text}");
            for entity in text.split('&').skip(1) {
                assert!(["amp;", "lt;", "gt;", "quot;"].iter().any(|known| entity.starts_with(known)), "{text}");
            }
            let end = start + rest[start..].find('>').expect("a tag ends");
            let tag = &rest[start + 1..end];
            assert!(tag.matches('"').count().is_multiple_of(2), "{tag}");
            match tag.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name)),
                None if tag.ends_with('/') => {}
                None => open.push(tag.split(' ').next().expect("a tag has a name")),
            }
            rest = &rest[end + 1..];
        }
        assert!(open.is_empty() && rest.trim().is_empty(), "{open:?} {rest}");
    }

    #[test]
    fn bars_are_as_high_as_accuracy_and_gaps_reach_to_confidence() {
        let svg = svg(&calibration(), "mine");
        // Twelfth bin: from 11/15 to 12/15 of 384, two thirds high. The gap extends to three quarters.
        assert!(
            svg.contains("<rect x=\"346.6\" y=\"192.0\" width=\"23.6\" height=\"256.0\" fill=\"#4c8bd6\""),
            "{svg}"
        );
        assert!(svg.contains("<rect x=\"346.6\" y=\"160.0\" width=\"23.6\" height=\"32.0\" fill=\"#d1495b\""), "{svg}");
        // This bin has the most texts, so its count bar fills the lower panel.
        assert!(svg.contains("<rect x=\"346.6\" y=\"484.0\" width=\"23.6\" height=\"64.0\" fill=\"#8c959f\""), "{svg}");
    }

    #[test]
    fn the_title_tells_the_error() {
        let svg = svg(&calibration(), "mine");
        assert!(svg.contains("<title>mine. Expected calibration error 18.75 %, 4 texts</title>"), "{svg}");
        assert!(svg.contains(">Expected calibration error 18.75 %, 4 texts</text>"), "{svg}");
    }

    #[test]
    fn any_title_leaves_the_picture_well_formed() {
        for title in ["", "a & b", "</svg><script>\"'", "\u{1b}[1m\n\u{0}\u{ffff}", &"ü".repeat(500)] {
            let svg = svg(&calibration(), title);
            assert_is_well_formed(&svg);
            assert!(!svg.contains("<script") && !svg.contains('\u{1b}'), "{svg}");
        }
    }

    #[test]
    fn a_long_title_is_cut_only_where_it_is_drawn() {
        let svg = svg(&calibration(), &"x".repeat(100));
        assert!(svg.contains(&format!(">{}…</text>", "x".repeat(MAX_TITLE_CHARS))), "{svg}");
        assert!(svg.contains(&format!("<title>{}. ", "x".repeat(100))), "{svg}");
    }

    #[test]
    fn without_texts_there_are_only_axes() {
        let svg = svg(&Calibration::of(&[]), "mine");
        assert_is_well_formed(&svg);
        assert!(svg.contains(">No texts in scope</text>"), "{svg}");
    }

    #[test]
    fn the_picture_brings_its_own_background_and_asks_for_nothing_else() {
        let svg = svg(&calibration(), "mine");
        assert!(svg.contains("<rect width=\"480\" height=\"600\" fill=\"#ffffff\"/>"), "{svg}");
        let addresses = svg.matches("://").count();
        assert_eq!((addresses, svg.matches("http://www.w3.org/2000/svg").count()), (1, 1), "only the namespace");
    }
}
