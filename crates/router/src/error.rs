//! Routing errors, and how MCP callers receive them (P-13, P-16).

use std::time::Duration;

use corbie_mcp::{ErrorCode, ToolError};
use serde_json::{Map, Value, json};

use super::budget::BudgetKind;
use corbie_llm as providers;

/// Why a request was not answered.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    #[error(
        "no provider is configured; set `OPENAI_API_KEY`, `ANTHROPIC_API_KEY` or `GOOGLE_API_KEY`, add one under \
         `providers`, or start a local model server"
    )]
    NoProvider,
    #[error("no provider offers model `{model}`;{} use `models/list` or `GET /v1/models` to list available models{}", did_you_mean(.near), unlisted_providers(.unlisted))]
    UnknownModel { model: String, near: Vec<String>, unlisted: Vec<String> },
    #[error("`{provider}` does not support embeddings; use a model of another provider")]
    NoEmbeddings { provider: String },
    #[error("{}", no_model(.advised, *.stays))]
    NoModel { advised: Vec<String>, stays: bool },
    #[error("no prompt; set `prompt`, or add a user message with text or an image")]
    NoPrompt,
    /// A passthrough request that had to be parsed and could not be.
    #[error("{}", invalid_request_message(.0))]
    InvalidRequest(providers::Error),
    #[error("{}", over_budget(*.used_up))]
    OverBudget { used_up: BudgetKind, left: Duration },
    #[error(
        "timed out while selecting a provider; increase `router.timeout`, or use a provider prefix such as \
        `openai/gpt-4o`"
    )]
    Timeout,
    /// The most informative failure of all candidates.
    #[error("{provider}, model `{model}`: {error}")]
    Provider { provider: String, model: String, error: providers::Error, asked: usize },
}

impl Error {
    /// The more informative of two failures. A missing model and an open circuit breaker explain less than the error of
    /// a provider that was called.
    pub(super) fn or_more_informative(self, before: Option<Error>) -> Error {
        let says_little = |error: &Error| {
            matches!(
                error,
                Error::Provider { error: providers::Error::ModelNotFound | providers::Error::CircuitOpen, .. }
            )
        };
        match before {
            Some(before) if says_little(&self) && !says_little(&before) => before,
            _ => self,
        }
    }

    /// The error code of the specification.
    pub fn code(&self) -> ErrorCode {
        use providers::Error as Provider;
        match self {
            Error::NoProvider | Error::NoModel { .. } => ErrorCode::Configuration,
            Error::UnknownModel { .. } | Error::NoEmbeddings { .. } => ErrorCode::ModelNotFound,
            Error::NoPrompt | Error::InvalidRequest(_) => ErrorCode::InvalidParams,
            Error::Timeout => ErrorCode::Timeout,
            Error::OverBudget { .. } => ErrorCode::RateLimited,
            Error::Provider { error, .. } => match error {
                Provider::Authentication => ErrorCode::Authentication,
                Provider::RateLimited { .. } => ErrorCode::RateLimited,
                Provider::ModelNotFound => ErrorCode::ModelNotFound,
                Provider::Unavailable { .. } | Provider::CircuitOpen | Provider::InvalidResponse(_) => {
                    ErrorCode::ProviderUnavailable
                }
                Provider::BadRequest { .. } | Provider::Unsupported(_) => ErrorCode::InvalidParams,
                Provider::Network(_) | Provider::Truncated => ErrorCode::Network,
                Provider::Timeout | Provider::StreamTimeout => ErrorCode::Timeout,
            },
        }
    }

