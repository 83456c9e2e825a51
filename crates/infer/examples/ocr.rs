//! Runs OCR on images and reports timings.
//!
//!     cargo run --release -p corbie-infer --example ocr -- page.png
//!
//! `--boxes` also prints each line with its bounding box, `--side 960` sets the maximum side length of the scaled
//! image, and `--threads 2` processes images concurrently with one engine. CPU time and peak memory are totals of all
//! threads.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use corbie_infer::ocr::{ImageRef, OcrEngine, OcrOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut settings = OcrOptions::default();
    let (mut boxes, mut threads) = (false, 1);
    let mut files: Vec<PathBuf> = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--boxes" => boxes = true,
            "--side" => settings.longest_side = arguments.next().ok_or("--side takes a number")?.parse()?,
            "--threads" => threads = arguments.next().ok_or("--threads takes a number")?.parse()?,
            file => files.push(file.into()),
        }
    }
    let engine = OcrEngine::builtin()?;
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let read = || {
            while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                read(&engine, &settings, file, boxes).map_err(|error| format!("{}: {error}", file.display()))?;
            }
            Ok(())
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(read)).collect();
        let ended: Vec<Result<(), String>> = threads.into_iter().filter_map(|thread| thread.join().ok()).collect();
        ended.into_iter().collect::<Result<(), String>>()
    })?;
    Ok(())
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "an example talks to its user")]
fn read(engine: &OcrEngine, settings: &OcrOptions, file: &Path, boxes: bool) -> Result<(), Box<dyn std::error::Error>> {
    let image = image::open(file)?.to_rgba8();
    let (width, height) = image.dimensions();
    // Composites transparent pixels onto white.
    let on_white = |colour: u8, cover: u8| 255 - ((255 - u16::from(colour)) * u16::from(cover) / 255) as u8;
    let rgb: Vec<u8> =
        image.pixels().flat_map(|pixel| [0, 1, 2].map(|index| on_white(pixel[index], pixel[3]))).collect();
    drop(image);
    let start = (Instant::now(), cpu_seconds());
    let found = engine.recognize(ImageRef { width, height, rgb: &rgb }, settings)?;
    let (wall, cpu) = (start.0.elapsed().as_secs_f64(), cpu_seconds() - start.1);
    eprintln!(
        "{}: {width} x {height}, {} lines, turn {:?}, skew {:.2}, confidence {:.3}{}, {wall:.2} s, {cpu:.2} s of CPU, peak {} MB",
        file.display(),
        found.lines.len(),
        found.rotation,
        found.skew,
        found.confidence(),
        if found.low_confidence { " (doubtful)" } else { "" },
        peak_megabytes(),
    );
    if boxes {
        for line in &found.lines {
            let corners = line.quad.0.map(|corner| format!("{:.0},{:.0}", corner.x, corner.y)).join(" ");
            println!("{:2} {:3} {:.3} [{corners}] {}", line.paragraph, line.row, line.confidence, line.text);
        }
    } else {
        println!("{}", found.text());
    }
    Ok(())
}

/// User and system time of all threads, if the platform reports it.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    fields.filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn peak_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    peak.and_then(|peak| peak.parse::<u64>().ok()).unwrap_or_default() / 1024
}
