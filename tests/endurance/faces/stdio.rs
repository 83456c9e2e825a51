//! MCP over stdin and stdout: a separate process on the same storage, as desktop clients start it.
//!
//! A client that times out kills the process, as desktop applications do when they quit.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Face;
use crate::outcome::{Outcome, is_unasked};
use crate::program::Program;

pub(crate) struct Stdio {
    program: Program,
    running: Option<Running>,
    next: u64,
    /// How many were killed during a call.
    pub(crate) killed: u64,
}

struct Running {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
}

impl Stdio {
    pub(crate) fn new(program: Program) -> Stdio {
        Stdio { program, running: None, next: 1, killed: 0 }
    }

    pub(crate) fn leave(&mut self) {
        self.running = None;
    }

    fn start(&self) -> std::io::Result<Running> {
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
        Ok(Running { child, stdin, lines })
    }
}

impl Face for Stdio {
    fn call(&mut self, tool: &str, arguments: &Value, patience: Duration) -> Outcome {
        let until = Instant::now() + patience;
        let mut running = match self.running.take().map_or_else(|| self.start(), Ok) {
            Ok(running) => running,
            Err(error) => return Outcome::Refused(format!("it does not start: {error}")),
        };
        let id = self.next;
        self.next += 1;
        let call = json!({
            "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": arguments },
        });
        if let Err(error) = writeln!(running.stdin, "{call}") {
            return Outcome::Lost(error.to_string());
        }
        loop {
            match running.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => match serde_json::from_str::<Value>(&line) {
                    Ok(message) if message["id"] == id => {
                        self.running = Some(running);
                        return Outcome::of_message(&message, id);
                    }
                    Ok(message) if is_unasked(&message) => {}
                    _ => return Outcome::Wrong(format!("a line that is no answer to {id}: {line}")),
                },
                Err(RecvTimeoutError::Timeout) => {
                    self.killed += 1;
                    return Outcome::Lost("no answer in time".to_owned());
                }
                Err(RecvTimeoutError::Disconnected) => return Outcome::Lost("it ended".to_owned()),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The process may have exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
