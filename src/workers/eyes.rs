//! OCR threads.
//!
//! They start before the sandbox forbids new threads, and use no resources until the first image arrives: the first job
//! loads the networks, which all threads share.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Barrier, Mutex, OnceLock};
use std::time::Duration;

use corbie_extract::Raster;
use corbie_infer::ocr::{Engine, Picture, Settings};
use rustix::time::{ClockId, clock_gettime};

use super::message::Shown;
use super::words::Words;
use crate::locked::locked;

#[derive(Debug)]
pub(super) struct Eyes {
    tasks: SyncSender<Task>,
}

#[derive(Debug)]
struct Task {
    picture: Raster,
    answer: Sender<Answer>,
}

/// Result of an OCR job.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) shown: Shown,
    /// CPU time used.
    pub(super) took: Duration,
}

type Shared = OnceLock<Result<Engine, String>>;

impl Eyes {
    /// Starts `count` threads. Each waits at the barrier `begun`.
    pub(super) fn open(count: usize, begun: &Arc<Barrier>) -> io::Result<Eyes> {
        // Unbuffered: the caller waits until a thread is free, because images are large.
        let (tasks, taken) = sync_channel(0);
        let taken = Arc::new(Mutex::new(taken));
        let engine = Arc::new(Shared::new());
        for _ in 0..count {
            let (taken, engine, begun) = (taken.clone(), engine.clone(), begun.clone());
            std::thread::Builder::new().name("eye".into()).spawn(move || {
                begun.wait();
                watch(&taken, &engine);
            })?;
        }
        Ok(Eyes { tasks })
    }

    /// Submits an image. The receiver gets the result.
    pub(super) fn look(&self, picture: Raster) -> Receiver<Answer> {
        let (answer, answered) = channel();
        // Cannot fail: the threads end only with the process.
        let _ = self.tasks.send(Task { picture, answer });
        answered
    }
}

pub(super) fn count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(4)
}

fn watch(tasks: &Mutex<Receiver<Task>>, engine: &Shared) {
    loop {
        let task = locked(tasks).recv();
        let Ok(Task { picture, answer }) = task else { return };
        let begun = taken();
        let read = catch_unwind(AssertUnwindSafe(|| read(&picture, engine)));
        let shown = read.unwrap_or_else(|_| Err("reading a picture failed in a way nobody expected".into()));
        // The receiver may have been dropped.
        let _ = answer.send(Answer { shown, took: taken().saturating_sub(begun) });
    }
}

/// CPU time used by this thread.
fn taken() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

fn read(picture: &Raster, engine: &Shared) -> Shown {
    let engine = engine.get_or_init(|| Engine::builtin().map_err(|error| error.to_string())).as_ref()?;
    let picture = Picture { width: picture.width, height: picture.height, rgb: &picture.rgb };
    let seen = engine.recognise(picture, &Settings::default()).map_err(|error| error.to_string())?;
    Ok(Words::of(&seen))
}
