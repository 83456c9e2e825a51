//! Tests of the sandbox. It is irreversible, so the test binary starts itself as a subprocess and sandboxes that.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;

use rustix::process::{Resource, Rlimit};
use serde_json::{Map, Value, json};

/// Environment variable with the attempts for the sandboxed subprocess.
const TASK_VARIABLE: &str = "CORBIE_TEST_CONFINED";

#[derive(serde::Serialize, serde::Deserialize)]
struct ProbeTask {
    file: std::path::PathBuf,
    folder: std::path::PathBuf,
    port: u16,
    socket: std::path::PathBuf,
    process: i32,
    by: String,
}

fn run_probes(task: &ProbeTask, mut opened: File) -> Map<String, Value> {
    let told = |result: io::Result<()>| json!(result.err().map(|error| error.kind().to_string()));
    let mut results = Map::new();
    let mut attempt = |name: &str, result| results.insert(name.to_owned(), told(result));
    attempt("read a file", File::open(&task.file).map(drop));
    attempt("read its own environment", File::open("/proc/self/environ").map(drop));
    attempt("write a file", File::create(task.folder.join("new")).map(drop));
    attempt("change a file", OpenOptions::new().append(true).open(&task.file).map(drop));
    attempt("remove a file", std::fs::remove_file(&task.file));
    attempt("list a folder", std::fs::read_dir(&task.folder).map(drop));
    attempt("connect", TcpStream::connect(("127.0.0.1", task.port)).map(drop));
    attempt("listen", TcpListener::bind("127.0.0.1:0").map(drop));
    attempt("run a program", Command::new("/bin/true").status().map(drop));
    if task.by == "calls" {
        attempt("send a datagram", UdpSocket::bind("127.0.0.1:0").map(drop));
        attempt("connect to a socket of this machine", UnixStream::connect(&task.socket).map(drop));
        attempt("read what was open already", opened.read(&mut [0; 1]).map(drop));
        attempt("limit another process", {
            let other = rustix::process::Pid::from_raw(task.process);
            let none = Rlimit { current: Some(0), maximum: Some(0) };
            rustix::process::prlimit(other, Resource::Core, none).map(drop).map_err(Into::into)
        });
        attempt("start a thread", std::thread::Builder::new().spawn(|| {}).map(drop));
        attempt("stop another process", {
            let other = rustix::process::Pid::from_raw(task.process).unwrap();
            rustix::process::test_kill_process(other).map_err(Into::into)
        });
    }
    results
}

/// Does nothing outside the sandboxed subprocess.
#[test]
fn confined_process() {
    let Ok(task) = std::env::var(TASK_VARIABLE) else { return };
    let task: ProbeTask = serde_json::from_str(&task).unwrap();
    let opened = File::open(&task.file).unwrap();
    let confined = match task.by.as_str() {
        "files" => super::deny_files().unwrap(),
        _ => super::restrict_syscalls().is_ok(),
    };
    let results = if confined { Value::from(run_probes(&task, opened)) } else { Value::Null };
    io::Write::write_all(&mut io::stderr(), format!("\nRESULTS {results}\n").as_bytes()).unwrap();
}

/// Resources of another process, which must remain inaccessible.
struct ProbeTargets {
    folder: tempfile::TempDir,
    listener: TcpListener,
    _socket: UnixListener,
}

impl ProbeTargets {
    fn new() -> ProbeTargets {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("secret"), "secret").unwrap();
        let socket = UnixListener::bind(folder.path().join("socket")).unwrap();
        ProbeTargets { folder, listener: TcpListener::bind("127.0.0.1:0").unwrap(), _socket: socket }
    }

    fn task(&self, by: &str) -> ProbeTask {
        ProbeTask {
            file: self.folder.path().join("secret"),
            folder: self.folder.path().into(),
            port: self.listener.local_addr().unwrap().port(),
            socket: self.folder.path().join("socket"),
            process: std::process::id().try_into().unwrap(),
            by: by.into(),
        }
    }
}

/// Results of the sandboxed subprocess. `None` if the sandbox is unavailable.
fn run_sandboxed(task: &ProbeTask) -> Option<Map<String, Value>> {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "workers::sandbox::tests::confined_process", "--nocapture", "--test-threads=1"])
        .env(TASK_VARIABLE, serde_json::to_string(task).unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let results = said.lines().find_map(|line| line.strip_prefix("RESULTS "));
    serde_json::from_str(results.unwrap_or_else(|| panic!("{output:?}"))).unwrap()
}

/// Without the sandbox every attempt succeeds. Otherwise the tests below would prove nothing.
#[test]
fn without_it_files_and_network_are_open() {
    let others = ProbeTargets::new();
    let task = others.task("calls");
    let results = run_probes(&task, File::open(&task.file).unwrap());
    assert!(results.values().all(Value::is_null), "{results:?}");
}

#[test]
fn s12_by_its_calls_a_worker_cannot_open_files_connect_or_start_anything() {
    let results = run_sandboxed(&ProbeTargets::new().task("calls")).expect("every kernel has filters");
    assert!(results.len() == 15 && results.values().all(Value::is_string), "{results:?}");
}

#[test]
fn s12_by_landlock_a_worker_cannot_open_files_or_connect() {
    // The kernel may lack Landlock or have it disabled. The seccomp filter always applies.
    if let Some(results) = run_sandboxed(&ProbeTargets::new().task("files")) {
        assert!(results.len() == 9 && results.values().all(Value::is_string), "{results:?}");
    }
}
