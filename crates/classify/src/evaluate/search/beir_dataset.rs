//! Reads retrieval sets in the BEIR layout.
//!
//! A set is a folder: `corpus.jsonl` and `queries.jsonl` with `{"_id", "text"}` on each line (a passage may have a
//! `title`), and the relevance judgements in `qrels.tsv` or `qrels/test.tsv` with query, passage and grade.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Passages, and queries about them.
#[derive(Debug, Clone, PartialEq)]
pub struct BeirDataset {
    /// Folder name.
    pub name: String,
    pub passages: Vec<Passage>,
    /// The queries with at least one answer among the passages.
    pub queries: Vec<Query>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// Title and text.
    pub text: String,
    /// Number of its document. A passage without a document name is a document in its own right.
    pub document: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    pub text: String,
    /// Grade by passage number: 1 or more.
    pub relevant: HashMap<usize, u32>,
}

#[derive(Deserialize)]
struct BeirLine {
    #[serde(rename = "_id")]
    id: String,
    #[serde(default)]
    title: String,
    text: String,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    document: Option<String>,
}

impl BeirDataset {
    /// Reads a folder. Stops at the first error.
    pub fn read(folder: &Path) -> Result<BeirDataset, String> {
        let corpus = read_jsonl(&folder.join("corpus.jsonl"))?;
        let asked = read_jsonl(&folder.join("queries.jsonl"))?;
        let mut grades = read_qrels(&qrels_path(folder)?, &corpus, &asked)?;
        let mut documents: HashMap<String, usize> = HashMap::new();
        let mut passages = Vec::with_capacity(corpus.len());
        for BeirLine { id, title, text, metadata } in corpus {
            let next = documents.len();
            // The prefixes keep passage ids and document names in separate namespaces.
            let name = metadata.document.map_or_else(|| format!("passage {id}"), |name| format!("document {name}"));
            let document = *documents.entry(name).or_insert(next);
            let text = if title.trim().is_empty() { text } else { format!("{title}\n{text}") };
            passages.push(Passage { text, document });
        }
        let query = |line: BeirLine| Some(Query { relevant: grades.remove(&line.id)?, text: line.text });
        let queries: Vec<Query> = asked.into_iter().filter_map(query).collect();
        if queries.is_empty() {
            return Err(format!("`{}` has no query with a relevant passage", folder.display()));
        }
        let name = folder.file_name().map_or_else(|| folder.display().to_string(), |n| n.to_string_lossy().into());
        Ok(BeirDataset { name, passages, queries })
    }
}

/// Path of the relevance judgements.
fn qrels_path(folder: &Path) -> Result<PathBuf, String> {
    let places = [folder.join("qrels.tsv"), folder.join("qrels").join("test.tsv")];
    let found = places.into_iter().find(|place| place.is_file());
    found.ok_or_else(|| format!("`{}` has neither `qrels.tsv` nor `qrels/test.tsv`", folder.display()))
}

fn read_jsonl(path: &Path) -> Result<Vec<BeirLine>, String> {
    let parse = |(number, line): (usize, String)| {
        let line = if number == 1 { line.trim_start_matches('\u{feff}') } else { &line };
        serde_json::from_str(line)
            .map_err(|error| format!("{}:{number}: is not {{\"_id\": …, \"text\": …}}: {error}", path.display()))
    };
    numbered_lines(path)?.into_iter().map(parse).collect()
}

/// By query, the grades of the passages that answer it.
fn read_qrels(
    path: &Path,
    corpus: &[BeirLine],
    queries: &[BeirLine],
) -> Result<HashMap<String, HashMap<usize, u32>>, String> {
    let places: HashMap<&str, usize> = corpus.iter().enumerate().map(|(at, line)| (line.id.as_str(), at)).collect();
    let known: HashMap<&str, ()> = queries.iter().map(|line| (line.id.as_str(), ())).collect();
    let mut grades: HashMap<String, HashMap<usize, u32>> = HashMap::new();
    for (number, line) in numbered_lines(path)? {
        let fields: Vec<&str> = line.split('\t').map(str::trim).collect();
        let [query, passage, grade] = fields[..] else {
            return Err(format!("{}:{number}: expected tab-separated query, passage and grade", path.display()));
        };
        let Ok(grade) = grade.parse::<i64>() else {
            // The first line may be a header.
            if number == 1 {
                continue;
            }
            return Err(format!("{}:{number}: invalid grade `{grade}`; use an integer", path.display()));
        };
        let grade = u32::try_from(grade).unwrap_or(0);
        // Some sets contain judgements for texts that they omit.
        if let (true, true, Some(place)) = (grade > 0, known.contains_key(query), places.get(passage)) {
            grades.entry(query.to_owned()).or_default().insert(*place, grade);
        }
    }
    Ok(grades)
}

