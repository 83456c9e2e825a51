//! A server process under measurement: started, observed through `/proc`, and always ended.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Ends with its owner.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    pub(crate) started: Instant,
}

/// CPU time of all threads, including ended ones.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuUsage {
    pub(crate) user: Duration,
    pub(crate) system: Duration,
}

impl Process {
    /// Starts a server on its standard streams.
    pub(crate) fn with_pipes(command: Command, log: &str) -> Result<(Process, ChildStdin, ChildStdout)> {
        let mut process = Process::spawn(command, log, Stdio::piped, |_| Ok(Stdio::piped()))?;
        let (stdin, stdout) = (process.child.stdin.take(), process.child.stdout.take());
        let (stdin, stdout) = stdin.zip(stdout).context("a child with pipes has both")?;
        Ok((process, stdin, stdout))
    }

    /// Starts a server on a port.
    pub(crate) fn without_pipes(command: Command, log: &str) -> Result<Process> {
        Process::spawn(command, log, Stdio::null, |log| Ok(log.try_clone()?.into()))
    }

    fn spawn(
        mut command: Command,
        log: &str,
        stdin: impl FnOnce() -> Stdio,
        stdout: impl FnOnce(&File) -> Result<Stdio>,
    ) -> Result<Process> {
        if let Some(folder) = Path::new(log).parent() {
            fs::create_dir_all(folder)?;
        }
        let log = File::create(log)?;
        command.stdin(stdin()).stdout(stdout(&log)?).stderr(log);
        let started = Instant::now();
        let child = command.spawn().with_context(|| format!("cannot start {:?}", command.get_program()))?;
        Ok(Process { child, started })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn usage(&self) -> Result<CpuUsage> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).context("the server has ended")?;
        // The name in parentheses may contain any character; after it come state (3rd) .. utime (14th), stime (15th).
        let (_, after_name) = stat.rsplit_once(')').context("/proc/PID/stat has a name")?;
        let mut ticks = after_name.split_ascii_whitespace().skip(11).map(str::parse::<u64>);
        let (Some(Ok(user)), Some(Ok(system))) = (ticks.next(), ticks.next()) else {
            bail!("/proc/PID/stat has no times");
        };
        let per_second = rustix::param::clock_ticks_per_second();
        let duration = |ticks: u64| Duration::from_secs_f64(ticks as f64 / per_second as f64);
        Ok(CpuUsage { user: duration(user), system: duration(system) })
    }

    /// Resident memory in bytes (VmRSS).
    pub(crate) fn resident_bytes(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).context("the server has ended")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("a live process has VmRSS")?;
        let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kilobytes * 1024)
    }

    pub(crate) fn exit_status(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Sends SIGTERM and returns the time until the exit.
    pub(crate) fn stop(&mut self, at_most: Duration) -> Result<(Duration, ExitStatus)> {
        let pid = Pid::from_child(&self.child);
        let asked = Instant::now();
        kill_process(pid, Signal::TERM)?;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok((asked.elapsed(), status));
            }
            if asked.elapsed() > at_most {
                bail!("the server has not ended {at_most:?} after SIGTERM");
            }
            sleep(Duration::from_micros(200));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Pins this thread and its child processes to one core until dropped.
#[derive(Debug)]
pub(crate) struct PinnedCore {
    before: CpuSet,
}

impl PinnedCore {
    pub(crate) fn pin() -> Result<PinnedCore> {
        PinnedCore::pin_to(sched_getaffinity(None)?, 0)
    }

    /// The nth of these cores, or the last one if there are fewer.
    pub(crate) fn pin_to(cores: CpuSet, nth: usize) -> Result<PinnedCore> {
        let before = sched_getaffinity(None)?;
        let allowed = (0..CpuSet::MAX_CPU).filter(|&core| cores.is_set(core));
        let core = allowed.take(nth + 1).last().context("a thread runs on some core")?;
        let mut only = CpuSet::new();
        only.set(core);
        sched_setaffinity(None, &only)?;
        Ok(PinnedCore { before })
    }
}

impl Drop for PinnedCore {
    fn drop(&mut self) {
        let _ = sched_setaffinity(None, &self.before);
    }
}

#[expect(clippy::disallowed_methods, reason = "no runtime here whose thread a sleep could stop")]
pub(crate) fn sleep(time: Duration) {
    std::thread::sleep(time);
}
