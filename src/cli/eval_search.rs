//! `corbie eval-search`: evaluates retrieval on queries with known answers.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use corbie_index::Mode;
use corbie_infer::Purpose;

use super::progress::Progress;
use super::{CommandResult, json_output};
use crate::config::LoadedConfig;
use crate::evaluate::search::relevance_fit::{self, EmbeddedDataset, FitReport};
use crate::evaluate::search::{
    self, BeirDataset, DatasetResult, EmbeddedQuery, QueryKind, RetrievalReport, SearchCorpus, report_text,
};
use crate::inference::Inference;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  corbie eval-search scifact
  corbie eval-search --mode hybrid --limit 100 --json scifact")]
pub(super) struct EvalSearch {
    /// Folders with `corpus.jsonl`, `queries.jsonl` and `qrels.tsv`, the format of public retrieval datasets
    #[arg(required = true, value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    /// Search mode to evaluate; can be repeated. All modes if omitted
    #[arg(long, value_enum)]
    mode: Vec<SearchModeArg>,
    /// Number of top passages per question to evaluate
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    top: u16,
    /// Maximum number of questions per set; all if omitted
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Measure false positives with questions without an answer: removed answers, questions of other sets, small talk
    #[arg(long)]
    out_of_domain: bool,
    /// Fit the model of relevance to the sets, and print its coefficients and their calibration instead
    #[arg(long, conflicts_with_all = ["json", "out_of_domain", "mode", "top"])]
    fit_relevance: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SearchModeArg {
    Lexical,
    Vectors,
    Hybrid,
}

/// A set with its index and query embeddings.
struct IndexedDataset {
    set: BeirDataset,
    base: SearchCorpus,
    /// Embeddings of its queries.
    vectors: Vec<Vec<f32>>,
}

type Error = Box<dyn std::error::Error>;

pub(super) fn run(command: &EvalSearch, loaded: &LoadedConfig, out: &mut dyn Write) -> CommandResult {
    // Read all sets first: an error in the last folder is reported before the first is embedded.
    let mut sets: Vec<BeirDataset> =
        command.folders.iter().map(|folder| BeirDataset::read(folder)).collect::<Result<_, _>>()?;
    for set in &mut sets {
        set.queries.truncate(command.limit.map_or(usize::MAX, |limit| limit as usize));
    }
    let inference = Inference::new(loaded.config.inference.clone());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build()?;
    if command.fit_relevance {
        write!(out, "{}", runtime.block_on(fit_relevance(sets, &inference))?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let report = runtime.block_on(run_evaluation(command, sets, &inference))?;
    if command.json {
        json_output::write(&report, out)?;
    } else {
        write!(out, "{}", report_text::render(&report))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn index_sets(
    sets: Vec<BeirDataset>,
    inference: &Inference,
    progress: &Progress,
) -> Result<Vec<IndexedDataset>, Error> {
    let mut ready = Vec::with_capacity(sets.len());
    for set in sets {
        let tell = |done, all| progress.update(&format!("{}: {done} of {all} embeddings", set.name));
        let base = SearchCorpus::build(&set.passages, inference, tell).await?;
        let vectors = embed(set.queries.iter().map(|query| query.text.clone()).collect(), inference).await?;
        ready.push(IndexedDataset { set, base, vectors });
    }
    Ok(ready)
}

async fn fit_relevance(sets: Vec<BeirDataset>, inference: &Inference) -> Result<FitReport, Error> {
    let progress = Progress::new();
    let ready = index_sets(sets, inference, &progress).await?;
    let talk = search::small_talk();
    let vectors = embed(talk.clone(), inference).await?;
    progress.update("searching bases of several sizes");
    let sets = ready.iter().map(|IndexedDataset { set, base, vectors }| EmbeddedDataset { set, corpus: base, vectors });
    let sets: Vec<EmbeddedDataset<'_>> = sets.collect();
    Ok(relevance_fit::fit(&sets, &embedded_queries(&talk, &vectors).collect::<Vec<_>>()))
}

async fn run_evaluation(
    command: &EvalSearch,
    sets: Vec<BeirDataset>,
    inference: &Inference,
) -> Result<RetrievalReport, Error> {
    let progress = Progress::new();
    let ready = index_sets(sets, inference, &progress).await?;
    let (modes, top) = (command.modes(), usize::from(command.top));
    let mut measured = Vec::with_capacity(ready.len());
    for IndexedDataset { set, base, vectors } in &ready {
        progress.update(&format!("{}: evaluating {} questions", set.name, set.queries.len()));
        measured.push(search::evaluate(set, base, vectors, &modes, top));
    }
    if command.out_of_domain {
        let talk = search::small_talk();
        let vectors = embed(talk.clone(), inference).await?;
        for (at, measured) in measured.iter_mut().enumerate() {
            progress.update(&format!("{}: evaluating questions without answers", measured.name));
            evaluate_out_of_domain(&ready, at, embedded_queries(&talk, &vectors), measured);
        }
    }
    Ok(RetrievalReport::of(measured, top))
}

fn evaluate_out_of_domain<'a>(
    ready: &'a [IndexedDataset],
    at: usize,
    talk: impl Iterator<Item = EmbeddedQuery<'a>>,
    measured: &mut DatasetResult,
) {
    let IndexedDataset { set, base, vectors } = &ready[at];
    measured.empty_results.push(search::evaluate_without_answers(set, base, vectors));
    let others = ready.iter().enumerate().filter(|(other, _)| *other != at);
    let foreign = others.flat_map(|(_, other)| {
        let vectors = other.vectors.iter().map(Vec::as_slice);
        other.set.queries.iter().zip(vectors).map(|(query, vector)| EmbeddedQuery { text: &query.text, vector })
    });
    if ready.len() > 1 {
        measured.empty_results.push(search::evaluate_out_of_domain(QueryKind::OtherDatasets, base, foreign));
    }
    measured.empty_results.push(search::evaluate_out_of_domain(QueryKind::SmallTalk, base, talk));
}

fn embedded_queries<'a>(texts: &'a [String], vectors: &'a [Vec<f32>]) -> impl Iterator<Item = EmbeddedQuery<'a>> {
    texts.iter().zip(vectors).map(|(text, vector)| EmbeddedQuery { text, vector })
}

async fn embed(texts: Vec<String>, inference: &Inference) -> Result<Vec<Vec<f32>>, Error> {
    let embedded = inference.embed(texts, Purpose::Query).await?;
    Ok(embedded.into_iter().map(|embedding| embedding.vector).collect())
}

impl EvalSearch {
    /// The selected modes; all if none is selected.
    fn modes(&self) -> Vec<Mode> {
        let ways = [
            (SearchModeArg::Lexical, Mode::Words),
            (SearchModeArg::Vectors, Mode::Vectors),
            (SearchModeArg::Hybrid, Mode::Hybrid),
        ];
        let wanted = ways.into_iter().filter(|(way, _)| self.mode.is_empty() || self.mode.contains(way));
        wanted.map(|(_, mode)| mode).collect()
    }
}
