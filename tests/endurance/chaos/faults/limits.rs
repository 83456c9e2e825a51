//! A process that may have no more files, memory or threads than it has, for a while.

use std::time::Instant;

use rustix::process::{Resource, Rlimit, getrlimit, prlimit};

use super::{World, a_while};
use crate::chance::Chance;

pub(super) fn lower(world: &mut World, chance: &mut Chance) -> Result<(), String> {
    let server = world.server()?;
    let holds = server.holds().ok_or("the server is gone")?;
    let pid = server.pid();
    let (resource, most) = match chance.below(3) {
        0 => (Resource::Nofile, holds.files as u64 + chance.below(12) as u64),
        1 => (Resource::As, virtual_bytes(pid.as_raw_nonzero().get())? + ((chance.below(24) as u64) << 20)),
        // Root is not held to it; where the server runs as somebody else, it is.
        _ => (Resource::Nproc, holds.threads as u64 + chance.below(3) as u64),
    };
    let set = |limit| prlimit(Some(pid), resource, limit).map_err(|error| format!("prlimit: {error}"));
    // What may be raised again stays as this process has it, and the server has it from here.
    let before = set(Rlimit { current: Some(most), maximum: getrlimit(resource).maximum })?;
    let begun = Instant::now();
    let lasts = a_while(chance);
    std::thread::sleep(lasts.saturating_sub(begun.elapsed()));
    // A program that has ended for want of memory has to say so, and start again: the check after the fault sees it.
    let _ = set(before);
    world.server()?.wait_for_answer()
}

fn virtual_bytes(pid: i32) -> Result<u64, String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/statm")).map_err(|error| error.to_string())?;
    let pages: u64 = status.split(' ').next().and_then(|text| text.parse().ok()).ok_or("no statm")?;
    Ok(pages * rustix::param::page_size() as u64)
}
