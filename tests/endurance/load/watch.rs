//! Samples the resource usage of the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::server::{Holds, Server};

const EVERY: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(crate) struct Watch {
    first: Holds,
    over: Arc<AtomicBool>,
    looking: JoinHandle<Holds>,
}

impl Watch {
    pub(crate) fn begin(server: &Server) -> Watch {
        let first = server.holds().unwrap_or_default();
        let over = Arc::new(AtomicBool::new(false));
        let (pid, until) = (server.pid(), Arc::clone(&over));
        let looking = std::thread::spawn(move || {
            let mut most = first;
            while !until.load(Ordering::Relaxed) {
                let now = Holds::of(pid).unwrap_or_default();
                most = Holds {
                    files: most.files.max(now.files),
                    threads: most.threads.max(now.threads),
                    memory: most.memory.max(now.memory),
                };
                std::thread::sleep(EVERY);
            }
            most
        });
        Watch { first, over, looking }
    }

    /// The first and the maximum usage.
    pub(crate) fn end(self) -> (Holds, Holds) {
        self.over.store(true, Ordering::Relaxed);
        (self.first, self.looking.join().unwrap_or_default())
    }
}
