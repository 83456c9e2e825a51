//! Client that calls all read-only tools: each must return its own result or a reason for failing.

use serde_json::{Value, json};

use super::{Broken, Came, Client, Hand, Seen};

#[derive(Default)]
pub(crate) struct Visitor {
    next: usize,
}

/// Tool, arguments, and a key present in every reply.
fn visits() -> Vec<(&'static str, Value, &'static str)> {
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

impl Client for Visitor {
    fn step(&mut self, hand: &mut Hand) -> Seen {
        let visits = visits();
        let (tool, arguments, key) = &visits[self.next % visits.len()];
        self.next += 1;
        match hand.call(tool, arguments)? {
            Came::Said(said) if said.get(key).is_none() && said.get("error").is_none() => {
                Err(Broken(format!("{tool} says neither {key:?} nor what is wrong: {said}")))
            }
            Came::Said(_) | Came::Refused | Came::Lost => Ok(()),
        }
    }

    fn settle(&mut self, hand: &mut Hand) -> Seen {
        for (tool, arguments, key) in visits() {
            let said = hand.must(tool, &arguments)?;
            if said.get(key).is_none() {
                return Err(Broken(format!("{tool} of a program at rest says no {key:?}: {said}")));
            }
        }
        Ok(())
    }
}
