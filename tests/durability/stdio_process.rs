//! MCP client on stdin and stdout of a program it starts.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub(crate) struct StdioProcess {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<Value>,
    next_id: u64,
    /// Replies not yet claimed by a caller.
    answers: HashMap<u64, Value>,
}

/// Upper bound for any operation, even on a busy machine.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(120);

impl StdioProcess {
    /// Starts the program on a storage; `index` is the directory of derived data, if separate.
    pub(crate) fn start(storage: &Path, index: Option<&Path>) -> StdioProcess {
        let mut command = Command::new(env!("CARGO_BIN_EXE_corbie"));
        command.arg("stdio");
        if let Some(index) = index {
            command.env("CORBIE_KNOWLEDGE__VECTOR_DB_PATH", index);
        }
        StdioProcess::spawn(command, storage)
    }

    /// Starts the program by a custom command.
    pub(crate) fn spawn(mut command: Command, storage: &Path) -> StdioProcess {
        command
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", storage)
            .env("CORBIE_PROVIDERS__DETECT_PORTS", "[]")
            .env("CORBIE_KNOWLEDGE__STORAGE_PATH", storage)
            .env("CORBIE_KNOWLEDGE__CHUNK_SIZE", "32")
            .env("CORBIE_KNOWLEDGE__CHUNK_OVERLAP", "4")
            .env("LOG_LEVEL", "error")
            .current_dir(storage.parent().expect("it is in a folder"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        let mut child = command.spawn().expect("the program starts");
        let stdin = child.stdin.take().expect("it is piped");
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let message: Value = serde_json::from_str(&line).expect("every line is a message");
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        StdioProcess { child, stdin, lines, next_id: 1, answers: HashMap::new() }
    }

    /// Sends a call without waiting. `None` if the program has exited.
    pub(crate) fn send(&mut self, tool: &str, arguments: &Value) -> Option<u64> {
        let id = self.next_id;
        self.next_id += 1;
        let call = json!({
            "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": tool, "arguments": arguments },
        });
        writeln!(self.stdin, "{call}").ok()?;
        Some(id)
    }

    /// Calls a tool and returns its result.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let id = self.send(tool, arguments).expect("the program is there");
        let until = Instant::now() + RESPONSE_TIMEOUT;
        loop {
            if let Some(answer) = self.answers.remove(&id) {
                return answer;
            }
            assert!(self.receive_one(until), "no answer to {tool} {arguments}");
        }
    }

    /// Takes all unclaimed replies.
    pub(crate) fn take_answers(&mut self) -> HashMap<u64, Value> {
        std::mem::take(&mut self.answers)
    }

    /// Collects replies until a deadline.
    pub(crate) fn receive_until(&mut self, until: Instant) {
        while self.receive_one(until) {}
    }

    /// Receives the next message; false if none arrives in time or the stream has ended.
    fn receive_one(&mut self, until: Instant) -> bool {
        match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(message) => {
                if let Some(id) = message["id"].as_u64() {
                    assert!(message["error"].is_null(), "{message}");
                    let text = message["result"]["content"][0]["text"].as_str().expect("a text");
                    self.answers.insert(id, serde_json::from_str(text).expect("JSON in it"));
                }
                true
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => false,
        }
    }

    /// Kills the program and returns every reply that arrived before its end.
    pub(crate) fn kill(mut self) -> HashMap<u64, Value> {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
        self.receive_until(Instant::now() + RESPONSE_TIMEOUT);
        std::mem::take(&mut self.answers)
    }

    /// Closes stdin and waits for a clean exit.
    pub(crate) fn shutdown(mut self) {
        drop(self.stdin);
        assert!(self.child.wait().expect("it ends").success());
    }
}
