//! Registry of the running servers of a user, so that commands find a server wherever it listens.
//!
//! Each server writes a file with its URLs into a private folder and holds a lock on it, which the operating system
//! releases with the process. A file without a lock was left by a process that was killed, and is removed. Readers ask
//! a server before they rely on it, because its listener may have closed since.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};
use url::Url;

use crate::config::{self, Config};
use crate::util::fs::dir_permissions;
use crate::util::fs::private_dir::{create_private_dir, open_private_file};

/// A running server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningServer {
    pub pid: u32,
    /// Time of its start, in milliseconds since 1970.
    pub started_ms: u64,
    /// MCP URLs for clients on this machine; `unix:/path` for a Unix socket.
    pub urls: Vec<String>,
    /// Digest of the settings that determine how a prompt is answered.
    pub routing_digest: String,
}

/// Removes the file of a server when it is dropped.
#[derive(Debug)]
pub struct Registration {
    path: PathBuf,
    /// Locked while the server runs.
    _file: File,
}

/// Larger than any file of a server.
const MAX_FILE_BYTES: u64 = 64 * 1024;
const EXTENSION: &str = "json";

/// Registers this process. Returns `None` if the user's data folder is unknown.
pub fn register(
    variables: &BTreeMap<String, String>,
    config: &Config,
    urls: Vec<String>,
) -> io::Result<Option<Registration>> {
    let Some(folder) = folder(variables) else { return Ok(None) };
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let started_ms = u64::try_from(started.as_millis()).unwrap_or_default();
    let server = RunningServer { pid: std::process::id(), started_ms, urls, routing_digest: routing_digest(config) };
    register_in(&folder, &server).map(Some)
}

fn register_in(folder: &Path, server: &RunningServer) -> io::Result<Registration> {
    create_private_dir(folder)?;
    check_folder(folder)?;
    let path = folder.join(format!("{}.{EXTENSION}", server.pid));
    // Renamed after it is locked and written, because readers remove a file without a lock.
    let unnamed = path.with_extension("starting");
    let _ = fs::remove_file(&unnamed);
    let mut file = open_private_file(&unnamed)?;
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => io::ErrorKind::WouldBlock.into(),
        TryLockError::Error(error) => error,
    })?;
    file.write_all(json!(server).to_string().as_bytes())?;
    fs::rename(&unnamed, &path)?;
    Ok(Registration { path, _file: file })
}

/// All running servers, newest first.
pub fn find(variables: &BTreeMap<String, String>) -> Vec<RunningServer> {
    folder(variables).map(|folder| find_in(&folder)).unwrap_or_default()
}

fn find_in(folder: &Path) -> Vec<RunningServer> {
    if check_folder(folder).is_err() {
        return Vec::new();
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let mut servers: Vec<RunningServer> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == EXTENSION))
        .filter_map(|path| read(&path))
        .collect();
    servers.sort_by_key(|server| std::cmp::Reverse(server.started_ms));
    servers
}

/// Reads the file of a running server. Removes it if the server does not run any more.
fn read(path: &Path) -> Option<RunningServer> {
    if !path.symlink_metadata().ok()?.is_file() {
        return None;
    }
    let file = File::open(path).ok()?;
    match file.try_lock_shared() {
        Ok(()) => {
            let _ = fs::remove_file(path);
            None
        }
        Err(_) => {
            let mut text = String::new();
            file.take(MAX_FILE_BYTES).read_to_string(&mut text).ok()?;
            serde_json::from_str(&text).ok()
        }
    }
}

/// Other users must not be able to put files here, because commands send prompts to the URLs in them.
fn check_folder(folder: &Path) -> io::Result<()> {
    dir_permissions::refuse_link(folder).map_err(io::Error::other)?;
    #[cfg(unix)]
    dir_permissions::check(folder).map_err(io::Error::other)?;
    Ok(())
}

/// Digest of the settings that determine how a prompt is answered. Secrets are masked and do not count.
pub fn routing_digest(config: &Config) -> String {
    const SECTIONS: [&str; 8] =
        ["inference", "classification", "providers", "defaults", "network", "router", "knowledge", "classifier"];
    let settings = json!(config);
    let counted: Vec<_> = SECTIONS.iter().map(|section| &settings[section]).collect();
    format!("{:x}", Sha256::digest(json!(counted).to_string()))
}

fn folder(variables: &BTreeMap<String, String>) -> Option<PathBuf> {
    Some(config::user_data_dir(variables)?.join("corbie").join("servers"))
}

impl RunningServer {
    /// The first URL with HTTP or HTTPS.
    pub fn web_url(&self) -> Option<&str> {
        self.urls.iter().map(String::as_str).find(|url| url.starts_with("http"))
    }

    /// The first URL without TLS, which needs no certificate that this machine trusts.
    pub fn plain_url(&self) -> Option<Url> {
        self.urls.iter().filter(|url| url.starts_with("http://")).find_map(|url| Url::parse(url).ok())
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    fn server(pid: u32, started_ms: u64) -> RunningServer {
        let urls = vec!["unix:/run/x".to_owned(), format!("http://127.0.0.1:{pid}/mcp")];
        RunningServer { pid, started_ms, urls, routing_digest: String::new() }
    }

    #[test]
    fn running_servers_are_found_newest_first_until_they_exit() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("servers");
        assert_eq!(find_in(&folder), []);
        assert!(!folder.exists(), "readers create nothing");
        let (one, two) = (server(1, 100), server(2, 200));
        let first = register_in(&folder, &one).unwrap();
        let second = register_in(&folder, &two).unwrap();
        assert_eq!(find_in(&folder), [two, one.clone()]);
        assert_eq!(one.web_url(), Some("http://127.0.0.1:1/mcp"));
        drop(second);
        assert_eq!(find_in(&folder), [one]);
        drop(first);
        assert_eq!(folder.read_dir().unwrap().count(), 0);
    }

    #[test]
    fn file_of_a_killed_server_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("servers");
        drop(register_in(&folder, &server(1, 100)).unwrap());
        let stale = folder.join("7.json");
        fs::write(&stale, json!(server(7, 100)).to_string()).unwrap();
        assert_eq!(find_in(&folder), []);
        assert!(!stale.exists());
    }

    #[cfg(unix)]
    #[test]
    fn folder_that_others_can_write_to_is_ignored() {
        use std::os::unix::fs::PermissionsExt;
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("servers");
        let _registered = register_in(&folder, &server(1, 100)).unwrap();
        fs::set_permissions(&folder, PermissionsExt::from_mode(0o777)).unwrap();
        assert_eq!(find_in(&folder), []);
        assert!(register_in(&folder, &server(2, 100)).is_err());
    }

    #[test]
    fn routing_digest_depends_on_routing_settings_only() {
        let (mut one, other) = (Config::default(), Config::default());
        assert_eq!(routing_digest(&one), routing_digest(&other));
        one.server.name = "other".into();
        assert_eq!(routing_digest(&one), routing_digest(&other));
        one.router.grounding.enabled = !one.router.grounding.enabled;
        assert_ne!(routing_digest(&one), routing_digest(&other));
    }
}
