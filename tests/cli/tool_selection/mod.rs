//! Whether a request in plain language finds its tool by the title and description of the tool, as models choose tools.
//!
//! `requests.tsv` has at least two requests for each tool. It was written before the descriptions it measures: new
//! descriptions are measured with these requests and never adjusted to single ones. `CORBIE_TOOL_LIST=FILE` measures the
//! result of `tools/list` in a file, for example of another version.

#![expect(clippy::print_stdout, reason = "the figures are printed for comparisons of descriptions")]

use std::collections::HashMap;

use corbie_index::{Chunk, Document, Index, IndexUpdate, Mode, Query};
use corbie_infer::{Embedder, Purpose};
use serde_json::{Value, json};

use crate::process::{corbie, request};

/// Minimum hits@1 of 60 with hybrid search. Search returns nothing for requests that no description covers.
const MIN_HITS: usize = 30;

#[test]
fn requests_in_plain_language_find_their_tool() {
    let listed: Value = match std::env::var("CORBIE_TOOL_LIST") {
        Ok(path) => serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap(),
        Err(_) => {
            let mut server = corbie("").start();
            server.send_and_receive(&request(1, "tools/list", json!({})))["result"].clone()
        }
    };
    let tools = listed["tools"].as_array().unwrap();
    let requests: Vec<(&str, &str)> =
        include_str!("requests.tsv").lines().map(|line| line.split_once('\t').unwrap()).collect();
    let mut counts: HashMap<&str, usize> = tools.iter().map(|tool| (tool["name"].as_str().unwrap(), 0)).collect();
    for (tool, _) in &requests {
        *counts.get_mut(tool).unwrap_or_else(|| panic!("no tool {tool}")) += 1;
    }
    assert!(counts.values().all(|count| *count >= 2), "each tool needs two requests: {counts:?}");

    let hits: Vec<usize> =
        [Mode::Hybrid, Mode::Vectors, Mode::Words].into_iter().map(|mode| hits(tools, &requests, mode)).collect();
    println!("hits@1 of {}: {} hybrid, {} vectors, {} words", requests.len(), hits[0], hits[1], hits[2]);
    assert!(hits[0] >= MIN_HITS, "hits@1 {} of {}", hits[0], requests.len());
}

/// How many requests have their tool as the first hit. Misses are printed.
fn hits(tools: &[Value], requests: &[(&str, &str)], mode: Mode) -> usize {
    let embedder = Embedder::builtin(1).unwrap();
    let index = Index::new(embedder.dimension());
    let text = |tool: &Value, key: &str| tool[key].as_str().unwrap_or_default().to_owned();
    let documents = tools.iter().zip(1..).map(|(tool, key)| {
        let text = format!("{}: {}. {}", text(tool, "name"), text(tool, "title"), text(tool, "description"));
        let vectors = vec![embedder.embed(&text, Purpose::Passage).unwrap().vector];
        let chunks = vec![Chunk { key, text, context: String::new(), vectors }];
        IndexUpdate::Put(Document { key, added: 0, facets: Vec::new(), chunks })
    });
    index.apply(documents.collect());
    let snapshot = index.snapshot();
    let found = |request: &str| {
        let vector = embedder.embed(request, Purpose::Query).unwrap().vector;
        let query = Query { text: request, vector: Some(&vector), filter: None, top: 1, mode };
        let hit = snapshot.search(&query).first().copied()?;
        tools[usize::try_from(hit.document).unwrap() - 1]["name"].as_str()
    };
    requests
        .iter()
        .filter(|(tool, request)| {
            let found = found(request);
            if found != Some(tool) {
                println!("{mode:?}: {request}: {} instead of {tool}", found.unwrap_or("nothing"));
            }
            found == Some(tool)
        })
        .count()
}
