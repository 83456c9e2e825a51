//! `completion/complete` in its standard form: argument suggestions. A program may serve the other form.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::completion::MAX_VALUES;
use crate::dispatch::{MethodCall, truncate_owned};
use crate::error::Error;
use crate::reply::MethodReply;

#[derive(Deserialize)]
struct Params {
    r#ref: Reference,
    argument: Argument,
    #[serde(default)]
    context: CompletionContext,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Reference {
    #[serde(rename = "ref/prompt")]
    Prompt { name: String },
    #[serde(rename = "ref/resource")]
    Resource { uri: String },
}

#[derive(Deserialize)]
struct Argument {
    name: String,
    value: String,
}

#[derive(Deserialize, Default)]
struct CompletionContext {
    #[serde(default)]
    arguments: HashMap<String, String>,
}

/// The two forms of a `completion/complete` request.
pub(crate) enum Form {
    /// `ref` with `argument`: suggestions, served here.
    Standard,
    /// `prompt`: text generation, served by a program that adds the method.
    Generation,
}

/// `ref` with `argument` selects the standard form, `prompt` the other; both or neither are an error.
pub(crate) fn form(call: &MethodCall) -> Result<Form, Error> {
    #[derive(Deserialize)]
    struct Shape {
        r#ref: Option<Value>,
        argument: Option<Value>,
        prompt: Option<Value>,
    }
    let shape: Shape = call.params.parse()?;
    match (shape.prompt.is_some(), shape.r#ref.is_some(), shape.argument.is_some()) {
        (true, false, false) => Ok(Form::Generation),
        (false, true, true) => Ok(Form::Standard),
        _ => Err(Error::invalid_params("set either `ref` and `argument`, or `prompt`")),
    }
}

pub(crate) fn complete(call: &MethodCall) -> Result<MethodReply, Error> {
    let params: Params = call.params.parse()?;
    let server = &call.server;
    let of = match params.r#ref {
        Reference::Prompt { name } => {
            if !server.prompts().contains_key(&name) {
                return Err(Error::PromptNotFound { name: truncate_owned(&name) });
            }
            name
        }
        Reference::Resource { uri } => {
            let known = server.inner().templates.iter().any(|template| template.uri_template == uri);
            if !known && !server.resources().contains_key(&uri) {
                return Err(Error::ResourceNotFound { uri: truncate_owned(&uri) });
            }
            uri
        }
    };
    let mut values = match server.inner().completers.get(&(of, params.argument.name)) {
        Some(completer) => completer.suggest(&params.argument.value, &params.context.arguments),
        None => Vec::new(),
    };
    let total = values.len();
    values.truncate(MAX_VALUES);
    Ok(MethodReply::new(json!({ "completion": { "values": values, "total": total, "hasMore": total > MAX_VALUES } })))
}
