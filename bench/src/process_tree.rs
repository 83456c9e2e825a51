//! Resource usage of a process and its descendants, from `/proc`.

use std::collections::HashMap;
use std::fs;

use anyhow::{Context, Result};

/// User and system CPU time of every thread.
///
/// The scheduler's nanoseconds rather than the clock ticks of `stat`: a slow stream takes only a few ticks.
#[derive(Debug)]
pub(crate) struct CpuSnapshot(HashMap<u32, u64>);

impl CpuSnapshot {
    pub(crate) fn of(root: u32) -> Result<CpuSnapshot> {
        let mut threads = HashMap::new();
        for process in process_tree(root)? {
            for thread in numeric_entries(&format!("/proc/{process}/task"))? {
                // A thread that has just ended has no file any more.
                let times = fs::read_to_string(format!("/proc/{process}/task/{thread}/schedstat")).unwrap_or_default();
                if let Some(Ok(busy)) = times.split_ascii_whitespace().next().map(str::parse) {
                    threads.insert(thread, busy);
                }
            }
        }
        Ok(CpuSnapshot(threads))
    }

    /// Microseconds since then.
    pub(crate) fn micros_since(&self, before: &CpuSnapshot) -> f64 {
        let busy = self.0.iter().map(|(thread, now)| now - before.0.get(thread).copied().unwrap_or(0).min(*now));
        busy.sum::<u64>() as f64 / 1e3
    }
}

/// CPU seconds of the process and its descendants, including ended ones.
pub(crate) fn cpu_seconds(root: u32) -> Result<f64> {
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    let mut ticks = 0;
    for process in process_tree(root)? {
        let Ok(stat) = fs::read_to_string(format!("/proc/{process}/stat")) else { continue };
        let after_name = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
        // utime, stime (14th, 15th), and the same for waited-for children.
        let times = after_name.split_ascii_whitespace().skip(11).take(4);
        ticks += times.filter_map(|time| time.parse::<u64>().ok()).sum::<u64>();
    }
    Ok(ticks as f64 / per_second)
}

/// Resident memory in bytes.
pub(crate) fn resident(root: u32) -> Result<u64> {
    let mut kilobytes = 0;
    for process in process_tree(root)? {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        kilobytes += line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap_or(0);
    }
    Ok(kilobytes * 1024)
}

/// The process and its descendants.
pub(crate) fn process_tree(root: u32) -> Result<Vec<u32>> {
    let mut parents = Vec::new();
    for process in numeric_entries("/proc")? {
        let Ok(stat) = fs::read_to_string(format!("/proc/{process}/stat")) else { continue };
        // After the name in parentheses come the state and the parent.
        let after_name = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
        if let Some(Ok(parent)) = after_name.split_ascii_whitespace().nth(1).map(str::parse::<u32>) {
            parents.push((process, parent));
        }
    }
    let mut tree = vec![root];
    let mut next = 0;
    while let Some(&parent) = tree.get(next) {
        tree.extend(parents.iter().filter(|(_, its_parent)| *its_parent == parent).map(|(process, _)| *process));
        next += 1;
    }
    Ok(tree)
}

fn numeric_entries(folder: &str) -> Result<Vec<u32>> {
    let entries = fs::read_dir(folder).with_context(|| folder.to_owned())?;
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect())
}
