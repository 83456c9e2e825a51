//! Authentication variants with their server settings and client credentials.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::{Value, json};

use super::OverheadBudget;
use super::issuer::Issuer;
use super::load::{Load, TokenSource};
use super::signer::{self, Algorithm, Signer};
use crate::http::{self, LoadClient};
use crate::process::Process;
use crate::workload::Era;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) enum AuthMode {
    /// No authentication.
    Nobody,
    /// The same in another process: the difference is noise.
    NobodyAgain,
    Operator,
    OneOfMany,
    /// The same token in every call, as clients use it until it expires.
    Same(Algorithm),
    /// No token repeats, so each signature is verified.
    Each(Algorithm),
    AuditFile,
}

/// A server and its callers.
#[derive(Debug)]
pub(super) struct AuthContestant<'a> {
    pub(super) mode: AuthMode,
    pub(super) process: Process,
    pub(super) load: Load,
    pub(super) tokens: TokenSource<'a>,
}

/// Credentials of the callers, created before the measurement.
#[derive(Debug)]
pub(super) struct AuthFixture {
    issuer: Issuer,
    /// A token of `corbie tokens create`, in a file with many tokens.
    file_token: String,
    signed: [(Algorithm, Vec<String>); 2],
}

const CORBIE: &str = ".tools/bench/target/dist/corbie";
/// Generated server configuration.
const FOLDER: &str = ".tools/bench/access";
const OPERATOR_TOKEN: &str = "5d41c0de9a7b34f2186e0cb3f79a2d84e6b15f03";
/// Unused tokens in the file.
const OTHER_TOKENS: usize = 1000;
/// The audience of signed tokens.
pub(super) const RESOURCE: &str = "http://127.0.0.1/mcp";

impl AuthMode {
    /// The first is the baseline.
    pub(super) const ALL: [AuthMode; 9] = [
        AuthMode::Nobody,
        AuthMode::NobodyAgain,
        AuthMode::Operator,
        AuthMode::OneOfMany,
        AuthMode::Same(Algorithm::RS256),
        AuthMode::Same(Algorithm::ES256),
        AuthMode::Each(Algorithm::RS256),
        AuthMode::Each(Algorithm::ES256),
        AuthMode::AuditFile,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            AuthMode::Nobody => "no authentication",
            AuthMode::NobodyAgain => "no authentication, once more",
            AuthMode::Operator => "bearer, the operator's token",
            AuthMode::OneOfMany => "bearer, one of 1,001 tokens in the file",
            AuthMode::Same(Algorithm::RS256) => "JWT RS256, the same token",
            AuthMode::Same(Algorithm::ES256) => "JWT ES256, the same token",
            AuthMode::Each(Algorithm::RS256) => "JWT RS256, another token each call",
            AuthMode::Each(Algorithm::ES256) => "JWT ES256, another token each call",
            AuthMode::AuditFile => "no authentication, audit in a file",
        }
    }

    pub(super) fn budget(self) -> Option<OverheadBudget> {
        match self {
            AuthMode::Nobody | AuthMode::NobodyAgain => None,
            AuthMode::Operator | AuthMode::OneOfMany => Some(OverheadBudget::Bearer),
            AuthMode::Same(_) => Some(OverheadBudget::JwtAgain),
            AuthMode::Each(_) => Some(OverheadBudget::JwtAnew),
            AuthMode::AuditFile => Some(OverheadBudget::Seeing),
        }
    }

    /// For file names.
    fn file_stem(self) -> &'static str {
        match self {
            AuthMode::Nobody => "nobody",
            AuthMode::NobodyAgain => "nobody-again",
            AuthMode::Operator => "operator",
            AuthMode::OneOfMany => "one-of-many",
            AuthMode::Same(Algorithm::RS256) => "same-rs256",
            AuthMode::Same(Algorithm::ES256) => "same-es256",
            AuthMode::Each(Algorithm::RS256) => "each-rs256",
            AuthMode::Each(Algorithm::ES256) => "each-es256",
            AuthMode::AuditFile => "audit-file",
        }
    }
}

impl AuthFixture {
    /// Prepares this many signed tokens of each kind.
    pub(super) fn prepare(tokens: usize) -> Result<AuthFixture> {
        ensure!(Path::new(CORBIE).exists(), "{CORBIE} is not there; `bench/run protocol` builds it");
        // Files of an earlier run would be read or appended to.
        if Path::new(FOLDER).exists() {
            fs::remove_dir_all(FOLDER)?;
        }
        fs::create_dir_all(FOLDER)?;
        let signers = [Signer::new(Algorithm::RS256)?, Signer::new(Algorithm::ES256)?];
        let issuer = Issuer::start(&signers)?;
        let [rsa, curve] = &signers;
        let signed = [
            (Algorithm::RS256, signer::tokens(rsa, issuer.url(), tokens)?),
            (Algorithm::ES256, signer::tokens(curve, issuer.url(), tokens)?),
        ];
        Ok(AuthFixture { issuer, file_token: create_tokens_file()?, signed })
    }

