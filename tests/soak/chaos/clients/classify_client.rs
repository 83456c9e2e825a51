//! Client that classifies the same texts repeatedly: the result must be the same under every fault.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{CallResult, ChaosClient, CheckResult, ClientContext, InvariantViolation};

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
pub(crate) struct ClassifyClient {
    /// First result for each text.
    answers: HashMap<&'static str, (Value, Value)>,
}

impl ClassifyClient {
    fn compare(&mut self, text: &'static str, said: &Value) -> CheckResult {
        let answer = (said["category"].clone(), said["probabilities"].clone());
        if answer.0.is_null() {
            return Err(InvariantViolation(format!("no category for {text:?}: {said}")));
        }
        let first = self.answers.entry(text).or_insert_with(|| answer.clone());
        match *first == answer {
            true => Ok(()),
            false => Err(InvariantViolation(format!("{text:?} was {first:?}, and is {answer:?}"))),
        }
    }
}

impl ChaosClient for ClassifyClient {
    fn step(&mut self, hand: &mut ClientContext) -> CheckResult {
        let text = TEXTS[hand.rng.below(TEXTS.len())];
        match hand.call("classify_text", &json!({ "text": text, "with_probabilities": true }))? {
            CallResult::Answered(said) => self.compare(text, &said),
            CallResult::Refused | CallResult::Lost => Ok(()),
        }
    }

    fn verify(&mut self, hand: &mut ClientContext) -> CheckResult {
        for text in TEXTS {
            let said =
                hand.call_until_answered("classify_text", &json!({ "text": text, "with_probabilities": true }))?;
            self.compare(text, &said)?;
        }
        Ok(())
    }
}
