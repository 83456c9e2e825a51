//! Benchmarks rendering of PDF pages and decoding of the images on them.
//!
//! Usage: `draw_pdf DPI FILE...`

#![allow(clippy::print_stdout, reason = "figures are what this prints")]

#[expect(dead_code, reason = "nothing is compared here")]
mod compare;

use std::path::Path;
use std::sync::Arc;

use compare::spent_so_far;
use corbie_extract::{Format, Limits, Options, PdfPages, document};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(Ok(dpi)) = arguments.next().map(|dpi| dpi.parse::<f32>()) else {
        println!("usage: draw_pdf DPI FILE...");
        return;
    };
    let limits = Limits::default();
    for path in arguments {
        let name = Path::new(&path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = Arc::new(std::fs::read(&path).expect("a file"));
        let read = document(&bytes, Format::Pdf, &Options::default());
        let (Ok(read), Ok(mut file)) = (read, PdfPages::open(bytes)) else {
            println!("{name}: cannot be read");
            continue;
        };
        for page in &read.pages {
            let characters = page.text().chars().count();
            let kind = if page.scanned { "scanned" } else { "text" };
            print!("{name} page {}: {characters} characters, {kind}", page.number);
            let begun = spent_so_far();
            match file.raster(page.number, dpi, &limits) {
                Ok(raster) => {
                    print!(", {} by {} in {} ms", raster.width, raster.height, (spent_so_far() - begun).as_millis())
                }
                Err(error) => print!(", {error}"),
            }
            let begun = spent_so_far();
            let mut sizes = Vec::new();
            let looked = file.pictures(page, &limits, &mut |index, raster| {
                sizes.push((
                    index,
                    raster.map(|raster| (raster.width, raster.height)).map_err(|error| error.to_string()),
                ));
            });
            match (page.images.is_empty(), looked) {
                (true, _) => println!(),
                (false, Ok(())) => println!(", pictures {sizes:?} in {} ms", (spent_so_far() - begun).as_millis()),
                (false, Err(error)) => println!(", pictures {sizes:?}, {error}"),
            }
        }
    }
}
