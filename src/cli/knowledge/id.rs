//! Ids as people type them: a beginning that only one has.

use serde_json::json;

use super::peer::{Failure, Peer};
use super::{Common, text};
use crate::cli::one_line;
use crate::knowledge::document::DocumentId;

/// Which ids are not told of is no matter; that there are several is.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("no {what} has an id that begins with `{beginning}`; {list} lists them")]
    Nothing { what: &'static str, beginning: String, list: &'static str },
    #[error("{count} {what}s have ids that begin with `{beginning}`; type more of it")]
    Several { what: &'static str, beginning: String, count: usize },
}

/// So many documents are listed at a time.
const PAGE: usize = 1000;

/// The one id with this beginning.
pub(super) fn unique(what: &'static str, list: &'static str, beginning: &str, ids: &[String]) -> Result<String, Error> {
    let wanted = beginning.to_lowercase();
    let mut found = ids.iter().filter(|id| !wanted.is_empty() && id.starts_with(&wanted));
    let beginning = one_line(&beginning.chars().take(100).collect::<String>());
    match (found.next(), found.count()) {
        (Some(id), 0) => Ok(id.clone()),
        (Some(_), more) => Err(Error::Several { what, beginning, count: more + 1 }),
        (None, _) => Err(Error::Nothing { what, beginning, list }),
    }
}

/// The documents that are meant. Only beginnings need a look at all there are.
pub(super) async fn documents(
    peer: &Peer,
    common: &Common,
    beginnings: &[String],
) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let whole = |text: &String| text.parse::<DocumentId>().map(|id| id.to_string()).ok();
    let mut ids = Vec::new();
    if beginnings.iter().any(|beginning| whole(beginning).is_none()) {
        ids = all(peer, common).await?;
    }
    let mut found: Vec<String> = Vec::new();
    for beginning in beginnings {
        let id = match whole(beginning) {
            Some(id) => id,
            None => unique("document", "`corbie show`", beginning, &ids)?,
        };
        if !found.contains(&id) {
            found.push(id);
        }
    }
    Ok(found)
}

async fn all(peer: &Peer, common: &Common) -> Result<Vec<String>, Failure> {
    let mut ids = Vec::new();
    loop {
        let arguments = common.arguments(json!({ "limit": PAGE, "offset": ids.len(), "sort_order": "asc" }));
        let reply = peer.call("knowledge-show", arguments).await?;
        let documents = reply["documents"].as_array().cloned().unwrap_or_default();
        ids.extend(documents.iter().map(|document| text(document, "id").to_owned()));
        if documents.len() < PAGE {
            return Ok(ids);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_is_enough_where_only_one_id_has_it() {
        let ids = ["aa11", "aa22", "bb33"].map(String::from);
        let find = |beginning: &str| unique("document", "`corbie show`", beginning, &ids).map_err(|e| e.to_string());
        assert_eq!(find("b").unwrap(), "bb33");
        assert_eq!(find("AA2").unwrap(), "aa22");
        assert_eq!(find("aa").unwrap_err(), "2 documents have ids that begin with `aa`; type more of it");
        for nothing in ["c", "", "bb334"] {
            assert!(find(nothing).unwrap_err().starts_with("no document has an id"), "{nothing:?}");
        }
    }
}
