//! SIGKILL of the server, its workers and the provider.

use rustix::process::{Signal, kill_process};

use super::{World, a_while};
use crate::chance::Chance;
use crate::server::Server;

pub(super) fn server(world: &mut World) -> Result<(), String> {
    world.start_again(Server::kill)
}

pub(super) fn politely(world: &mut World) -> Result<(), String> {
    world.start_again(Server::stop)
}

/// Kills the running workers; documents are parsed in short-lived processes.
pub(super) fn workers(world: &mut World, chance: &mut Chance) -> Result<(), String> {
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

pub(super) fn upstream(world: &mut World, chance: &mut Chance) -> Result<(), String> {
    world.upstream.kill();
    std::thread::sleep(a_while(chance));
    world.upstream.bring_back().map_err(|error| format!("the provider does not start: {error}"))
}
