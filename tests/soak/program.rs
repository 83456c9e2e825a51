//! Launch configuration of the program under test: binary, settings, directories.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::net::SocketAddr;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Enough for a command on a large base on a loaded machine.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(1200);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The programs that take part.
#[derive(Debug, clap::Args)]
pub(crate) struct Binaries {
    /// The program; CORBIE names it too
    #[arg(long, global = true, default_value_os_t = path_from_env("CORBIE", "target/debug/corbie"))]
    pub(crate) corbie: PathBuf,
    /// The stand-in for providers; UPSTREAM names it too
    #[arg(long, global = true, default_value_os_t = path_from_env("UPSTREAM", "target/debug/examples/upstream"))]
    pub(crate) upstream: PathBuf,
}

fn path_from_env(variable: &str, otherwise: &str) -> PathBuf {
    std::env::var_os(variable).map_or_else(|| PathBuf::from(otherwise), PathBuf::from)
}

#[derive(Debug, Clone)]
pub(crate) struct ProgramConfig {
    pub(crate) binary: PathBuf,
    /// Home directory: settings, taxonomy, logs.
    pub(crate) home: PathBuf,
    /// Storage directory; on a separate disk if disk faults are enabled.
    pub(crate) storage: PathBuf,
    /// Listen address, the same after every restart.
    pub(crate) address: SocketAddr,
    /// `server.limits` of the settings; empty for the defaults.
    pub(crate) limits: &'static str,
    /// User to run as, if not the current one: resource limits do not apply to root.
    pub(crate) user: Option<u32>,
    /// A word that the first search after a start must find, if any.
    pub(crate) known_word: Option<String>,
    /// Additional environment variables.
    pub(crate) environment: Vec<(String, String)>,
}

/// Clearly separated examples, so that every text has one clear category. The editor appends a comment with the
/// version.
pub(crate) const TAXONOMY: &str = "\
categories:
  - name: billing
    description: money, invoices and refunds
    examples: [i was charged twice, where is my refund, the invoice is wrong, my card was declined]
  - name: delivery
    description: parcels and couriers
    examples: [where is my parcel, the courier left it in the rain, my order did not arrive, change the delivery address]
  - name: account
    description: sign in and passwords
    examples: [i forgot my password, i cannot sign in, delete my account, change my email address]
";

impl ProgramConfig {
    /// Writes settings and taxonomy. `upstream` is the address of the mock provider.
    pub(crate) fn write_settings(&self, upstream: SocketAddr) -> io::Result<()> {
        let settings = format!(
            "server: {{ listen: ['{address}', 'unix:{socket}'], tool_timeout_seconds: 60, shutdown_grace_seconds: 5, \
             limits: {{ {limits} }} }}\n\
             trust: {{ all: trusted }}\n\
             classification: {{ taxonomy: {home}/taxonomy.yaml }}\n\
             knowledge: {{ storage_path: {storage}, chunk_size: 64, chunk_overlap: 8 }}\n\
             providers:\n  detect_ports: []\n  stand-in: {{ type: openai, api_key: none, base_url: 'http://{upstream}/v1' }}\n\
             defaults: {{ model: stand-in/echo-large }}\n",
            address = self.address,
            socket = self.socket().display(),
            limits = self.limits,
            home = self.home.display(),
            storage = self.storage.display(),
        );
        fs::create_dir_all(&self.storage)?;
        fs::write(self.settings(), settings)?;
        fs::write(self.home.join("taxonomy.yaml"), TAXONOMY)?;
        let Some(user) = self.user else { return Ok(()) };
        // The user owns the written paths and can traverse the parent directories.
        for place in [self.home.join("taxonomy.yaml").as_path(), &self.home, &self.storage] {
            chown(place, Some(user), Some(user))?;
        }
        for place in [&self.home, &self.storage].into_iter().filter_map(|place| place.parent()) {
            fs::set_permissions(place, fs::Permissions::from_mode(0o755))?;
        }
        Ok(())
    }

    /// A command of the program with its configuration; the log is appended to a file.
    fn command(&self, log: &Path) -> io::Result<Command> {
        let mut command = Command::new(&self.binary);
        command
            .arg("--config")
            .arg(self.settings())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.home)
            .env("XDG_RUNTIME_DIR", &self.home)
            .env("NO_COLOR", "1")
            .envs(self.environment.iter().cloned())
            .current_dir(&self.home)
            .stderr(File::options().create(true).append(true).open(log)?);
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        Ok(command)
    }

    pub(crate) fn serve(&self) -> io::Result<Child> {
        self.command(&self.log())?.arg("serve").stdin(Stdio::null()).stdout(Stdio::null()).spawn()
    }

    pub(crate) fn stdio(&self) -> io::Result<Child> {
        self.command(&self.log())?.arg("stdio").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()
    }

    /// Runs a command to completion and returns its success and output. Times out after `LONGEST_COMMAND`.
    pub(crate) fn run(&self, words: &[&str]) -> io::Result<(bool, String)> {
        let said = tempfile::tempfile()?;
        let mut child =
            self.command(&self.log())?.args(words).stdin(Stdio::null()).stdout(said.try_clone()?).spawn()?;
        let until = Instant::now() + COMMAND_TIMEOUT;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if Instant::now() > until {
                child.kill().and_then(|()| child.wait())?;
                return Err(io::Error::new(io::ErrorKind::TimedOut, format!("corbie {} has no end", words.join(" "))));
            }
            std::thread::sleep(POLL_INTERVAL);
        };
        let mut text = String::new();
        (&said).rewind()?;
        (&said).read_to_string(&mut text)?;
        Ok((status.success(), text))
    }

    pub(crate) fn settings(&self) -> PathBuf {
        self.home.join("settings.yaml")
    }

    /// Unix socket on which the server also listens.
    pub(crate) fn socket(&self) -> PathBuf {
        self.home.join("corbie.sock")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.home.join("log.txt")
    }
}

/// An unprivileged user id, if root can switch to it.
pub(crate) fn unprivileged_user() -> Option<u32> {
    const NOBODY: u32 = 65_534;
    let users = fs::read_to_string("/proc/self/uid_map").ok()?;
    let [first, _, count] = users.split_whitespace().map(str::parse::<u32>).collect::<Result<Vec<_>, _>>().ok()?[..]
    else {
        return None;
    };
    let is_known = first <= NOBODY && NOBODY - first < count;
    (rustix::process::geteuid().is_root() && is_known).then_some(NOBODY)
}
