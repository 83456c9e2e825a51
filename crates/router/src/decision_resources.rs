//! Decision records of recent prompts as MCP resources.
//!
//! With a shared database, each instance shows the records of all instances. While the database does not respond, an
//! instance shows only its own.

use std::time::Duration;

use corbie_mcp::{
    Caller, Context, Error, RegistrationError, Resource, ResourceContents, ResourceTemplate, TrustLevel, Variables,
};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::decision_log::is_shared_id;
use super::decision_record::DecisionRecord;
use super::router::Router;
use corbie_knowledge::decision_log::{DecisionScope, StoredDecision};
use corbie_knowledge::store;
use corbie_knowledge::store::postgres;

/// The newest decisions, newest first.
const DECISIONS_URI: &str = "corbie://decisions";
/// Number of decisions in one response.
const MAX_SHOWN: usize = 100;
/// Timeout for the database.
const DATABASE_TIMEOUT: Duration = Duration::from_secs(2);

/// A serialized record.
#[derive(Debug)]
struct DecisionEntry {
    id: u64,
    at_ms: u64,
    json: Box<RawValue>,
}

#[derive(Debug, Serialize)]
struct DecisionList {
    decisions: Vec<Box<RawValue>>,
}

pub(super) fn newest(router: Router) -> Resource {
    let read = move |context: Context| {
        let router = router.clone();
        async move {
            let told = newest_for(&router, context.caller()).await;
            let newest = DecisionList { decisions: told.into_iter().map(|told| told.json).collect() };
            let text = serde_json::to_string(&newest).expect("a record has string keys");
            Ok(vec![ResourceContents::text(DECISIONS_URI, "application/json", text)])
        }
    };
    Resource::new(DECISIONS_URI, "decisions", read)
        .description("Latest routing decisions: category, rule, providers and models tried, latency, tokens and cost")
        .mime_type("application/json")
}

pub(super) fn one(router: Router) -> Result<ResourceTemplate, RegistrationError> {
    let read = move |context: Context, uri: String, variables: Variables| {
        let router = router.clone();
        async move {
            let found = match variables.get("id").and_then(|id| id.parse().ok()) {
                Some(id) => one_for(&router, context.caller(), id).await,
                None => None,
            };
            let told = found.ok_or_else(|| Error::ResourceNotFound { uri: uri.clone() })?;
            Ok(vec![ResourceContents::text(uri, "application/json", told.json.get())])
        }
    };
    let template = ResourceTemplate::new(format!("{DECISIONS_URI}/{{id}}"), "decision", read)?;
    Ok(template.description("Routing decision of one prompt").mime_type("application/json"))
}

async fn newest_for(router: &Router, caller: &Caller) -> Vec<DecisionEntry> {
    let records = router.decision_log();
    let may_see = |record: &DecisionRecord| may_see(caller, record);
    let most = MAX_SHOWN.min(records.capacity());
    if let Some((store, whose)) = shared_store(router, caller) {
        // Read before the database: a record written in between is then in one of the lists, or in both.
        let own = records.newest_unwritten(most, may_see);
        if let Some(kept) = with_timeout(store.latest_decisions(whose, most)).await {
            return merge_newest(
                own.iter().map(DecisionEntry::of),
                kept.into_iter().filter_map(DecisionEntry::from_stored),
                most,
            );
        }
    }
    records.newest_visible(most, may_see).iter().map(DecisionEntry::of).collect()
}

async fn one_for(router: &Router, caller: &Caller, id: u64) -> Option<DecisionEntry> {
    if let Some(record) = router.decision_log().get(id) {
        return may_see(caller, &record).then(|| DecisionEntry::of(&record));
    }
    let (store, whose) = shared_store(router, caller).filter(|_| is_shared_id(id))?;
    with_timeout(store.decision(id, whose)).await.flatten().and_then(DecisionEntry::from_stored)
}

/// Records of other callers are visible to the operator and to trusted callers.
fn may_see(caller: &Caller, record: &DecisionRecord) -> bool {
    caller.trust == TrustLevel::Trusted || record.caller.as_deref() == Some(&*caller.identity)
}

