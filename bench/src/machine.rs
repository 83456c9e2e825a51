//! Machine and time of a measurement, without which numbers are meaningless.

use std::fs;
use std::process::Command;
use std::time::Instant;

use serde::Serialize;

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Machine {
    pub(crate) date: String,
    pub(crate) cores: usize,
    pub(crate) cpu: String,
    pub(crate) kernel: String,
    /// One-minute load average before the run, from other programs.
    pub(crate) load_before: f64,
    /// The same after the run, including its own load.
    pub(crate) load_after: f64,
}

impl Machine {
    pub(crate) fn detect() -> Machine {
        let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let cpu = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        let date = Command::new("date").args(["-u", "+%F %H:%M UTC"]).output();
        // The release numbers; the part after a dash is added by the distributor.
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Machine {
            date: date.map(|date| String::from_utf8_lossy(&date.stdout).trim().to_owned()).unwrap_or_default(),
            cores: core_count(),
            cpu: cpu.map(|(_, name)| name.trim().to_owned()).unwrap_or_else(|| "unknown".into()),
            kernel: kernel.split('-').next().unwrap_or_default().trim().to_owned(),
            load_before: load_average(),
            load_after: load_average(),
        }
    }

    pub(crate) fn update_load(&mut self) {
        self.load_after = load_average();
    }

    pub(crate) fn describe(&self) -> String {
        format!(
            "{}, {} cores of {}, kernel {}, load average {:.2} before and {:.2} after",
            self.date, self.cores, self.cpu, self.kernel, self.load_before, self.load_after
        )
    }
}

pub(crate) fn core_count() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get())
}

/// Seconds to copy a megabyte outside the caches on this machine: one pass over the bytes.
pub(crate) fn seconds_per_megabyte_copied() -> f64 {
    const MEGABYTE: usize = 1_000_000;
    let from = vec![1u8; 64 * MEGABYTE];
    let mut to = vec![0u8; 64 * MEGABYTE];
    let copies = (0..5).map(|_| {
        let started = Instant::now();
        to.copy_from_slice(std::hint::black_box(&from));
        std::hint::black_box(&mut to);
        started.elapsed().as_secs_f64() / 64.0
    });
    copies.fold(f64::INFINITY, f64::min)
}

fn load_average() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_ascii_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(f64::NAN)
}
