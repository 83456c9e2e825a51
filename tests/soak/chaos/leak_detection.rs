//! Leak detection: resources held by the idle server, round by round, must not grow.

use std::fmt::Write as _;
use std::time::Duration;

use crate::server::ResourceUsage;

/// Fewer samples are too few for a trend line.
const MIN_SAMPLES: usize = 30;
/// Growth is a rise of the trend line over the last two thirds of a run that exceeds both bounds: a share of the
/// median, and a number of KiB. Allocators retain part of the freed memory.
const MAX_GROWTH_SHARE: f64 = 0.10;
const MAX_GROWTH_KIB: f64 = 8.0 * 1024.0;
/// Open files and threads fluctuate with connections.
const MAX_FILE_GROWTH: f64 = 8.0;

/// Selects one of the resources of a process.
type ResourceSelector = fn(&ResourceUsage) -> usize;

#[derive(Debug, Default)]
pub(crate) struct ResourceHistory {
    samples: Vec<(Duration, ResourceUsage)>,
}

impl ResourceHistory {
    pub(crate) fn record(&mut self, after: Duration, holds: ResourceUsage) {
        self.samples.push((after, holds));
    }

    /// The resource that has grown, if any. Ignores the first third, in which caches and pools fill.
    pub(crate) fn growth(&self) -> Option<String> {
        let settled = self.after_warm_up();
        if self.samples.len() < MIN_SAMPLES {
            return Some(format!("{} rounds are too few to see growth; {MIN_SAMPLES} are needed", self.samples.len()));
        }
        let memory = Trend::of(settled, |holds| holds.memory)?;
        if memory.rise > MAX_GROWTH_KIB && memory.rise > memory.median * MAX_GROWTH_SHARE {
            return Some(format!("memory grows: {:.0} KiB more where {:.0} are held", memory.rise, memory.median));
        }
        let kinds: [(&str, ResourceSelector); 2] =
            [("open files", |holds| holds.files), ("threads", |holds| holds.threads)];
        kinds.into_iter().find_map(|(name, of)| {
            let trend = Trend::of(settled, of)?;
            (trend.rise > MAX_FILE_GROWTH)
                .then(|| format!("{name} grow: {:.0} more where {:.0} are held", trend.rise, trend.median))
        })
    }

    /// The last two thirds of the samples.
    fn after_warm_up(&self) -> &[(Duration, ResourceUsage)] {
        &self.samples[self.samples.len() / 3..]
    }

    /// First, maximum and last memory in MiB.
    pub(crate) fn memory(&self) -> Option<[usize; 3]> {
        let mib = |(_, holds): &(Duration, ResourceUsage)| holds.memory >> 10;
        Some([mib(self.samples.first()?), self.samples.iter().map(mib).max()?, mib(self.samples.last()?)])
    }

    /// Memory over time as SVG.
    pub(crate) fn plot(&self) -> String {
        const WIDTH: f64 = 720.0;
        const HEIGHT: f64 = 240.0;
        const EDGE: f64 = 48.0;
        let longest = self.samples.last().map_or(1.0, |(after, _)| after.as_secs_f64().max(1.0));
        let most = self.samples.iter().map(|(_, holds)| holds.memory).max().unwrap_or(1).max(1) as f64 * 1.15;
        let point = |(after, holds): &(Duration, ResourceUsage)| {
            let x = EDGE + after.as_secs_f64() / longest * (WIDTH - 2.0 * EDGE);
            let y = HEIGHT - EDGE - holds.memory as f64 / most * (HEIGHT - 2.0 * EDGE);
            format!("{x:.1},{y:.1}")
        };
        let points: Vec<String> = self.samples.iter().map(point).collect();
        let mut picture = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <title>Own memory of the server at rest, in MiB, over minutes</title>\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n"
        );
        for step in 0..=4 {
            let share = f64::from(step) / 4.0;
            let y = HEIGHT - EDGE - share * (HEIGHT - 2.0 * EDGE);
            let x = EDGE + share * (WIDTH - 2.0 * EDGE);
            // Writing to a `String` does not fail.
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
        // The trend line by which growth is judged.
        if let (Some(trend), [(first, _), .., (last, _)]) =
            (Trend::of(self.after_warm_up(), |holds| holds.memory), self.after_warm_up())
        {
            let at = |after: &Duration| {
                let x = EDGE + after.as_secs_f64() / longest * (WIDTH - 2.0 * EDGE);
                let y = HEIGHT - EDGE - trend.value_at(after.as_secs_f64()) / most * (HEIGHT - 2.0 * EDGE);
                (x, y)
            };
            let ((x1, y1), (x2, y2)) = (at(first), at(last));
            let _ = writeln!(
                picture,
                "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"#d1495b\" stroke-width=\"2\" stroke-dasharray=\"6 4\"/>\
                 <text x=\"{x2:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#d1495b\">{:+.1} MiB</text>",
                y2 + 18.0,
                trend.rise / 1024.0,
            );
        }
        picture + "<text x=\"48\" y=\"24\">MiB at rest</text>\n</svg>\n"
    }
}

/// Least-squares line over seconds.
struct Trend {
    /// Difference between the end and the beginning of the line.
    rise: f64,
    median: f64,
    slope: f64,
    /// A point on the line.
    middle: (f64, f64),
}

impl Trend {
    /// `None` without samples, or if all have the same time.
    fn of(held: &[(Duration, ResourceUsage)], of: ResourceSelector) -> Option<Trend> {
        let points: Vec<(f64, f64)> =
            held.iter().map(|(after, holds)| (after.as_secs_f64(), of(holds) as f64)).collect();
        let count = points.len() as f64;
        let middle =
            (points.iter().map(|(x, _)| x).sum::<f64>() / count, points.iter().map(|(_, y)| y).sum::<f64>() / count);
        let spread: f64 = points.iter().map(|(x, _)| (x - middle.0).powi(2)).sum();
        let together: f64 = points.iter().map(|(x, y)| (x - middle.0) * (y - middle.1)).sum();
        let slope = together / spread;
        let mut sorted: Vec<f64> = points.iter().map(|(_, y)| *y).collect();
        sorted.sort_by(f64::total_cmp);
        let (first, last) = (points.first()?.0, points.last()?.0);
        slope.is_finite().then(|| Trend {
            rise: slope * (last - first),
            median: sorted[sorted.len() / 2],
            slope,
            middle,
        })
    }

    fn value_at(&self, seconds: f64) -> f64 {
        self.middle.1 + self.slope * (seconds - self.middle.0)
    }
}
