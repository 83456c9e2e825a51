//! Client that saves the taxonomy repeatedly with an increasing number in it. An acknowledged save must never be rolled
//! back.

use serde_json::{Value, json};

use super::{CallResult, ChaosClient, CheckResult, ClientContext, InvariantViolation};
use crate::program::TAXONOMY;

const VERSION_COMMENT: &str = "# version ";

#[derive(Default)]
pub(crate) struct TaxonomyClient {
    sent_version: u64,
    saved_version: u64,
}

impl TaxonomyClient {
    pub(crate) fn new() -> TaxonomyClient {
        TaxonomyClient::default()
    }

    fn compare(&mut self, said: &Value) -> CheckResult {
        // A temporarily unreadable file is reported in `problem`.
        let Some(text) = said["text"].as_str() else {
            return if said["problem"].is_string() {
                Ok(())
            } else {
                Err(InvariantViolation(format!("no taxonomy: {said}")))
            };
        };
        let Some(rest) = text.strip_prefix(TAXONOMY) else {
            return Err(InvariantViolation(format!("the taxonomy is not what was saved: {said}")));
        };
        let number: u64 = rest.trim().strip_prefix(VERSION_COMMENT).unwrap_or("0").parse().unwrap_or(u64::MAX);
        if !(self.saved_version..=self.sent_version).contains(&number) {
            return Err(InvariantViolation(format!(
                "version {} of the taxonomy was saved, and {number} is there",
                self.saved_version
            )));
        }
        self.saved_version = number;
        Ok(())
    }
}

impl ChaosClient for TaxonomyClient {
    fn step(&mut self, hand: &mut ClientContext) -> CheckResult {
        let CallResult::Answered(there) = hand.call("get_taxonomy", &json!({}))? else { return Ok(()) };
        self.compare(&there)?;
        self.sent_version += 1;
        let text = format!("{TAXONOMY}{VERSION_COMMENT}{}\n", self.sent_version);
        // Sends the base version: a late save of a disconnected client must not overwrite a later one.
        match hand.call("save_taxonomy", &json!({ "text": text, "version": there["version"] }))? {
            CallResult::Answered(said) if said["saved"] == true => self.saved_version = self.sent_version,
            CallResult::Answered(_) | CallResult::Refused | CallResult::Lost => {}
        }
        // Saving triggers a reload; without a pause the server would do nothing but reload.
        std::thread::sleep(std::time::Duration::from_millis(100));
        Ok(())
    }

    fn verify(&mut self, hand: &mut ClientContext) -> CheckResult {
        let said = hand.call_until_answered("get_taxonomy", &json!({}))?;
        match said["text"].is_string() {
            true => self.compare(&said),
            false => Err(InvariantViolation(format!("the taxonomy of a program at rest cannot be read: {said}"))),
        }
    }
}
