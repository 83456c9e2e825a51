//! The list of models.

use corbie::providers::{Error, ModelInfo};
use serde_json::{Value, json};

use crate::protocol_fixture::OPENAI;

#[test]
fn p05_models_are_listed_with_what_servers_tell_of_them() {
    let model = |id: &str, name: Option<&str>, context, output| ModelInfo {
        id: id.into(),
        name: name.map(str::to_owned),
        context,
        output,
        ..ModelInfo::default()
    };
    let list = json!({"object": "list", "data": [
        {"id": "gpt-5.4", "object": "model", "created": 1, "owned_by": "openai", "shutdown_date": null},
        {"id": "Qwen/Qwen3-8B", "object": "model", "max_model_len": 40960},
        {"id": "anthropic/claude", "name": "Claude", "context_length": 200000, "top_provider": {"max_completion_tokens": 64000}},
        {"id": "groq", "context_window": 8192, "max_completion_tokens": 4096},
        {"id": "llama", "meta": {"n_ctx_train": 131072}},
        {"id": "studio", "max_context_length": 131072, "loaded_context_length": 4096},
        {"name": "without an id"},
        7,
    ]});
    let expected = vec![
        model("gpt-5.4", None, None, None),
        model("Qwen/Qwen3-8B", None, Some(40960), None),
        model("anthropic/claude", Some("Claude"), Some(200_000), Some(64_000)),
        model("groq", None, Some(8192), Some(4096)),
        model("llama", None, Some(131_072), None),
        model("studio", None, Some(4096), None),
    ];
    let read = |body: Value| OPENAI.parse_models(200, body.to_string().as_bytes());
    assert_eq!(read(list.clone()), Ok((expected.clone(), None)));
    assert_eq!(read(list["data"].clone()), Ok((expected, None)));
    assert_eq!(read(json!({"object": "list", "data": null})), Ok((vec![], None)));
    for broken in ["", "null", "{}", "{\"data\":{}}", "\"models\"", "{\"data\":["] {
        assert!(matches!(OPENAI.parse_models(200, broken.as_bytes()), Err(Error::InvalidResponse(_))), "{broken}");
    }
}

#[test]
fn what_compatible_servers_tell_of_a_model_is_kept() {
    let check = |told: Value, expected: Value| {
        let mut model = told;
        model["id"] = json!("m");
        let (models, _) = OPENAI.parse_models(200, json!({"data": [model]}).to_string().as_bytes()).unwrap();
        let found = json!(models[0]).get("capabilities").cloned().unwrap_or_default();
        assert_eq!(found, expected, "{model}");
    };
    // OpenAI, vLLM and Ollama report no capabilities.
    check(json!({"object": "model", "owned_by": "openai"}), Value::Null);
    // OpenRouter.
    check(
        json!({
            "architecture": {"input_modalities": ["text", "image"]},
            "supported_parameters": ["max_tokens", "temperature", "tools", "structured_outputs"],
        }),
        json!({"images": true, "tools": true, "reasoning": false, "structured_output": true}),
    );
    // Mistral.
    check(
        json!({"capabilities": {"completion_chat": true, "function_calling": true, "vision": false}}),
        json!({"images": false, "tools": true}),
    );
    // LM Studio and llama.cpp: an unlisted capability may still exist.
    check(json!({"type": "vlm", "capabilities": ["tool_use"]}), json!({"images": true, "tools": true}));
    check(json!({"capabilities": ["completion", "multimodal"]}), json!({"images": true}));
    for odd in [json!({"capabilities": 7}), json!({"supported_parameters": "tools"}), json!({"architecture": []})] {
        check(odd, Value::Null);
    }
}
