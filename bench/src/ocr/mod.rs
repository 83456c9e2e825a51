//! OCR: corbie compared with Tesseract and RapidOCR, over pages with known text.
//!
//! The pages are generated deterministically; see `ocr_pages.py`. With `--data FOLDER` also the scans and pictures of a
//! folder of real files without reference texts: there the engines are compared with each other.

mod corbie;
mod engine;
mod measured_process;
mod pages;
mod real_files;
mod scan;
mod score;
mod targets;

use std::fs;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use serde::Serialize;
use serde_json::json;

use crate::Args;
use crate::extract::score::f1;
use crate::machine::Machine;
use crate::report::{self, BenchReport, ResultTable, three_digits};
use crate::targets;
use engine::{ENGINES, Engine, OcrRun};
use pages::{GROUPS, Group, InputImage, TestPage};

/// Results of one engine for the pages of one group.
#[derive(Debug, Serialize)]
struct GroupResults {
    group: Group,
    engine: Engine,
    pages: Vec<PageScore>,
    cpu_s: f64,
    wall_s: f64,
    peak_mb: f64,
}

#[derive(Debug, Serialize)]
struct PageScore {
    page: String,
    words: f64,
    bigrams: f64,
    character_error: f64,
}

/// Folder of the texts, for the analysis of bad pages.
const TEXTS: &str = ".tools/bench/ocr-texts";
/// How many of corbie's worst pages are shown.
const WORST_PAGES: usize = 8;

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    ensure!(args.servers.is_empty() && args.workloads.is_empty(), "`ocr` has its own contestants");
    ensure!(!(args.keep && args.quick), "a quick run cannot be kept");
    let engines: Vec<Engine> = ENGINES.into_iter().filter(|engine| engine.is_installed()).collect();
    eprintln!(" pages are made");
    let pages = pages::render_all()?;
    let mut machine = Machine::detect();
    let mut rows = Vec::new();
    for group in GROUPS {
        let mut chosen = pages.of(group);
        if args.quick {
            chosen.truncate(1);
        }
        for &engine in &engines {
            rows.push(measure(group, engine, &chosen)?);
            if engine.for_group(group) != engine {
                rows.push(measure(group, engine.for_group(group), &chosen)?);
            }
        }
    }
    eprintln!(" a scan, with all cores");
    let scans = scan::measure(&pages, &engines)?;
    let files = match &args.data {
        Some(folder) => real_files::measure(&crate::caller_folder().join(folder), &engines, args.quick)?,
        None => Vec::new(),
    };
    machine.update_load();

    let verdicts = targets::evaluate_targets(&rows, &scans);
    let report = BenchReport {
        name: "ocr",
        machine,
        about: format!(
            "A4 pages at 200 dots per inch that were drawn for it; word and bigram F1 as in `extract`, the character \
             error is the edit distance by the length of what is there, each the mean over pages; CPU time is user and \
             system time of a process and all it starts, one thread a page: corbie's and Tesseract's with loading, \
             RapidOCR's without; memory is the most that a single process had; Tesseract is told the language, and \
             RapidOCR leaves out its classifier of turned lines, which turns upright lines over, except where \
             `use_cls` stands"
        ),
        tables: vec![
            table(&rows),
            all_pages(&rows),
            worst(&rows),
            scan::table(&scans),
            real_files::table(&files),
            targets::table(&verdicts),
        ],
        summary: targets::summary(&rows),
        json: json!({ "rows": rows, "scan": scans, "files": files, "verdicts": verdicts }),
    };
    report::publish(&report, args.keep)?;
    Ok(ExitCode::SUCCESS)
}

fn measure(group: Group, engine: Engine, pages: &[&TestPage]) -> Result<GroupResults> {
    let pictures: Vec<InputImage> = pages.iter().map(|page| page.image()).collect();
    let OcrRun { texts, cpu_s, wall_s, peak_mb } = engine.read(&pictures)?;
    ensure!(texts.len() == pages.len(), "{} has read {} of {} pages", engine.name(), texts.len(), pages.len());
    fs::create_dir_all(TEXTS)?;
    let mut done = Vec::new();
    for (page, text) in pages.iter().zip(&texts) {
        fs::write(format!("{TEXTS}/{}.{}.txt", page.name, engine.name()), text)?;
        fs::write(format!("{TEXTS}/{}.there.txt", page.name), &page.text)?;
        done.push(PageScore::score(page, text));
    }
    let row = GroupResults { group, engine, pages: done, cpu_s, wall_s, peak_mb };
    let (words, cpu) = (row.mean(|done| done.words), row.cpu_a_page());
    eprintln!(" {}, {}: word F1 {words:.4}, {cpu:.2} s of CPU a page", group.name(), engine.name());
    Ok(row)
}

