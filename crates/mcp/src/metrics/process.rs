//! Process metrics from the operating system. Read on scrape, never on the path of a call.

use std::time::SystemTime;

use super::exposition::write_header;
use crate::server::Server;

pub(super) fn encode(text: &mut String, server: &Server) {
    use std::fmt::Write;
    let version = super::exposition::escape_label(server.version());
    write_header(text, "corbie_build", "info", "Build information");
    // Writing to a String cannot fail.
    let _ = writeln!(text, "corbie_build_info{{version=\"{version}\"}} 1");
    let mut gauge = |name: &str, help: &str, value: f64| {
        write_header(text, name, "gauge", help);
        let _ = writeln!(text, "{name} {value}");
    };
    gauge("corbie_uptime_seconds", "Time since the server started", server.uptime().as_secs_f64());
    let started = server.started_at().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    gauge(
        "process_start_time_seconds",
        "Start time of the process in seconds since the Unix epoch",
        started.as_secs_f64(),
    );
    if let Some(bytes) = resident_memory() {
        gauge("process_resident_memory_bytes", "Resident memory size", bytes as f64);
    }
    if let Some(open) = open_descriptors() {
        gauge("process_open_fds", "Number of open file descriptors", open as f64);
    }
}

/// Resident memory; `None` without `/proc`.
fn resident_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

fn open_descriptors() -> Option<usize> {
    // Subtract the descriptor used to read the directory.
    std::fs::read_dir("/proc/self/fd").ok().map(|open| open.count().saturating_sub(1))
}
