//! `corbie extract`: extracts text from documents, without a server.

mod file;
mod output;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use clap::{Args, ValueEnum};
use futures_util::{StreamExt, stream};

use super::exit::UsageError;
use super::progress::{Progress, bar_line};
use super::{CommandResult, formats, sanitize_line};
use crate::app;
use crate::config::LoadedConfig;
use crate::knowledge::image_description::ImageDescriber;
use crate::util::lock::lock;
use crate::workers::{self, Extraction, OcrMode, Tenant, WorkerPool, WorkerProgress};
use file::FileError;
use output::ExtractOutput;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  corbie extract report.pdf
  corbie extract --markdown *.docx > all.md
  corbie extract --json --ocr=force scan.png
  curl -s https://example.com | corbie extract -")]
pub(super) struct Extract {
    #[arg(required = true, value_name = "FILE", help = format!("{}; `-` is stdin", formats::all()))]
    files: Vec<PathBuf>,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Print one JSON object per file, with pages, blocks and metadata
    #[arg(long)]
    json: bool,
    /// Extract the complete HTML page, not only its main content
    #[arg(long)]
    full: bool,
    /// OCR: for pages without text (auto, the default), all pages (force, or the flag without a value), or none (off)
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true)]
    #[arg(
        default_value = "auto",
        default_missing_value = "force",
        hide_default_value = true,
        hide_possible_values = true
    )]
    ocr: OcrArg,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum OcrArg {
    Auto,
    Force,
    Off,
}

/// Log targets that are silenced, because this command reports the same itself.
pub(super) const QUIET_MODULES: &[&str] = super::ask::QUIET_MODULES;

pub(super) fn run(command: &Extract, loaded: &LoadedConfig, out: &mut dyn Write) -> CommandResult {
    command.check()?;
    let settings = loaded.config.documents.clone();
    let (together, most) = (settings.workers(), settings.max_file.bytes() as u64);
    let pool = WorkerPool::new(settings, loaded.config.ocr.clone());
    let output = ExtractOutput { markdown: command.markdown, json: command.json, named: command.files.len() > 1 };
    let shown = Mutex::new(ExtractProgress { progress: Progress::new(), finished: 0, files: command.files.len() });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let describer = match loaded.config.ocr.vision_model.clone() {
            Some(model) => Some(ImageDescriber { client: Arc::new(app::build(&loaded.config)?.router), model }),
            None => None,
        };
        let reads = command.files.iter().map(|file| {
            let reader =
                FileReader { command, max_bytes: most, pool: &pool, describer: describer.as_ref(), progress: &shown };
            async move { (file, reader.read(file).await) }
        });
        let mut reads = stream::iter(reads).buffered(together);
        let mut all = true;
        while let Some((file, result)) = reads.next().await {
            lock(&shown).end_file();
            all &= output.write(&file.display().to_string(), result, out)?;
        }
        Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

impl Extract {
    /// Catches a value of `--ocr` without `=`, which would be taken for a file.
    fn check(&self) -> Result<(), UsageError> {
        let is_value = |file: &&PathBuf| OcrArg::from_str(&file.to_string_lossy(), false).is_ok() && !file.exists();
        match self.files.iter().find(is_value) {
            Some(value) => {
                Err(UsageError::Value(format!("`{0}` is not a file; did you mean `--ocr={0}`?", value.display())))
            }
            None => Ok(()),
        }
    }
}

/// Reads files with the worker pool.
struct FileReader<'r> {
    command: &'r Extract,
    /// Maximum file size in bytes.
    max_bytes: u64,
    pool: &'r WorkerPool,
    describer: Option<&'r ImageDescriber>,
    progress: &'r Mutex<ExtractProgress>,
}

impl FileReader<'_> {
    async fn read(&self, file: &Path) -> Result<Extraction, FileError> {
        let (path, most) = (file.to_owned(), self.max_bytes);
        // Reading from a pipe may block, and the other files need not wait for it.
        let opened = tokio::task::spawn_blocking(move || file::open(&path, most)).await;
        let (bytes, named) = opened.map_err(|error| FileError::Unreadable(error.into()))??;
        let mut far = PageProgress::default();
        let tell = |told| {
            match told {
                WorkerProgress::PageCount(count) => far.of = Some(count),
                WorkerProgress::OcrPage(page) => far.ocr_page = page,
                WorkerProgress::PagesDone(pages) => far.pages = pages,
            }
            lock(self.progress).page(file, far);
        };
        let name = file.file_name().map(|name| name.to_string_lossy()).filter(|name| name != "-");
        let (full, ocr) = (self.command.full, self.command.ocr.into());
        let tenant = Tenant::local();
        let file = workers::InputFile {
            bytes: &bytes,
            name: name.as_deref(),
            format_hint: named,
            full_html: full,
            ocr,
            tenant: &tenant,
        };
        let mut read = self.pool.extract(file, tell).await?;
        if let Some(describer) = self.describer {
            describer.describe(&bytes, &mut read).await;
        }
        Ok(read)
    }
}

/// Progress over all files.
struct ExtractProgress {
    progress: Progress,
    finished: usize,
    files: usize,
}

/// Progress of one file.
#[derive(Debug, Clone, Copy, Default)]
struct PageProgress {
    /// Pages done.
    pages: u32,
    of: Option<u32>,
    /// The last page in OCR.
    ocr_page: u32,
}

impl ExtractProgress {
    fn page(&self, file: &Path, PageProgress { pages, of, ocr_page: looking }: PageProgress) {
        let share = of.map_or(0.0, |of| f64::from(pages) / f64::from(of.max(1)));
        let of = of.map(|of| format!(" of {of}")).unwrap_or_default();
        let looking = if looking > pages { format!(", OCR of page {looking}") } else { String::new() };
        let files = match self.files {
            1 => String::new(),
            files => format!(" ({} of {files} files done)", self.finished),
        };
        let name = sanitize_line(&file.file_name().unwrap_or_default().to_string_lossy());
        let step = format!("{name}: {pages}{of} pages{looking}{files}");
        self.progress.update_with(|columns| bar_line(share, &step, "", columns));
    }

    fn end_file(&mut self) {
        self.finished += 1;
        self.progress.update("");
    }
}

impl From<OcrArg> for OcrMode {
    fn from(when: OcrArg) -> OcrMode {
        match when {
            OcrArg::Auto => OcrMode::Auto,
            OcrArg::Force => OcrMode::Force,
            OcrArg::Off => OcrMode::Off,
        }
    }
}