impl PageScore {
    fn score(page: &TestPage, found: &str) -> PageScore {
        let shares = f1(found, &page.text);
        PageScore {
            page: page.name.clone(),
            words: shares.map_or(0.0, |shares| shares.words),
            bigrams: shares.map_or(0.0, |shares| shares.bigrams),
            character_error: score::character_error(found, &page.text),
        }
    }
}

impl GroupResults {
    fn mean(&self, figure: fn(&PageScore) -> f64) -> f64 {
        mean(self.pages.iter().map(figure))
    }

    fn cpu_a_page(&self) -> f64 {
        self.cpu_s / self.pages.len() as f64
    }
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

fn find(rows: &[GroupResults], group: Group, engine: Engine) -> Option<&GroupResults> {
    rows.iter().find(|row| row.group == group && row.engine == engine)
}

/// The rows of an engine, one per group: for rotated pages, with orientation detection.
fn rows_of(rows: &[GroupResults], engine: Engine) -> Vec<&GroupResults> {
    GROUPS.into_iter().filter_map(|group| find(rows, group, engine.for_group(group))).collect()
}

/// The mean over all pages of all groups.
fn mean_of_all(rows: &[&GroupResults], figure: fn(&PageScore) -> f64) -> f64 {
    let pages: Vec<&PageScore> = rows.iter().flat_map(|row| &row.pages).collect();
    mean(pages.into_iter().map(figure))
}

/// Over all pages of all groups.
fn cpu_of_all(rows: &[&GroupResults]) -> f64 {
    let pages: usize = rows.iter().map(|row| row.pages.len()).sum();
    rows.iter().map(|row| row.cpu_s).sum::<f64>() / pages as f64
}

const HEADER: [&str; 10] = [
    "pages of",
    "engine",
    "pages",
    "word F1",
    "bigram F1",
    "character error",
    "CPU s a page",
    "corbie needs",
    "wall s a page",
    "peak RSS MB",
];

fn table(rows: &[GroupResults]) -> ResultTable {
    let mut table = ResultTable::new("Pages", &HEADER);
    for row in rows {
        let own = find(rows, row.group, Engine::Corbie).map_or(f64::NAN, GroupResults::cpu_a_page);
        table.rows.push(table_cells(row.group.name(), row.engine, &[row], own));
    }
    table
}

fn all_pages(rows: &[GroupResults]) -> ResultTable {
    let mut table = ResultTable::new("All pages", &HEADER);
    let own = cpu_of_all(&rows_of(rows, Engine::Corbie));
    for engine in ENGINES {
        let of_it = rows_of(rows, engine);
        if !of_it.is_empty() {
            table.rows.push(table_cells("all", engine, &of_it, own));
        }
    }
    table
}

/// For several rows of one engine. The CPU time of corbie is relative to that of the engine.
fn table_cells(name: &str, engine: Engine, rows: &[&GroupResults], own: f64) -> Vec<String> {
    let pages: usize = rows.iter().map(|row| row.pages.len()).sum();
    let cpu = cpu_of_all(rows);
    vec![
        name.into(),
        engine.name().into(),
        pages.to_string(),
        format!("{:.4}", mean_of_all(rows, |done| done.words)),
        format!("{:.4}", mean_of_all(rows, |done| done.bigrams)),
        format!("{:.2} %", 100.0 * mean_of_all(rows, |done| done.character_error)),
        format!("{cpu:.2}"),
        format!("{:.2}x", own / cpu),
        format!("{:.2}", rows.iter().map(|row| row.wall_s).sum::<f64>() / pages as f64),
        three_digits(rows.iter().map(|row| row.peak_mb).fold(0.0, f64::max)),
    ]
}

/// The pages on which corbie is worst, with the results of the peers.
fn worst(rows: &[GroupResults]) -> ResultTable {
    let mut table = ResultTable::new(
        "Where corbie is worst",
        &["page", "word F1", "character error", "Tesseract", "its error", "RapidOCR", "its error"],
    );
    let mut own: Vec<(&GroupResults, &PageScore)> = rows_of(rows, Engine::Corbie)
        .into_iter()
        .flat_map(|row| row.pages.iter().map(move |done| (row, done)))
        .collect();
    own.sort_by(|(_, one), (_, other)| other.character_error.total_cmp(&one.character_error));
    for (row, done) in own.into_iter().take(WORST_PAGES) {
        let mut cells = vec![done.page.clone()];
        for engine in ENGINES {
            let told = find(rows, row.group, engine.for_group(row.group))
                .and_then(|row| row.pages.iter().find(|one| one.page == done.page));
            cells.push(told.map(|done| format!("{:.4}", done.words)).unwrap_or_default());
            cells.push(told.map(|done| format!("{:.2} %", 100.0 * done.character_error)).unwrap_or_default());
        }
        table.rows.push(cells);
    }
    table
}
