//! `corbie embed`: computes embeddings.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::Args;
use corbie_infer::{Embedding, Language, ModelId, Purpose};
use serde::Serialize;

use super::exit::UsageError;
use super::progress::Progress;
use super::stdin_lines::StdinLines;
use super::{CommandResult, json_output};
use crate::config::LoadedConfig;
use crate::inference::Inference;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  corbie embed \"some words\"
  corbie embed --json --query < questions.txt")]
pub(super) struct Embed {
    /// Texts to embed; without any, one per line of stdin
    #[arg(value_name = "TEXT")]
    texts: Vec<String>,
    /// Print one JSON object per text, with its vector, model, number of tokens and whether it was truncated
    #[arg(long)]
    json: bool,
    /// Embed the texts as queries rather than passages; some models distinguish them
    #[arg(long)]
    query: bool,
}

/// Batch size for lines of stdin: large enough to be fast, small enough to show progress.
const EMBED_BATCH: usize = 64;
pub(super) fn run(command: &Embed, loaded: &LoadedConfig, out: &mut dyn Write) -> CommandResult {
    let mut work = EmbedJob { inference: Inference::new(loaded.config.inference.clone()), command, out, warned: false };
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    if !command.texts.is_empty() {
        runtime.block_on(work.embed(command.texts.clone(), 0))?;
        return Ok(ExitCode::SUCCESS);
    }
    let stdin = std::io::stdin().lock();
    if stdin.is_terminal() {
        return Err(UsageError::Value(
            "no text; specify one, such as corbie embed \"some words\", or pipe one text per line".into(),
        )
        .into());
    }
    let progress = Progress::with_results();
    let mut lines = StdinLines::of(stdin);
    loop {
        let before = lines.read();
        let texts = lines.next(EMBED_BATCH)?;
        if texts.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        runtime.block_on(work.embed(texts, before))?;
        progress.update(&format!("{} texts", lines.read()));
    }
}

/// State for embedding texts and printing their vectors.
struct EmbedJob<'a> {
    inference: Inference,
    command: &'a Embed,
    out: &'a mut dyn Write,
    /// The warning about an unsupported language was printed; it is printed once.
    warned: bool,
}

impl EmbedJob<'_> {
    /// `before` is the number of texts in earlier batches, so that numbering continues.
    async fn embed(&mut self, texts: Vec<String>, before: usize) -> Result<(), Box<dyn std::error::Error>> {
        let purpose = if self.command.query { Purpose::Query } else { Purpose::Passage };
        let embedded = self.inference.embed(texts.clone(), purpose).await;
        let embeddings = embedded.map_err(|error| error.with_index_offset(before))?;
        for (number, (text, embedding)) in (before + 1..).zip(texts.iter().zip(&embeddings)) {
            self.warn(number, text, embedding);
            write(embedding, self.command.json, self.out)?;
        }
        Ok(self.out.flush()?)
    }

    fn warn(&mut self, number: usize, text: &str, embedding: &Embedding) {
        let Some(model) = self.inference.loaded() else { return };
        if embedding.truncated {
            let most = model.max_tokens;
            tracing::warn!("text {number} was truncated to the model's limit of {most} tokens");
        }
        let language = Language::detect(text).filter(|language| language.code() != "eng");
        if let Some(language) = language.filter(|_| model.english_only && !self.warned) {
            self.warned = true;
            tracing::warn!(
                "text {number} is in {}, but `{}` supports only English; set `inference.embedding.path` to another model",
                language.name(),
                model.id
            );
        }
    }
}

/// Prints one line per text. Numbers keep the digits of `f32`; conversion to `f64` would print more.
fn write(embedding: &Embedding, as_json: bool, out: &mut dyn Write) -> Result<(), Box<dyn std::error::Error>> {
    #[derive(Serialize)]
    struct EmbeddingLine<'a> {
        model: &'a ModelId,
        dimension: usize,
        tokens: usize,
        truncated: bool,
        vector: &'a [f32],
    }
    let Embedding { model, vector, tokens, truncated } = embedding;
    if as_json {
        let line = EmbeddingLine { model, dimension: vector.len(), tokens: *tokens, truncated: *truncated, vector };
        return Ok(json_output::write(&line, out)?);
    } else {
        for (index, number) in vector.iter().enumerate() {
            out.write_all(if index == 0 { b"" } else { b" " })?;
            serde_json::to_writer(&mut *out, number)?;
        }
    }
    Ok(writeln!(out)?)
}
