//! `corbie tokens`: creates, lists and revokes API tokens.

use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::{Args, Subcommand};
use corbie_mcp::TrustLevel;
use serde_json::{Value, json};

use super::ending::WrongSettings;
use super::others::{Others, Settings, Told};
use super::table::{Align, write_table};
use super::tools::UnknownTool;
use super::{End, one_line};
use crate::access::{NewToken, TokenFile, TokenName, TokenRecord};
use crate::app;
use crate::config::duration::Timeout;
use crate::config::server::RateLimit;
use crate::config::trust::Level;
use crate::config::{self, Loaded, Sources};
use crate::harmless::harmless;
use crate::knowledge::document::BaseName;
use crate::shared_files::Kind;

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  corbie tokens create laptop --expires-in 90d
  corbie tokens list
  corbie tokens revoke laptop")]
pub(super) enum Command {
    /// Create an API token and print its secret, which cannot be shown again
    ///
    /// Running servers accept it within two seconds. `--trust` sets the trust level of its callers; without it, the
    /// level depends on the listener.
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
    command: &Command,
    trust: Option<TrustLevel>,
    loaded: Result<Loaded, WrongSettings>,
    sources: &Sources,
    out: &mut dyn Write,
) -> End {
    let Some(file) = config::tokens_file(sources).map(TokenFile::at) else {
        return Err("nobody knows the user's folders here; set `server.tokens_file`".into());
    };
    match command {
        Command::Create(command) => {
            let loaded = loaded?;
            check_tools(&command.tools, &loaded)?;
            create(command, trust, &file, &Others::of(Settings::Good(&loaded.config), Kind::Tokens), out)
        }
        Command::List(command) => {
            warn_of_mistakes(&loaded)?;
            list(command, &file, &others(&loaded, sources), out)
        }
        Command::Revoke(command) => {
            warn_of_mistakes(&loaded)?;
            revoke(command, &file, &others(&loaded, sources), out)
        }
    }
}

/// The other instances with these tokens, as far as the settings show.
fn others<'l>(loaded: &'l Result<Loaded, WrongSettings>, sources: &Sources) -> Others<'l> {
    let settings = match loaded {
        Ok(loaded) => Settings::Good(&loaded.config),
        Err(_) if config::names_database(sources) => Settings::MistakenAndShared,
        Err(_) => Settings::Mistaken,
    };
    Others::of(settings, Kind::Tokens)
}

fn warn_of_mistakes(loaded: &Result<Loaded, WrongSettings>) -> std::io::Result<()> {
    match loaded {
        Ok(_) => Ok(()),
        Err(error) => writeln!(std::io::stderr(), "corbie: {}", harmless(&error.to_string())),
    }
}

