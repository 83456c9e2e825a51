//! Client that searches the fixed corpus, which never changes: every document must be found whenever search works.

use serde_json::{Value, json};

use super::{Broken, Came, Client, Hand, Seen};
use crate::chaos::shelf::{self, Shelf};

pub(crate) struct Reader {
    shelf: Shelf,
}

impl Reader {
    pub(crate) fn new(shelf: Shelf) -> Reader {
        Reader { shelf }
    }

    fn query(&self, hand: &mut Hand) -> (String, Value) {
        let word = shelf::word(hand.chance.below(self.shelf.documents));
        let arguments = json!({ "query": word, "top_k": 3 });
        (word, arguments)
    }
}

/// The top passage contains the word. A failed search reports an error; a base that reports it is empty has lost its
/// data.
fn judge(word: &str, said: &Value) -> Seen {
    match said["results"].as_array() {
        Some(results)
            if results.iter().any(|each| each["chunk_text"].as_str().is_some_and(|text| text.contains(word))) =>
        {
            Ok(())
        }
        None if said["error"].is_string() && said["error"] != "empty_knowledge_base" => Ok(()),
        _ => Err(Broken(format!("{word} stands on the shelf and is not found: {said}"))),
    }
}

impl Client for Reader {
    fn step(&mut self, hand: &mut Hand) -> Seen {
        let (word, arguments) = self.query(hand);
        match hand.call("knowledge-search", &arguments)? {
            Came::Said(said) => judge(&word, &said),
            Came::Refused | Came::Lost => Ok(()),
        }
    }

    fn settle(&mut self, hand: &mut Hand) -> Seen {
        let status = hand.must("knowledge-status", &json!({}))?;
        let there = |key: &str| status["knowledge_base"][key].as_u64().unwrap_or_default() as usize;
        if (there("document_count"), there("total_chunks")) != (self.shelf.documents, self.shelf.chunks) {
            return Err(Broken(format!("{:?} stood on the shelf, and now: {status}", self.shelf)));
        }
        let (word, arguments) = self.query(hand);
        let said = hand.must("knowledge-search", &arguments)?;
        match said["results"].is_array() {
            true => judge(&word, &said),
            false => Err(Broken(format!("{word} cannot be searched for: {said}"))),
        }
    }
}
