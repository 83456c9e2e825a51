//! Fault injection. Every fault is reverted before the function returns; the subsequent checks are about recovery.

mod clock;
mod disk;
mod kill;
mod limits;
mod network;
mod pause;
mod reload;

use std::time::Duration;

use crate::chaos::clients::Conditions;
use crate::chaos::corpus::Corpus;
use crate::chaos::report::ChaosReport;
use crate::program::ProgramConfig;
use crate::rng::SeededRng;
use crate::server::ServerProcess;
use crate::upstream::FakeUpstream;

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
pub(crate) struct FaultContext {
    /// `None` only during a restart.
    pub(crate) server: Option<ServerProcess>,
    pub(crate) upstream: FakeUpstream,
    pub(crate) disk: Option<disk::TmpfsDisk>,
    /// Documents that must be found under every fault.
    pub(crate) corpus: Corpus,
    /// Tolerated internal errors since the last server start.
    pub(crate) internal_errors: u64,
    pub(crate) report: ChaosReport,
}

impl FaultContext {
    /// Ends the server with the given function and restarts it. Records the time to the first reply.
    pub(crate) fn restart(
        &mut self,
        end: impl FnOnce(ServerProcess) -> Result<ProgramConfig, String>,
    ) -> Result<(), String> {
        let Some(server) = self.server.take() else { return Err("there is no server".to_owned()) };
        let program = end(server)?;
        self.start(program)
    }

    /// Starts the server, whose internal error counters start at zero.
    pub(crate) fn start(&mut self, program: ProgramConfig) -> Result<(), String> {
        let (server, took) = ServerProcess::start(program)?;
        self.report.recoveries.push(took);
        self.server = Some(server);
        self.internal_errors = 0;
        Ok(())
    }

    pub(crate) fn server(&mut self) -> Result<&mut ServerProcess, String> {
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
    pub(crate) fn is_exclusive(self) -> bool {
        self == Fault::Readonly
    }

    /// The test condition during this fault.
    pub(crate) fn conditions(self) -> Conditions {
        match self {
            Fault::Calm => Conditions::Healthy,
            Fault::Full | Fault::Readonly | Fault::Limits => Conditions::ResourceStarved,
            _ => Conditions::Faulty,
        }
    }

    /// Whether this fault can make provider calls fail, so that the circuit breaker opens.
    pub(crate) fn may_reach_provider(self) -> bool {
        matches!(self, Fault::Upstream | Fault::Network | Fault::Limits)
    }

    /// Why this fault cannot be injected here; `None` if it can.
    pub(crate) fn unavailable_reason(self, world: &FaultContext) -> Option<String> {
        match self {
            Fault::Full | Fault::Readonly if world.disk.is_none() => Some(
                "no disk of its own: needs a mount namespace (run as root, or where users may make one)".to_owned(),
            ),
            Fault::Slow => (!disk::can_trace()).then(|| "needs strace".to_owned()),
            Fault::Network => network::unavailable_reason(),
            Fault::Limits => limits::unavailable_reason(),
            Fault::Clock => clock::faketime_library().is_none().then(|| "needs faketime".to_owned()),
            _ => None,
        }
    }

    pub(crate) fn inject(self, world: &mut FaultContext, chance: &mut SeededRng) -> Result<(), String> {
        match self {
            Fault::Calm => {
                std::thread::sleep(CALM_DURATION);
                Ok(())
            }
            Fault::Kill => kill::kill_server(world),
            Fault::Term => kill::terminate_server(world),
            Fault::Workers => kill::kill_workers(world, chance),
            Fault::Upstream => kill::restart_upstream(world, chance),
            Fault::Pause => pause::pause_process(world, chance),
            Fault::Full => disk::fill(world, chance),
            Fault::Slow => disk::slow_down(world, chance),
            Fault::Readonly => disk::read_only(world, chance),
            Fault::Clock => clock::jump(world, chance),
            Fault::Limits => limits::lower(world, chance),
            Fault::Network => network::inject(world, chance),
            Fault::Reload => reload::rewrite_settings(world, chance),
        }
    }
}

pub(crate) use clock::reset as clock_at_rest;
pub(crate) use disk::TmpfsDisk;

/// One fault in this many lasts long.
const LONG_FAULT_ONE_IN: usize = 24;
const CALM_DURATION: Duration = Duration::from_secs(4);

/// Duration of a fault: mostly short, occasionally longer than the client timeouts.
fn fault_duration(chance: &mut SeededRng) -> Duration {
    if chance.one_in(LONG_FAULT_ONE_IN) {
        return chance.between(Duration::from_secs(6), Duration::from_secs(18));
    }
    chance.between(Duration::from_millis(200), Duration::from_millis(2500))
}
