//! Worker process: enters the sandbox, then extracts documents until stdin ends.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::{Arc, Barrier};

use corbie_extract::{Error, Options};
use rustix::event::{PollFd, PollFlags, poll};

use super::confine;
use super::eyes::{self, Eyes};
use super::message::{Job, LARGEST, Ocr, Said};
use super::seeing::Seeing;
use super::wire::Wire;

/// Runs until stdin ends. The process exits when its parent dies, even while it extracts a document.
pub fn run(memory: u64) -> Result<ExitCode, Box<dyn std::error::Error>> {
    // Panic messages are dropped, because stderr is discarded.
    std::panic::set_hook(Box::new(|_| {}));
    let mut wire = Wire::new();
    let eyes = match confine(memory) {
        Ok(eyes) => eyes,
        Err(error) => {
            wire.say(&Said::Unfit { why: error.to_string() })?;
            return Ok(ExitCode::FAILURE);
        }
    };
    wire.say(&Said::Ready)?;
    let mut is_first = true;
    while let Some((job, bytes)) = wire.next()? {
        // Only before the first byte of a document is read: afterwards the process may be compromised.
        if std::mem::take(&mut is_first) {
            confine::processor_lifetime(job.cpu_lifetime)?;
        }
        confine::processor(job.cpu_seconds)?;
        let said = read(&Arc::new(bytes), &job, &eyes, &mut wire);
        wire.say(&said)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Enters the sandbox before the first byte of a document is read.
fn confine(memory: u64) -> Result<Eyes, Box<dyn std::error::Error>> {
    // Both read files of the operating system.
    let (mapped, count) = (confine::Mapped::open(), eyes::count());
    // Landlock applies to threads started later, but not to existing ones.
    confine::files()?;
    // Starting a thread needs more permissions than running one, so all threads must have started.
    let begun = Arc::new(Barrier::new(2 + count));
    let eyes = Eyes::open(count, &begun)?;
    let other = begun.clone();
    std::thread::Builder::new().name("parent".into()).spawn(move || {
        other.wait();
        end_with_parent();
    })?;
    begun.wait();
    confine::memory(memory, mapped)?;
    confine::calls()?;
    Ok(eyes)
}

/// Polls stdin, which hangs up when the parent dies.
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

/// Extracts one document. A panic of a parser fails only this document, and the pages before it are retained.
fn read(bytes: &Arc<Vec<u8>>, job: &Job, eyes: &Eyes, wire: &mut Wire<'_>) -> Said {
    let (format, warning) = match corbie_extract::resolve(job.named, bytes) {
        Ok(resolved) => resolved,
        Err(error) => return failed(&error),
    };
    wire.tell(&Said::Began { format });
    let options = Options { limits: job.limits.clone(), full: job.full, pictures: job.sight.ocr != Ocr::Off };
    let mut seeing = Seeing::new(bytes, format, job, eyes, wire);
    let read = catch_unwind(AssertUnwindSafe(|| corbie_extract::read(bytes, format, &options, &mut seeing)));
    let read = read.unwrap_or_else(|_| Err(Error::Corrupted("reading it failed in a way nobody expected".into())));
    let seen = seeing.end(read.as_ref().ok());
    if std::mem::take(&mut wire.too_large) {
        return failed(&Error::TooMuch { what: "bytes of text and tables on one page", most: LARGEST as u64 });
    }
    match (read, seen.broken) {
        (Ok(mut summary), None) => {
            summary.warnings.extend(seen.warnings);
            summary.warnings.extend(warning);
            Said::Done { summary: Box::new(summary), unread: seen.unread, wordless: seen.wordless }
        }
        (Ok(_), Some(error)) | (Err(error), _) => failed(&error),
    }
}

fn failed(error: &Error) -> Said {
    Said::Failed { kind: error.kind().into(), message: message(error) }
}

/// Adds the name of the setting that raises the limit, if any.
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
