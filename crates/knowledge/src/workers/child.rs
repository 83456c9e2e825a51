//! Worker process: enters the sandbox, then extracts documents until stdin ends.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::{Arc, Barrier};

use corbie_extract::{Error, Options};
use rustix::event::{PollFd, PollFlags, poll};

use super::ipc::IpcChannel;
use super::message::{MAX_MESSAGE_BYTES, OcrMode, WorkerJob, WorkerMessage};
use super::ocr::OcrPageSink;
use super::ocr_threads::{self, OcrPool};
use super::sandbox;

/// Runs until stdin ends. The process exits when its parent dies, even while it extracts a document.
pub fn run(memory: u64) -> Result<ExitCode, Box<dyn std::error::Error>> {
    // Panic messages are dropped, because stderr is discarded.
    std::panic::set_hook(Box::new(|_| {}));
    let mut wire = IpcChannel::new();
    let eyes = match enter_sandbox(memory) {
        Ok(eyes) => eyes,
        Err(error) => {
            wire.send(&WorkerMessage::SandboxFailed { why: error.to_string() })?;
            return Ok(ExitCode::FAILURE);
        }
    };
    wire.send(&WorkerMessage::Ready)?;
    let mut is_first = true;
    while let Some((job, bytes)) = wire.next_job()? {
        // Only before the first byte of a document is read: afterwards the process may be compromised.
        if std::mem::take(&mut is_first) {
            sandbox::processor_lifetime(job.cpu_lifetime)?;
        }
        sandbox::limit_cpu_time(job.cpu_seconds)?;
        let said = extract(&Arc::new(bytes), &job, &eyes, &mut wire);
        wire.send(&said)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Enters the sandbox before the first byte of a document is read.
fn enter_sandbox(memory: u64) -> Result<OcrPool, Box<dyn std::error::Error>> {
    // Both read files of the operating system.
    let (mapped, count) = (sandbox::MappedMemory::open(), ocr_threads::thread_count());
    // Landlock applies to threads started later, but not to existing ones.
    sandbox::deny_files()?;
    // Starting a thread needs more permissions than running one, so all threads must have started.
    let begun = Arc::new(Barrier::new(2 + count));
    let eyes = OcrPool::start(count, &begun)?;
    let other = begun.clone();
    std::thread::Builder::new().name("parent".into()).spawn(move || {
        other.wait();
        exit_with_parent();
    })?;
    begun.wait();
    sandbox::limit_memory(memory, mapped)?;
    sandbox::restrict_syscalls()?;
    Ok(eyes)
}

/// Polls stdin, which hangs up when the parent dies.
fn exit_with_parent() {
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
fn extract(bytes: &Arc<Vec<u8>>, job: &WorkerJob, eyes: &OcrPool, wire: &mut IpcChannel<'_>) -> WorkerMessage {
    let (format, warning) = match corbie_extract::resolve(job.format_hint, bytes) {
        Ok(resolved) => resolved,
        Err(error) => return failure_message(&error),
    };
    wire.send_or_exit(&WorkerMessage::Started { format });
    let options = Options { limits: job.limits.clone(), full: job.full, pictures: job.ocr.mode != OcrMode::Off };
    let mut seeing = OcrPageSink::new(bytes, format, job, eyes, wire);
    let read = catch_unwind(AssertUnwindSafe(|| corbie_extract::read(bytes, format, &options, &mut seeing)));
    let read = read.unwrap_or_else(|_| Err(Error::Corrupted("the parser failed unexpectedly".into())));
    let seen = seeing.finish(read.as_ref().ok());
    if std::mem::take(&mut wire.too_large) {
        return failure_message(&Error::TooMuch {
            what: "bytes of text and tables on one page",
            most: MAX_MESSAGE_BYTES as u64,
        });
    }
    match (read, seen.undecodable) {
        (Ok(mut summary), None) => {
            summary.warnings.extend(seen.warnings);
            summary.warnings.extend(warning);
            WorkerMessage::Done { summary: Box::new(summary), ocr_error: seen.error, wordless: seen.wordless }
        }
        (Ok(_), Some(error)) | (Err(error), _) => failure_message(&error),
    }
}

fn failure_message(error: &Error) -> WorkerMessage {
    WorkerMessage::Failed { kind: error.kind().into(), message: error_text(error) }
}

/// Adds the name of the setting that raises the limit, if any.
fn error_text(error: &Error) -> String {
    let setting = match error {
        Error::TooMuch { what: "pages" | "slides" | "sheets", .. } => "max_pages",
        Error::TooMuch { what: "cells" | "shared strings", .. } => "max_cells",
        Error::TooMuch { what: "bytes when decompressed", .. } => "max_unpacked",
        Error::TooMuch { what: "pixels", .. } => "max_pixels",
        _ => return error.to_string(),
    };
    format!("{error}, or increase `documents.{setting}`")
}
