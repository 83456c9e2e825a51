//! Extraction of one document by a worker: message loop, deadlines and result.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use corbie_extract::{Document, Format, Method, Page, Summary, Warning};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::{Instant, timeout_at};

use super::message::{Job, LARGEST_DOCUMENT, Said};
use super::pool::{Error, Read, Told};
use super::process::Worker;
use super::tesseract;
use super::words::Origin;
use crate::config::ocr::Ocr;

pub(super) struct Reading<'r> {
    job: &'r Job,
    ocr: &'r Ocr,
    tell: &'r mut (dyn FnMut(Told) + Send),
    /// Extended by the actual duration of each OCR job, up to a limit per job.
    pub(super) deadline: Instant,
    /// Deadline for the confirmation, until it arrives. OCR does not extend it, because no OCR job starts before it.
    begins_by: Option<Instant>,
    /// Start times of the unfinished OCR jobs.
    looking: VecDeque<Instant>,
    pub(super) heard: Heard,
}

/// Partial result.
#[derive(Debug, Default)]
pub(super) struct Heard {
    format: Option<Format>,
    pages: Vec<(Page, Origin)>,
    summary: Summary,
    wordless: bool,
    pub(super) looks: usize,
}

impl<'r> Reading<'r> {
    pub(super) fn new(
        job: &'r Job,
        ocr: &'r Ocr,
        deadline: Instant,
        tell: &'r mut (dyn FnMut(Told) + Send),
    ) -> Reading<'r> {
        let heard = Heard { format: job.named, ..Heard::default() };
        Reading { job, ocr, tell, deadline, begins_by: Some(deadline), looking: VecDeque::new(), heard }
    }

    /// Shortens the deadline for the confirmation, for a worker that may have failed while idle.
    pub(super) fn beginning_within(mut self, patience: Duration) -> Reading<'r> {
        self.begins_by = Some(self.deadline.min(Instant::now() + patience));
        self
    }

    /// CPU time limit of the document without OCR.
    pub(super) fn seconds(&self) -> u64 {
        self.job.cpu_seconds
    }

    /// Whether the worker has confirmed the document.
    pub(super) fn has_begun(&self) -> bool {
        self.begins_by.is_none()
    }

    /// Deadline for the next message.
    fn until(&self) -> Instant {
        self.begins_by.unwrap_or(self.deadline)
    }

    /// Sends the document and receives messages until it is done. Returns the error if extraction is incomplete.
    pub(super) async fn follow(&mut self, worker: &mut Worker, bytes: &[u8]) -> io::Result<Option<Error>> {
        let (stdin, stdout) = worker.ends();
        // A worker without a sandbox reads no document, so the write may fail. Its message has the reason.
        let given = timeout_at(self.until(), Worker::give(stdin, self.job, bytes)).await?;
        match self.listen(stdin, stdout).await {
            Err(error) => Err(given.err().unwrap_or(error)),
            heard => heard,
        }
    }

    async fn listen(&mut self, stdin: &mut ChildStdin, stdout: &mut ChildStdout) -> io::Result<Option<Error>> {
        let mut heard = 0;
        loop {
            let (said, length) = timeout_at(self.until(), Worker::hear(stdout)).await??;
            heard += length;
            if heard > LARGEST_DOCUMENT {
                return Err(io::ErrorKind::InvalidData.into());
            }
            if !matches!(said, Said::Ready) {
                self.begins_by = None;
            }
            match said {
                Said::Ready => {}
                Said::Unfit { why } => return Ok(Some(Error::Start(why))),
                Said::Began { format } => self.heard.format = Some(format),
                Said::Pages { count } => (self.tell)(Told::Pages(count)),
                Said::Looking { page } => self.looking(page)?,
                Said::Looked => self.looked(),
                Said::Show { width, height } => self.show(width, height, stdin, stdout).await?,
                Said::Page { page, origin } => {
                    self.heard.pages.push((page, origin));
                    (self.tell)(Told::Done(u32::try_from(self.heard.pages.len()).unwrap_or(u32::MAX)));
                }
                Said::Done { summary, unread, wordless } => {
                    (self.heard.summary, self.heard.wordless) = (*summary, wordless && unread.is_none());
                    return Ok(unread.map(Error::Ocr));
                }
                Said::Failed { kind, message } => return Ok(Some(Error::Document { kind, message })),
            }
        }
    }

    /// Limits the number of OCR jobs: one per page, or one per image of a document.
    fn looking(&mut self, page: u32) -> io::Result<()> {
        self.heard.looks += 1;
        if self.heard.looks > self.job.max_looks {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.looking.push_back(Instant::now());
        self.deadline += self.ocr.page_timeout.get();
        (self.tell)(Told::Looking(page));
        Ok(())
    }

    /// Shortens the deadline by the time that an OCR job did not use.
    fn looked(&mut self) {
        if let Some(begun) = self.looking.pop_front() {
            self.deadline -= self.ocr.page_timeout.get().saturating_sub(begun.elapsed());
        }
    }

    /// Runs Tesseract on an image.
    async fn show(
        &mut self,
        width: u32,
        height: u32,
        stdin: &mut ChildStdin,
        stdout: &mut ChildStdout,
    ) -> io::Result<()> {
        let dots = u64::from(width) * u64::from(height);
        if dots > self.job.limits.pixels {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let picture = timeout_at(self.deadline, Worker::see(stdout, dots as usize)).await??;
        let shown = tesseract::read(self.ocr, width, height, &picture).await;
        timeout_at(self.deadline, Worker::answer(stdin, &shown)).await?
    }
}

impl Heard {
    /// Appends the pages that a second attempt without OCR has extracted in addition.
    pub(super) fn complete(&mut self, again: Heard) {
        let done = self.pages.len();
        self.format = again.format.or(self.format);
        self.pages.extend(again.pages.into_iter().skip(done));
        self.summary = again.summary;
        let first = self.pages.get(done).map(|(page, _)| page.number);
        let message = "from here on, nothing was read as a picture";
        self.summary.warnings.extend(first.map(|first| Warning::on(first, message)));
    }

    /// The extracted document, possibly incomplete.
    pub(super) fn end(self, error: Option<Error>) -> Result<Read, Error> {
        let Summary { metadata, warnings, .. } = self.summary;
        let format = self.format.unwrap_or(Format::Text);
        let (pages, origins): (Vec<Page>, Vec<Origin>) = self.pages.into_iter().unzip();
        let origin = origins.into_iter().fold(Origin::default(), Origin::and);
        let method = if format.is_picture() { Method::ImageAnalysis } else { origin.method() };
        let document = Document { format, pages, metadata, method, warnings };
        let says_something = document.says_something();
        match error {
            Some(error) if document.pages.is_empty() => Err(error),
            Some(error) => Ok(Read { document, partial: Some(error), wordless: false }),
            None => {
                Ok(Read { document, partial: (!says_something).then(|| no_text(self.looks)), wordless: self.wordless })
            }
        }
    }
}

/// Error for a document without text.
fn no_text(looks: usize) -> Error {
    let message = match looks {
        0 => "no text was found in the file: what it shows is a picture, and pictures were not read",
        _ => "no text was found in the file: what it shows is a picture, and no words were found in it",
    };
    Error::Document { kind: corbie_extract::Error::NoText.kind().into(), message: message.into() }
}
