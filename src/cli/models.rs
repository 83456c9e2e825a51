//! `corbie models`: lists the built-in models and the one in use.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use corbie_infer::{ModelCard, builtin_models};
use serde_json::{Value, json};

use super::{CommandResult, json_output, sanitize};
use crate::config::LoadedConfig;
use crate::inference;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  corbie models
  corbie models --json")]
pub(super) struct Models {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(command: &Models, loaded: &LoadedConfig, out: &mut dyn Write) -> CommandResult {
    let cards = builtin_models();
    let settings = &loaded.config.inference;
    inference::warn_unused_settings(settings);
    // Loading shows whether the configured model works.
    let in_use = settings.embedding.path.as_ref().map(|path| (path, inference::load_model(settings)));
    if command.json {
        let own = in_use.as_ref().map(|(path, opened)| match opened {
            Ok(model) => json!({ "path": path, "id": model.id(), "dimension": model.dimension(), "max_tokens": model.max_tokens() }),
            Err(error) => json!({ "path": path, "error": error.to_string() }),
        });
        json_output::write(&json!({ "inside": cards, "configured": own.unwrap_or(Value::Null) }), out)?;
    } else {
        for card in cards {
            describe(card, out)?;
        }
        match &in_use {
            None => writeln!(out, "\nEmbedding model in use: {}", cards[0].id)?,
            Some((path, Ok(model))) => {
                let (id, dimension, tokens) = (model.id(), model.dimension(), model.max_tokens());
                let path = path.display();
                writeln!(
                    out,
                    "\nEmbedding model in use: {id} from {path}, {dimension} dimensions, up to {tokens} tokens"
                )?
            }
            Some((_, Err(_))) => {}
        }
    }
    match in_use {
        // The JSON output above contains the error.
        Some((_, Err(error))) if command.json => {
            writeln!(std::io::stderr(), "corbie: {}", sanitize(&error.to_string()))?;
            Ok(ExitCode::FAILURE)
        }
        Some((_, Err(error))) => Err(error.into()),
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn describe(card: &ModelCard, out: &mut dyn Write) -> std::io::Result<()> {
    let source = &card.source;
    writeln!(out, "{}", card.id)?;
    writeln!(out, "  {}; {}", card.name, card.description())?;
    writeln!(out, "  languages: {}", card.languages.join(", "))?;
    writeln!(out, "  publisher: {}, license {}", source.publisher, source.model_license)?;
    writeln!(out, "  package: {} {}, license {}", source.package, source.version, source.package_license)?;
    for file in &card.files {
        writeln!(out, "  {:<16} {:>10} bytes  sha256 {}", file.name, file.bytes, file.sha256)?;
    }
    Ok(())
}
