//! Retrieval quality through the tools, with both stores: each passage is a file, each set a base.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context, Result, anyhow, ensure};
use serde::Serialize;
use serde_json::{Value, json};

use super::postgres_server::PostgresServer;
use super::{FOLDER, load};
use crate::http::LoadClient;
use crate::knowledge::corbie_server::{CorbieServer, StorageLocation, empty_folder};
use crate::report::{ResultTable, group_thousands};

#[derive(Debug, Serialize)]
pub(super) struct RetrievalSetScores {
    name: String,
    passages: usize,
    questions: usize,
    embedded: f64,
    postgres: f64,
}

/// A query with the relevance grade of each passage.
struct GradedQuery {
    text: String,
    grades: HashMap<String, f64>,
}

const TOP_K: usize = 10;
/// Concurrent clients.
const CLIENTS: usize = 4;
/// Maximum length of a query.
const MAX_QUERY_CHARS: usize = 500;

pub(super) fn measure(server: &PostgresServer, sets: &Path) -> Result<Vec<RetrievalSetScores>> {
    let mut folders: Vec<PathBuf> =
        fs::read_dir(sets)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    folders.retain(|folder| folder.join("corpus.jsonl").exists());
    folders.sort();
    let base = empty_folder(&format!("{FOLDER}/quality"))?;
    let mut embedded = CorbieServer::start_at(&StorageLocation::Folder(&base), &load::log_path("embedded"))?;
    let mut instances = load::start_instances(&server.database("quality")?.address, 1)?;
    let shared = instances.first_mut().context("one was started")?;
    let mut all = Vec::new();
    for folder in folders {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let files = empty_folder(&format!("{FOLDER}/passages"))?;
        let passages = write_passages(&folder, &files)?;
        let questions = questions(&folder)?;
        let mut found = [0.0; 2];
        for (program, found) in [&mut embedded, &mut *shared].into_iter().zip(&mut found) {
            let task = program.begin_import(&files, Some(&name))?;
            program.wait_for_task(&task)?;
            *found = ndcg(program, &name, &questions)?;
        }
        let [embedded, postgres] = found;
        eprintln!(" {name}: nDCG@10 {embedded:.4} embedded, {postgres:.4} on PostgreSQL");
        all.push(RetrievalSetScores { name, passages, questions: questions.len(), embedded, postgres });
        fs::remove_dir_all(files)?;
    }
    embedded.stop()?;
    instances.into_iter().try_for_each(CorbieServer::stop)?;
    Ok(all)
}

/// Writes a file for each passage, named after its id.
fn write_passages(set: &Path, to: &Path) -> Result<usize> {
    let mut count = 0;
    for line in lines(&set.join("corpus.jsonl"))? {
        let (id, text) = (id_of(&line)?, line["text"].as_str().unwrap_or_default());
        ensure!(!id.contains(['/', '.']), "`{id}` cannot be the name of a file");
        if !text.trim().is_empty() {
            fs::write(to.join(format!("{id}.txt")), text)?;
            count += 1;
        }
    }
    Ok(count)
}

/// The queries with relevant passages.
fn questions(set: &Path) -> Result<Vec<GradedQuery>> {
    let mut grades: HashMap<String, HashMap<String, f64>> = HashMap::new();
    for line in fs::read_to_string(set.join("qrels.tsv"))?.lines().skip(1) {
        if let [question, passage, grade] = line.split('\t').collect::<Vec<_>>()[..] {
            let grade: f64 = grade.trim().parse().with_context(|| format!("the grade in `{line}`"))?;
            if grade > 0.0 {
                grades.entry(question.into()).or_default().insert(passage.into(), grade);
            }
        }
    }
    let mut questions = Vec::new();
    for line in lines(&set.join("queries.jsonl"))? {
        let text = line["text"].as_str().unwrap_or_default().chars().take(MAX_QUERY_CHARS).collect();
        questions.extend(grades.remove(&id_of(&line)?).map(|grades| GradedQuery { text, grades }));
    }
    ensure!(!questions.is_empty(), "no question of {} has an answer", set.display());
    Ok(questions)
}

