//! Extraction of one document by a worker: message loop, deadlines and result.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use corbie_extract::{Document, ExtractionMethod, Format, Page, Summary, Warning};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::{Instant, timeout_at};

use super::message::{MAX_DOCUMENT_BYTES, WorkerJob, WorkerMessage};
use super::ocr_text::TextSource;
use super::pool::{Error, Extraction, WorkerProgress};
use super::process::Worker;
use super::tesseract;
use corbie_config::ocr::Ocr;

pub(super) struct ExtractionSession<'r> {
    job: &'r WorkerJob,
    ocr: &'r Ocr,
    on_progress: &'r mut (dyn FnMut(WorkerProgress) + Send),
    /// Extended by the actual duration of each OCR job, up to a limit per job.
    pub(super) deadline: Instant,
    /// Deadline for the confirmation, until it arrives. OCR does not extend it, because no OCR job starts before it.
    start_deadline: Option<Instant>,
    /// Start times of the unfinished OCR jobs.
    ocr_started: VecDeque<Instant>,
    pub(super) partial: PartialResult,
}

/// Partial result.
#[derive(Debug, Default)]
pub(super) struct PartialResult {
    format: Option<Format>,
    pages: Vec<(Page, TextSource)>,
    summary: Summary,
    wordless: bool,
    pub(super) ocr_jobs: usize,
}

impl<'r> ExtractionSession<'r> {
    pub(super) fn new(
        job: &'r WorkerJob,
        ocr: &'r Ocr,
        deadline: Instant,
        tell: &'r mut (dyn FnMut(WorkerProgress) + Send),
    ) -> ExtractionSession<'r> {
        let heard = PartialResult { format: job.format_hint, ..PartialResult::default() };
        ExtractionSession {
            job,
            ocr,
            on_progress: tell,
            deadline,
            start_deadline: Some(deadline),
            ocr_started: VecDeque::new(),
            partial: heard,
        }
    }

    /// Shortens the deadline for the confirmation, for a worker that may have failed while idle.
    pub(super) fn start_within(mut self, patience: Duration) -> ExtractionSession<'r> {
        self.start_deadline = Some(self.deadline.min(Instant::now() + patience));
        self
    }

    /// CPU time limit of the document without OCR.
    pub(super) fn seconds(&self) -> u64 {
        self.job.cpu_seconds
    }

    /// Whether the worker has confirmed the document.
    pub(super) fn has_started(&self) -> bool {
        self.start_deadline.is_none()
    }

    /// Deadline for the next message.
    fn next_deadline(&self) -> Instant {
        self.start_deadline.unwrap_or(self.deadline)
    }

    /// Sends the document and receives messages until it is done. Returns the error if extraction is incomplete.
    pub(super) async fn run(&mut self, worker: &mut Worker, bytes: &[u8]) -> io::Result<Option<Error>> {
        let (stdin, stdout) = worker.pipes();
        // A worker without a sandbox reads no document, so the write may fail. Its message has the reason.
        let given = timeout_at(self.next_deadline(), Worker::send_job(stdin, self.job, bytes)).await?;
        match self.receive_messages(stdin, stdout).await {
            Err(error) => Err(given.err().unwrap_or(error)),
            heard => heard,
        }
    }

    async fn receive_messages(
        &mut self,
        stdin: &mut ChildStdin,
        stdout: &mut ChildStdout,
    ) -> io::Result<Option<Error>> {
        let mut heard = 0;
        loop {
            let (said, length) = timeout_at(self.next_deadline(), Worker::receive(stdout)).await??;
            heard += length;
            if heard > MAX_DOCUMENT_BYTES {
                return Err(io::ErrorKind::InvalidData.into());
            }
            if !matches!(said, WorkerMessage::Ready) {
                self.start_deadline = None;
            }
            match said {
                WorkerMessage::Ready => {}
                WorkerMessage::SandboxFailed { why } => return Ok(Some(Error::NotStarted(why))),
                WorkerMessage::Started { format } => self.partial.format = Some(format),
                WorkerMessage::Pages { count } => (self.on_progress)(WorkerProgress::PageCount(count)),
                WorkerMessage::OcrStarted { page } => self.on_ocr_started(page)?,
                WorkerMessage::OcrFinished => self.on_ocr_finished(),
                WorkerMessage::RecognizeImage { width, height } => {
                    self.run_tesseract(width, height, stdin, stdout).await?
                }
                WorkerMessage::Page { page, origin } => {
                    self.partial.pages.push((page, origin));
                    (self.on_progress)(WorkerProgress::PagesDone(
                        u32::try_from(self.partial.pages.len()).unwrap_or(u32::MAX),
                    ));
                }
                WorkerMessage::Done { summary, ocr_error: unread, wordless } => {
                    (self.partial.summary, self.partial.wordless) = (*summary, wordless && unread.is_none());
                    return Ok(unread.map(Error::Ocr));
                }
                WorkerMessage::Failed { kind, message } => return Ok(Some(Error::Document { kind, message })),
            }
        }
    }

    /// Limits the number of OCR jobs: one per page, or one per image of a document.
    fn on_ocr_started(&mut self, page: u32) -> io::Result<()> {
        self.partial.ocr_jobs += 1;
        if self.partial.ocr_jobs > self.job.max_looks {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.ocr_started.push_back(Instant::now());
        self.deadline += self.ocr.page_timeout.get();
        (self.on_progress)(WorkerProgress::OcrPage(page));
        Ok(())
    }

    /// Shortens the deadline by the time that an OCR job did not use.
    fn on_ocr_finished(&mut self) {
        if let Some(begun) = self.ocr_started.pop_front() {
            self.deadline -= self.ocr.page_timeout.get().saturating_sub(begun.elapsed());
        }
    }

    /// Runs Tesseract on an image.
    async fn run_tesseract(
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
        let picture = timeout_at(self.deadline, Worker::receive_image(stdout, dots as usize)).await??;
        let shown = tesseract::recognize(self.ocr, width, height, &picture).await;
        timeout_at(self.deadline, Worker::send_ocr_result(stdin, &shown)).await?
    }
}

