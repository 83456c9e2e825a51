//! Configuration reloads under load, with valid and broken files.

use std::fs;

use rustix::process::{Signal, kill_process};

use super::{FaultContext, fault_duration};
use crate::atomic_write::replace_atomically;
use crate::rng::SeededRng;

/// Suffixes of a half-finished or invalid configuration.
const INVALID_SETTINGS: [&str; 4] = ["\n  : [", "\nno_such_section: 1\n", "\ntrust: { all: perhaps }\n", "\u{0}"];

/// A broken file has no effect; the original follows it.
pub(super) fn rewrite_settings(world: &mut FaultContext, chance: &mut SeededRng) -> Result<(), String> {
    let server = world.server()?;
    let (pid, path) = (server.pid(), server.program.settings());
    let right = fs::read_to_string(&path).map_err(|error| error.to_string())?;
    let mut outcome = Ok(());
    for _ in 0..1 + chance.below(4) {
        let broken = INVALID_SETTINGS[chance.below(INVALID_SETTINGS.len())];
        for text in [format!("{right}{broken}"), right.clone()] {
            outcome = outcome.and(replace_atomically(&path, &text).map_err(|error| error.to_string()));
            outcome = outcome.and(kill_process(pid, Signal::HUP).map_err(|error| error.to_string()));
            std::thread::sleep(fault_duration(chance) / 4);
        }
    }
    outcome?;
    world.server()?.wait_for_answer()
}
