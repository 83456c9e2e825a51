//! The list of models.

use corbie::providers::{Error, ModelInfo};
use serde_json::{Value, json};

use crate::player::list_models;

#[test]
fn p05_models_are_listed_with_what_servers_tell_of_them() {
    let model = |id: &str, name: Option<&str>, context, output| ModelInfo {
        id: id.into(),
        name: name.map(str::to_owned),
        context,
        output,
    };
    let list = json!({"object": "list", "data": [
        {"id": "gpt-5.4", "object": "model", "created": 1, "owned_by": "openai", "shutdown_date": null},
        {"id": "Qwen/Qwen3-8B", "object": "model", "max_model_len": 40960},
        {"id": "anthropic/claude", "name": "Claude", "context_length": 200000, "top_provider": {"max_completion_tokens": 64000}},
        {"id": "groq", "context_window": 8192, "max_completion_tokens": 4096},
        {"id": "llama", "meta": {"n_ctx_train": 131072}},
        {"name": "without an id"},
        7,
    ]});
    let expected = vec![
        model("gpt-5.4", None, None, None),
        model("Qwen/Qwen3-8B", None, Some(40960), None),
        model("anthropic/claude", Some("Claude"), Some(200_000), Some(64_000)),
        model("groq", None, Some(8192), Some(4096)),
        model("llama", None, Some(131_072), None),
    ];
    let read = |body: Value| list_models(200, body.to_string().as_bytes());
    assert_eq!(read(list.clone()), Ok((expected.clone(), None)));
    assert_eq!(read(list["data"].clone()), Ok((expected, None)));
    assert_eq!(read(json!({"object": "list", "data": null})), Ok((vec![], None)));
    for broken in ["", "null", "{}", "{\"data\":{}}", "\"models\"", "{\"data\":["] {
        assert!(matches!(list_models(200, broken.as_bytes()), Err(Error::Unreadable(_))), "{broken}");
    }
}
