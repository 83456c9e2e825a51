//! `knowledge-ask`: answers a question from the documents, with citations.

use std::sync::Arc;

use corbie_mcp::{Arguments, CallResult, Context, Effect, RegistrationError, Tool, ToolError};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::search::{filters_schema, passage_json};
use super::{MODULE, authorized_base, base_schema, dialect, whole, whole_if_any};
use crate::chat_model::{ChatModel, ModelError, ModelPrompt};
use crate::search::{Passage, SearchRequest};
use crate::{Error, Knowledge, filter, grounding};
use corbie_llm::Chat;
use corbie_llm::chat::{ChatRole, ContentPart, Message};

const DESCRIPTION: &str = "Ask a question about the documents in the knowledge base. Use it when the user wants an \
answer instead of a list of passages (retrieval-augmented generation). It searches the most relevant passages, sends \
them with the question to a language model, and returns an answer that cites passages by number, with file and page. \
Without a configured provider it returns only the passages.";

#[derive(Debug, Deserialize)]
struct AskInput {
    question: String,
    #[serde(default = "six", deserialize_with = "whole")]
    top_k: usize,
    #[serde(default)]
    min_relevance: f32,
    filters: Option<Map<String, Value>>,
    model: Option<String>,
    #[serde(default, deserialize_with = "whole_if_any")]
    max_tokens: Option<u32>,
    knowledge_base: Option<String>,
}

pub(super) fn tool(knowledge: Knowledge, model: Arc<dyn ChatModel>) -> Result<Tool, RegistrationError> {
    let timeout = model.timeout() + std::time::Duration::from_secs(10);
    Tool::builder("knowledge-ask")
        .title("Ask a question about documents")
        .description(DESCRIPTION)
        .module(MODULE)
        .input_schema(json!({
            "type": "object",
            "properties": {
                "question": { "type": "string", "description": "The question to answer", "minLength": 1, "maxLength": 500 },
                "top_k": { "type": "integer", "description": "Number of passages to send to the model", "default": 6, "minimum": 1, "maximum": 50 },
                "min_relevance": { "type": "number", "description": "Minimum relevance score of passages (0.0 to 1.0)", "default": 0.0, "minimum": 0.0, "maximum": 1.0 },
                "filters": filters_schema(),
                "model": { "type": "string", "description": "Model to use; if omitted, the question is routed to the \
                    best model", "minLength": 1, "maxLength": 256 },
                "max_tokens": { "type": "integer", "description": "Maximum number of tokens in the answer", "minimum": 1, "maximum": 1_000_000 },
                "knowledge_base": base_schema(),
            },
            "required": ["question"],
        }))
        .output_schema(json!({
            "type": "object",
            "properties": {
                "success": { "type": "boolean" },
                "question": { "type": "string" },
                "answer": { "type": ["string", "null"] },
                "citations": { "type": "array", "items": { "type": "object" } },
                "passages": { "type": "array", "items": { "type": "object" } },
                "model": { "type": ["string", "null"] },
                "provider": { "type": ["string", "null"] },
                "message": { "type": "string" },
            },
            "required": ["success", "question", "answer", "citations", "passages"],
        }))
        .effect(Effect::Changes)
        .timeout(timeout)
        .dialect(dialect)
        .run(move |context: Context, arguments: Arguments| {
            let (knowledge, model) = (knowledge.clone(), model.clone());
            async move {
                let reply = ask(&knowledge, &*model, &context, arguments.parse()?).await?;
                Ok::<_, ToolError>(CallResult::json(reply))
            }
        })
}

async fn ask(knowledge: &Knowledge, model: &dyn ChatModel, context: &Context, input: AskInput) -> Result<Value, Error> {
    let question = input.question.trim();
    if question.is_empty() {
        return Err(Error::invalid("question", "`question` is empty; enter a question"));
    }
    let passages = knowledge
        .search(SearchRequest {
            base: authorized_base(context, input.knowledge_base.as_deref())?,
            query: question.to_owned(),
            top_k: input.top_k,
            min_relevance: input.min_relevance,
            filter: input.filters.as_ref().map(filter::parse).transpose()?.flatten(),
        })
        .await?;
    let shown: Vec<Value> = passages.iter().enumerate().map(numbered_passage).collect();
    let mut reply = json!({
        "success": true,
        "question": question,
        "answer": null,
        "citations": [],
        "passages": shown,
    });
    if passages.is_empty() {
        reply["message"] = "No documents found matching your query".into();
        return Ok(reply);
    }
    let fence = grounding::Fence::new();
    let message = |role, text: String| Message { role, parts: vec![ContentPart::Text { text }] };
    let chat = Chat {
        messages: vec![
            message(ChatRole::System, fence.instructions()),
            // Documents are untrusted, so passages have the role of a user message. The question is a separate message
            // because the router classifies it.
            message(ChatRole::User, fence.format_passages(&passages)),
            message(ChatRole::User, question.to_owned()),
        ],
        max_tokens: input.max_tokens,
        ..Chat::default()
    };
    let prompt = ModelPrompt {
        chat,
        model: input.model,
        caller: Some(context.caller().identity.clone()),
        relevance: Some(passages.first().map_or(0.0, |best| best.relevance)),
    };
    match model.complete(prompt).await {
        Ok(answer) => {
            let cited = grounding::cited_numbers(&answer.text, passages.len());
            reply["citations"] = cited.iter().filter_map(|number| shown.get(number - 1)).cloned().collect();
            reply["answer"] = answer.text.into();
            reply["model"] = json!(answer.model);
            reply["provider"] = json!(answer.provider);
        }
        Err(ModelError::NoProvider) => {
            reply["message"] =
                "No provider is configured; returning the most relevant passages without an answer".into();
        }
        Err(error) => {
            reply["message"] = format!(
                "The model request failed ({error}); returning the most relevant passages \
                without an answer"
            )
            .into();
        }
    }
    Ok(reply)
}

/// A passage with its citation number.
fn numbered_passage((number, passage): (usize, &Passage)) -> Value {
    let mut shown = passage_json(passage);
    shown["number"] = (number + 1).into();
    shown
}

fn six() -> usize {
    6
}
