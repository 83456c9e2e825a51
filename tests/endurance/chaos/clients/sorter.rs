//! Client that classifies the same texts repeatedly: the result must be the same under every fault.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{Broken, Came, Client, Hand, Seen};

const TEXTS: [&str; 8] = [
    "i was charged twice for one order",
    "the courier left the box in the rain",
    "i cannot sign in since yesterday",
    "please send the invoice again",
    "my parcel has been lost",
    "how do i change my password",
    "the weather is fine today",
    "a refund would be nice",
];

#[derive(Default)]
pub(crate) struct Sorter {
    /// First result for each text.
    answers: HashMap<&'static str, (Value, Value)>,
}

impl Sorter {
    fn compare(&mut self, text: &'static str, said: &Value) -> Seen {
        let answer = (said["category"].clone(), said["probabilities"].clone());
        if answer.0.is_null() {
            return Err(Broken(format!("no category for {text:?}: {said}")));
        }
        let first = self.answers.entry(text).or_insert_with(|| answer.clone());
        match *first == answer {
            true => Ok(()),
            false => Err(Broken(format!("{text:?} was {first:?}, and is {answer:?}"))),
        }
    }
}

impl Client for Sorter {
    fn step(&mut self, hand: &mut Hand) -> Seen {
        let text = TEXTS[hand.chance.below(TEXTS.len())];
        match hand.call("classify_text", &json!({ "text": text, "with_probabilities": true }))? {
            Came::Said(said) => self.compare(text, &said),
            Came::Refused | Came::Lost => Ok(()),
        }
    }

    fn settle(&mut self, hand: &mut Hand) -> Seen {
        for text in TEXTS {
            let said = hand.must("classify_text", &json!({ "text": text, "with_probabilities": true }))?;
            self.compare(text, &said)?;
        }
        Ok(())
    }
}
