//! MCP over stdin and stdout: a separate process on the same storage, as desktop clients start it.
//!
//! A client that times out kills the process, as desktop applications do when they quit.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::ProtocolClient;
use crate::call_outcome::{CallOutcome, is_notification};
use crate::program::ProgramConfig;

pub(crate) struct StdioClient {
    program: ProgramConfig,
    session: Option<StdioSession>,
    next_id: u64,
    /// How many were killed during a call.
    pub(crate) killed: u64,
}

struct StdioSession {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
}

impl StdioClient {
    pub(crate) fn new(program: ProgramConfig) -> StdioClient {
        StdioClient { program, session: None, next_id: 1, killed: 0 }
    }

    pub(crate) fn stop(&mut self) {
        self.session = None;
    }

    fn start(&self) -> std::io::Result<StdioSession> {
        let mut child = self.program.stdio()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        };
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(StdioSession { child, stdin, lines })
    }
}

impl ProtocolClient for StdioClient {
    fn call(&mut self, tool: &str, arguments: &Value, patience: Duration) -> CallOutcome {
        let until = Instant::now() + patience;
        let mut running = match self.session.take().map_or_else(|| self.start(), Ok) {
            Ok(running) => running,
            Err(error) => return CallOutcome::Refused(format!("it does not start: {error}")),
        };
        let id = self.next_id;
        self.next_id += 1;
        let call = json!({
            "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": arguments },
        });
        if let Err(error) = writeln!(running.stdin, "{call}") {
            return CallOutcome::Lost(error.to_string());
        }
        loop {
            match running.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => match serde_json::from_str::<Value>(&line) {
                    Ok(message) if message["id"] == id => {
                        self.session = Some(running);
                        return CallOutcome::from_message(&message, id);
                    }
                    Ok(message) if is_notification(&message) => {}
                    _ => return CallOutcome::Invalid(format!("a line that is no answer to {id}: {line}")),
                },
                Err(RecvTimeoutError::Timeout) => {
                    self.killed += 1;
                    return CallOutcome::Lost("no answer in time".to_owned());
                }
                Err(RecvTimeoutError::Disconnected) => return CallOutcome::Lost("it ended".to_owned()),
            }
        }
    }
}

impl Drop for StdioSession {
    fn drop(&mut self) {
        // The process may have exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
