//! What the server holds at rest, round after round: in a program that leaks it grows, in others it does not.

use std::fmt::Write as _;
use std::time::Duration;

use crate::server::Holds;

/// Fewer say nothing.
const FEWEST: usize = 30;
/// What the last third of a run may hold more than the third before, as a share and in KiB: allocators keep some of what
/// they were given back.
const MOST_SHARE: f64 = 1.05;
const MOST_MORE: usize = 8 << 10;
/// Files and threads come and go with connections.
const MOST_FILES: usize = 8;

/// One of the things a process holds.
type Kind = fn(&Holds) -> usize;

#[derive(Debug, Default)]
pub(crate) struct Soak {
    held: Vec<(Duration, Holds)>,
}

impl Soak {
    pub(crate) fn look(&mut self, after: Duration, holds: Holds) {
        self.held.push((after, holds));
    }

    /// What has grown; None if nothing has, or if too little was seen.
    pub(crate) fn growth(&self) -> Option<String> {
        if self.held.len() < FEWEST {
            return None;
        }
        let third = self.held.len() / 3;
        let median = |part: &[(Duration, Holds)], of: Kind| {
            let mut numbers: Vec<usize> = part.iter().map(|(_, holds)| of(holds)).collect();
            numbers.sort_unstable();
            numbers[numbers.len() / 2]
        };
        let (before, last) = (&self.held[third..2 * third], &self.held[2 * third..]);
        let memory = |part| median(part, |holds| holds.memory);
        let most = ((memory(before) as f64 * MOST_SHARE) as usize).max(memory(before) + MOST_MORE);
        if memory(last) > most {
            return Some(format!("memory grows: {} KiB, and then {} KiB", memory(before), memory(last)));
        }
        let kinds: [(&str, Kind); 2] = [("open files", |holds| holds.files), ("threads", |holds| holds.threads)];
        kinds.into_iter().find_map(|(name, of)| {
            let (before, last) = (median(before, of), median(last, of));
            (last > before + MOST_FILES).then(|| format!("{name} grow: {before}, and then {last}"))
        })
    }

    /// First, most and last memory, in MiB.
    pub(crate) fn memory(&self) -> Option<[usize; 3]> {
        let mib = |(_, holds): &(Duration, Holds)| holds.memory >> 10;
        Some([mib(self.held.first()?), self.held.iter().map(mib).max()?, mib(self.held.last()?)])
    }

    /// Memory over time, as a picture.
    pub(crate) fn plot(&self) -> String {
        const WIDTH: f64 = 720.0;
        const HEIGHT: f64 = 240.0;
        const EDGE: f64 = 48.0;
        let longest = self.held.last().map_or(1.0, |(after, _)| after.as_secs_f64().max(1.0));
        let most = self.held.iter().map(|(_, holds)| holds.memory).max().unwrap_or(1).max(1) as f64 * 1.15;
        let point = |(after, holds): &(Duration, Holds)| {
            let x = EDGE + after.as_secs_f64() / longest * (WIDTH - 2.0 * EDGE);
            let y = HEIGHT - EDGE - holds.memory as f64 / most * (HEIGHT - 2.0 * EDGE);
            format!("{x:.1},{y:.1}")
        };
        let points: Vec<String> = self.held.iter().map(point).collect();
        let mut picture = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <title>Own memory of the server at rest, in MiB, over minutes</title>\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n"
        );
        for step in 0..=4 {
            let share = f64::from(step) / 4.0;
            let y = HEIGHT - EDGE - share * (HEIGHT - 2.0 * EDGE);
            let x = EDGE + share * (WIDTH - 2.0 * EDGE);
            // Writing to a text does not fail.
            let _ = writeln!(
                picture,
                "<line x1=\"{EDGE}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>\
                 <text x=\"{left}\" y=\"{y:.1}\" text-anchor=\"end\">{:.0}</text>\
                 <text x=\"{x:.1}\" y=\"{below}\" text-anchor=\"middle\">{:.0} min</text>",
                most * share / 1024.0,
                longest * share / 60.0,
                right = WIDTH - EDGE,
                left = EDGE - 6.0,
                below = HEIGHT - EDGE + 18.0,
            );
        }
        let _ = writeln!(
            picture,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"#2f46c8\" stroke-width=\"2\"/>",
            points.join(" ")
        );
        picture + "<text x=\"48\" y=\"24\">MiB at rest</text>\n</svg>\n"
    }
}
