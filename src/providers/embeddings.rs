//! Embedding requests and responses in OpenAI's format, the only format that clients use.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};

use super::Error;
use super::chat::Usage;

/// An embedding request, as the client wrote it.
#[derive(Debug, Clone, PartialEq)]
pub struct Embed {
    /// The provider's model name, without a provider prefix.
    pub model: String,
    pub body: Map<String, Value>,
}

/// A serialized embedding response.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedded {
    pub body: Bytes,
    pub usage: Usage,
}

/// The result of one request to a provider.
#[derive(Debug, Clone, PartialEq)]
pub enum Batch {
    /// A complete response in OpenAI's format, unmodified.
    Written(Embedded),
    /// Vectors that are not serialized yet, and their token count.
    Vectors { vectors: Vec<Vec<f32>>, tokens: u64 },
}

/// Encoding of the vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Float,
    /// Single precision, little-endian.
    Base64,
}

#[derive(Serialize)]
struct Answer<'a> {
    object: &'static str,
    data: Vec<Entry<'a>>,
    model: &'a str,
    usage: Counts,
}

#[derive(Serialize)]
struct Entry<'a> {
    object: &'static str,
    index: usize,
    embedding: Numbers<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Numbers<'a> {
    Float(&'a [f32]),
    Base64(String),
}

#[derive(Serialize)]
struct Counts {
    prompt_tokens: u64,
    total_tokens: u64,
}

impl Embed {
    /// The input texts. Other inputs, such as token IDs, are an error.
    pub fn texts(&self) -> Result<Vec<&str>, Error> {
        let unread = || Error::unread("input");
        match self.body.get("input") {
            Some(Value::String(text)) => Ok(vec![text]),
            Some(Value::Array(texts)) => texts.iter().map(|text| text.as_str().ok_or_else(unread)).collect(),
            _ => Err(unread()),
        }
    }

    pub fn encoding(&self) -> Result<Encoding, Error> {
        Encoding::read(&self.body)
    }
}

impl Encoding {
    /// The encoding that a request body specifies.
    pub fn read(body: &Map<String, Value>) -> Result<Encoding, Error> {
        match body.get("encoding_format") {
            None | Some(Value::Null) => Ok(Encoding::Float),
            Some(format) if format == "float" => Ok(Encoding::Float),
            Some(format) if format == "base64" => Ok(Encoding::Base64),
            Some(_) => Err(Error::unread("encoding_format")),
        }
    }
}

/// Merges the results of several requests.
pub fn gather(embed: &Embed, batches: Vec<Batch>) -> Result<Embedded, Error> {
    let (mut all, mut sum) = (Vec::new(), 0_u64);
    for batch in batches {
        match batch {
            Batch::Written(embedded) => return Ok(embedded),
            Batch::Vectors { vectors, tokens } => {
                all.extend(vectors);
                sum = sum.saturating_add(tokens);
            }
        }
    }
    if all.len() != embed.texts()?.len() {
        return Err(Error::Unreadable("it has another number of vectors than texts"));
    }
    let vectors: Vec<&[f32]> = all.iter().map(Vec::as_slice).collect();
    let body = write(&vectors, &embed.model, sum, embed.encoding()?).into();
    Ok(Embedded { body, usage: Usage { prompt: sum, ..Usage::default() } })
}

/// Serializes vectors as a response body.
pub fn write(vectors: &[&[f32]], model: &str, tokens: u64, encoding: Encoding) -> String {
    let numbers = |vector| match encoding {
        Encoding::Float => Numbers::Float(vector),
        Encoding::Base64 => Numbers::Base64(base64(vector)),
    };
    let vectors = vectors.iter().enumerate();
    let data =
        vectors.map(|(index, vector)| Entry { object: "embedding", index, embedding: numbers(vector) }).collect();
    let usage = Counts { prompt_tokens: tokens, total_tokens: tokens };
    serde_json::to_string(&Answer { object: "list", data, model, usage }).expect("texts and numbers are JSON")
}

fn base64(vector: &[f32]) -> String {
    STANDARD.encode(vector.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>())
}
