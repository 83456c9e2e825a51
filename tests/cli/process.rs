//! Runs the real binary, communicates over its standard streams, and always terminates it.

#[path = "example_binaries.rs"]
pub(crate) mod example_binaries;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::HttpClient;

/// Timeout of any operation; far more than it needs.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// A program to be started, in an empty folder and with only the variables that the test sets.
pub(crate) struct TestCommand {
    program: PathBuf,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    /// Files in the working folder that the user approves before the program is started.
    approved: Vec<PathBuf>,
    folder: TempDir,
}

/// A running program. Its stdout is not read until a test reads a message.
pub(crate) struct TestProcess {
    child: Child,
    stdin: Option<ChildStdin>,
    unread_stdout: Option<ChildStdout>,
    out: Option<LineReader>,
    err: LineReader,
    _folder: TempDir,
}

/// A finished program.
#[derive(Debug)]
pub(crate) struct ProcessOutput {
    pub(crate) code: Option<i32>,
    /// Output on stdout that was not received yet.
    pub(crate) stdout: String,
    /// Complete output on stderr.
    pub(crate) stderr: String,
}

/// A stream of the program, read line by line on a separate thread.
struct LineReader {
    incoming: mpsc::Receiver<String>,
    received: Vec<String>,
}

/// `corbie` with these arguments, separated by spaces. Ignores model servers that happen to run on this machine.
pub(crate) fn corbie(arguments: &str) -> TestCommand {
    let program = TestCommand::new(env!("CARGO_BIN_EXE_corbie").into());
    program.arguments(arguments).variable("CORBIE_PROVIDERS__DETECT_PORTS", "[]")
}

/// The library's example server. It has a tool with a configurable duration, which the product does not.
pub(crate) fn example_server() -> TestCommand {
    example("corbie-mcp", "conformance").arguments("--port 0")
}

/// An example of a package in this workspace.
pub(crate) fn example(package: &str, name: &str) -> TestCommand {
    TestCommand::new(example_binaries::build_example(package, name))
}

/// A free port on this machine, over IPv4 and IPv6.
pub(crate) fn free_port() -> u16 {
    loop {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        if !has_ipv6() || std::net::TcpListener::bind(("::1", port)).is_ok() {
            return port;
        }
    }
}

pub(crate) fn has_ipv6() -> bool {
    std::net::TcpListener::bind("[::1]:0").is_ok()
}

/// Reports why a test, or a part of it, was skipped.
pub(crate) fn report_skip(why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// A request in the protocol's legacy form.
pub(crate) fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
}

pub(crate) fn call(id: impl Into<Value>, tool: &str, arguments: Value) -> Value {
    request(id, "tools/call", json!({ "name": tool, "arguments": arguments }))
}

/// The `_meta` of every modern request.
pub(crate) fn modern_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// Polls `until`, and fails after a timeout.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut until: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + TEST_TIMEOUT;
    loop {
        if let Some(found) = until() {
            return found;
        }
        assert!(Instant::now() < deadline, "still waiting for {what}");
        thread::park_timeout(Duration::from_millis(5));
    }
}

// === impl Setup ===

impl TestCommand {
    pub(crate) fn new(program: PathBuf) -> TestCommand {
        let folder = tempfile::tempdir().expect("a temporary folder");
        TestCommand { program, arguments: Vec::new(), variables: Vec::new(), approved: Vec::new(), folder }
    }

    pub(crate) fn arguments(mut self, arguments: &str) -> TestCommand {
        self.arguments.extend(arguments.split_whitespace().map(String::from));
        self
    }

    /// One argument, which may contain spaces.
    pub(crate) fn argument(mut self, argument: impl Into<String>) -> TestCommand {
        self.arguments.push(argument.into());
        self
    }

    pub(crate) fn variable(mut self, name: &str, value: impl ToString) -> TestCommand {
        self.variables.push((name.into(), value.to_string()));
        self
    }

    /// Writes a file in the working folder. One with settings is the user's own work, which they approve.
    pub(crate) fn file(mut self, name: &str, content: &str) -> TestCommand {
        let path = self.folder().join(name);
        std::fs::write(&path, content).expect("a new file");
        if ["corbie.yaml", "corbie.yml", "corbie.toml", "corbie.json"].contains(&name) {
            self.approved.push(path);
        }
        self
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// As `corbie config trust` does, with the variables that the program gets.
    fn approve(&self) {
        let mut variables = std::collections::BTreeMap::from([("HOME".into(), self.folder().display().to_string())]);
        variables.extend(self.variables.iter().cloned());
        for file in &self.approved {
            let approvals = corbie::config::ApprovalFile::of(&variables).expect("a home");
            let hash = corbie::config::content_hash(file).expect("settings that can be read");
            approvals.approve(&corbie::config::approved_place(file).expect("a path"), hash).expect("an approval");
        }
    }

    pub(crate) fn start(self) -> TestProcess {
        self.approve();
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path())
            .envs(self.variables)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{}: {error}", self.program.display()));
        let stderr = child.stderr.take().expect("stderr is piped");
        TestProcess {
            stdin: child.stdin.take(),
            unread_stdout: child.stdout.take(),
            out: None,
            err: LineReader::spawn(stderr),
            child,
            _folder: self.folder,
        }
    }

