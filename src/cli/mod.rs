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
mod eval;
mod eval_search;
mod exit;
mod extract;
mod formats;
mod health;
mod init;
mod instance_sync;
mod interrupt;
mod json_output;
mod knowledge;
mod licenses;
mod listeners;
mod man;
mod models;
mod output_file;
mod progress;
mod providers;
mod sanitized_stdout;
mod serve;
mod startup_check;
mod stdin_lines;
mod table;
mod taxonomy;
mod terminal;
mod tokens;
mod tools;
mod value_parsers;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use corbie_mcp::TrustLevel;
use serde_json::json;

use self::command::ParsedCommandLine;
pub use self::command::command;
use self::exit::{InvalidSettings, UsageError};
use crate::colour::Colour;
use crate::config::{Config, LoadedConfig, Sources};
use crate::util::os_error::FILE_NOT_FOUND;
use crate::util::sanitize::{sanitize, sanitize_line};
use crate::{telemetry, workers};

/// MCP server, LLM gateway with semantic routing, text classifier and document search in one program.
///
/// Without arguments, corbie serves MCP on stdin and stdout, as MCP clients start it. `corbie serve` serves HTTP,
/// REST-style and WebSocket clients on http://localhost:8090/mcp and http://localhost:3000/mcp.
#[derive(Debug, Parser)]
#[command(name = "corbie", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<CliCommand>,
    #[command(flatten)]
    listen: ListenOptions,
    /// Read this configuration file instead of searching for one; CORBIE_CONFIG sets it too
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true, help_heading = GLOBAL_OPTIONS)]
    config: Option<PathBuf>,
    /// Trust level of all callers: untrusted, verified or trusted
    #[arg(long, global = true, value_name = "LEVEL", hide_short_help = true, help_heading = GLOBAL_OPTIONS)]
    trust: Option<TrustLevel>,
    /// Minimum log level: debug, info, warn or error
    #[arg(long, global = true, value_name = "LEVEL", hide_short_help = true, help_heading = GLOBAL_OPTIONS)]
    log_level: Option<String>,
    /// When to use colours: on terminals unless NO_COLOR is set (auto), always or never
    #[arg(long, alias = "colour", global = true, value_name = "WHEN", hide_short_help = true, help_heading = GLOBAL_OPTIONS)]
    #[arg(value_enum, default_value_t, hide_default_value = true, hide_possible_values = true)]
    color: Colour,
}

/// Heading of the options of every command; short help omits them.
const GLOBAL_OPTIONS: &str = "Global options";

/// Listener options, for `serve` and for starting without a command.
#[derive(Debug, Clone, Default, clap::Args)]
struct ListenOptions {
    /// Listen for HTTP and WebSocket clients
    #[arg(long)]
    http: bool,
    /// Port to listen on, instead of 8090 and 3000; can be repeated
    #[arg(long, value_name = "PORT")]
    port: Vec<u16>,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    /// Serve MCP on stdin and stdout, also in a terminal
    #[command(after_help = "\
Examples:
  corbie stdio
  corbie stdio --tools knowledge
  corbie stdio --trust untrusted --log-level warn")]
    Stdio {
        /// Tools to list: a profile (all, knowledge, classify, gateway) or names, separated by commas
        #[arg(long, value_name = "TOOLS")]
        tools: Option<String>,
    },
    /// Serve HTTP, REST-style and WebSocket clients
    #[command(after_help = "\
Examples:
  corbie serve
  corbie serve --port 8090
  corbie serve --stdio --log-level debug")]
    Serve {
        #[command(flatten)]
        listen: ListenOptions,
        /// Also serve stdin and stdout
        #[arg(long)]
        stdio: bool,
    },
    /// Create a configuration file
    ///
    /// Writes a commented `corbie.yaml` into the working directory and approves it, as `corbie config trust` does. In a
    /// terminal, three questions are asked first: the model provider, a folder of documents to watch, and whether to
    /// accept connections from other machines.
    Init(init::Init),
    /// Demonstrate corbie on sample documents in a few seconds
    Demo(demo::Demo),
    /// Send a prompt to the most suitable model
    Ask(ask::Ask),
    #[command(flatten)]
    Documents(knowledge::KnowledgeCommand),
    /// List configured providers and their health
    Providers(providers::Providers),
    /// List tools and call them
    #[command(subcommand)]
    Tools(tools::ToolsCommand),
    /// Create, list and revoke API tokens
    #[command(subcommand)]
    Tokens(tokens::TokensCommand),
    /// Create, validate and train taxonomies
    #[command(subcommand)]
    Taxonomy(taxonomy::TaxonomyCommand),
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
    Config(config::ConfigCommand),
    /// Print a completion script for a shell
    Completions(completions::Completions),
    /// Print the man page, or write the man pages of all commands
    Man(man::Man),
    /// Parse documents for another corbie process
    #[command(hide = true)]
    Worker { memory: u64 },
}