impl PartialResult {
    /// Appends the pages that a second attempt without OCR has extracted in addition.
    pub(super) fn append(&mut self, again: PartialResult) {
        let done = self.pages.len();
        self.format = again.format.or(self.format);
        self.pages.extend(again.pages.into_iter().skip(done));
        self.summary = again.summary;
        let first = self.pages.get(done).map(|(page, _)| page.number);
        let message = "OCR was not applied from this page on";
        self.summary.warnings.extend(first.map(|first| Warning::on_page(first, message)));
    }

    /// The extracted document, possibly incomplete.
    pub(super) fn into_result(self, error: Option<Error>) -> Result<Extraction, Error> {
        let Summary { metadata, warnings, .. } = self.summary;
        let format = self.format.unwrap_or(Format::Text);
        let (pages, origins): (Vec<Page>, Vec<TextSource>) = self.pages.into_iter().unzip();
        let origin = origins.into_iter().fold(TextSource::default(), TextSource::combine);
        let method = if format.is_image() { ExtractionMethod::ImageAnalysis } else { origin.method() };
        let document = Document { format, pages, metadata, method, warnings };
        let says_something = document.has_text();
        match error {
            Some(error) if document.pages.is_empty() => Err(error),
            Some(error) => Ok(Extraction { document, partial: Some(error), wordless: false }),
            None => Ok(Extraction {
                document,
                partial: (!says_something).then(|| no_text_error(self.ocr_jobs)),
                wordless: self.wordless,
            }),
        }
    }
}

/// Error for a document without text.
fn no_text_error(looks: usize) -> Error {
    let message = match looks {
        0 => "no text found: the file contains only images, and OCR was not applied",
        _ => "no text found: the file contains only images, and OCR found no text in them",
    };
    Error::Document { kind: corbie_extract::Error::NoText.kind().into(), message: message.into() }
}
