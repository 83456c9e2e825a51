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

use super::record::Record;
use super::records::is_shared;
use super::router::Router;
use crate::knowledge::decisions::{Decision, Whose};
use crate::knowledge::store;
use crate::knowledge::store::postgres;

/// The newest decisions, newest first.
const DECISIONS: &str = "corbie://decisions";
/// Number of decisions in one response.
const SHOWN: usize = 100;
/// Timeout for the database.
const PATIENCE: Duration = Duration::from_secs(2);

/// A serialized record.
#[derive(Debug)]
struct Told {
    id: u64,
    at_ms: u64,
    json: Box<RawValue>,
}

#[derive(Debug, Serialize)]
struct Newest {
    decisions: Vec<Box<RawValue>>,
}

pub(super) fn newest(router: Router) -> Resource {
    let read = move |context: Context| {
        let router = router.clone();
        async move {
            let told = newest_for(&router, context.caller()).await;
            let newest = Newest { decisions: told.into_iter().map(|told| told.json).collect() };
            let text = serde_json::to_string(&newest).expect("a record has string keys");
            Ok(vec![ResourceContents::text(DECISIONS, "application/json", text)])
        }
    };
    Resource::new(DECISIONS, "decisions", read)
        .description("How the last prompts were routed: category, rule, who was asked, time, tokens and cost")
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
    let template = ResourceTemplate::new(format!("{DECISIONS}/{{id}}"), "decision", read)?;
    Ok(template.description("How one prompt was routed").mime_type("application/json"))
}

async fn newest_for(router: &Router, caller: &Caller) -> Vec<Told> {
    let records = router.records();
    let may_see = |record: &Record| may_see(caller, record);
    let most = SHOWN.min(records.most());
    if let Some((store, whose)) = shared(router, caller) {
        // Read before the database: a record written in between is then in one of the lists, or in both.
        let own = records.newest_unwritten(most, may_see);
        if let Some(kept) = in_time(store.newest_decisions(whose, most)).await {
            return merged(own.iter().map(Told::of), kept.into_iter().filter_map(Told::kept), most);
        }
    }
    records.newest_seen(most, may_see).iter().map(Told::of).collect()
}

async fn one_for(router: &Router, caller: &Caller, id: u64) -> Option<Told> {
    if let Some(record) = router.records().get(id) {
        return may_see(caller, &record).then(|| Told::of(&record));
    }
    let (store, whose) = shared(router, caller).filter(|_| is_shared(id))?;
    in_time(store.decision(id, whose)).await.flatten().and_then(Told::kept)
}

/// Records of other callers are visible to the operator and to trusted callers.
fn may_see(caller: &Caller, record: &Record) -> bool {
    caller.trust == TrustLevel::Trusted || record.caller.as_deref() == Some(&*caller.identity)
}

/// The same for records of other instances. A caller without a token has a generic identity, which belongs to a
/// different caller on another machine.
fn may_see_of_others(caller: &Caller) -> Option<Whose<'_>> {
    match caller.trust {
        TrustLevel::Trusted => Some(Whose::Everybodys),
        _ => caller.has_token().then_some(Whose::Of(&caller.identity)),
    }
}

/// The store with the decisions of all instances, and which of them a caller may see.
fn shared<'a>(router: &'a Router, caller: &'a Caller) -> Option<(&'a postgres::Store, Whose<'a>)> {
    let store = router.knowledge()?.shared_store().filter(|_| router.records().most() > 0)?;
    Some((store, may_see_of_others(caller)?))
}

async fn in_time<T>(asked: impl Future<Output = Result<T, store::Error>>) -> Option<T> {
    match timeout(PATIENCE, asked).await {
        Ok(Ok(found)) => Some(found),
        Ok(Err(error)) => {
            tracing::debug!(%error, "decisions of other instances cannot be told");
            None
        }
        Err(_) => {
            tracing::debug!("decisions of other instances are not waited for any longer");
            None
        }
    }
}

/// The newest of two lists, without duplicates.
fn merged(own: impl Iterator<Item = Told>, kept: impl Iterator<Item = Told>, most: usize) -> Vec<Told> {
    let mut told: Vec<Told> = own.chain(kept).collect();
    told.sort_by_key(|told| std::cmp::Reverse((told.at_ms, told.id)));
    told.dedup_by_key(|told| told.id);
    told.truncate(most);
    told
}

impl Told {
    fn of(record: &Record) -> Told {
        let json = serde_json::value::to_raw_value(record).expect("a record has string keys");
        Told { id: record.id, at_ms: record.at_ms, json }
    }

    /// `None` if the stored text is not JSON.
    fn kept(decision: Decision) -> Option<Told> {
        let Decision { id, at_ms, record, .. } = decision;
        Some(Told { id, at_ms, json: RawValue::from_string(record).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use corbie_mcp::Via;

    use super::*;

    fn told(id: u64, at_ms: u64) -> Told {
        Told::of(&Record { id, at_ms, ..Record::default() })
    }

    #[test]
    fn what_is_written_meanwhile_is_told_once_and_the_newest_come_first() {
        let told = merged(
            [told(7, 30), told(5, 10)].into_iter(),
            [told(8, 40), told(7, 30), told(6, 10), told(4, 9)].into_iter(),
            4,
        );
        assert_eq!(told.iter().map(|told| told.id).collect::<Vec<_>>(), [8, 7, 6, 5]);
    }

    #[test]
    fn what_is_kept_is_told_as_it_was_written() {
        let record = Record { id: 7, latency_ms: 160.910_692_999_999_98, ..Record::default() };
        let text = serde_json::to_string(&record).unwrap();
        let decision = Decision { id: 7, at_ms: 0, caller: None, record: text.clone() };
        assert_eq!(Told::kept(decision.clone()).unwrap().json.get(), text);
        assert_eq!(Told::of(&record).json.get(), text);
        assert!(Told::kept(Decision { record: "{".to_owned(), ..decision }).is_none());
    }

    #[test]
    fn of_other_instances_a_caller_sees_its_own_by_its_token_and_the_operator_all() {
        let sees = |identity: &str, trust| {
            let caller = Caller::new(Via::Http, identity, trust);
            match may_see_of_others(&caller) {
                Some(Whose::Everybodys) => "all".to_owned(),
                Some(Whose::Of(own)) => own.to_owned(),
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
