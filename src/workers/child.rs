//! The worker itself: confined, it reads documents until nobody has any more.

use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::sync::{Arc, Barrier};

use corbie_extract::{Error, Options, Page, Sink};
use rustix::event::{PollFd, PollFlags, poll};

use super::confine;
use super::message::{Job, LARGEST, Said, framed, length};

/// Runs until stdin ends. It dies with whoever started it, also in the middle of a document.
pub fn run(memory: u64) -> Result<ExitCode, Box<dyn std::error::Error>> {
    // Its words would be lost among those of whoever started it.
    std::panic::set_hook(Box::new(|_| {}));
    let mut wire = Wire { out: io::stdout().lock(), too_large: false };
    if let Err(error) = confine(memory) {
        wire.say(&Said::Unfit { why: error.to_string() })?;
        return Ok(ExitCode::FAILURE);
    }
    wire.say(&Said::Ready)?;
    let mut stdin = io::stdin().lock();
    while let Some(job) = next(&mut stdin)? {
        confine::processor(job.cpu_seconds)?;
        let mut bytes = Vec::with_capacity(usize::try_from(job.length)?);
        (&mut stdin).take(job.length).read_to_end(&mut bytes)?;
        let said = read(&bytes, &job, &mut wire);
        wire.say(&said)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Gives everything up, before a byte of a document is there.
fn confine(memory: u64) -> Result<(), Box<dyn std::error::Error>> {
    confine::memory(memory)?;
    confine::files()?;
    // A thread that begins needs more than one that runs.
    let begun = Arc::new(Barrier::new(2));
    let other = begun.clone();
    std::thread::Builder::new().name("parent".into()).spawn(move || {
        other.wait();
        end_with_parent();
    })?;
    begun.wait();
    confine::calls()
}

/// The other end of stdin is closed when whoever started this is gone.
fn end_with_parent() {
    loop {
        let stdin = io::stdin();
        let mut watched = [PollFd::new(&stdin, PollFlags::empty())];
        let _ = poll(&mut watched, None);
        if watched[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            std::process::exit(0);
        }
    }
}

fn next(stdin: &mut impl Read) -> io::Result<Option<Job>> {
    let mut head = [0; 4];
    match stdin.read_exact(&mut head) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut text = vec![0; length(head)?];
    stdin.read_exact(&mut text)?;
    Ok(Some(serde_json::from_slice(&text)?))
}

/// Reads one document. A parser that panics fails this document alone.
fn read(bytes: &[u8], job: &Job, wire: &mut Wire<'_>) -> Said {
    let options = Options { limits: job.limits.clone(), full: job.full, ..Options::default() };
    let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let (format, warning) = corbie_extract::resolve(job.named, bytes)?;
        wire.tell(&Said::Began { format });
        let mut summary = corbie_extract::read(bytes, format, &options, wire)?;
        summary.warnings.extend(warning);
        Ok::<_, Error>(summary)
    }));
    let read = read.unwrap_or_else(|_| Err(Error::Corrupted("reading it failed in a way nobody expected".into())));
    let too_large = Error::TooMuch { what: "bytes of text and tables on one page", most: LARGEST as u64 };
    match if std::mem::take(&mut wire.too_large) { Err(too_large) } else { read } {
        Ok(summary) => Said::Done { summary },
        Err(error) => Said::Failed { kind: error.kind().into(), message: message(&error) },
    }
}

/// With the setting that can be raised, where there is one.
fn message(error: &Error) -> String {
    let setting = match error {
        Error::TooMuch { what: "pages" | "slides" | "sheets", .. } => "max_pages",
        Error::TooMuch { what: "cells" | "shared texts", .. } => "max_cells",
        Error::TooMuch { what: "bytes once inflated", .. } => "max_unpacked",
        Error::TooMuch { what: "dots", .. } => "max_pixels",
        _ => return error.to_string(),
    };
    format!("{error}, or raise `documents.{setting}`")
}

/// What is written goes out at once: a page that is done must not be lost with the next.
struct Wire<'a> {
    out: io::StdoutLock<'a>,
    /// A page was larger than anything that is said.
    too_large: bool,
}

impl Wire<'_> {
    fn say(&mut self, said: &Said) -> io::Result<()> {
        self.out.write_all(&framed(said)?)?;
        self.out.flush()
    }

    /// In the middle of a document. Nothing comes after a page that is missing, and without anybody who listens there is
    /// nothing left to do.
    fn tell(&mut self, said: &Said) {
        if self.too_large {
            return;
        }
        match self.say(said) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => self.too_large = true,
            Err(_) => std::process::exit(1),
        }
    }
}

impl Sink for Wire<'_> {
    fn pages(&mut self, count: u32) {
        self.tell(&Said::Pages { count });
    }

    fn page(&mut self, page: Page) {
        self.tell(&Said::Page { page });
    }
}
