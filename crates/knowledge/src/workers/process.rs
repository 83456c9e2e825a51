//! Handle of one worker process.

use std::io;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::budget::Budget;
use super::message::{OcrResult, WorkerJob, WorkerMessage, encode_frame, frame_length};
use super::pool::Tenant;

/// A worker process. Dropping it kills its process group.
#[derive(Debug)]
pub(super) struct Worker {
    child: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
    /// Number of extracted documents.
    pub(super) completed_jobs: usize,
    /// Its tenant, from the first document on.
    pub(super) tenant: Option<Tenant>,
    /// Hard limit of CPU time in seconds, from the first document on, and the upper bound of the time used.
    lifetime: Option<u64>,
    granted: u64,
}

impl Worker {
    pub(super) fn start(memory: u64) -> io::Result<Worker> {
        let mut command = Command::new(executable());
        // The environment may contain secrets.
        command.arg("worker").arg(memory.to_string()).env_clear().current_dir("/").process_group(0).kill_on_drop(true);
        // mimalloc would reserve a gibibyte initially, and the memory limit counts mapped memory.
        command.env("MIMALLOC_ARENA_RESERVE", "32768");
        // Images allocate and free tens of megabytes. With the default delay of one second, freed memory makes up a
        // fifth of the total; with no delay, extraction takes twice as long.
        command.env("MIMALLOC_PURGE_DELAY", "100");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (stdin, stdout) = stdin.zip(stdout).ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Worker { child, stdin, stdout, completed_jobs: 0, tenant: None, lifetime: None, granted: 0 })
    }

    /// Assigns the tenant and, with the first document, the hard limit of CPU time.
    pub(super) fn assign(&mut self, tenant: &Tenant, lifetime: u64, budget: Budget) {
        self.tenant.get_or_insert_with(|| tenant.clone());
        self.lifetime.get_or_insert(lifetime);
        self.granted = self.granted.saturating_add(budget.total);
    }

    /// Whether the hard limit leaves enough time for a document.
    pub(super) fn has_time_for(&self, budget: Budget) -> bool {
        let used = self.processor_seconds().unwrap_or(self.granted);
        self.lifetime.is_none_or(|lifetime| lifetime.saturating_sub(used) >= budget.total)
    }

    /// Whether the hard limit is reached. The kernel enforces limits by clock ticks but reports times more precisely,
    /// so the two differ by a few percent.
    pub(super) fn is_out_of_time(&self) -> bool {
        let is_over = |(used, lifetime): (u64, u64)| used >= (lifetime - lifetime / 10).saturating_sub(1);
        self.processor_seconds().zip(self.lifetime).is_some_and(is_over)
    }

    /// CPU time used, according to the kernel. Also works for a zombie process.
    #[cfg(target_os = "linux")]
    fn processor_seconds(&self) -> Option<u64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()?)).ok()?;
        // The process name in parentheses may contain spaces. Fields 14 and 15 are user and system time.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        let ticks = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
        ticks.checked_div(rustix::param::clock_ticks_per_second())
    }

    #[cfg(not(target_os = "linux"))]
    fn processor_seconds(&self) -> Option<u64> {
        None
    }

    /// Sends a document.
    pub(super) async fn send_job(stdin: &mut ChildStdin, job: &WorkerJob, bytes: &[u8]) -> io::Result<()> {
        stdin.write_all(&encode_frame(job)?).await?;
        stdin.write_all(bytes).await?;
        stdin.flush().await
    }

    /// Receives the next message and its size.
    pub(super) async fn receive(stdout: &mut ChildStdout) -> io::Result<(WorkerMessage, usize)> {
        let mut head = [0; 4];
        stdout.read_exact(&mut head).await?;
        let length = frame_length(head)?;
        let mut text = vec![0; length];
        stdout.read_exact(&mut text).await?;
        Ok((serde_json::from_slice(&text)?, length))
    }

    /// Receives the pixels of an image, one byte each.
    pub(super) async fn receive_image(stdout: &mut ChildStdout, dots: usize) -> io::Result<Vec<u8>> {
        let mut picture = vec![0; dots];
        stdout.read_exact(&mut picture).await?;
        Ok(picture)
    }

    /// Sends the OCR result of an image.
    pub(super) async fn send_ocr_result(stdin: &mut ChildStdin, shown: &OcrResult) -> io::Result<()> {
        stdin.write_all(&encode_frame(shown)?).await?;
        stdin.flush().await
    }

    pub(super) fn pipes(&mut self) -> (&mut ChildStdin, &mut ChildStdout) {
        (&mut self.stdin, &mut self.stdout)
    }

    pub(super) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for the exit status.
    pub(super) async fn wait(&mut self) -> io::Result<std::process::ExitStatus> {
        self.child.wait().await
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        kill_group(self.child.id());
    }
}

/// Kills a process group by its leader.
pub(super) fn kill_group(leader: Option<u32>) {
    let leader = leader.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(leader) = leader {
        // They may have exited already.
        let _ = kill_process_group(leader, Signal::KILL);
    }
}

/// The running binary, even if its file was replaced.
fn executable() -> std::path::PathBuf {
    if cfg!(target_os = "linux") { "/proc/self/exe".into() } else { std::env::current_exe().unwrap_or_default() }
}