    /// Starts the program, writes all of `input`, and waits for it to exit.
    #[track_caller]
    pub(crate) fn run(self, input: &str) -> ProcessOutput {
        let mut running = self.start();
        running.read_stdout();
        // It may have exited without reading.
        let _ = running.stdin.as_mut().expect("stdin is open").write_all(input.as_bytes());
        running.close_stdin();
        running.wait()
    }
}

// === impl Running ===

impl TestProcess {
    /// Writes one message.
    #[track_caller]
    pub(crate) fn send(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(format!("{message}\n").as_bytes()).expect("the program reads its stdin");
    }

    /// Writes bytes that need not be a message.
    #[track_caller]
    #[allow(dead_code, reason = "the hostile exchanges need it")]
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().expect("stdin is open").write_all(bytes).expect("the program reads its stdin");
    }

    /// Writes until everything is written or the pipe is full; stdin stays open.
    pub(crate) fn flood(&mut self, input: String) {
        const QUIET: Duration = Duration::from_millis(500);
        let mut stdin = self.stdin.take().expect("stdin is open");
        let written = Arc::new(AtomicUsize::new(0));
        let counter = written.clone();
        thread::spawn(move || {
            for chunk in input.as_bytes().chunks(4096) {
                if stdin.write_all(chunk).is_err() {
                    return;
                }
                counter.fetch_add(1, Ordering::Relaxed);
            }
            thread::park_timeout(2 * TEST_TIMEOUT);
        });
        let (mut last, mut since) = (0, Instant::now());
        wait_for("the writing to end", || {
            let now = written.load(Ordering::Relaxed);
            if now != last {
                (last, since) = (now, Instant::now());
            }
            (since.elapsed() > QUIET).then_some(())
        });
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Closes the reading end of stdout, as `head` does.
    #[allow(dead_code, reason = "the tests of exit codes need it")]
    pub(crate) fn close_stdout(&mut self) {
        self.unread_stdout = None;
        self.out = Some(LineReader::spawn(std::io::empty()));
    }

    /// The next message on stdout.
    #[track_caller]
    pub(crate) fn receive(&mut self) -> Value {
        let line = self.read_stdout().next().expect("one more message on stdout");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("stdout has {line:?}, which is not JSON: {error}"))
    }

    /// The next line on stdout, including its newline.
    #[track_caller]
    pub(crate) fn read_line(&mut self) -> String {
        self.read_stdout().next().expect("one more line on stdout")
    }

    /// All further output on stdout, in pieces as written; the channel disconnects at its end.
    pub(crate) fn stdout_chunks(&mut self) -> mpsc::Receiver<String> {
        let mut stdout = self.unread_stdout.take().expect("nobody reads stdout yet");
        let (sender, pieces) = mpsc::channel();
        self.out = Some(LineReader::spawn(std::io::empty()));
        thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = stdout.read(&mut piece) {
                if sender.send(String::from_utf8_lossy(&piece[..length]).into_owned()).is_err() {
                    return;
                }
            }
        });
        pieces
    }

    /// Sends a request and returns the next message.
    #[track_caller]
    pub(crate) fn send_and_receive(&mut self, message: &Value) -> Value {
        self.send(message);
        self.receive()
    }

    /// Waits for a line on stderr that contains `text`, and returns it.
    #[track_caller]
    pub(crate) fn wait_for_log(&mut self, text: &str) -> String {
        if let Some(line) = self.err.received.iter().find(|line| line.contains(text)) {
            return line.clone();
        }
        loop {
            match self.err.next() {
                Some(line) if line.contains(text) => return line,
                Some(_) => {}
                None => panic!("stderr ended without {text:?}: {:#?}", self.err.received),
            }
        }
    }

    /// The port of the first listener, once it listens.
    #[track_caller]
    pub(crate) fn port(&mut self) -> u16 {
        let line = self.wait_for_log("listening");
        let port = line.split("http://127.0.0.1:").nth(1).and_then(|rest| rest.split('/').next());
        port.and_then(|port| port.parse().ok()).unwrap_or_else(|| panic!("no port in {line:?}"))
    }

    /// A client of the first listener.
    #[track_caller]
    pub(crate) fn client(&mut self) -> HttpClient {
        HttpClient::v4(self.port())
    }

    /// CPU time of the program in seconds.
    #[cfg(target_os = "linux")]
    pub(crate) fn cpu_seconds(&self) -> f64 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("it runs");
        let nanoseconds = tasks.flatten().filter_map(|task| {
            let line = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
            line.split(' ').next()?.parse::<f64>().ok()
        });
        nanoseconds.sum::<f64>() / 1e9
    }

    /// Resident memory of the program.
    #[cfg(target_os = "linux")]
    #[allow(dead_code, reason = "the tests of OpenAI's API ask for it")]
    pub(crate) fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
        kilobytes.and_then(|kilobytes| kilobytes.parse::<u64>().ok()).expect("a size in kB") * 1024
    }

    /// Peak resident memory of the program.
    #[cfg(target_os = "linux")]
    #[allow(dead_code, reason = "the hostile exchanges ask for it")]
    pub(crate) fn peak_resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
        kilobytes.and_then(|kilobytes| kilobytes.parse::<u64>().ok()).expect("a size in kB") * 1024
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends `TERM` or `INT`.
    #[cfg(unix)]
    pub(crate) fn signal(&self, name: &str) {
        // Every Unix shell has a built-in `kill`.
        let kill = format!("kill -{name} {}", self.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success(), "{kill}");
    }

    /// Requests termination in the way of this platform.
    pub(crate) fn terminate(&mut self) {
        #[cfg(unix)]
        self.signal("TERM");
        #[cfg(not(unix))]
        self.child.kill().expect("a running child");
    }

    pub(crate) fn has_exited(&mut self) -> bool {
        self.child.try_wait().expect("the state of a child").is_some()
    }

    /// Waits for it to exit; an open stdin must not delay that.
    #[track_caller]
    pub(crate) fn wait(mut self) -> ProcessOutput {
        self.wait_timeout(TEST_TIMEOUT)
    }

    /// Waits for it to exit, and fails if that takes longer than `most`.
    #[track_caller]
    pub(crate) fn wait_timeout(&mut self, most: Duration) -> ProcessOutput {
        let asked = Instant::now();
        while !self.has_exited() {
            if asked.elapsed() > most {
                let _ = self.child.kill();
                let _ = self.child.wait();
                panic!("it still ran after {most:?}; stderr: {}", self.err.read_to_end());
            }
            thread::park_timeout(Duration::from_millis(5));
        }
        let code = self.child.wait().expect("the state of a child").code();
        let seen = self.out.as_ref().map_or(0, |lines| lines.received.len());
        self.read_stdout().read_to_end();
        let out = self.out.as_ref().map(|lines| lines.received[seen..].concat()).unwrap_or_default();
        ProcessOutput { code, stdout: out, stderr: self.err.read_to_end() }
    }

    fn read_stdout(&mut self) -> &mut LineReader {
        let unread = self.unread_stdout.take();
        self.out.get_or_insert_with(|| LineReader::spawn(unread.expect("stdout is piped")))
    }
}

