//! The list of models.

use corbie::providers::Error;
use serde_json::json;

use crate::protocol_fixture::ANTHROPIC;

#[test]
fn p05_models_come_in_pages_with_what_they_can_do_and_without_retired_ones() {
    let (_, body) = ANTHROPIC.cases(".models.json").remove(0);
    let (models, next) = ANTHROPIC.parse_models(200, &body).unwrap();
    assert_eq!(next.as_deref(), Some("claude-haiku-4-5-20251001"));
    assert_eq!(
        serde_json::to_value(models).unwrap(),
        json!([
            {
                "id": "claude-opus-5-5", "name": "Claude Opus 5.5", "context": 1000000, "output": 128000,
                "capabilities": {
                    "images": true, "reasoning": true, "structured_output": true,
                    "unsupported_parameters": {
                        "reasoning": false, "reasoning_off": true, "reasoning_between_tools": true,
                        "reasoning_adaptive": false, "reasoning_effort": false, "reasoning_max": false, "reasoning_budget": true,
                    },
                },
            },
            {"id": "claude-haiku-4-5-20251001", "name": "Claude Haiku 4.5", "context": 200000, "output": 64000},
        ])
    );
    let last = br#"{"data":[{"id":"a"}],"has_more":false,"last_id":"a"}"#;
    assert_eq!(ANTHROPIC.parse_models(200, last).unwrap().1, None);
    let endless = format!(r#"{{"data":[],"has_more":true,"last_id":"{}"}}"#, "a".repeat(100_000));
    for broken in ["", "{}", r#"{"data":[],"has_more":true}"#, &endless] {
        assert!(matches!(ANTHROPIC.parse_models(200, broken.as_bytes()), Err(Error::InvalidResponse(_))));
    }
}
