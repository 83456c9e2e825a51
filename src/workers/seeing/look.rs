//! One look at a picture: begun, and some time later done.

use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use corbie_extract::{Error, Raster};

use crate::workers::confine;
use crate::workers::eyes::{Answer, Eyes};
use crate::workers::message::{Said, Shown, Sight};
use crate::workers::wire::Wire;

/// Whoever reads pictures: this process, or the one that gave it the document.
pub(super) struct Gaze<'g, 'w> {
    pub(super) sight: Sight,
    pub(super) eyes: &'g Eyes,
    pub(super) wire: &'g mut Wire<'w>,
    /// How much of a processor all looks have taken.
    pub(super) took: Duration,
}

pub(super) enum Look {
    Awaited(Receiver<Answer>),
    Done(Shown),
    /// There is nothing to look at.
    Undrawn(Error),
}

/// Tesseract takes no picture that is longer.
const LONGEST: u32 = 32_767;

impl Gaze<'_, '_> {
    /// Looking takes longer than reading, and whoever waits gives it the time.
    pub(super) fn begin(&mut self, page: u32) {
        self.wire.tell(&Said::Looking { page });
    }

    pub(super) fn look(&mut self, drawn: Result<Raster, Error>) -> Look {
        match drawn {
            Ok(picture) if !self.sight.asks => {
                // Drawing the picture was a part of reading the document. The limit that is there already is the worst that
                // can come of it.
                let _ = confine::longer(self.sight.look_seconds.cast_signed());
                Look::Awaited(self.eyes.look(picture))
            }
            Ok(picture) if picture.width.max(picture.height) > LONGEST => {
                self.end();
                Look::Undrawn(Error::TooMuch { what: "dots in a row or a column", most: LONGEST.into() })
            }
            Ok(picture) => {
                // Without anybody who answers there is nothing left to do.
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

    /// Takes back what was given and not needed: looks that are soon done leave no time for anything else.
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
