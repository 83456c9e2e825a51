//! Scores text extraction from PDF files, and its speed.
//!
//! Takes a directory of PDF files and a directory of reference texts named `NAME.pdf.txt`. For each file, words and
//! pairs of adjacent words are compared as multisets; the score is F1, the harmonic mean of precision and recall.

#![allow(clippy::print_stdout, reason = "figures are what this prints")]

mod compare;

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use compare::{count, f1, spent_so_far, words};
use corbie_extract::{Format, Options, document};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(files), Some(references)) = (arguments.next(), arguments.next()) else {
        println!("usage: score_pdf FILES REFERENCES [PART OF A NAME]");
        return;
    };
    let wanted = arguments.next();
    let rounds = if wanted.is_some() { 1 } else { 5 };
    let mut names: Vec<PathBuf> =
        std::fs::read_dir(files).expect("a folder of files").filter_map(|entry| Some(entry.ok()?.path())).collect();
    names.sort();
    let (mut scores, mut pages, mut spent) = (Vec::new(), 0, Duration::ZERO);
    for path in names {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if wanted.as_ref().is_some_and(|wanted| !name.contains(wanted.as_str())) {
            continue;
        }
        let bytes = std::fs::read(&path).expect("a file");
        let begun = spent_so_far();
        let mut read = document(&bytes, Format::Pdf, &Options::default());
        for _ in 1..rounds {
            read = document(&bytes, Format::Pdf, &Options::default());
        }
        let took = (spent_so_far() - begun) / rounds;
        let reference = std::fs::read_to_string(PathBuf::from(&references).join(format!("{name}.txt"))).ok();
        let document = match read {
            Ok(document) => document,
            Err(error) => {
                println!("------ ------ {:7.2} ms {name}: {error}", took.as_secs_f64() * 1e3);
                if reference.is_some() {
                    scores.push((0.0, 0.0));
                }
                continue;
            }
        };
        pages += document.pages.len();
        spent += took;
        let text = document.text();
        if wanted.is_some() {
            let scanned = document.pages.iter().filter(|page| page.scanned).count();
            println!("{:#?}\n{scanned} pages scanned\n{text}", document.metadata);
        }
        let Some(reference) = reference else {
            println!(
                "------ ------ {:7.2} ms {name}: {} pages, {} scanned, {} characters, {} warnings",
                took.as_secs_f64() * 1e3,
                document.pages.len(),
                document.pages.iter().filter(|page| page.scanned).count(),
                text.len(),
                document.warnings.len()
            );
            continue;
        };
        let (found, expected) = (words(&text), words(&reference));
        if wanted.is_some() {
            differences(&found, &expected);
        }
        let score = (f1(found.iter(), expected.iter()), f1(found.windows(2), expected.windows(2)));
        println!("{:.4} {:.4} {:7.2} ms {name}", score.0, score.1, took.as_secs_f64() * 1e3);
        scores.push(score);
    }
    let mean = |of: fn(&(f64, f64)) -> f64| scores.iter().map(of).sum::<f64>() / scores.len().max(1) as f64;
    println!("words {:.4}  pairs {:.4}  files {}", mean(|score| score.0), mean(|score| score.1), scores.len());
    println!(
        "pages {pages}  seconds {:.3}  pages per core-second {:.0}",
        spent.as_secs_f64(),
        pages as f64 / spent.as_secs_f64()
    );
}

fn differences(found: &[String], expected: &[String]) {
    let (found, expected) = (count(found.iter()), count(expected.iter()));
    let over = |more: &HashMap<&String, usize>, less: &HashMap<&String, usize>| {
        let mut over: Vec<(String, usize)> = Vec::new();
        for (word, times) in more {
            let extra = times.saturating_sub(less.get(*word).copied().unwrap_or(0));
            if extra > 0 {
                over.push(((*word).clone(), extra));
            }
        }
        over.sort_by_key(|(word, times)| (usize::MAX - times, word.clone()));
        over.truncate(60);
        over
    };
    println!("too much: {:?}", over(&found, &expected));
    println!("missing: {:?}", over(&expected, &found));
}
