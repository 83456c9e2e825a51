//! `corbie extract`: extracts text from documents, without a server.

mod file;
mod output;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;

use clap::{Args, ValueEnum};
use futures_util::{StreamExt, stream};

use super::ending::WrongUsage;
use super::progress::Progress;
use super::{End, formats, one_line};
use crate::app;
use crate::config::Loaded;
use crate::describe::Describer;
use crate::locked::locked;
use crate::workers::{self, Ocr, Pool, Read, Tenant, Told};
use file::Failure;
use output::Output;

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
    ocr: When,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum When {
    Auto,
    Force,
    Off,
}

/// Log targets that are silenced, because this command reports the same itself.
pub(super) const TOLD: &[&str] = super::ask::TOLD;

pub(super) fn run(command: &Extract, loaded: &Loaded, out: &mut dyn Write) -> End {
    command.check()?;
    let settings = loaded.config.documents.clone();
    let (together, most) = (settings.workers(), settings.max_file.bytes() as u64);
    let pool = Pool::new(settings, loaded.config.ocr.clone());
    let output = Output { markdown: command.markdown, json: command.json, named: command.files.len() > 1 };
    let shown = Mutex::new(Shown { progress: Progress::new(), ended: 0, files: command.files.len() });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let describer = Describer::new(&loaded.config.ocr, || Ok(app::build(&loaded.config)?.router))?;
        let reads = command.files.iter().map(|file| {
            let reader = Reader { command, most, pool: &pool, describer: describer.as_ref(), shown: &shown };
            async move { (file, reader.read(file).await) }
        });
        let mut reads = stream::iter(reads).buffered(together);
        let mut all = true;
        while let Some((file, result)) = reads.next().await {
            locked(&shown).end_file();
            all &= output.write(&file.display().to_string(), result, out)?;
        }
        Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

impl Extract {
    /// Catches a value of `--ocr` without `=`, which would be taken for a file.
    fn check(&self) -> Result<(), WrongUsage> {
        let is_value = |file: &&PathBuf| When::from_str(&file.to_string_lossy(), false).is_ok() && !file.exists();
        match self.files.iter().find(is_value) {
            Some(value) => {
                Err(WrongUsage::Value(format!("`{0}` is no file; did you mean `--ocr={0}`?", value.display())))
            }
            None => Ok(()),
        }
    }
}

/// Reads files with the worker pool.
struct Reader<'r> {
    command: &'r Extract,
    /// Maximum file size in bytes.
    most: u64,
    pool: &'r Pool,
    describer: Option<&'r Describer>,
    shown: &'r Mutex<Shown>,
}

impl Reader<'_> {
    async fn read(&self, file: &Path) -> Result<Read, Failure> {
        let (path, most) = (file.to_owned(), self.most);
        // Reading from a pipe may block, and the other files need not wait for it.
        let opened = tokio::task::spawn_blocking(move || file::open(&path, most)).await;
        let (bytes, named) = opened.map_err(|error| Failure::Unreadable(error.into()))??;
        let mut far = Far::default();
        let tell = |told| {
            match told {
                Told::Pages(count) => far.of = Some(count),
                Told::Looking(page) => far.looking = page,
                Told::Done(pages) => far.pages = pages,
            }
            locked(self.shown).page(file, far);
        };
        let name = file.file_name().map(|name| name.to_string_lossy()).filter(|name| name != "-");
        let (full, ocr) = (self.command.full, self.command.ocr.into());
        let tenant = Tenant::local();
        let file = workers::File { bytes: &bytes, name: name.as_deref(), named, full, ocr, tenant: &tenant };
        let mut read = self.pool.read(file, tell).await?;
        if let Some(describer) = self.describer {
            describer.describe(&bytes, &mut read).await;
        }
        Ok(read)
    }
}

/// Progress over all files.
struct Shown {
    progress: Progress,
    ended: usize,
    files: usize,
}

/// Progress of one file.
#[derive(Debug, Clone, Copy, Default)]
struct Far {
    /// Pages done.
    pages: u32,
    of: Option<u32>,
    /// The last page in OCR.
    looking: u32,
}

impl Shown {
    fn page(&self, file: &Path, Far { pages, of, looking }: Far) {
        const WIDTH: u32 = 20;
        let filled = of.map_or(0, |of| (pages * WIDTH).checked_div(of).unwrap_or_default().min(WIDTH)) as usize;
        let bar = format!("{:.<width$}", "#".repeat(filled), width = WIDTH as usize);
        let of = of.map(|of| format!(" of {of}")).unwrap_or_default();
        let looking = if looking > pages { format!(", looking at page {looking}") } else { String::new() };
        let files = match self.files {
            1 => String::new(),
            files => format!(" ({} of {files} files done)", self.ended),
        };
        let name = one_line(&file.file_name().unwrap_or_default().to_string_lossy());
        self.progress.tell(&format!("[{bar}] {name}: {pages}{of} pages{looking}{files}"));
    }

    fn end_file(&mut self) {
        self.ended += 1;
        self.progress.tell("");
    }
}

impl From<When> for Ocr {
    fn from(when: When) -> Ocr {
        match when {
            When::Auto => Ocr::Auto,
            When::Force => Ocr::Force,
            When::Off => Ocr::Off,
        }
    }
}