/// Result of a command, which `main` reports.
type CommandResult = Result<ExitCode, Box<dyn std::error::Error>>;

/// Runs the command and reports its result.
pub fn main() -> ExitCode {
    match command::parse_command_line() {
        Ok(ParsedCommandLine { cli, json }) => {
            if json {
                progress::silence();
            }
            exit::report(run(cli), json)
        }
        Err(code) => code,
    }
}

fn run(cli: Cli) -> CommandResult {
    let Cli { command, listen, config, trust, log_level, color } = cli;
    if let Some(CliCommand::Worker { memory }) = command {
        // A worker reads no settings: its parent sends them.
        return workers::child::run(memory);
    }
    let asks_to_listen = listen.http || !listen.port.is_empty();
    if asks_to_listen && command.as_ref().is_some_and(|command| !matches!(command, CliCommand::Serve { .. })) {
        let message = "`--http` and `--port` are options of `corbie serve` and not of this command".to_owned();
        return Err(UsageError::Line(message).into());
    }
    if !handles_interrupt(command.as_ref()) {
        interrupt::exit_on_signal();
    }
    // These ignore the user's settings, so invalid settings do not affect them.
    match &command {
        Some(CliCommand::Demo(command)) => return demo::run(command, &mut *sanitized_stdout::stdout()),
        Some(CliCommand::Licenses(command)) => return licenses::run(command, &mut *sanitized_stdout::stdout()),
        _ => {}
    }
    let mut sources = Sources { file: config, ..Sources::from_process()? };
    if let Some(trust) = trust {
        sources.overrides.push(("trust.all".into(), json!(trust.as_str())));
    }
    if let Some(level) = log_level {
        sources.overrides.push(("log.level".into(), json!(level)));
    }
    match command {
        None if asks_to_listen => run_server(sources, &listen.port, serve::Transports::Http),
        None if std::io::stdin().is_terminal() => {
            self::command().color(color.into()).print_help()?;
            Ok(ExitCode::SUCCESS)
        }
        None => run_server(sources, &[], serve::Transports::Stdio),
        Some(CliCommand::Stdio { tools }) => {
            sources.overrides.extend(tools.map(|tools| ("server.tools".to_owned(), json!(tools))));
            run_server(sources, &[], serve::Transports::Stdio)
        }
        Some(CliCommand::Serve { listen: own, stdio }) => {
            let ports = [listen.port, own.port].concat();
            run_server(sources, &ports, if stdio { serve::Transports::Both } else { serve::Transports::Http })
        }
        Some(CliCommand::Init(command)) => init::run(&command, &sources, &mut *sanitized_stdout::stdout()),
        Some(CliCommand::Ask(command)) => {
            ask::run(&command, &load_quiet(sources, ask::QUIET_MODULES)?, &mut *sanitized_stdout::stdout())
        }
        Some(CliCommand::Documents(command)) => {
            knowledge::run(&command, &load_quiet(sources, knowledge::QUIET_MODULES)?, &mut *sanitized_stdout::stdout())
        }
        Some(CliCommand::Providers(command)) => {
            providers::run(&command, &load_quiet(sources, providers::QUIET_MODULES)?, &mut *sanitized_stdout::stdout())
        }
        Some(CliCommand::Tools(command)) => tools::run(&command, &load(sources)?, &mut *sanitized_stdout::stdout()),
        Some(CliCommand::Tokens(command)) => {
            let loaded = load_quiet(sources.clone(), &[]);
            tokens::run(&command, trust, loaded, &sources, &mut *sanitized_stdout::stdout())
        }
        Some(CliCommand::Taxonomy(command)) => {
            taxonomy::run(&command, &load(sources)?, &mut *sanitized_stdout::stdout())
        }
        Some(CliCommand::Classify(command)) => {
            classify::run(&command, &load(sources)?, &mut *sanitized_stdout::stdout())
        }
        Some(CliCommand::Eval(command)) => eval::run(&command, &load(sources)?, &mut *sanitized_stdout::stdout()),
        Some(CliCommand::EvalSearch(command)) => {
            eval_search::run(&command, &load(sources)?, &mut *sanitized_stdout::stdout())
        }
        Some(CliCommand::Embed(command)) => embed::run(&command, &load(sources)?, &mut *sanitized_stdout::stdout()),
        Some(CliCommand::Extract(command)) => {
            extract::run(&command, &load_quiet(sources, extract::QUIET_MODULES)?, &mut *sanitized_stdout::stdout())
        }
        Some(CliCommand::Health(command)) => {
            health::run(&command, &load_quiet(sources, &[])?, &mut *sanitized_stdout::stdout())
        }
        Some(CliCommand::Models(command)) => models::run(&command, &load(sources)?, &mut *sanitized_stdout::stdout()),
        Some(CliCommand::Connect(command)) => connect::run(&command, &sources, trust, &mut *sanitized_stdout::stdout()),
        Some(CliCommand::Doctor(command)) => doctor::run(&command, sources, &mut *sanitized_stdout::stdout()),
        Some(CliCommand::Worker { .. } | CliCommand::Demo(_) | CliCommand::Licenses(_)) => {
            unreachable!("handled above")
        }
        Some(CliCommand::Config(command)) => match config::run(&command, sources, &mut *sanitized_stdout::stdout()) {
            Err(config::Error::Config(mistakes)) => Err(InvalidSettings(mistakes).into()),
            ended => Ok(ended?),
        },
        Some(CliCommand::Completions(command)) => completions::run(&command, &mut *sanitized_stdout::stdout()),
        Some(CliCommand::Man(command)) => man::run(&command, &mut *sanitized_stdout::stdout()),
    }
}

