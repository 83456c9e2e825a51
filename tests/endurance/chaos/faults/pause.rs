//! SIGSTOP for a while, as on a machine that swaps or a VM that is migrated.

use rustix::process::{Signal, kill_process};

use super::{World, a_while};
use crate::chance::Chance;

pub(super) fn some(world: &mut World, chance: &mut Chance) -> Result<(), String> {
    let server = world.server()?;
    let workers = server.descendants();
    let process = match chance.choose(&workers) {
        Some(worker) if chance.once_in(2) => *worker,
        _ => server.pid(),
    };
    // The worker may just have exited.
    if kill_process(process, Signal::STOP).is_ok() {
        std::thread::sleep(a_while(chance));
        let _ = kill_process(process, Signal::CONT);
    }
    world.server()?.wait_for_answer()
}
