//! Authentication variants with their server settings and client credentials.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::{Value, json};

use super::Kind;
use super::issuer::Issuer;
use super::load::{Load, Tokens};
use super::signer::{self, Algorithm, Signer};
use crate::http::{self, Client};
use crate::process::Process;
use crate::workload::Era;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) enum Way {
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
pub(super) struct Contestant<'a> {
    pub(super) way: Way,
    pub(super) process: Process,
    pub(super) load: Load,
    pub(super) tokens: Tokens<'a>,
}

/// Credentials of the callers, created before the measurement.
#[derive(Debug)]
pub(super) struct Callers {
    issuer: Issuer,
    /// A token of `corbie tokens create`, in a file with many tokens.
    one_of_many: String,
    signed: [(Algorithm, Vec<String>); 2],
}

const CORBIE: &str = ".tools/bench/target/release/corbie";
/// Generated server configuration.
const FOLDER: &str = ".tools/bench/access";
const OPERATOR: &str = "5d41c0de9a7b34f2186e0cb3f79a2d84e6b15f03";
/// Unused tokens in the file.
const OTHERS: usize = 1000;
/// The audience of signed tokens.
pub(super) const RESOURCE: &str = "http://127.0.0.1/mcp";

impl Way {
    /// The first is the baseline.
    pub(super) const ALL: [Way; 9] = [
        Way::Nobody,
        Way::NobodyAgain,
        Way::Operator,
        Way::OneOfMany,
        Way::Same(Algorithm::RS256),
        Way::Same(Algorithm::ES256),
        Way::Each(Algorithm::RS256),
        Way::Each(Algorithm::ES256),
        Way::AuditFile,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Way::Nobody => "no authentication",
            Way::NobodyAgain => "no authentication, once more",
            Way::Operator => "bearer, the operator's token",
            Way::OneOfMany => "bearer, one of 1,001 tokens in the file",
            Way::Same(Algorithm::RS256) => "JWT RS256, the same token",
            Way::Same(Algorithm::ES256) => "JWT ES256, the same token",
            Way::Each(Algorithm::RS256) => "JWT RS256, another token each call",
            Way::Each(Algorithm::ES256) => "JWT ES256, another token each call",
            Way::AuditFile => "no authentication, audit in a file",
        }
    }

    pub(super) fn promised(self) -> Option<Kind> {
        match self {
            Way::Nobody | Way::NobodyAgain => None,
            Way::Operator | Way::OneOfMany => Some(Kind::Bearer),
            Way::Same(_) => Some(Kind::JwtAgain),
            Way::Each(_) => Some(Kind::JwtAnew),
            Way::AuditFile => Some(Kind::Seeing),
        }
    }

    /// For file names.
    fn word(self) -> &'static str {
        match self {
            Way::Nobody => "nobody",
            Way::NobodyAgain => "nobody-again",
            Way::Operator => "operator",
            Way::OneOfMany => "one-of-many",
            Way::Same(Algorithm::RS256) => "same-rs256",
            Way::Same(Algorithm::ES256) => "same-es256",
            Way::Each(Algorithm::RS256) => "each-rs256",
            Way::Each(Algorithm::ES256) => "each-es256",
            Way::AuditFile => "audit-file",
        }
    }
}

impl Callers {
    /// Prepares this many signed tokens of each kind.
    pub(super) fn prepare(tokens: usize) -> Result<Callers> {
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
        Ok(Callers { issuer, one_of_many: many_tokens()?, signed })
    }

    /// Starts a server and connects to it.
    pub(super) fn start(&self, way: Way, connections: usize) -> Result<Contestant<'_>> {
        let port = http::free_port()?;
        let mut command = corbie(&written(&format!("{}.json", way.word()), &self.settings(way)?)?);
        command.args(["serve", "--port", &port.to_string()]);
        let log = format!(".tools/bench/logs/access-{}.log", way.word());
        let start = || -> Result<_> {
            let mut process = Process::without_pipes(command, &log)?;
            drop(Client::first(&mut process, port, Era::Modern)?);
            let mut tokens = self.tokens(way);
            let load = Load::open(port, connections, &mut tokens)?;
            Ok(Contestant { way, process, load, tokens })
        };
        start().with_context(|| format!("{} (see {log})", way.name()))
    }

    fn tokens(&self, way: Way) -> Tokens<'_> {
        match way {
            Way::Nobody | Way::NobodyAgain | Way::AuditFile => Tokens::None,
            Way::Operator => Tokens::Same(OPERATOR),
            Way::OneOfMany => Tokens::Same(&self.one_of_many),
            Way::Same(algorithm) => Tokens::Same(&self.signed(algorithm)[0]),
            Way::Each(algorithm) => Tokens::Each(self.signed(algorithm).iter()),
        }
    }

    fn signed(&self, wanted: Algorithm) -> &[String] {
        let [(first, of_first), (_, of_second)] = &self.signed;
        if *first == wanted { of_first } else { of_second }
    }

    fn settings(&self, way: Way) -> Result<Value> {
        let oauth = json!({
            "issuer": self.issuer.url(), "jwks_url": self.issuer.keys_url(), "resource": RESOURCE,
            "scopes": { "read": "untrusted" },
        });
        let mut settings = match way {
            Way::Nobody | Way::NobodyAgain => json!({}),
            Way::Operator => json!({ "server": { "auth": "bearer", "token": OPERATOR } }),
            Way::OneOfMany => json!({ "server": { "auth": "bearer", "tokens_file": tokens_file()? } }),
            Way::Same(_) | Way::Each(_) => json!({ "server": { "oauth": oauth } }),
            Way::AuditFile => json!({ "audit": { "file": placed("audit.jsonl")? } }),
        };
        // Disables provider detection.
        settings["providers"] = json!({ "detect_ports": [] });
        Ok(settings)
    }
}

/// Creates a token with the CLI, adds many tokens before it, and returns its secret.
fn many_tokens() -> Result<String> {
    let settings = written("tokens-create.json", &json!({ "server": { "tokens_file": tokens_file()? } }))?;
    let output = corbie(&settings).args(["tokens", "create", "measured", "--json"]).output().context(CORBIE)?;
    ensure!(output.status.success(), "`corbie tokens create`: {}", String::from_utf8_lossy(&output.stderr));
    let told: Value = serde_json::from_slice(&output.stdout)?;
    let secret = told["token"].as_str().context("`corbie tokens create` tells the token")?.to_owned();

    let mut file: Value = serde_json::from_slice(&fs::read(tokens_file()?)?)?;
    let records = file["tokens"].as_array_mut().context("a file of tokens has tokens")?;
    let ours = records.pop().context("a token was made")?;
    for number in 0..OTHERS {
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
fn corbie(settings: &Path) -> Command {
    let mut command = Command::new(CORBIE);
    command.env_clear().arg("--config").arg(settings);
    command
}

fn tokens_file() -> Result<PathBuf> {
    placed("tokens.json")
}

/// Absolute path of a generated file.
fn placed(name: &str) -> Result<PathBuf> {
    Ok(std::path::absolute(Path::new(FOLDER).join(name))?)
}

fn written(name: &str, settings: &Value) -> Result<PathBuf> {
    let file = placed(name)?;
    fs::write(&file, settings.to_string()).with_context(|| file.display().to_string())?;
    Ok(file)
}