    /// A stable name for programs.
    pub fn error_type(&self) -> &'static str {
        match self.code() {
            ErrorCode::Authentication => "AuthenticationError",
            ErrorCode::RateLimited => "RateLimited",
            ErrorCode::ModelNotFound => "ModelNotFound",
            ErrorCode::ProviderUnavailable => "ProviderUnavailable",
            ErrorCode::Configuration => "ConfigurationError",
            ErrorCode::Network => "NetworkError",
            ErrorCode::Timeout => "TimeoutError",
            _ => "InvalidParams",
        }
    }

    /// A finer name: the provider's own for a request it rejected, ours for every other error.
    pub fn kind(&self) -> &str {
        match self {
            Error::NoProvider => "no_provider",
            Error::UnknownModel { .. } | Error::NoEmbeddings { .. } => "model_not_found",
            Error::NoModel { .. } => "no_model",
            Error::NoPrompt => "no_prompt",
            Error::Timeout => "timeout",
            Error::OverBudget { .. } => "over_budget",
            Error::InvalidRequest(providers::Error::BadRequest { kind }) => kind,
            Error::Provider { error: providers::Error::BadRequest { kind }, .. } => kind,
            Error::InvalidRequest(error) | Error::Provider { error, .. } => error.kind(),
        }
    }

    /// The invalid parameter.
    pub fn parameter(&self) -> Option<&str> {
        match self {
            Error::UnknownModel { .. } => Some("model"),
            Error::InvalidRequest(error) => error.parameter(),
            Error::Provider { error: providers::Error::Unsupported(what), .. } => Some(what.parameter()),
            _ => None,
        }
    }

    /// Delay before a retry can succeed.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Error::OverBudget { left, .. } => Some(*left),
            Error::Provider { error, .. } => error.retry_after(),
            _ => None,
        }
    }

    /// Structured data with which a program can react.
    fn details(&self) -> Option<Value> {
        match self {
            Error::UnknownModel { model, near, .. } => Some(json!({ "model": model, "near": near })),
            Error::NoModel { advised, .. } => Some(json!({ "advised": advised })),
            Error::Provider { provider, model, error, asked } => {
                let mut details = json!({ "provider": provider, "model": model, "attempts": asked });
                if let Some(wait) = error.retry_after() {
                    details["retry_after_seconds"] = wait.as_secs_f64().into();
                }
                Some(details)
            }
            Error::OverBudget { left, .. } => Some(json!({ "retry_after_seconds": left.as_secs() })),
            Error::NoEmbeddings { provider } => Some(json!({ "provider": provider })),
            Error::NoProvider | Error::NoPrompt | Error::InvalidRequest(_) | Error::Timeout => None,
        }
    }
}

impl From<Error> for corbie_mcp::Error {
    fn from(error: Error) -> corbie_mcp::Error {
        let mut data = Map::from_iter([("kind".to_owned(), error.kind().into())]);
        data.extend(error.details().map(|details| ("details".to_owned(), details)));
        corbie_mcp::Error::Other {
            code: error.code(),
            message: error.to_string(),
            error_type: error.error_type(),
            data: Some(Box::new(data)),
        }
    }
}

impl From<Error> for ToolError {
    fn from(error: Error) -> ToolError {
        let mut details = error.details().unwrap_or_else(|| json!({}));
        details["code"] = error.code().legacy_number().into();
        details["kind"] = error.kind().into();
        ToolError::new(error.error_type(), error.to_string()).details(details)
    }
}

fn did_you_mean(near: &[String]) -> String {
    match near {
        [] => String::new(),
        names => {
            format!(" did you mean {}?", quoted(names, " or "))
        }
    }
}

fn invalid_request_message(error: &providers::Error) -> String {
    match error.parameter() {
        Some(name) => format!("`{name}` is missing or invalid"),
        None => "request body is not a JSON object".to_owned(),
    }
}

fn over_budget(used_up: BudgetKind) -> &'static str {
    match used_up {
        BudgetKind::Tokens => {
            "daily token budget of the caller exceeded; try again tomorrow, or increase `router.budget.tokens_per_day`"
        }
        BudgetKind::Cost => {
            "daily cost budget of the caller exceeded; try again tomorrow, or increase `router.budget.cost_per_day`"
        }
    }
}

fn unlisted_providers(providers: &[String]) -> String {
    match providers {
        [] => String::new(),
        names => format!(" (except those of {}, whose model list is unavailable)", quoted(names, " and ")),
    }
}

fn quoted(names: &[String], between: &str) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(between)
}

fn no_model(advised: &[String], stays: bool) -> String {
    let advised = match advised {
        [] => "no model is configured".to_owned(),
        models => format!("no provider offers model {}", quoted(models, " or ")),
    };
    match stays {
        true => {
            format!(
                "{advised}; the category is in `router.restricted_categories`, so only models with an explicit \
                 provider prefix are used"
            )
        }
        false => format!("{advised}; specify a model, or set `DEFAULT_MODEL` or `default_model` of a provider"),
    }
}
