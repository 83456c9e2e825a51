//! Command line interface: one file per command.

mod ask;
mod certificates;
mod classify;
mod command;
mod completions;
pub mod config;
mod connect;
mod demo;
mod doctor;
mod embed;
mod ending;
mod eval;
mod eval_search;
mod extract;
mod formats;
mod health;
mod interrupt;
mod knowledge;
mod licenses;
mod lines;
mod listening;
mod man;
mod models;
mod others;
mod progress;
mod providers;
mod screen;
mod serve;
mod table;
mod taxonomy;
mod tokens;
mod tools;
mod values;
mod whole_file;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use corbie_mcp::TrustLevel;
use serde_json::json;

use self::command::Typed;
pub use self::command::command;
use self::ending::{WrongSettings, WrongUsage};
use crate::colour::Colour;
use crate::config::{Config, Loaded, Sources};
use crate::harmless::{harmless, one_line};
use crate::{telemetry, workers};

/// One program for MCP clients: tools, classification, routing and knowledge, offline.
///
/// Started by an MCP client (no arguments), it speaks on stdin and stdout. `corbie serve` listens for HTTP,
/// REST-style and WebSocket clients on http://localhost:8090/mcp and http://localhost:3000/mcp.
#[derive(Debug, Parser)]
#[command(name = "corbie", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    listen: Listen,
    /// Read this configuration file instead of searching for one; CORBIE_CONFIG sets it too
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true, help_heading = GLOBAL)]
    config: Option<PathBuf>,
    /// Trust level of all callers: untrusted, verified or trusted
    #[arg(long, global = true, value_name = "LEVEL", hide_short_help = true, help_heading = GLOBAL)]
    trust: Option<TrustLevel>,
    /// Minimum log level: debug, info, warn or error
    #[arg(long, global = true, value_name = "LEVEL", hide_short_help = true, help_heading = GLOBAL)]
    log_level: Option<String>,
    /// When to use colours: on terminals unless NO_COLOR is set (auto), always or never
    #[arg(long, alias = "colour", global = true, value_name = "WHEN", hide_short_help = true, help_heading = GLOBAL)]
    #[arg(value_enum, default_value_t, hide_default_value = true, hide_possible_values = true)]
    color: Colour,
}

/// Heading of the options of every command; short help omits them.
const GLOBAL: &str = "Global options";

/// Listener options, for `serve` and for starting without a command.
#[derive(Debug, Clone, Default, clap::Args)]
struct Listen {
    /// Listen for HTTP and WebSocket clients
    #[arg(long)]
    http: bool,
    /// Port to listen on, instead of 8090 and 3000; can be repeated
    #[arg(long, value_name = "PORT")]
    port: Vec<u16>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve MCP on stdin and stdout, also in a terminal
    #[command(after_help = "\
Examples:
  corbie stdio
  corbie stdio --trust untrusted --log-level warn")]
    Stdio,
    /// Serve HTTP, REST-style and WebSocket clients
    #[command(after_help = "\
Examples:
  corbie serve
  corbie serve --port 8090
  corbie serve --stdio --log-level debug")]
    Serve {
        #[command(flatten)]
        listen: Listen,
        /// Also serve stdin and stdout
        #[arg(long)]
        stdio: bool,
    },
    /// Demonstrate corbie on sample documents in a few seconds
    Demo(demo::Demo),
    /// Send a prompt to the most suitable model
    Ask(ask::Ask),
    #[command(flatten)]
    Documents(knowledge::Command),
    /// List configured providers and their health
    Providers(providers::Providers),
    /// List tools and call them
    #[command(subcommand)]
    Tools(tools::Command),
    /// Create, list and revoke API tokens
    #[command(subcommand)]
    Tokens(tokens::Command),
    /// Create, validate and train taxonomies
    #[command(subcommand)]
    Taxonomy(taxonomy::Command),
    /// Classify texts
    Classify(classify::Classify),
    /// Evaluate the classifier on labelled texts
    Eval(eval::Eval),
    /// Evaluate the search on questions with known answers
    EvalSearch(eval_search::EvalSearch),
    /// Compute embeddings of texts
    Embed(embed::Embed),
    /// Extract the text of documents
    Extract(extract::Extract),
    /// Check that a server responds
    Health(health::Health),
    /// List the built-in models with their licenses and hashes
    Models(models::Models),
    /// Set up MCP clients to use corbie: Claude Desktop, Cursor, VS Code and more
    Connect(connect::Connect),
    /// Check the installation and suggest solutions
    Doctor(doctor::Doctor),
    /// List bundled third-party software and its licenses
    Licenses(licenses::Licenses),
    /// Show, check and explain the configuration
    #[command(subcommand)]
    Config(config::Command),
    /// Print a completion script for a shell
    Completions(completions::Completions),
    /// Print the man page, or write the man pages of all commands
    Man(man::Man),
    /// Parse documents for another corbie process
    #[command(hide = true)]
    Worker { memory: u64 },
}

/// Result of a command, which `main` reports.
type End = Result<ExitCode, Box<dyn std::error::Error>>;

/// Runs the command and reports its result.
pub fn main() -> ExitCode {
    match command::typed() {
        Ok(Typed { cli, json }) => {
            if json {
                progress::silence();
            }
            ending::tell(run(cli), json)
        }
        Err(code) => code,
    }
}