impl Drop for TestProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

// === impl Ended ===

impl ProcessOutput {
    /// Every line of stdout as JSON.
    #[track_caller]
    pub(crate) fn messages(&self) -> Vec<Value> {
        let read = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line:?} is not JSON: {error}"));
        self.stdout.lines().map(read).collect()
    }

    /// stderr, which must be one line.
    #[track_caller]
    pub(crate) fn stderr_line(&self) -> &str {
        match self.stderr.lines().collect::<Vec<_>>()[..] {
            [line] => line,
            _ => panic!("stderr should be one line, but is:\n{}", self.stderr),
        }
    }

    /// A failed start: exit code not 0, empty stdout, one line on stderr, which is returned.
    #[track_caller]
    pub(crate) fn startup_error(&self) -> &str {
        assert!(self.code.is_some_and(|code| code != 0), "{self:?}");
        assert_eq!(self.stdout, "", "stdout belongs to the protocol");
        self.stderr_line()
    }
}

// === impl Lines ===

impl LineReader {
    fn spawn(stream: impl Read + Send + 'static) -> LineReader {
        let (sender, incoming) = mpsc::channel();
        thread::spawn(move || {
            let mut reader = BufReader::new(stream);
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    return;
                }
                line.clear();
            }
        });
        LineReader { incoming, received: Vec::new() }
    }

    /// The next line; `None` at the end of the stream.
    #[track_caller]
    fn next(&mut self) -> Option<String> {
        match self.incoming.recv_timeout(TEST_TIMEOUT) {
            Ok(line) => {
                self.received.push(line.clone());
                Some(line)
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => None,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("nothing was written; so far: {:#?}", self.received),
        }
    }

    /// Reads to the end of the stream; returns its complete content.
    #[track_caller]
    fn read_to_end(&mut self) -> String {
        while self.next().is_some() {}
        self.received.concat()
    }
}
