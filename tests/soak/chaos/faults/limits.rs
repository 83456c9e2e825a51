//! Temporarily lowers the limits on open files, memory or threads to the current usage.

use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Command;

use super::{FaultContext, fault_duration};
use crate::rng::SeededRng;
use crate::server::ServerProcess;
use crate::system_commands::succeeds;

/// A resource limit with its `prlimit` option and its line in `/proc/PID/limits`.
struct ResourceLimit {
    option: &'static str,
    line: &'static str,
}

const FILES: ResourceLimit = ResourceLimit { option: "nofile", line: "Max open files" };
const MEMORY: ResourceLimit = ResourceLimit { option: "as", line: "Max address space" };
const THREADS: ResourceLimit = ResourceLimit { option: "nproc", line: "Max processes" };

/// Signals that end a process out of memory: abort, or the OOM killer.
const ABORTED: i32 = 6;
const KILLED: i32 = 9;

pub(super) fn unavailable_reason() -> Option<String> {
    let works = succeeds(Command::new("prlimit").arg("--version"));
    (!works).then(|| "needs prlimit".to_owned())
}

pub(super) fn lower(world: &mut FaultContext, chance: &mut SeededRng) -> Result<(), String> {
    let server = world.server()?;
    let holds = server.resource_usage().ok_or("the server is gone")?;
    let (limit, most) = match chance.below(3) {
        0 => (FILES, holds.files + chance.below(12)),
        1 => (MEMORY, virtual_bytes(server)? + (chance.below(24) << 20)),
        // The limit counts all processes of the user, so no thread can be started at all. It does not apply to root.
        _ => (THREADS, holds.threads + chance.below(3)),
    };
    let before = limit.current(server)?;
    limit.set(server, &most.to_string())?;
    std::thread::sleep(fault_duration(chance));
    // The process may have exited.
    let _ = limit.set(server, &before);
    if let Some(status) = server.exit_status() {
        let is_for_memory = limit.is_memory() && matches!(status.signal(), Some(ABORTED | KILLED));
        if !is_for_memory {
            return Err(format!("without more of {} it ended with {status}:\n{}", limit.option, server.log_tail()));
        }
        // Without memory for a thread the server cannot continue. A supervisor would restart it, and every acknowledged
        // write must be present.
        world.report.out_of_memory_exits += 1;
        return world.restart(ServerProcess::kill);
    }
    server.wait_for_answer()
}

impl ResourceLimit {
    fn is_memory(&self) -> bool {
        self.option == MEMORY.option
    }

    /// The current limit, which is restored later.
    fn current(&self, server: &ServerProcess) -> Result<String, String> {
        let path = format!("/proc/{}/limits", server.pid().as_raw_nonzero());
        let limits = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        let rest = limits.lines().find_map(|line| line.strip_prefix(self.line)).unwrap_or_default();
        rest.split_whitespace().next().map(str::to_owned).ok_or_else(|| format!("{path} has no line {:?}", self.line))
    }

    fn set(&self, server: &ServerProcess, most: &str) -> Result<(), String> {
        let mut command = Command::new("prlimit");
        command.arg(format!("--pid={}", server.pid().as_raw_nonzero())).arg(format!("--{}={most}:", self.option));
        if let Some(user) = server.program.user {
            // The owner of the process needs no further privileges.
            command.uid(user).gid(user);
        }
        match succeeds(&mut command) {
            true => Ok(()),
            false => Err(format!("prlimit cannot set {} to {most}", self.option)),
        }
    }
}

fn virtual_bytes(server: &ServerProcess) -> Result<usize, String> {
    let path = format!("/proc/{}/statm", server.pid().as_raw_nonzero());
    let status = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let pages: usize = status.split(' ').next().and_then(|text| text.parse().ok()).ok_or("no statm")?;
    Ok(pages * rustix::param::page_size())
}