fn run(cli: Cli) -> End {
    let Cli { command, listen, config, trust, log_level, color } = cli;
    if let Some(Command::Worker { memory }) = command {
        // A worker reads no settings: its parent sends them.
        return workers::child::run(memory);
    }
    let asks_to_listen = listen.http || !listen.port.is_empty();
    if asks_to_listen && command.as_ref().is_some_and(|command| !matches!(command, Command::Serve { .. })) {
        let message = "`--http` and `--port` before a command are for `corbie serve`; leave them out".to_owned();
        return Err(WrongUsage::Line(message).into());
    }
    if !has_its_own_end(command.as_ref()) {
        interrupt::end_at_once();
    }
    // These ignore the user's settings, so invalid settings do not affect them.
    match &command {
        Some(Command::Demo(command)) => return demo::run(command, &mut *screen::stdout()),
        Some(Command::Licenses(command)) => return licenses::run(command, &mut *screen::stdout()),
        _ => {}
    }
    let mut sources = Sources { file: config, ..Sources::of_this_process()? };
    if let Some(trust) = trust {
        sources.overrides.push(("trust.all".into(), json!(trust.as_str())));
    }
    if let Some(level) = log_level {
        sources.overrides.push(("log.level".into(), json!(level)));
    }
    match command {
        None if asks_to_listen => server(sources, &listen.port, serve::With::Http),
        None if std::io::stdin().is_terminal() => {
            self::command().color(color.into()).print_help()?;
            Ok(ExitCode::SUCCESS)
        }
        None | Some(Command::Stdio) => server(sources, &[], serve::With::Stdio),
        Some(Command::Serve { listen: own, stdio }) => {
            let ports = [listen.port, own.port].concat();
            server(sources, &ports, if stdio { serve::With::Both } else { serve::With::Http })
        }
        Some(Command::Ask(command)) => ask::run(&command, &load_for(sources, ask::TOLD)?, &mut *screen::stdout()),
        Some(Command::Documents(command)) => {
            knowledge::run(&command, &load_for(sources, knowledge::TOLD)?, &mut *screen::stdout())
        }
        Some(Command::Providers(command)) => {
            providers::run(&command, &load_for(sources, providers::TOLD)?, &mut *screen::stdout())
        }
        Some(Command::Tools(command)) => tools::run(&command, &load(sources)?, &mut *screen::stdout()),
        Some(Command::Tokens(command)) => {
            let loaded = load_for(sources.clone(), &[]);
            tokens::run(&command, trust, loaded, &sources, &mut *screen::stdout())
        }
        Some(Command::Taxonomy(command)) => taxonomy::run(&command, &load(sources)?, &mut *screen::stdout()),
        Some(Command::Classify(command)) => classify::run(&command, &load(sources)?, &mut *screen::stdout()),
        Some(Command::Eval(command)) => eval::run(&command, &load(sources)?, &mut *screen::stdout()),
        Some(Command::EvalSearch(command)) => eval_search::run(&command, &load(sources)?, &mut *screen::stdout()),
        Some(Command::Embed(command)) => embed::run(&command, &load(sources)?, &mut *screen::stdout()),
        Some(Command::Extract(command)) => {
            extract::run(&command, &load_for(sources, extract::TOLD)?, &mut *screen::stdout())
        }
        Some(Command::Health(command)) => {
            health::run(&command, &load_for(sources, &[])?.config, &mut *screen::stdout())
        }
        Some(Command::Models(command)) => models::run(&command, &load(sources)?, &mut *screen::stdout()),
        Some(Command::Connect(command)) => connect::run(&command, &sources, trust, &mut *screen::stdout()),
        Some(Command::Doctor(command)) => doctor::run(&command, sources, &mut *screen::stdout()),
        Some(Command::Worker { .. } | Command::Demo(_) | Command::Licenses(_)) => {
            unreachable!("they have their own way")
        }
        Some(Command::Config(command)) => match config::run(&command, sources, &mut *screen::stdout()) {
            Err(config::Error::Config(mistakes)) => Err(WrongSettings(mistakes).into()),
            ended => Ok(ended?),
        },
        Some(Command::Completions(command)) => completions::run(&command, &mut *screen::stdout()),
        Some(Command::Man(command)) => man::run(&command, &mut *screen::stdout()),
    }
}

/// Servers drain when interrupted, and some commands have to clean up or terminate a line.
fn has_its_own_end(command: Option<&Command>) -> bool {
    match command {
        None | Some(Command::Stdio | Command::Serve { .. } | Command::Ask(_) | Command::Demo(_)) => true,
        Some(Command::Documents(command)) => command.undoes(),
        Some(_) => false,
    }
}

/// Starts logging and export as configured, then serves.
fn server(sources: Sources, ports: &[u16], with: serve::With) -> End {
    let loaded = Config::load(sources).map_err(WrongSettings)?;
    if with != serve::With::Stdio {
        loaded.check_token(false).map_err(WrongSettings)?;
    }
    let exporting = telemetry::start_exporting(&loaded.config);
    warn(&loaded);
    let ended = serve::serve(&loaded, ports, with);
    exporting.finish();
    ended
}

/// Loads the settings and starts logging.
fn load(sources: Sources) -> Result<Loaded, WrongSettings> {
    let loaded = Config::load(sources)?;
    telemetry::start(&loaded.config.log);
    warn(&loaded);
    Ok(loaded)
}

/// Loads the settings for an interactive command that reports the events of `modules` itself: unless `log.level` is
/// set, other modules log warnings and `modules` only errors.
fn load_for(sources: Sources, modules: &[&'static str]) -> Result<Loaded, WrongSettings> {
    let loaded = Config::load(sources)?;
    match loaded.is_set("log.level") {
        true => telemetry::start(&loaded.config.log),
        false => telemetry::start_without(modules, loaded.config.log.format),
    }
    warn(&loaded);
    Ok(loaded)
}

/// Checks that a named file or folder exists.
fn must_be_there(path: &Path) -> Result<(), String> {
    match path.exists() {
        true => Ok(()),
        false => Err(format!("`{}` cannot be read: it is not there; check its path", path.display())),
    }
}

fn warn(loaded: &Loaded) {
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
}
