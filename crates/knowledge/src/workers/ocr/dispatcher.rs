//! OCR jobs: dispatch of an image, and its pending result.

use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use corbie_extract::{Error, Raster};

use crate::workers::ipc::IpcChannel;
use crate::workers::message::{OcrConfig, OcrResult, WorkerMessage};
use crate::workers::ocr_threads::{OcrPool, OcrReply};
use crate::workers::sandbox;

/// Dispatches images to the OCR threads of this process, or to the parent.
pub(super) struct OcrDispatcher<'g, 'w> {
    pub(super) config: OcrConfig,
    pub(super) pool: &'g OcrPool,
    pub(super) channel: &'g mut IpcChannel<'w>,
    /// CPU time used by all OCR jobs.
    pub(super) cpu_time: Duration,
}

pub(super) enum OcrJob {
    Pending(Receiver<OcrReply>),
    Done(OcrResult),
    /// The image could not be rendered.
    NotRendered(Error),
}

/// Maximum image size of Tesseract, in pixels per side.
const MAX_TESSERACT_SIDE: u32 = 32_767;

impl OcrDispatcher<'_, '_> {
    /// Announces an OCR job, so that the parent extends the deadline.
    pub(super) fn begin_job(&mut self, page: u32) {
        self.channel.send_or_exit(&WorkerMessage::OcrStarted { page });
    }

    pub(super) fn dispatch(&mut self, drawn: Result<Raster, Error>) -> OcrJob {
        match drawn {
            Ok(picture) if !self.config.is_delegated => {
                // Raised after rendering, which counts as extraction. If raising fails, the existing limit applies.
                let _ = sandbox::extend_cpu_time(self.config.cpu_seconds_per_image.cast_signed());
                OcrJob::Pending(self.pool.submit(picture))
            }
            Ok(picture) if picture.width.max(picture.height) > MAX_TESSERACT_SIDE => {
                self.finish_job();
                OcrJob::NotRendered(Error::TooMuch {
                    what: "pixels in width or height",
                    most: MAX_TESSERACT_SIDE.into(),
                })
            }
            Ok(picture) => {
                // The parent is dead, so the worker exits.
                let shown = self.channel.request_ocr(&picture).unwrap_or_else(|_| std::process::exit(1));
                self.finish_job();
                OcrJob::Done(shown)
            }
            Err(error) => {
                self.finish_job();
                OcrJob::NotRendered(error)
            }
        }
    }

    pub(super) fn finish_job(&mut self) {
        self.channel.send_or_exit(&WorkerMessage::OcrFinished);
    }

    /// Lowers the limit by the unused time, so that it is not available for anything but OCR.
    fn take_back(&mut self, took: Duration) {
        let before = self.cpu_time.as_secs();
        self.cpu_time += took.min(Duration::from_secs(self.config.cpu_seconds_per_image));
        let needed = self.cpu_time.as_secs() - before;
        let _ = sandbox::extend_cpu_time(needed.cast_signed() - self.config.cpu_seconds_per_image.cast_signed());
    }
}

impl OcrJob {
    pub(super) fn poll(&mut self, wait: bool, gaze: &mut OcrDispatcher<'_, '_>) -> bool {
        let OcrJob::Pending(answer) = self else { return true };
        let gone = || OcrReply { result: Err("OCR was cancelled".to_owned()), cpu_time: Duration::ZERO };
        let OcrReply { result: shown, cpu_time: took } = match answer.try_recv() {
            Ok(answer) => answer,
            Err(TryRecvError::Empty) if wait => answer.recv().unwrap_or_else(|_| gone()),
            Err(TryRecvError::Empty) => return false,
            Err(TryRecvError::Disconnected) => gone(),
        };
        gaze.take_back(took);
        gaze.finish_job();
        *self = OcrJob::Done(shown);
        true
    }
}
