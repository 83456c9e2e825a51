//! Resolves the name of a knowledge base.

use serde_json::{Value, json};

use super::backend::Backend;
use super::error::KnowledgeError;
use crate::cli::sanitize_line;
use crate::config::knowledge::DEFAULT_BASE;

/// Fails for a base without documents, which is probably a misspelt name. `default` always exists.
pub(in crate::cli) async fn must_exist(peer: &Backend, base: Option<&str>) -> Result<(), KnowledgeError> {
    let Some(base) = base.filter(|base| *base != DEFAULT_BASE) else { return Ok(()) };
    let status = peer.call("knowledge-status", json!({ "knowledge_base": base })).await?;
    // If the store cannot be read, the bases are unknown, and the command itself fails with the reason.
    if status["health"]["vector_db_connected"] == false {
        return Ok(());
    }
    let bases = status["knowledge_bases"].as_array().map(Vec::as_slice).unwrap_or_default();
    let bases: Vec<String> = bases.iter().filter_map(Value::as_str).map(sanitize_line).collect();
    match bases.iter().any(|known| known == base) {
        true => Ok(()),
        false => Err(KnowledgeError::NoSuchBase { base: sanitize_line(base), bases }),
    }
}
