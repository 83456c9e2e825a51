//! Runs a program to completion and measures its resource usage, including child processes.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use rustix::process::{WaitOptions, getpid, set_child_subreaper, wait};

use crate::process::sleep;
use crate::process_tree;

/// Output and cost.
#[derive(Debug)]
pub(super) struct ProcessStats {
    pub(super) output: String,
    pub(super) succeeded: bool,
    /// User and system time of all processes.
    pub(super) cpu_s: f64,
    pub(super) wall_s: f64,
    /// Peak memory of a single process.
    pub(super) peak_mb: f64,
}

const FOLDER: &str = ".tools/bench/logs";
/// Polling interval of the memory. The kernel keeps the peak of a process until it ends.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Timeout of a program.
const RUN_TIMEOUT: Duration = Duration::from_secs(900);
/// Orphaned processes end soon, unless the machine is busy.
const ORPHAN_TIMEOUT: Duration = Duration::from_secs(60);

/// Runs one program; no other process may be started meanwhile, because the CPU time is that of all children.
pub(super) fn run(command: Command) -> Result<ProcessStats> {
    run_in(Path::new(FOLDER), command)
}

fn run_in(folder: &Path, mut command: Command) -> Result<ProcessStats> {
    // A worker whose parent ends first becomes a child of this process, so that its time counts.
    set_child_subreaper(Some(getpid()))?;
    fs::create_dir_all(folder)?;
    let log = File::options().create(true).append(true).open(folder.join("ocr.log"))?;
    // A file, not a pipe that has to be drained.
    let output = folder.join("ocr-output");
    command.stdin(Stdio::null()).stdout(File::create(&output)?).stderr(log);
    let before = cpu_seconds()?;
    let started = Instant::now();
    let mut child = command.spawn().with_context(|| format!("cannot start {:?}", command.get_program()))?;
    let mut peaks = HashMap::new();
    let status = loop {
        sample_peaks(child.id(), &mut peaks);
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if started.elapsed() > RUN_TIMEOUT {
            child.kill()?;
            child.wait()?;
            bail!("{:?} has not ended after {RUN_TIMEOUT:?}", command.get_program());
        }
        sleep(POLL_INTERVAL);
    };
    let wall_s = started.elapsed().as_secs_f64();
    wait_for_orphans(&mut peaks)?;
    Ok(ProcessStats {
        output: String::from_utf8_lossy(&fs::read(output)?).into_owned(),
        succeeded: status.success(),
        cpu_s: cpu_seconds()? - before,
        wall_s,
        peak_mb: peaks.into_values().max().unwrap_or_default() as f64 * 1024.0 / 1e6,
    })
}

/// Waits for orphaned processes of the program.
fn wait_for_orphans(peaks: &mut HashMap<u32, u64>) -> Result<()> {
    let asked = Instant::now();
    while asked.elapsed() < ORPHAN_TIMEOUT {
        sample_peaks(std::process::id(), peaks);
        match wait(WaitOptions::NOHANG) {
            Ok(None) => sleep(POLL_INTERVAL),
            Ok(Some(_)) => {}
            // No child is left.
            Err(_) => return Ok(()),
        }
    }
    bail!("a process that was left behind does not end")
}

/// Peak kilobytes of this process's descendants, by process.
fn sample_peaks(root: u32, peaks: &mut HashMap<u32, u64>) {
    let own = std::process::id();
    for process in process_tree::process_tree(root).unwrap_or_default().into_iter().filter(|process| *process != own) {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
        if let Ok(peak) = line.trim().trim_end_matches("kB").trim().parse() {
            peaks.insert(process, peak);
        }
    }
}

fn cpu_seconds() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    Ok((usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_worker_that_outlives_its_owner_counts() {
        let scratch = std::env::temp_dir().join(format!("bench-ocr-{}", std::process::id()));
        let mut command = Command::new("bash");
        // The worker runs for a while after its parent has ended.
        command.args(["-c", "(for ((i = 0; i < 100000; i++)); do :; done) & echo text"]);
        let watched = run_in(&scratch, command).expect("bash runs");
        assert_eq!((watched.output.as_str(), watched.succeeded), ("text\n", true));
        assert!(watched.cpu_s > 0.02, "{watched:?}");
        assert!(watched.peak_mb > 0.5, "{watched:?}");
    }
}
