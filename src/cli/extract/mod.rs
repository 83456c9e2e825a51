//! `corbie extract`: the text of documents, without a server.

mod file;
mod output;

use std::cell::RefCell;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use corbie_extract::Options;
use futures_util::{StreamExt, stream};

use super::progress::Progress;
use super::{End, one_line};
use crate::config::Loaded;
use crate::workers::{Pool, Read, Told};
use file::Failure;
use output::Output;

#[derive(Debug, Args)]
pub(super) struct Extract {
    /// PDF, DOCX, PPTX, XLSX, HTML, SVG, JPG, PNG, MD, TXT or CSV; `-` is stdin
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Print one JSON object a file, with pages, blocks and what the file says about itself
    #[arg(long)]
    json: bool,
    /// Everything an HTML page says, and not only its main part
    #[arg(long)]
    full: bool,
}

pub(super) fn run(command: &Extract, loaded: &Loaded, out: &mut dyn Write) -> End {
    let settings = loaded.config.documents.clone();
    let options = Options { limits: settings.limits(), full: command.full, ..Options::default() };
    let (together, most) = (settings.workers(), settings.max_file.bytes() as u64);
    let pool = Pool::new(settings);
    let output = Output { markdown: command.markdown, json: command.json, named: command.files.len() > 1 };
    let shown = RefCell::new(Shown { progress: Progress::new(), ended: 0, files: command.files.len() });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let reads = command.files.iter().map(|file| {
            let (pool, options, shown) = (&pool, &options, &shown);
            async move { (file, read(file, most, pool, options, shown).await) }
        });
        let mut reads = stream::iter(reads).buffered(together);
        let mut all = true;
        while let Some((file, result)) = reads.next().await {
            shown.borrow_mut().end_file();
            all &= output.write(&file.display().to_string(), result, out)?;
        }
        Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

async fn read(file: &Path, most: u64, pool: &Pool, options: &Options, shown: &RefCell<Shown>) -> Result<Read, Failure> {
    let path = file.to_owned();
    // A pipe may let us wait, and the other files need not.
    let opened = tokio::task::spawn_blocking(move || file::open(&path, most)).await;
    let (bytes, named) = opened.map_err(|error| Failure::Unreadable(error.into()))??;
    let mut pages = None;
    let tell = |told| match told {
        Told::Pages(count) => pages = Some(count),
        Told::Done(page) => shown.borrow().page(file, page, pages),
    };
    Ok(pool.read(&bytes, named, options, tell).await?)
}

/// How far all files together are.
struct Shown {
    progress: Progress,
    ended: usize,
    files: usize,
}

impl Shown {
    fn page(&self, file: &Path, page: u32, of: Option<u32>) {
        const WIDTH: u32 = 20;
        let filled = of.map_or(0, |of| (page * WIDTH).checked_div(of).unwrap_or_default().min(WIDTH)) as usize;
        let bar = format!("{:.<width$}", "#".repeat(filled), width = WIDTH as usize);
        let of = of.map(|of| format!(" of {of}")).unwrap_or_default();
        let files = match self.files {
            1 => String::new(),
            files => format!(" ({} of {files} files done)", self.ended),
        };
        let name = one_line(&file.file_name().unwrap_or_default().to_string_lossy());
        self.progress.tell(&format!("[{bar}] {name}: page {page}{of}{files}"));
    }

    fn end_file(&mut self) {
        self.ended += 1;
        self.progress.tell("");
    }
}