    /// Starts a server and connects to it.
    pub(super) fn start(&self, way: AuthMode, connections: usize) -> Result<AuthContestant<'_>> {
        let port = http::free_port()?;
        let mut command = corbie_command(&write_settings(&format!("{}.json", way.file_stem()), &self.settings(way)?)?);
        command.args(["serve", "--port", &port.to_string()]);
        let log = format!(".tools/bench/logs/access-{}.log", way.file_stem());
        let start = || -> Result<_> {
            let mut process = Process::without_pipes(command, &log)?;
            drop(LoadClient::connect_first(&mut process, port, Era::Modern)?);
            let mut tokens = self.tokens(way);
            let load = Load::open(port, connections, &mut tokens)?;
            Ok(AuthContestant { mode: way, process, load, tokens })
        };
        start().with_context(|| format!("{} (see {log})", way.name()))
    }

    fn tokens(&self, way: AuthMode) -> TokenSource<'_> {
        match way {
            AuthMode::Nobody | AuthMode::NobodyAgain | AuthMode::AuditFile => TokenSource::None,
            AuthMode::Operator => TokenSource::Same(OPERATOR_TOKEN),
            AuthMode::OneOfMany => TokenSource::Same(&self.file_token),
            AuthMode::Same(algorithm) => TokenSource::Same(&self.signed(algorithm)[0]),
            AuthMode::Each(algorithm) => TokenSource::Each(self.signed(algorithm).iter()),
        }
    }

    fn signed(&self, wanted: Algorithm) -> &[String] {
        let [(first, of_first), (_, of_second)] = &self.signed;
        if *first == wanted { of_first } else { of_second }
    }

    fn settings(&self, way: AuthMode) -> Result<Value> {
        let oauth = json!({
            "issuer": self.issuer.url(), "jwks_url": self.issuer.keys_url(), "resource": RESOURCE,
            "scopes": { "read": "untrusted" },
        });
        let mut settings = match way {
            AuthMode::Nobody | AuthMode::NobodyAgain => json!({}),
            AuthMode::Operator => json!({ "server": { "auth": "bearer", "token": OPERATOR_TOKEN } }),
            AuthMode::OneOfMany => json!({ "server": { "auth": "bearer", "tokens_file": tokens_file()? } }),
            AuthMode::Same(_) | AuthMode::Each(_) => json!({ "server": { "oauth": oauth } }),
            AuthMode::AuditFile => json!({ "audit": { "file": absolute_path("audit.jsonl")? } }),
        };
        // Disables provider detection.
        settings["providers"] = json!({ "detect_ports": [] });
        Ok(settings)
    }
}

/// Creates a token with the CLI, adds many tokens before it, and returns its secret.
fn create_tokens_file() -> Result<String> {
    let settings = write_settings("tokens-create.json", &json!({ "server": { "tokens_file": tokens_file()? } }))?;
    let output = corbie_command(&settings).args(["tokens", "create", "measured", "--json"]).output().context(CORBIE)?;
    ensure!(output.status.success(), "`corbie tokens create`: {}", String::from_utf8_lossy(&output.stderr));
    let told: Value = serde_json::from_slice(&output.stdout)?;
    let secret = told["token"].as_str().context("`corbie tokens create` tells the token")?.to_owned();

    let mut file: Value = serde_json::from_slice(&fs::read(tokens_file()?)?)?;
    let records = file["tokens"].as_array_mut().context("a file of tokens has tokens")?;
    let ours = records.pop().context("a token was made")?;
    for number in 0..OTHER_TOKENS {
        let mut other = ours.clone();
        other["name"] = format!("other-{number}").into();
        other["sha256"] = signer::digest(&format!("other {number}")).into();
        records.push(other);
    }
    records.push(ours);
    fs::write(tokens_file()?, file.to_string())?;
    Ok(secret)
}

/// Default configuration: no settings of this machine or user.
fn corbie_command(settings: &Path) -> Command {
    let mut command = Command::new(CORBIE);
    command.env_clear().arg("--config").arg(settings);
    command
}

fn tokens_file() -> Result<PathBuf> {
    absolute_path("tokens.json")
}

/// Absolute path of a generated file.
fn absolute_path(name: &str) -> Result<PathBuf> {
    Ok(std::path::absolute(Path::new(FOLDER).join(name))?)
}

fn write_settings(name: &str, settings: &Value) -> Result<PathBuf> {
    let file = absolute_path(name)?;
    fs::write(&file, settings.to_string()).with_context(|| file.display().to_string())?;
    Ok(file)
}
