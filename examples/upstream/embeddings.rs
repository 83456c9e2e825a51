//! Embeddings in OpenAI and Google format. Equal texts have equal vectors.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::list;

/// Default dimension.
const DEFAULT_DIMENSIONS: u64 = 8;

/// Maximum batch size of Google.
const MAX_GOOGLE_BATCH: usize = 100;

pub(crate) fn openai(body: &Value) -> Result<Value, String> {
    let model = body["model"].as_str().ok_or("`model` is missing")?;
    // A text, its token IDs, or a list of either.
    let inputs = match &body["input"] {
        Value::Array(inputs) if inputs.first().is_some_and(|first| !first.is_number()) => inputs.clone(),
        Value::Null => return Err("`input` is missing".into()),
        one => vec![one.clone()],
    };
    let length = body["dimensions"].as_u64().unwrap_or(DEFAULT_DIMENSIONS);
    let data: Vec<Value> = inputs
        .iter()
        .enumerate()
        .map(|(index, input)| {
            let vector = vector(&input.to_string(), length);
            let embedding = match body["encoding_format"] == "base64" {
                true => {
                    STANDARD.encode(vector.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>()).into()
                }
                false => json!(vector),
            };
            json!({"object": "embedding", "index": index, "embedding": embedding})
        })
        .collect();
    let tokens = tokens(inputs.iter().map(Value::to_string));
    let usage = json!({"prompt_tokens": tokens, "total_tokens": tokens});
    Ok(json!({"object": "list", "data": data, "model": model, "usage": usage}))
}

pub(crate) fn google(body: &Value, model: &str) -> Result<Value, String> {
    let requests = list(&body["requests"]);
    if !(1..=MAX_GOOGLE_BATCH).contains(&requests.len()) {
        return Err("BatchEmbedContentsRequest.requests: at most 100 requests can be in one batch".into());
    }
    let mut texts = Vec::new();
    for request in requests {
        if request["model"] != format!("models/{model}") {
            return Err("the model of a request is another than that of the batch".into());
        }
        texts.push(request["content"]["parts"][0]["text"].as_str().ok_or("content contains no text")?.to_owned());
    }
    let length = requests[0]["outputDimensionality"].as_u64().unwrap_or(DEFAULT_DIMENSIONS);
    let embeddings: Vec<Value> =
        texts.iter().map(|text| json!({"values": vector(&json!(text).to_string(), length)})).collect();
    Ok(json!({"embeddings": embeddings, "usageMetadata": {"promptTokenCount": tokens(texts.into_iter())}}))
}

/// Multiples of 1/8, which are exact in every precision.
fn vector(text: &str, length: u64) -> Vec<f32> {
    let sum: u64 = text.bytes().map(u64::from).sum();
    (1..=length).map(|place| ((sum * place) % 16) as f32 / 8.0 - 1.0).collect()
}

fn tokens(texts: impl Iterator<Item = String>) -> usize {
    texts.map(|text| text.split_whitespace().count()).sum()
}
