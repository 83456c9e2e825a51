//! Resolves documents and tasks from a unique id prefix, documents also from a file name or path.

use std::path::Path;

use serde_json::{Value, json};

use super::backend::Backend;
use super::error::KnowledgeError;
use super::{CommonOptions, text};
use crate::cli::sanitize_line;
use crate::knowledge::document::DocumentId;

/// Page size for listing documents.
const PAGE_SIZE: usize = 1000;
/// Maximum length of user input in a message.
const MAX_ECHO_CHARS: usize = 100;

/// The only task whose id has this prefix.
pub(super) fn resolve_task(beginning: &str, ids: &[String]) -> Result<String, KnowledgeError> {
    let mut found = ids.iter().filter(|id| has_prefix(id, beginning));
    match (found.next(), found.count()) {
        (Some(id), 0) => Ok(id.clone()),
        (Some(_), more) => Err(KnowledgeError::AmbiguousTask { beginning: echo(beginning), count: more + 1 }),
        (None, _) => Err(KnowledgeError::UnknownTask(echo(beginning))),
    }
}

/// Resolves documents. The list of all documents is needed only for incomplete ids.
pub(super) async fn resolve_documents(
    peer: &Backend,
    common: &CommonOptions,
    typed: &[String],
) -> Result<Vec<String>, KnowledgeError> {
    let whole = |text: &String| text.parse::<DocumentId>().map(|id| id.to_string()).ok();
    let mut known = Vec::new();
    if typed.iter().any(|typed| whole(typed).is_none()) {
        known = list_documents(peer, common).await?;
    }
    let mut found: Vec<String> = Vec::new();
    for typed in typed {
        let id = match whole(typed) {
            Some(id) => id,
            None => resolve_document(typed, &known)?,
        };
        if !found.contains(&id) {
            found.push(id);
        }
    }
    Ok(found)
}

/// The only document with this path, file name or id prefix. A path takes precedence, because several files may have
/// the same name. If the text is the name of one document and an id prefix of another, it is ambiguous.
fn resolve_document(typed: &str, documents: &[Value]) -> Result<String, KnowledgeError> {
    let path = std::path::absolute(Path::new(typed)).ok();
    let path = path.as_ref().and_then(|path| path.to_str());
    let at_path = |document: &&Value| path.is_some_and(|path| document["file_path"] == path);
    let named = |document: &&Value| text(document, "filename") == typed || has_prefix(text(document, "id"), typed);
    let mut found: Vec<&Value> = documents.iter().filter(at_path).collect();
    if found.is_empty() {
        found = documents.iter().filter(named).collect();
    }
    match found[..] {
        [] => Err(KnowledgeError::UnknownDocument(echo(typed))),
        [document] => Ok(text(document, "id").to_owned()),
        _ => Err(KnowledgeError::AmbiguousDocument {
            typed: echo(typed),
            documents: found.into_iter().map(brief).collect(),
        }),
    }
}

fn has_prefix(id: &str, typed: &str) -> bool {
    !typed.is_empty() && id.starts_with(&typed.to_lowercase())
}

fn echo(typed: &str) -> String {
    sanitize_line(&typed.chars().take(MAX_ECHO_CHARS).collect::<String>())
}

/// The fields that distinguish documents of the same name.
fn brief(document: &Value) -> Value {
    let mut brief = json!({ "id": document["id"], "filename": document["filename"] });
    if let Some(path) = document.get("file_path") {
        brief["file_path"] = path.clone();
    }
    brief
}

async fn list_documents(peer: &Backend, common: &CommonOptions) -> Result<Vec<Value>, KnowledgeError> {
    let mut all = Vec::new();
    loop {
        let arguments = common.arguments(json!({ "limit": PAGE_SIZE, "offset": all.len(), "sort_order": "asc" }));
        let mut reply = peer.call("knowledge-show", arguments).await?;
        let Value::Array(documents) = reply["documents"].take() else { return Ok(all) };
        let is_last = documents.len() < PAGE_SIZE;
        all.extend(documents);
        if is_last {
            return Ok(all);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unique_prefix_resolves_a_task() {
        let ids = ["aa11", "aa22", "bb33"].map(String::from);
        let find = |beginning: &str| resolve_task(beginning, &ids).map_err(|failure| failure.to_string());
        assert_eq!(find("b").unwrap(), "bb33");
        assert_eq!(find("AA2").unwrap(), "aa22");
        assert_eq!(find("aa").unwrap_err(), "2 tasks have the ID prefix `aa`; type more characters");
        for nothing in ["c", "", "bb334"] {
            assert!(find(nothing).unwrap_err().starts_with("no task has the ID prefix"), "{nothing:?}");
        }
    }

    #[test]
    fn unique_name_resolves_a_document() {
        let known = [
            json!({ "id": "aa11", "filename": "notes.md", "file_path": "/a/notes.md" }),
            json!({ "id": "bb22", "filename": "notes.md", "file_path": "/b/notes.md" }),
            json!({ "id": "cc33", "filename": "bees.md" }),
            json!({ "id": "dd44", "filename": "aa11" }),
        ];
        let find = |typed: &str| resolve_document(typed, &known).map_err(|failure| failure.to_string());
        assert_eq!(find("bees.md").unwrap(), "cc33");
        assert_eq!(find("CC").unwrap(), "cc33");
        assert_eq!(find("/b/notes.md").unwrap(), "bb22");
        let several = find("notes.md").unwrap_err();
        assert!(several.contains("\n  aa11  /a/notes.md\n  bb22  /b/notes.md"), "{several}");
        assert!(find("aa11").unwrap_err().contains("matches 2 documents"), "a name that is the id of another");
        assert!(find("").unwrap_err().contains("no document"));
    }
}