/// The same for records of other instances. A caller without a token has a generic identity, which belongs to a
/// different caller on another machine.
fn shared_visibility(caller: &Caller) -> Option<DecisionScope<'_>> {
    match caller.trust {
        TrustLevel::Trusted => Some(DecisionScope::All),
        _ => caller.has_token().then_some(DecisionScope::Caller(&caller.identity)),
    }
}

/// The store with the decisions of all instances, and which of them a caller may see.
fn shared_store<'a>(router: &'a Router, caller: &'a Caller) -> Option<(&'a postgres::Store, DecisionScope<'a>)> {
    let store = router.knowledge()?.shared_store().filter(|_| router.decision_log().capacity() > 0)?;
    Some((store, shared_visibility(caller)?))
}

async fn with_timeout<T>(asked: impl Future<Output = Result<T, store::Error>>) -> Option<T> {
    match timeout(DATABASE_TIMEOUT, asked).await {
        Ok(Ok(found)) => Some(found),
        Ok(Err(error)) => {
            tracing::debug!(%error, "cannot read decisions of other instances");
            None
        }
        Err(_) => {
            tracing::debug!("timed out while reading decisions of other instances");
            None
        }
    }
}

/// The newest of two lists, without duplicates.
fn merge_newest(
    own: impl Iterator<Item = DecisionEntry>,
    kept: impl Iterator<Item = DecisionEntry>,
    most: usize,
) -> Vec<DecisionEntry> {
    let mut told: Vec<DecisionEntry> = own.chain(kept).collect();
    told.sort_by_key(|told| std::cmp::Reverse((told.at_ms, told.id)));
    told.dedup_by_key(|told| told.id);
    told.truncate(most);
    told
}

impl DecisionEntry {
    fn of(record: &DecisionRecord) -> DecisionEntry {
        let json = serde_json::value::to_raw_value(record).expect("a record has string keys");
        DecisionEntry { id: record.id, at_ms: record.at_ms, json }
    }

    /// `None` if the stored text is not JSON.
    fn from_stored(decision: StoredDecision) -> Option<DecisionEntry> {
        let StoredDecision { id, at_ms, record, .. } = decision;
        Some(DecisionEntry { id, at_ms, json: RawValue::from_string(record).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use corbie_mcp::Transport;

    use super::*;

    fn told(id: u64, at_ms: u64) -> DecisionEntry {
        DecisionEntry::of(&DecisionRecord { id, at_ms, ..DecisionRecord::default() })
    }

    #[test]
    fn what_is_written_meanwhile_is_told_once_and_the_newest_come_first() {
        let told = merge_newest(
            [told(7, 30), told(5, 10)].into_iter(),
            [told(8, 40), told(7, 30), told(6, 10), told(4, 9)].into_iter(),
            4,
        );
        assert_eq!(told.iter().map(|told| told.id).collect::<Vec<_>>(), [8, 7, 6, 5]);
    }

    #[test]
    fn what_is_kept_is_told_as_it_was_written() {
        let record = DecisionRecord { id: 7, latency_ms: 160.910_692_999_999_98, ..DecisionRecord::default() };
        let text = serde_json::to_string(&record).unwrap();
        let decision = StoredDecision { id: 7, at_ms: 0, caller: None, record: text.clone() };
        assert_eq!(DecisionEntry::from_stored(decision.clone()).unwrap().json.get(), text);
        assert_eq!(DecisionEntry::of(&record).json.get(), text);
        assert!(DecisionEntry::from_stored(StoredDecision { record: "{".to_owned(), ..decision }).is_none());
    }

    #[test]
    fn of_other_instances_a_caller_sees_its_own_by_its_token_and_the_operator_all() {
        let sees = |identity: &str, trust| {
            let caller = Caller::new(Transport::Http, identity, trust);
            match shared_visibility(&caller) {
                Some(DecisionScope::All) => "all".to_owned(),
                Some(DecisionScope::Caller(own)) => own.to_owned(),
                None => "none".to_owned(),
            }
        };
        assert_eq!(sees("loopback", TrustLevel::Trusted), "all");
        assert_eq!(sees("token:one", TrustLevel::Verified), "token:one");
        assert_eq!(sees("oauth:app:alice", TrustLevel::Untrusted), "oauth:app:alice");
        for of_this_machine in ["loopback", "stdio", "unix"] {
            assert_eq!(sees(of_this_machine, TrustLevel::Verified), "none");
        }
    }
}