fn create(
    command: &Create,
    trust: Option<TrustLevel>,
    file: &TokenFile,
    others: &Others<'_>,
    out: &mut dyn Write,
) -> End {
    let mut new = NewToken::make(command.name.clone(), command.expires_in.map(Timeout::get));
    let record = &mut new.record;
    record.trust = trust.map(Level::from);
    record.tools = some(command.tools.clone());
    record.knowledge_bases = some(command.knowledge_bases.iter().map(ToString::to_string).collect());
    record.rate_limit = command.rate_limit.map(|per_second| RateLimit { per_second, burst: command.burst });
    let reached = others.settle()?;
    file.add(new.record.clone())?;
    if reached == Told::Yes {
        others.settle()?;
    }
    // Another instance may have created a token of the same name at the same time; then this one was renamed.
    if let Some(kept) = file.read()?.into_iter().find(|token| token.sha256 == new.record.sha256) {
        new.record.name = kept.name;
    }
    if command.json {
        let mut told = shown(&new.record);
        told["token"] = new.expose().into();
        writeln!(out, "{told}")?;
    } else {
        writeln!(out, "{}", new.expose())?;
        let mut stderr = std::io::stderr();
        writeln!(stderr, "This is the only time the token is shown. Send it as `Authorization: Bearer <token>`.")?;
        writeln!(stderr, "`{}` {}.", new.record.name, allows(&new.record))?;
        writeln!(stderr, "Servers of this user know it by {}.", one_line(&file.path().display().to_string()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Rejects unknown tool names: a token for a misspelt tool would be useless without an obvious reason.
fn check_tools(names: &[String], loaded: &Loaded) -> Result<(), Box<dyn std::error::Error>> {
    if names.is_empty() {
        return Ok(());
    }
    let registry = app::build(&loaded.config)?.server.registry();
    for name in names {
        match name.strip_suffix('*') {
            Some(beginning) if registry.iter().any(|tool| tool.name().starts_with(beginning)) => {}
            Some(_) => return Err(format!("no tool begins like `{name}`; `corbie tools list` shows them").into()),
            // A path of the OpenAI API without a corresponding tool.
            None if name == "embeddings" => {}
            None => match registry.find(name).map_err(UnknownTool::because)?.name() {
                exact if exact == name => {}
                other => return Err(format!("the tool is called `{other}`").into()),
            },
        }
    }
    Ok(())
}

fn list(command: &List, file: &TokenFile, others: &Others<'_>, out: &mut dyn Write) -> End {
    let tokens = match others.newest()? {
        Some(text) => file.parse(&text)?,
        None => file.read()?,
    };
    if command.json {
        writeln!(out, "{}", json!({ "tokens": tokens.iter().map(shown).collect::<Vec<_>>() }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if tokens.is_empty() {
        writeln!(out, "there are no tokens; make one: corbie tokens create NAME")?;
        return Ok(ExitCode::SUCCESS);
    }
    let heading = [
        ("NAME", Align::Left),
        ("TRUST", Align::Left),
        ("CREATED", Align::Left),
        ("EXPIRES", Align::Left),
        ("TOOLS", Align::Left),
        ("KNOWLEDGE BASES", Align::Left),
        ("RATE", Align::Left),
    ];
    let row = |token: &TokenRecord| {
        let names =
            |names: &Option<Vec<String>>| names.as_ref().map_or("all".into(), |names| one_line(&names.join(", ")));
        let rate = |limit: RateLimit| format!("{}/s, burst {}", limit.per_second, limit.burst());
        vec![
            token.name.to_string(),
            token.trust.map_or("as others", Level::as_str).to_owned(),
            day(token.created),
            expiry(token),
            names(&token.tools),
            names(&token.knowledge_bases),
            token.rate_limit.map_or("as others".into(), rate),
        ]
    };
    write_table(&heading, &tokens.iter().map(row).collect::<Vec<_>>(), out)?;
    Ok(ExitCode::SUCCESS)
}

fn revoke(command: &Revoke, file: &TokenFile, others: &Others<'_>, out: &mut dyn Write) -> End {
    let reached = others.settle()?;
    let token = file.revoke(&command.name)?;
    let told = match reached {
        Told::Yes => others.settle()?,
        Told::No => Told::No,
    };
    match (command.json, told) {
        (true, _) => writeln!(out, "{}", json!({ "revoked": token.name.as_str(), "everywhere": told == Told::Yes }))?,
        (false, Told::Yes) => writeln!(out, "revoked `{}`; servers that run forget it within two seconds", token.name)?,
        (false, Told::No) => {
            writeln!(out, "revoked `{}` on this machine alone; other instances still let it in", token.name)?
        }
    }
    // The exit code shows whether the token may still be valid on other instances.
    Ok(if told == Told::Yes { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A token without its digest, which has no use here and looks like a secret.
fn shown(token: &TokenRecord) -> Value {
    let mut shown = json!(token);
    if let Some(members) = shown.as_object_mut() {
        members.remove("sha256");
        members.insert("expired".into(), token.is_over(SystemTime::now()).into());
    }
    shown
}

fn allows(token: &TokenRecord) -> String {
    let trust = match token.trust {
        Some(trust) => format!("is {} wherever it comes from", trust.as_str()),
        None => "is trusted as far as the settings trust where it comes from".to_owned(),
    };
    let only = |what: &str, names: &Option<Vec<String>>| match names {
        Some(names) => format!(", for the {what} {} alone", names.join(", ")),
        None => String::new(),
    };
    let (tools, bases) = (only("tools", &token.tools), only("knowledge bases", &token.knowledge_bases));
    let expires = match token.expires {
        Some(expires) => format!("until {}", humantime::format_rfc3339_seconds(expires)),
        None => "until it is revoked".to_owned(),
    };
    format!("{trust}{tools}{bases}, {expires}")
}

fn expiry(token: &TokenRecord) -> String {
    match token.expires {
        None => "never".into(),
        Some(expires) if token.is_over(SystemTime::now()) => format!("{} (over)", day(expires)),
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

fn some(names: Vec<String>) -> Option<Vec<String>> {
    (!names.is_empty()).then_some(names)
}
