//! Samples the resource usage of the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::server::{ResourceUsage, ServerProcess};

const SAMPLE_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(crate) struct ResourceSampler {
    first: ResourceUsage,
    stopped: Arc<AtomicBool>,
    sampler: JoinHandle<ResourceUsage>,
}

impl ResourceSampler {
    pub(crate) fn start(server: &ServerProcess) -> ResourceSampler {
        let first = server.resource_usage().unwrap_or_default();
        let over = Arc::new(AtomicBool::new(false));
        let (pid, until) = (server.pid(), Arc::clone(&over));
        let looking = std::thread::spawn(move || {
            let mut most = first;
            while !until.load(Ordering::Relaxed) {
                let now = ResourceUsage::of_process(pid).unwrap_or_default();
                most = ResourceUsage {
                    files: most.files.max(now.files),
                    threads: most.threads.max(now.threads),
                    memory: most.memory.max(now.memory),
                };
                std::thread::sleep(SAMPLE_INTERVAL);
            }
            most
        });
        ResourceSampler { first, stopped: over, sampler: looking }
    }

    /// The first and the maximum usage.
    pub(crate) fn stop(self) -> (ResourceUsage, ResourceUsage) {
        self.stopped.store(true, Ordering::Relaxed);
        (self.first, self.sampler.join().unwrap_or_default())
    }
}