/// Non-empty lines with their line numbers, from 1.
fn numbered_lines(path: &Path) -> Result<Vec<(usize, String)>, String> {
    let unreadable = |error: std::io::Error| format!("cannot read `{}`: {error}", path.display());
    let file = BufReader::new(File::open(path).map_err(unreadable)?);
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(file.lines()) {
        let line = line.map_err(unreadable)?;
        if !line.trim().is_empty() {
            lines.push((number, line));
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(corpus: &str, queries: &str, qrels: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in [("corpus.jsonl", corpus), ("queries.jsonl", queries), ("qrels.tsv", qrels)] {
            std::fs::write(folder.path().join(name), content).unwrap();
        }
        folder
    }

    const CORPUS: &str =
        "{\"_id\":\"a\",\"title\":\"Owls\",\"text\":\"fly at night\"}\n\n{\"_id\":\"b\",\"text\":\"x\"}\n";
    const QUERIES: &str = "{\"_id\":\"1\",\"text\":\"birds?\"}\n{\"_id\":\"2\",\"text\":\"nobody answers\"}\n";

    #[test]
    fn queries_know_their_answers_and_those_without_are_left_out() {
        let folder = folder(CORPUS, QUERIES, "query-id\tcorpus-id\tscore\n1\ta\t2\n1\tb\t0\n2\tgone\t1\n");
        let set = BeirDataset::read(folder.path()).unwrap();
        assert_eq!(set.passages[0].text, "Owls\nfly at night");
        assert_eq!(set.queries, [Query { text: "birds?".into(), relevant: HashMap::from([(0, 2)]) }]);
    }

    #[test]
    fn passages_of_one_document_are_known_as_such() {
        let corpus = "{\"_id\":\"a\",\"text\":\"1\",\"metadata\":{\"document\":\"d\"}}\n\
                      {\"_id\":\"d\",\"text\":\"2\"}\n{\"_id\":\"c\",\"text\":\"3\",\"metadata\":{\"document\":\"d\"}}\n";
        let set = BeirDataset::read(folder(corpus, QUERIES, "1\ta\t1\n").path()).unwrap();
        assert_eq!(set.passages.iter().map(|passage| passage.document).collect::<Vec<_>>(), [0, 1, 0]);
    }

    #[test]
    fn grades_may_lie_in_a_folder_of_their_own() {
        let folder = folder(CORPUS, QUERIES, "");
        std::fs::remove_file(folder.path().join("qrels.tsv")).unwrap();
        assert!(BeirDataset::read(folder.path()).unwrap_err().contains("has neither `qrels.tsv`"));
        std::fs::create_dir(folder.path().join("qrels")).unwrap();
        std::fs::write(folder.path().join("qrels/test.tsv"), "1\ta\t1\n").unwrap();
        assert_eq!(BeirDataset::read(folder.path()).unwrap().queries.len(), 1);
    }

    #[test]
    fn a_mistake_is_told_with_its_file_and_line() {
        let told = |corpus: &str, qrels: &str| BeirDataset::read(folder(corpus, QUERIES, qrels).path()).unwrap_err();
        assert!(told("{\"_id\":\"a\",\"text\":\"x\"}\nnonsense\n", "").contains("corpus.jsonl:2: is not"));
        assert!(told("{\"_id\":\"a\"}\n", "").contains("corpus.jsonl:1: is not"));
        assert!(told(CORPUS, "1 a 1\n").contains("qrels.tsv:1: expected tab-separated query, passage and grade"));
        assert!(told(CORPUS, "1\ta\t1\n1\tb\tmuch\n").contains("qrels.tsv:2: invalid grade `much`"));
        assert!(told(CORPUS, "1\tgone\t1\n").contains("has no query with a relevant passage"));
        assert!(
            BeirDataset::read(Path::new("/no/such/set"))
                .unwrap_err()
                .contains("cannot read `/no/such/set/corpus.jsonl`")
        );
    }
}
