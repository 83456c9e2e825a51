//! Prompts: message templates with arguments, selected by the user.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::content::ContentBlock;
use crate::context::Context;
use crate::error::Error;

/// A named message template.
#[derive(Clone)]
pub struct Prompt {
    pub(crate) name: String,
    listing: Map<String, Value>,
    arguments: Vec<PromptArgument>,
    pub(crate) get: PromptHandler,
}

#[derive(Debug, Clone)]
struct PromptArgument {
    name: String,
    description: String,
    required: bool,
}

/// Result of `prompts/get`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PromptResult {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub messages: Vec<PromptMessage>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PromptMessage {
    pub role: Role,
    pub content: ContentBlock,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    User,
    Assistant,
}

pub type PromptArguments = HashMap<String, String>;

pub(crate) type PromptHandler =
    Arc<dyn Fn(Context, PromptArguments) -> BoxFuture<'static, Result<PromptResult, Error>> + Send + Sync>;

impl Prompt {
    pub fn new<F, Fut>(name: impl Into<String>, description: impl Into<String>, get: F) -> Prompt
    where
        F: Fn(Context, PromptArguments) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<PromptResult, Error>> + Send + 'static,
    {
        let name = name.into();
        let mut listing = Map::new();
        listing.insert("name".into(), name.as_str().into());
        listing.insert("description".into(), description.into().into());
        let get = Arc::new(get);
        let get: PromptHandler = Arc::new(move |context, arguments| {
            let get = get.clone();
            Box::pin(async move { get(context, arguments).await })
        });
        Prompt { name, listing, arguments: Vec::new(), get }
    }

    pub fn title(mut self, title: impl Into<String>) -> Prompt {
        self.listing.insert("title".into(), title.into().into());
        self
    }

    pub fn required(self, name: impl Into<String>, description: impl Into<String>) -> Prompt {
        self.argument(name.into(), description.into(), true)
    }

    pub fn optional(self, name: impl Into<String>, description: impl Into<String>) -> Prompt {
        self.argument(name.into(), description.into(), false)
    }

    fn argument(mut self, name: String, description: String, required: bool) -> Prompt {
        self.arguments.push(PromptArgument { name, description, required });
        self
    }

    pub fn listing(&self) -> Value {
        let mut listing = self.listing.clone();
        let arguments = self.arguments.iter().map(|argument| {
            json!({ "name": argument.name, "description": argument.description, "required": argument.required })
        });
        listing.insert("arguments".into(), arguments.collect());
        Value::Object(listing)
    }

    /// Fails with the first missing required argument.
    pub(crate) fn check(&self, given: &PromptArguments) -> Result<(), Error> {
        match self.arguments.iter().find(|argument| argument.required && !given.contains_key(&argument.name)) {
            Some(missing) => Err(Error::invalid_params(format!(
                "prompt `{}` requires the argument `{}` ({})",
                self.name, missing.name, missing.description
            ))),
            None => Ok(()),
        }
    }
}

impl PromptResult {
    pub fn user(content: impl Into<Vec<ContentBlock>>) -> PromptResult {
        let messages = content.into().into_iter().map(|content| PromptMessage { role: Role::User, content }).collect();
        PromptResult { description: None, messages }
    }
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Prompt").field(&self.name).finish()
    }
}
