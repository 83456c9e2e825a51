//! An extractor in a separate process with resource limits.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::extractor::Extractor;
use crate::process::Process;

/// Outcome of one file.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub(super) enum ExtractionOutcome {
    Text {
        /// Only for the score.
        #[serde(skip)]
        text: String,
        pages: Option<u64>,
        cpu_s: f64,
    },
    /// The file was read, and no text was found.
    Empty,
    /// The file was rejected.
    Error {
        kind: String,
    },
    /// The process ended, or was killed for exceeding a limit.
    Crash,
    Timeout,
}

/// Ends with its owner.
pub(super) struct Worker {
    process: Process,
    orders: ChildStdin,
    answers: Receiver<String>,
    /// Time limit for one file.
    timeout: Duration,
}

#[derive(Deserialize)]
struct WorkerResponse {
    error: Option<String>,
    text: Option<String>,
    pages: Option<u64>,
    cpu_s: Option<f64>,
}

/// For one file.
const FILE_TIMEOUT: Duration = Duration::from_secs(60);
/// For all files of a process.
const CPU_SECONDS: u32 = 600;
const MEMORY_KILOBYTES: u32 = 4 * 1024 * 1024;

pub(super) const LIMITS: &str = "a process may take 4 GiB of address space and 600 s of CPU, and a file 60 s by the clock; a process that is ended \
     is started again for the next file";

impl Worker {
    pub(super) fn start(extractor: Extractor) -> Result<Worker> {
        let log = format!(".tools/bench/logs/extract-{}.log", extractor.name());
        let command = extractor.command(MEMORY_KILOBYTES, CPU_SECONDS);
        Worker::spawn(command, &log, FILE_TIMEOUT)
            .with_context(|| format!("{} did not start; see {log}", extractor.name()))
    }

    fn spawn(command: Command, log: &str, wall: Duration) -> Result<Worker> {
        let (process, orders, results) = Process::with_pipes(command, log)?;
        let (told, answers) = channel();
        // Ends when the output of the process ends.
        std::thread::spawn(move || {
            for line in BufReader::new(results).lines().map_while(Result::ok) {
                if told.send(line).is_err() {
                    break;
                }
            }
        });
        answers.recv_timeout(FILE_TIMEOUT)?;
        Ok(Worker { process, orders, answers, timeout: wall })
    }

    /// A worker that did not reply cannot be used again.
    pub(super) fn extract(&mut self, file: &Path, full: bool, times: u32) -> (ExtractionOutcome, bool) {
        let order = json!({ "path": file, "full": full, "times": times });
        let asked = writeln!(self.orders, "{order}").and_then(|()| self.orders.flush());
        if asked.is_err() {
            return (ExtractionOutcome::Crash, false);
        }
        match self.answers.recv_timeout(self.timeout) {
            Ok(line) => match serde_json::from_str(&line) {
                Ok(answer) => (ExtractionOutcome::from_response(answer), true),
                Err(_) => (ExtractionOutcome::Crash, false),
            },
            Err(RecvTimeoutError::Timeout) => (ExtractionOutcome::Timeout, false),
            Err(RecvTimeoutError::Disconnected) => (ExtractionOutcome::Crash, false),
        }
    }

    /// Peak memory in megabytes.
    pub(super) fn peak_mb(&self) -> Option<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
        Some(kilobytes * 1024.0 / 1e6)
    }
}

impl ExtractionOutcome {
    fn from_response(answer: WorkerResponse) -> ExtractionOutcome {
        let WorkerResponse { error, text, pages, cpu_s } = answer;
        match (error, text) {
            (Some(kind), _) => ExtractionOutcome::Error { kind },
            (None, Some(text)) if text.chars().any(char::is_alphanumeric) => {
                ExtractionOutcome::Text { text, pages, cpu_s: cpu_s.unwrap_or_default() }
            }
            _ => ExtractionOutcome::Empty,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(script: &str) -> (ExtractionOutcome, bool) {
        let mut command = Command::new("bash");
        command.args(["-c", &format!("echo '{{}}'; read -r order; {script}")]);
        let log = std::env::temp_dir().join(format!("bench-worker-{}.log", std::process::id()));
        let log = log.to_str().expect("a folder that can be written");
        let mut worker = Worker::spawn(command, log, Duration::from_millis(500)).expect("bash starts");
        worker.extract(Path::new("file"), true, 1)
    }

    #[test]
    fn each_end_is_told_apart() {
        let text = outcome(r#"echo '{"text": "a word", "cpu_s": 0.5}'"#);
        assert!(matches!(text, (ExtractionOutcome::Text { cpu_s: 0.5, .. }, true)), "{text:?}");
        assert!(matches!(outcome(r#"echo '{"text": " . "}'"#), (ExtractionOutcome::Empty, true)));
        assert!(matches!(outcome(r#"echo '{"error": "corrupted_file"}'"#), (ExtractionOutcome::Error { .. }, true)));
        assert!(matches!(outcome("kill -SEGV $$"), (ExtractionOutcome::Crash, false)));
        assert!(matches!(outcome("exec sleep 5"), (ExtractionOutcome::Timeout, false)));
    }
}
