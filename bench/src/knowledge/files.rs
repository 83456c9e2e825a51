//! Files for the base: plain texts and HTML pages, made from the passages of retrieval sets or from the test texts.

use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::Value;

const TEXTS: &str = include_str!("../../../crates/infer/tests/data/texts.json");
/// About as many words as fit into a chunk of 500 tokens.
const WORDS_PER_CHUNK: usize = 300;

/// An endless sequence of words in the order of the texts; each repetition starts at a different offset.
struct WordStream {
    all: Vec<String>,
    at: usize,
}

/// Writes files of `chunks` chunks each, every second one an HTML page, until there are `total` chunks.
pub(crate) fn write(folder: &Path, total: usize, chunks: usize, sets: Option<&Path>) -> Result<()> {
    let mut words = WordStream { all: source_words(sets)?, at: 0 };
    ensure!(!words.all.is_empty(), "there are words to write");
    for number in 0..total.div_ceil(chunks) {
        let paragraphs: Vec<String> = (0..chunks).map(|_| words.take(WORDS_PER_CHUNK)).collect();
        let title = format!("Notes {number}");
        if number % 2 == 0 {
            fs::write(folder.join(format!("{number}.txt")), format!("{title}\n\n{}\n", paragraphs.join("\n\n")))?;
        } else {
            let body: String = paragraphs.iter().map(|text| format!("<p>{}</p>\n", escape_html(text))).collect();
            let page = format!(
                "<!doctype html><html><head><title>{title}</title></head><body><h1>{title}</h1>\n{body}</body></html>\n"
            );
            fs::write(folder.join(format!("{number}.html")), page)?;
        }
    }
    Ok(())
}

/// Queries of the sets, or the beginnings of the test texts.
pub(crate) fn questions(sets: Option<&Path>, most: usize) -> Result<Vec<String>> {
    let mut texts = match sets {
        Some(sets) => lines(sets, "queries.jsonl")?,
        None => serde_json::from_str(TEXTS)?,
    };
    texts.retain(|text| !text.trim().is_empty());
    Ok(texts.iter().cycle().take(most).map(|text| text.chars().take(200).collect()).collect())
}

fn source_words(sets: Option<&Path>) -> Result<Vec<String>> {
    let texts: Vec<String> = match sets {
        Some(sets) => lines(sets, "corpus.jsonl")?,
        None => serde_json::from_str(TEXTS)?,
    };
    Ok(texts.iter().flat_map(|text| text.split_whitespace().map(str::to_owned)).collect())
}

/// The texts in files of this name, in all folders.
fn lines(sets: &Path, name: &str) -> Result<Vec<String>> {
    let mut folders: Vec<_> = fs::read_dir(sets)?.collect::<std::io::Result<Vec<_>>>()?;
    folders.sort_by_key(|folder| folder.path());
    let mut texts = Vec::new();
    for file in folders.iter().map(|folder| folder.path().join(name)).filter(|file| file.exists()) {
        for line in fs::read_to_string(file)?.lines() {
            let line: Value = serde_json::from_str(line)?;
            texts.extend(line["text"].as_str().map(str::to_owned));
        }
    }
    ensure!(!texts.is_empty(), "{} has no folder with `{name}`", sets.display());
    Ok(texts)
}

fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

impl WordStream {
    fn take(&mut self, count: usize) -> String {
        let words = (0..count).map(|step| self.all[(self.at + step) % self.all.len()].as_str());
        let text = words.collect::<Vec<_>>().join(" ");
        // A step that does not divide the number of words: in the next repetition, chunks begin with different words.
        self.at += count + 1;
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_as_many_paragraphs_as_chunks_are_wanted() {
        let folder = std::env::temp_dir().join(format!("corbie-bench-files-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder can be made");
        write(&folder, 7, 3, None).expect("files can be written");
        let page = fs::read_to_string(folder.join("1.html")).expect("the second is a page");
        assert_eq!(page.matches("<p>").count(), 3);
        assert_eq!(fs::read_dir(&folder).expect("it is there").count(), 3);
        fs::remove_dir_all(folder).expect("it is there");
    }
}
