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
use corbie_infer::ocr::{ImageRef, OcrEngine, OcrOptions};
use rustix::time::{ClockId, clock_gettime};

use super::message::OcrResult;
use super::ocr_text::OcrText;
use corbie_util::lock::lock;

#[derive(Debug)]
pub(super) struct OcrPool {
    requests: SyncSender<OcrRequest>,
}

#[derive(Debug)]
struct OcrRequest {
    image: Raster,
    reply: Sender<OcrReply>,
}

/// Result of an OCR job.
#[derive(Debug)]
pub(super) struct OcrReply {
    pub(super) result: OcrResult,
    /// CPU time used.
    pub(super) cpu_time: Duration,
}

type SharedEngine = OnceLock<Result<OcrEngine, String>>;

impl OcrPool {
    /// Starts `count` threads. Each waits at the barrier `begun`.
    pub(super) fn start(count: usize, begun: &Arc<Barrier>) -> io::Result<OcrPool> {
        // Unbuffered: the caller waits until a thread is free, because images are large.
        let (tasks, taken) = sync_channel(0);
        let taken = Arc::new(Mutex::new(taken));
        let engine = Arc::new(SharedEngine::new());
        for _ in 0..count {
            let (taken, engine, begun) = (taken.clone(), engine.clone(), begun.clone());
            std::thread::Builder::new().name("eye".into()).spawn(move || {
                begun.wait();
                run_thread(&taken, &engine);
            })?;
        }
        Ok(OcrPool { requests: tasks })
    }

    /// Submits an image. The receiver gets the result.
    pub(super) fn submit(&self, picture: Raster) -> Receiver<OcrReply> {
        let (answer, answered) = channel();
        // Cannot fail: the threads end only with the process.
        let _ = self.requests.send(OcrRequest { image: picture, reply: answer });
        answered
    }
}

pub(super) fn thread_count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(4)
}

fn run_thread(tasks: &Mutex<Receiver<OcrRequest>>, engine: &SharedEngine) {
    loop {
        let task = lock(tasks).recv();
        let Ok(OcrRequest { image: picture, reply: answer }) = task else { return };
        let begun = thread_cpu_time();
        let read = catch_unwind(AssertUnwindSafe(|| recognize(&picture, engine)));
        let shown = read.unwrap_or_else(|_| Err("OCR failed unexpectedly".into()));
        // The receiver may have been dropped.
        let _ = answer.send(OcrReply { result: shown, cpu_time: thread_cpu_time().saturating_sub(begun) });
    }
}

/// CPU time used by this thread.
fn thread_cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

fn recognize(picture: &Raster, engine: &SharedEngine) -> OcrResult {
    let engine = engine.get_or_init(|| OcrEngine::builtin().map_err(|error| error.to_string())).as_ref()?;
    let picture = ImageRef { width: picture.width, height: picture.height, rgb: &picture.rgb };
    let seen = engine.recognize(picture, &OcrOptions::default()).map_err(|error| error.to_string())?;
    Ok(OcrText::of(&seen))
}
