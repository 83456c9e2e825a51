//! OCR jobs: dispatch of an image, and its pending result.

use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use corbie_extract::{Error, Raster};

use crate::workers::confine;
use crate::workers::eyes::{Answer, Eyes};
use crate::workers::message::{Said, Shown, Sight};
use crate::workers::wire::Wire;

/// Dispatches images to the OCR threads of this process, or to the parent.
pub(super) struct Gaze<'g, 'w> {
    pub(super) sight: Sight,
    pub(super) eyes: &'g Eyes,
    pub(super) wire: &'g mut Wire<'w>,
    /// CPU time used by all OCR jobs.
    pub(super) took: Duration,
}

pub(super) enum Look {
    Awaited(Receiver<Answer>),
    Done(Shown),
    /// The image could not be rendered.
    Undrawn(Error),
}

/// Maximum image size of Tesseract, in pixels per side.
const LONGEST: u32 = 32_767;

impl Gaze<'_, '_> {
    /// Announces an OCR job, so that the parent extends the deadline.
    pub(super) fn begin(&mut self, page: u32) {
        self.wire.tell(&Said::Looking { page });
    }

    pub(super) fn look(&mut self, drawn: Result<Raster, Error>) -> Look {
        match drawn {
            Ok(picture) if !self.sight.asks => {
                // Raised after rendering, which counts as extraction. If raising fails, the existing limit applies.
                let _ = confine::longer(self.sight.look_seconds.cast_signed());
                Look::Awaited(self.eyes.look(picture))
            }
            Ok(picture) if picture.width.max(picture.height) > LONGEST => {
                self.end();
                Look::Undrawn(Error::TooMuch { what: "dots in a row or a column", most: LONGEST.into() })
            }
            Ok(picture) => {
                // The parent is dead, so the worker exits.
                let shown = self.wire.show(&picture).unwrap_or_else(|_| std::process::exit(1));
                self.end();
                Look::Done(shown)
            }
            Err(error) => {
                self.end();
                Look::Undrawn(error)
            }
        }
    }

    pub(super) fn end(&mut self) {
        self.wire.tell(&Said::Looked);
    }

    /// Lowers the limit by the unused time, so that it is not available for anything but OCR.
    fn take_back(&mut self, took: Duration) {
        let before = self.took.as_secs();
        self.took += took.min(Duration::from_secs(self.sight.look_seconds));
        let needed = self.took.as_secs() - before;
        let _ = confine::longer(needed.cast_signed() - self.sight.look_seconds.cast_signed());
    }
}

impl Look {
    pub(super) fn is_done(&mut self, wait: bool, gaze: &mut Gaze<'_, '_>) -> bool {
        let Look::Awaited(answer) = self else { return true };
        let gone = || Answer { shown: Err("nobody has read it".to_owned()), took: Duration::ZERO };
        let Answer { shown, took } = match answer.try_recv() {
            Ok(answer) => answer,
            Err(TryRecvError::Empty) if wait => answer.recv().unwrap_or_else(|_| gone()),
            Err(TryRecvError::Empty) => return false,
            Err(TryRecvError::Disconnected) => gone(),
        };
        gaze.take_back(took);
        gaze.end();
        *self = Look::Done(shown);
        true
    }
}