fn lines(file: &Path) -> Result<Vec<Value>> {
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}

fn id_of(line: &Value) -> Result<String> {
    Ok(line["_id"].as_str().context("a line has an `_id`")?.to_owned())
}

/// The mean over all queries.
fn ndcg(program: &CorbieServer, base: &str, questions: &[GradedQuery]) -> Result<f64> {
    let share = questions.len().div_ceil(CLIENTS);
    let sum = thread::scope(|scope| {
        let mut threads = Vec::new();
        for questions in questions.chunks(share) {
            let client = program.new_client()?;
            threads.push(scope.spawn(move || ndcg_sum(client, base, questions)));
        }
        let mut sum = 0.0;
        for thread in threads {
            sum += thread.join().map_err(|_| anyhow!("a client panicked"))??;
        }
        anyhow::Ok(sum)
    })?;
    Ok(sum / questions.len() as f64)
}

fn ndcg_sum(mut client: LoadClient, base: &str, questions: &[GradedQuery]) -> Result<f64> {
    let mut sum = 0.0;
    for question in questions {
        // A passage of several chunks may occur several times.
        let asked = json!({ "query": question.text, "top_k": 2 * TOP_K, "knowledge_base": base });
        let told = client.call_tool("knowledge-search", asked)?;
        let results = told["results"].as_array().with_context(|| format!("a search was answered with {told}"))?;
        let mut ranked: Vec<&str> = Vec::with_capacity(TOP_K);
        for name in results.iter().filter_map(|result| result["filename"].as_str()) {
            let id = name.trim_end_matches(".txt");
            if !ranked.contains(&id) && ranked.len() < TOP_K {
                ranked.push(id);
            }
        }
        sum += question.ndcg(&ranked);
    }
    Ok(sum)
}

impl GradedQuery {
    /// NDCG: 1 if the best passages come first, in order.
    fn ndcg(&self, ranked: &[&str]) -> f64 {
        let discount = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
        let gain = ranked.iter().enumerate().map(|(rank, id)| self.grades.get(*id).unwrap_or(&0.0) * discount(rank));
        let mut ideal: Vec<f64> = self.grades.values().copied().collect();
        ideal.sort_by(|one, other| other.total_cmp(one));
        let best: f64 = ideal.iter().take(TOP_K).enumerate().map(|(rank, grade)| grade * discount(rank)).sum();
        gain.sum::<f64>() / best
    }
}

/// The ratio of the worst set.
pub(super) fn worst_ratio(sets: &[RetrievalSetScores]) -> Option<f64> {
    sets.iter().map(RetrievalSetScores::ratio).min_by(f64::total_cmp)
}

impl RetrievalSetScores {
    fn ratio(&self) -> f64 {
        self.postgres / self.embedded
    }
}

pub(super) fn table(sets: &[RetrievalSetScores]) -> ResultTable {
    let header = ["set", "passages", "questions", "embedded", "PostgreSQL", "of embedded"];
    let mut table = ResultTable::new("Quality, nDCG@10", &header);
    for set in sets {
        let RetrievalSetScores { name, passages, questions, embedded, postgres } = set;
        table.rows.push(vec![
            name.clone(),
            group_thousands(*passages as f64),
            group_thousands(*questions as f64),
            format!("{embedded:.4}"),
            format!("{postgres:.4}"),
            format!("{:.4}x", set.ratio()),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_place_gains_less() {
        let question = GradedQuery { text: String::new(), grades: HashMap::from([("a".to_owned(), 1.0)]) };
        assert_eq!(question.ndcg(&["a", "b"]), 1.0);
        assert!((question.ndcg(&["b", "a"]) - 1.0 / 3_f64.log2()).abs() < 1e-9);
        assert_eq!(question.ndcg(&[]), 0.0);
    }
}
