//! Fault injection. Every fault is reverted before the function returns; the subsequent checks are about recovery.

mod clock;
mod disk;
mod kill;
mod limits;
mod network;
mod pause;
mod reload;

use std::time::Duration;

use crate::chance::Chance;
use crate::chaos::clients::Times;
use crate::chaos::report::Report;
use crate::chaos::shelf::Shelf;
use crate::program::Program;
use crate::server::Server;
use crate::upstream::Upstream;

/// The default faults.
pub(crate) const ALL: [Fault; 12] = [
    Fault::Kill,
    Fault::Term,
    Fault::Workers,
    Fault::Upstream,
    Fault::Pause,
    Fault::Full,
    Fault::Slow,
    Fault::Readonly,
    Fault::Clock,
    Fault::Limits,
    Fault::Network,
    Fault::Reload,
];

/// Everything a fault can reach.
pub(crate) struct World {
    /// `None` only during a restart.
    pub(crate) server: Option<Server>,
    pub(crate) upstream: Upstream,
    pub(crate) disk: Option<disk::Disk>,
    /// Documents that must be found under every fault.
    pub(crate) shelf: Shelf,
    /// Tolerated internal errors since the last server start.
    pub(crate) mishaps: u64,
    pub(crate) report: Report,
}

impl World {
    /// Ends the server with the given function and restarts it. Records the time to the first reply.
    pub(crate) fn start_again(&mut self, end: impl FnOnce(Server) -> Result<Program, String>) -> Result<(), String> {
        let Some(server) = self.server.take() else { return Err("there is no server".to_owned()) };
        let program = end(server)?;
        self.start(program)
    }

    /// Starts the server, whose internal error counters start at zero.
    pub(crate) fn start(&mut self, program: Program) -> Result<(), String> {
        let (server, took) = Server::start(program)?;
        self.report.recoveries.push(took);
        self.server = Some(server);
        self.mishaps = 0;
        Ok(())
    }

    pub(crate) fn server(&mut self) -> Result<&mut Server, String> {
        self.server.as_mut().ok_or_else(|| "there is no server".to_owned())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Fault {
    /// No fault for some seconds: a soak
    Calm,
    /// SIGKILL the server, and restart it
    Kill,
    /// SIGTERM the server under load, and restart it
    Term,
    /// SIGKILL the document workers
    Workers,
    /// SIGKILL the provider, and restart it
    Upstream,
    /// SIGSTOP the server or a worker, then continue it
    Pause,
    /// Fill the disk, and free it again
    Full,
    /// Delay every disk write
    Slow,
    /// Start the server on a read-only disk, and restart it on a writable one
    Readonly,
    /// Set the clock forward and back
    Clock,
    /// Restrict files, memory and threads
    Limits,
    /// Lose packets, delay them, reset connections, or partition the network
    Network,
    /// Rewrite the settings, with valid and invalid ones
    Reload,
}

impl Fault {
    pub(crate) fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// Whether the clients must be stopped: a disk with open writers cannot be remounted read-only.
    pub(crate) fn is_alone(self) -> bool {
        self == Fault::Readonly
    }

    /// The test condition during this fault.
    pub(crate) fn times(self) -> Times {
        match self {
            Fault::Calm => Times::Good,
            Fault::Full | Fault::Readonly | Fault::Limits => Times::Starved,
            _ => Times::Hard,
        }
    }

    /// Whether this fault can make provider calls fail, so that the circuit breaker opens.
    pub(crate) fn may_reach_provider(self) -> bool {
        matches!(self, Fault::Upstream | Fault::Network | Fault::Limits)
    }

    /// Why this fault cannot be injected here; `None` if it can.
    pub(crate) fn impossible(self, world: &World) -> Option<String> {
        match self {
            Fault::Full | Fault::Readonly if world.disk.is_none() => Some(
                "no disk of its own: needs a mount namespace (run as root, or where users may make one)".to_owned(),
            ),
            Fault::Slow => (!disk::can_trace()).then(|| "needs strace".to_owned()),
            Fault::Network => network::impossible(),
            Fault::Limits => limits::impossible(),
            Fault::Clock => clock::library().is_none().then(|| "needs faketime".to_owned()),
            _ => None,
        }
    }

    pub(crate) fn strike(self, world: &mut World, chance: &mut Chance) -> Result<(), String> {
        match self {
            Fault::Calm => {
                std::thread::sleep(CALM);
                Ok(())
            }
            Fault::Kill => kill::server(world),
            Fault::Term => kill::politely(world),
            Fault::Workers => kill::workers(world, chance),
            Fault::Upstream => kill::upstream(world, chance),
            Fault::Pause => pause::some(world, chance),
            Fault::Full => disk::fill(world, chance),
            Fault::Slow => disk::slow(world, chance),
            Fault::Readonly => disk::read_only(world, chance),
            Fault::Clock => clock::jump(world, chance),
            Fault::Limits => limits::lower(world, chance),
            Fault::Network => network::disturb(world, chance),
            Fault::Reload => reload::settings(world, chance),
        }
    }
}

pub(crate) use clock::still as clock_at_rest;
pub(crate) use disk::Disk;

/// One fault in this many lasts long.
const ONE_IS_LONG: usize = 24;
const CALM: Duration = Duration::from_secs(4);

/// Duration of a fault: mostly short, occasionally longer than the client timeouts.
fn a_while(chance: &mut Chance) -> Duration {
    if chance.once_in(ONE_IS_LONG) {
        return chance.between(Duration::from_secs(6), Duration::from_secs(18));
    }
    chance.between(Duration::from_millis(200), Duration::from_millis(2500))
}