/// Servers drain when interrupted, and some commands have to clean up or terminate a line.
fn handles_interrupt(command: Option<&CliCommand>) -> bool {
    match command {
        None | Some(CliCommand::Stdio { .. } | CliCommand::Serve { .. } | CliCommand::Ask(_) | CliCommand::Demo(_)) => {
            true
        }
        Some(CliCommand::Documents(command)) => command.handles_interrupt(),
        Some(_) => false,
    }
}

/// Starts logging and export as configured, then serves.
fn run_server(sources: Sources, ports: &[u16], with: serve::Transports) -> CommandResult {
    let loaded = Config::load(sources).map_err(InvalidSettings)?;
    if with != serve::Transports::Stdio {
        loaded.check_token(false).map_err(InvalidSettings)?;
    }
    let exporting = telemetry::start_exporting(&loaded.config);
    warn(&loaded);
    let ended = serve::serve(&loaded, ports, with);
    exporting.finish();
    ended
}

/// Loads the settings and starts logging.
fn load(sources: Sources) -> Result<LoadedConfig, InvalidSettings> {
    let loaded = Config::load(sources)?;
    telemetry::start(&loaded.config.log);
    warn(&loaded);
    Ok(loaded)
}

/// Loads the settings for an interactive command that reports the events of `modules` itself: unless `log.level` is
/// set, other modules log warnings and `modules` only errors.
fn load_quiet(sources: Sources, modules: &[&'static str]) -> Result<LoadedConfig, InvalidSettings> {
    let loaded = Config::load(sources)?;
    match loaded.is_set("log.level") {
        true => telemetry::start(&loaded.config.log),
        false => telemetry::start_with_quiet_modules(modules, loaded.config.log.format),
    }
    warn(&loaded);
    Ok(loaded)
}

/// Checks that a named file or folder exists.
fn must_exist(path: &Path) -> Result<(), String> {
    match path.exists() {
        true => Ok(()),
        false => Err(format!("`{}`: {FILE_NOT_FOUND}; check the path", path.display())),
    }
}

fn warn(loaded: &LoadedConfig) {
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
}
