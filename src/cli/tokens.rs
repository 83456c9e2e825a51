//! `corbie tokens`: creates, lists and revokes API tokens.

use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::{Args, Subcommand};
use corbie_mcp::TrustLevel;
use serde_json::{Value, json};

use super::exit::InvalidSettings;
use super::instance_sync::{InstanceSync, SyncSettings, SyncStatus};
use super::table::{Align, write_table};
use super::tools::UnknownTool;
use super::{CommandResult, json_output, sanitize_line};
use crate::access::{NewToken, TokenFile, TokenName, TokenRecord};
use crate::app;
use crate::config::duration::Timeout;
use crate::config::server::RateLimit;
use crate::config::trust::TrustLevelSetting;
use crate::config::{self, LoadedConfig, Sources};
use crate::file_sync::SharedFileKind;
use crate::knowledge::document::BaseName;
use crate::util::sanitize::sanitize;

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  corbie tokens create laptop --expires-in 90d
  corbie tokens list
  corbie tokens revoke laptop")]
pub(super) enum TokensCommand {
    /// Create an API token and print its secret, which cannot be shown again
    ///
    /// Running servers accept it within two seconds.
    Create(Create),
    /// List tokens and their permissions; secrets are not stored
    List(List),
    /// Revoke a token; its connections are closed after their running calls
    Revoke(Revoke),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  corbie tokens create laptop --expires-in 90d
  corbie tokens create reader --tool 'knowledge-*' --base work
  corbie tokens create bot --trust untrusted --rate-limit 5")]
pub(super) struct Create {
    /// Name of the token in logs and the audit log
    name: TokenName,
    /// Lifetime of the token, such as `90d`; unlimited if omitted
    #[arg(long, value_name = "TIME")]
    expires_in: Option<Timeout>,
    /// Trust level of callers with this token: untrusted, verified or trusted; that of the listener if omitted
    #[arg(long, value_name = "LEVEL")]
    trust: Option<TrustLevel>,
    /// Tool that callers may use, or a prefix such as `knowledge-*`; can be repeated. `embeddings` is the endpoint
    /// /v1/embeddings
    #[arg(long = "tool", value_name = "NAME")]
    tools: Vec<String>,
    /// Knowledge base that callers may use; can be repeated
    #[arg(long = "knowledge-base", visible_alias = "base", value_name = "NAME")]
    knowledge_bases: Vec<BaseName>,
    /// Maximum number of requests per second; the server's limit if omitted
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate_limit: Option<u32>,
    /// Maximum number of requests in a burst; twice the rate if omitted
    #[arg(long, value_name = "N", requires = "rate_limit", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    burst: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  corbie tokens list
  corbie tokens list --json")]
pub(super) struct List {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  corbie tokens revoke laptop")]
pub(super) struct Revoke {
    /// Name of the token, as in `corbie tokens list`
    name: TokenName,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// `trust` is the value from the command line. Invalid settings do not prevent revoking a token.
pub(super) fn run(
    command: &TokensCommand,
    trust: Option<TrustLevel>,
    loaded: Result<LoadedConfig, InvalidSettings>,
    sources: &Sources,
    out: &mut dyn Write,
) -> CommandResult {
    let Some(file) = config::tokens_file(sources).map(TokenFile::new) else {
        return Err("the user's data folder is unknown; set `server.tokens_file`".into());
    };
    match command {
        TokensCommand::Create(command) => {
            let loaded = loaded?;
            check_tools(&command.tools, &loaded)?;
            create(
                command,
                trust,
                &file,
                &InstanceSync::new(SyncSettings::Valid(&loaded.config), SharedFileKind::Tokens),
                out,
            )
        }
        TokensCommand::List(command) => {
            warn_invalid_settings(&loaded)?;
            list(command, &file, &instance_sync(&loaded, sources), out)
        }
        TokensCommand::Revoke(command) => {
            warn_invalid_settings(&loaded)?;
            revoke(command, &file, &instance_sync(&loaded, sources), out)
        }
    }
}

/// The other instances with these tokens, as far as the settings show.
fn instance_sync<'l>(loaded: &'l Result<LoadedConfig, InvalidSettings>, sources: &Sources) -> InstanceSync<'l> {
    let settings = match loaded {
        Ok(loaded) => SyncSettings::Valid(&loaded.config),
        Err(_) if config::has_shared_database(sources) => SyncSettings::InvalidButShared,
        Err(_) => SyncSettings::Invalid,
    };
    InstanceSync::new(settings, SharedFileKind::Tokens)
}

fn warn_invalid_settings(loaded: &Result<LoadedConfig, InvalidSettings>) -> std::io::Result<()> {
    match loaded {
        Ok(_) => Ok(()),
        Err(error) => writeln!(std::io::stderr(), "corbie: {}", sanitize(&error.to_string())),
    }
}

fn create(
    command: &Create,
    trust: Option<TrustLevel>,
    file: &TokenFile,
    others: &InstanceSync<'_>,
    out: &mut dyn Write,
) -> CommandResult {
    let mut new = NewToken::generate(command.name.clone(), command.expires_in.map(Timeout::get));
    let record = &mut new.record;
    record.trust = command.trust.or(trust).map(TrustLevelSetting::from);
    record.tools = none_if_empty(command.tools.clone());
    record.knowledge_bases = none_if_empty(command.knowledge_bases.iter().map(ToString::to_string).collect());
    record.rate_limit = command.rate_limit.map(|per_second| RateLimit { per_second, burst: command.burst });
    let reached = others.sync()?;
    file.add(new.record.clone())?;
    if reached == SyncStatus::Synced {
        others.sync()?;
    }
    // Another instance may have created a token of the same name at the same time; then this one was renamed.
    if let Some(kept) = file.read()?.into_iter().find(|token| token.sha256 == new.record.sha256) {
        new.record.name = kept.name;
    }
    if command.json {
        let mut told = to_json(&new.record);
        told["token"] = new.expose().into();
        json_output::write(&told, out)?;
    } else {
        writeln!(out, "{}", new.expose())?;
        let mut stderr = std::io::stderr();
        writeln!(stderr, "This is the only time the token is shown. Send it as `Authorization: Bearer <token>`.")?;
        writeln!(stderr, "`{}`: {}.", new.record.name, permissions_text(&new.record))?;
        writeln!(
            stderr,
            "It is stored in {}, which the servers of this user read.",
            sanitize_line(&file.path().display().to_string())
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Rejects unknown tool names: a token for a misspelt tool would be useless without an obvious reason.
fn check_tools(names: &[String], loaded: &LoadedConfig) -> Result<(), Box<dyn std::error::Error>> {
    if names.is_empty() {
        return Ok(());
    }
    let registry = app::build(&loaded.config)?.server.registry();
    for name in names {
        match name.strip_suffix('*') {
            Some(beginning) if registry.iter().any(|tool| tool.name().starts_with(beginning)) => {}
            Some(_) => return Err(format!("no tool matches `{name}`; `corbie tools list` lists all tools").into()),
            // A path of the OpenAI API without a corresponding tool.
            None if name == "embeddings" => {}
            None => match registry.find(name).map_err(UnknownTool::because)?.name() {
                exact if exact == name => {}
                other => return Err(format!("the name of the tool is `{other}`").into()),
            },
        }
    }
    Ok(())
}

fn list(command: &List, file: &TokenFile, others: &InstanceSync<'_>, out: &mut dyn Write) -> CommandResult {
    let tokens = match others.newest()? {
        Some(text) => file.parse(&text)?,
        None => file.read()?,
    };
    if command.json {
        json_output::write(&json!({ "tokens": tokens.iter().map(to_json).collect::<Vec<_>>() }), out)?;
        return Ok(ExitCode::SUCCESS);
    }
    if tokens.is_empty() {
        writeln!(out, "No tokens. Create one with `corbie tokens create NAME`.")?;
        return Ok(ExitCode::SUCCESS);
    }
    let heading = [
        ("NAME", Align::Left),
        ("TRUST", Align::Left),
        ("CREATED", Align::Left),
        ("EXPIRES", Align::Left),
        ("TOOLS", Align::Wrap),
        ("KNOWLEDGE BASES", Align::Wrap),
        ("RATE", Align::Left),
    ];
    let row = |token: &TokenRecord| {
        let names =
            |names: &Option<Vec<String>>| names.as_ref().map_or("all".into(), |names| sanitize_line(&names.join(", ")));
        let rate = |limit: RateLimit| format!("{}/s, burst {}", limit.per_second, limit.burst());
        vec![
            token.name.to_string(),
            token.trust.map_or("by listener", TrustLevelSetting::as_str).to_owned(),
            day(token.created),
            expiry_text(token),
            names(&token.tools),
            names(&token.knowledge_bases),
            token.rate_limit.map_or("server default".into(), rate),
        ]
    };
    write_table(&heading, &tokens.iter().map(row).collect::<Vec<_>>(), out)?;
    Ok(ExitCode::SUCCESS)
}

fn revoke(command: &Revoke, file: &TokenFile, others: &InstanceSync<'_>, out: &mut dyn Write) -> CommandResult {
    let reached = others.sync()?;
    let token = file.revoke(&command.name)?;
    let told = match reached {
        SyncStatus::Synced => others.sync()?,
        SyncStatus::NotSynced => SyncStatus::NotSynced,
    };
    match (command.json, told) {
        (true, _) => json_output::write(
            &json!({ "revoked": token.name.as_str(), "everywhere": told == SyncStatus::Synced }),
            out,
        )?,
        (false, SyncStatus::Synced) => {
            writeln!(out, "Revoked `{}`. Running servers reject it within two seconds.", token.name)?
        }
        (false, SyncStatus::NotSynced) => {
            writeln!(out, "Revoked `{}` on this machine only. Other instances still accept it.", token.name)?
        }
    }
    // The exit code shows whether the token may still be valid on other instances.
    Ok(if told == SyncStatus::Synced { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A token without its digest, which has no use here and looks like a secret.
fn to_json(token: &TokenRecord) -> Value {
    let mut shown = json!(token);
    if let Some(members) = shown.as_object_mut() {
        members.remove("sha256");
        members.insert("expired".into(), token.is_expired(SystemTime::now()).into());
    }
    shown
}

fn permissions_text(token: &TokenRecord) -> String {
    let trust = match token.trust {
        Some(trust) => format!("trust level {}", trust.as_str()),
        None => "trust level of its listener".to_owned(),
    };
    let only = |what: &str, names: &Option<Vec<String>>| match names {
        Some(names) => format!(", {what} {}", names.join(", ")),
        None => String::new(),
    };
    let (tools, bases) = (only("only tools", &token.tools), only("only knowledge bases", &token.knowledge_bases));
    let expires = match token.expires {
        Some(expires) => format!("valid until {}", humantime::format_rfc3339_seconds(expires)),
        None => "valid until it is revoked".to_owned(),
    };
    format!("{trust}{tools}{bases}, {expires}")
}

fn expiry_text(token: &TokenRecord) -> String {
    match token.expires {
        None => "never".into(),
        Some(expires) if token.is_expired(SystemTime::now()) => format!("{} (expired)", day(expires)),
        Some(expires)
            if expires.duration_since(SystemTime::now()).is_ok_and(|left| left < Duration::from_secs(86_400)) =>
        {
            humantime::format_rfc3339_seconds(expires).to_string()
        }
        Some(expires) => day(expires),
    }
}

fn day(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string().chars().take(10).collect()
}

fn none_if_empty(names: Vec<String>) -> Option<Vec<String>> {
    (!names.is_empty()).then_some(names)
}
