//! Client that searches the fixed corpus, which never changes: every document must be found whenever search works.

use serde_json::{Value, json};

use super::{CallResult, ChaosClient, CheckResult, ClientContext, InvariantViolation};
use crate::chaos::corpus::{self, Corpus};

pub(crate) struct SearchClient {
    corpus: Corpus,
}

impl SearchClient {
    pub(crate) fn new(shelf: Corpus) -> SearchClient {
        SearchClient { corpus: shelf }
    }

    fn query(&self, hand: &mut ClientContext) -> (String, Value) {
        let word = corpus::word(hand.rng.below(self.corpus.documents));
        let arguments = json!({ "query": word, "top_k": 3 });
        (word, arguments)
    }
}

/// The top passage contains the word. A failed search reports an error; a base that reports it is empty has lost its
/// data.
fn check_results(word: &str, said: &Value) -> CheckResult {
    match said["results"].as_array() {
        Some(results)
            if results.iter().any(|each| each["chunk_text"].as_str().is_some_and(|text| text.contains(word))) =>
        {
            Ok(())
        }
        None if said["error"].is_string() && said["error"] != "empty_knowledge_base" => Ok(()),
        _ => Err(InvariantViolation(format!("{word} stands on the shelf and is not found: {said}"))),
    }
}

impl ChaosClient for SearchClient {
    fn step(&mut self, hand: &mut ClientContext) -> CheckResult {
        let (word, arguments) = self.query(hand);
        match hand.call("knowledge-search", &arguments)? {
            CallResult::Answered(said) => check_results(&word, &said),
            CallResult::Refused | CallResult::Lost => Ok(()),
        }
    }

    fn verify(&mut self, hand: &mut ClientContext) -> CheckResult {
        let status = hand.call_until_answered("knowledge-status", &json!({}))?;
        let there = |key: &str| status["knowledge_base"][key].as_u64().unwrap_or_default() as usize;
        if (there("document_count"), there("total_chunks")) != (self.corpus.documents, self.corpus.chunks) {
            return Err(InvariantViolation(format!("{:?} stood on the shelf, and now: {status}", self.corpus)));
        }
        let (word, arguments) = self.query(hand);
        let said = hand.call_until_answered("knowledge-search", &arguments)?;
        match said["results"].is_array() {
            true => check_results(&word, &said),
            false => Err(InvariantViolation(format!("{word} cannot be searched for: {said}"))),
        }
    }
}
