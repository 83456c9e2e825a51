//! SIGKILL of the server, its workers and the provider.

use rustix::process::{Signal, kill_process};

use super::{FaultContext, fault_duration};
use crate::rng::SeededRng;
use crate::server::ServerProcess;

pub(super) fn kill_server(world: &mut FaultContext) -> Result<(), String> {
    world.restart(ServerProcess::kill)
}

pub(super) fn terminate_server(world: &mut FaultContext) -> Result<(), String> {
    world.restart(ServerProcess::stop)
}

/// Kills the running workers; documents are parsed in short-lived processes.
pub(super) fn kill_workers(world: &mut FaultContext, chance: &mut SeededRng) -> Result<(), String> {
    for _ in 0..20 {
        let workers = world.server()?.descendants();
        if let Some(worker) = chance.choose(&workers) {
            // The worker may just have exited.
            world.report.workers_killed += u64::from(kill_process(*worker, Signal::KILL).is_ok());
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    Ok(())
}

pub(super) fn restart_upstream(world: &mut FaultContext, chance: &mut SeededRng) -> Result<(), String> {
    world.upstream.kill();
    std::thread::sleep(fault_duration(chance));
    world.upstream.restart().map_err(|error| format!("the provider does not start: {error}"))
}
