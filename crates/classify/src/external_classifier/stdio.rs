//! Starts a classification server as a child process and connects to its stdio.

use std::collections::BTreeMap;
use std::process::Stdio;

use rmcp::RoleClient;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};

use super::{Error, MAX_MESSAGE_BYTES};
use corbie_config::program::Program;
use corbie_config::secret::SecretLine;

/// Environment variables that a program needs to find its own files. The other variables of corbie may hold keys.
const INHERITED_VARIABLES: [&str; 12] = [
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "TEMP",
    "SystemRoot",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
];
/// Maximum bytes of a stderr line that are logged.
const MAX_LOG_LINE_BYTES: u64 = 4096;

/// Transport over the child's stdout and stdin.
pub(super) type StdioTransport = AsyncRwTransport<RoleClient, ChildStdout, ChildStdin>;

/// Starts the program, in its own folder. It is killed when the child is dropped.
pub(super) fn start(
    program: &Program,
    args: &[String],
    env: &BTreeMap<String, SecretLine>,
) -> Result<(Child, StdioTransport), Error> {
    let inherited = INHERITED_VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    let search_path = env.get("PATH").map(|path| path.expose().into()).or_else(|| std::env::var_os("PATH"));
    let mut child = program
        .command(search_path.as_deref())
        .map_err(|error| Error::SpawnFailed(error.kind()))?
        .args(args)
        .env_clear()
        .envs(inherited)
        .envs(env.iter().map(|(name, value)| (name, value.expose())))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| Error::SpawnFailed(error.kind()))?;
    let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(Error::SpawnFailed(std::io::ErrorKind::BrokenPipe));
    };
    // The task ends with the program, which ends with the child.
    tokio::spawn(forward_log(stderr));
    Ok((child, AsyncRwTransport::new(stdout, stdin).with_max_line_length(MAX_MESSAGE_BYTES)))
}

/// Copies the child's stderr to the log; its stdout carries the protocol, as does corbie's own.
async fn forward_log(stderr: ChildStderr) {
    let mut lines = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut lines).take(MAX_LOG_LINE_BYTES).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => tracing::debug!(line = %String::from_utf8_lossy(&line).trim_end(), "classification server"),
        }
    }
}
