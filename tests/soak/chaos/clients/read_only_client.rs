//! Client that calls all read-only tools: each must return its own result or a reason for failing.

use serde_json::{Value, json};

use super::{CallResult, ChaosClient, CheckResult, ClientContext, InvariantViolation};

#[derive(Default)]
pub(crate) struct ReadOnlyClient {
    next: usize,
}

/// Tool, arguments, and a key present in every reply.
fn read_only_calls() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        ("list_registered_tools", json!({}), "tools"),
        ("get_tool_schema", json!({ "name": "classify_text" }), "inputSchema"),
        ("inspect_server", json!({ "history": 60 }), "uptime_seconds"),
        ("list_categories", json!({}), "categories"),
        ("batch_categorize", json!({ "texts": ["where is my refund", "i cannot sign in"] }), "results"),
        ("check_taxonomy", json!({ "text": "categories: []" }), "problems"),
        (
            "evaluate_categories",
            json!({ "examples": [{ "text": "i was charged twice", "category": "billing" }] }),
            "accuracy",
        ),
        ("list_models", json!({}), "models"),
        ("list_providers", json!({}), "providers"),
        ("explain_route", json!({ "prompt": "where is my refund" }), "candidates"),
        ("check_setup", json!({}), "checks"),
        ("knowledge-status", json!({}), "health"),
        ("knowledge-tasks", json!({}), "tasks"),
    ]
}

impl ChaosClient for ReadOnlyClient {
    fn step(&mut self, hand: &mut ClientContext) -> CheckResult {
        let visits = read_only_calls();
        let (tool, arguments, key) = &visits[self.next % visits.len()];
        self.next += 1;
        match hand.call(tool, arguments)? {
            CallResult::Answered(said) if said.get(key).is_none() && said.get("error").is_none() => {
                Err(InvariantViolation(format!("{tool} says neither {key:?} nor what is wrong: {said}")))
            }
            CallResult::Answered(_) | CallResult::Refused | CallResult::Lost => Ok(()),
        }
    }

    fn verify(&mut self, hand: &mut ClientContext) -> CheckResult {
        for (tool, arguments, key) in read_only_calls() {
            let said = hand.call_until_answered(tool, &arguments)?;
            if said.get(key).is_none() {
                return Err(InvariantViolation(format!("{tool} of a program at rest says no {key:?}: {said}")));
            }
        }
        Ok(())
    }
}
