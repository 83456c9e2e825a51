//! Compares the text and speed of this crate with PDFium on the same files.
//!
//! Takes a directory of PDF files. `CORBIE_PDFIUM` names the library. Words are compared as multisets.

#![allow(clippy::print_stdout, reason = "figures are what this prints")]

mod compare;

use std::path::PathBuf;
use std::time::Duration;

use compare::{f1, spent_so_far, words};
use corbie_extract::{Format, Options, Pdfium, document};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Some(folder) = std::env::args().nth(1) else {
        println!("usage: pdfium FILES");
        return Ok(());
    };
    let pdfium = Pdfium::load()?;
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "pdf"));
    paths.sort();
    let (mut scores, mut pages, mut ours, mut theirs) = (Vec::new(), 0, Duration::ZERO, Duration::ZERO);
    for path in &paths {
        let bytes = std::fs::read(path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let begun = spent_so_far();
        let read = document(&bytes, Format::Pdf, &Options::default());
        let between = spent_so_far();
        let texts = pdfium.pages(&bytes);
        let done = spent_so_far();
        let (read, texts) = match (read, texts) {
            (Ok(read), Ok(texts)) => (read, texts),
            (Err(ours), Err(theirs)) => {
                println!("------ {name}: both refuse it: {ours}; {theirs}");
                continue;
            }
            (Err(ours), Ok(texts)) => {
                let characters: usize = texts.iter().map(String::len).sum();
                println!("------ {name}: {ours}; PDFium finds {characters} bytes of text");
                continue;
            }
            (Ok(read), Err(theirs)) => {
                println!("------ {name}: {} bytes of text are found; PDFium: {theirs}", read.text().len());
                continue;
            }
        };
        let score = f1(words(&read.text()).iter(), words(&texts.join("\n")).iter());
        println!(
            "{score:.4} {:8.2} ms {:8.2} ms of PDFium, {} pages {name}",
            (between - begun).as_secs_f64() * 1e3,
            (done - between).as_secs_f64() * 1e3,
            texts.len()
        );
        scores.push(score);
        pages += texts.len();
        ours += between - begun;
        theirs += done - between;
    }
    let speed = |spent: Duration| pages as f64 / spent.as_secs_f64();
    println!("words {:.4}  files {}", scores.iter().sum::<f64>() / scores.len().max(1) as f64, scores.len());
    println!("pages {pages}  pages per core-second {:.0}, of PDFium {:.0}", speed(ours), speed(theirs));
    Ok(())
}
