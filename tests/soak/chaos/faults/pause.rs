//! SIGSTOP for a while, as on a machine that swaps or a VM that is migrated.

use rustix::process::{Signal, kill_process};

use super::{FaultContext, fault_duration};
use crate::rng::SeededRng;

pub(super) fn pause_process(world: &mut FaultContext, chance: &mut SeededRng) -> Result<(), String> {
    let server = world.server()?;
    let workers = server.descendants();
    let process = match chance.choose(&workers) {
        Some(worker) if chance.one_in(2) => *worker,
        _ => server.pid(),
    };
    // The worker may just have exited.
    if kill_process(process, Signal::STOP).is_ok() {
        std::thread::sleep(fault_duration(chance));
        let _ = kill_process(process, Signal::CONT);
    }
    world.server()?.wait_for_answer()
}
