//! Server events that become notifications to clients.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use crate::client::META_SUBSCRIPTION;
use crate::message::{self, Id};

/// A change, sent to every open stream that subscribed to its kind.
#[derive(Debug, Clone)]
pub enum Event {
    ToolsChanged,
    PromptsChanged,
    ResourcesChanged,
    ResourceUpdated(Arc<str>),
    /// A task changed state; the value is the task as `tasks/get` returns it.
    TaskChanged {
        id: Arc<str>,
        /// The only caller that receives it.
        owner: Arc<str>,
        task: Arc<Value>,
    },
    /// A custom notification, such as `notifications/models/list_changed` or the progress of an asynchronous task under
    /// its id. Modern streams receive it if they subscribed with `modelsListChanged` and the like.
    Other {
        method: Arc<str>,
        params: Arc<Value>,
        /// The only caller that receives it; all callers if `None`.
        owner: Option<Arc<str>>,
    },
}

/// The subscription filter of `subscriptions/listen`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SubscriptionFilter {
    #[serde(skip_serializing_if = "is_false")]
    pub tools_list_changed: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub prompts_list_changed: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub resources_list_changed: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_subscriptions: Vec<String>,
    /// Tasks extension: ids of the tasks to watch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub task_ids: Vec<String>,
    /// Custom notifications: `modelsListChanged` subscribes to `notifications/models/list_changed`.
    #[serde(flatten, deserialize_with = "custom_subscriptions")]
    pub others: BTreeMap<String, bool>,
}

/// Ignores members that are not `true`, and keeps at most 16 with names of at most 64 bytes.
fn custom_subscriptions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, bool>, D::Error> {
    let members = BTreeMap::<String, Value>::deserialize(deserializer)?;
    let wishes = members.into_iter().filter(|(name, value)| *value == Value::Bool(true) && name.len() <= 64);
    Ok(wishes.take(16).map(|(name, _)| (name, true)).collect())
}

/// Filter member for a notification: its method without `notifications/`, in camelCase.
fn filter_member(method: &str) -> String {
    let words = method.trim_start_matches("notifications/").split(['/', '_']).enumerate();
    let word = |(place, word): (usize, &str)| match word.split_at_checked(1).filter(|_| place > 0) {
        Some((first, rest)) => format!("{}{rest}", first.to_ascii_uppercase()),
        None => word.to_owned(),
    };
    words.map(word).collect()
}

fn is_false(value: &bool) -> bool {
    !value
}

impl Event {
    fn method(&self) -> &str {
        match self {
            Event::ToolsChanged => "notifications/tools/list_changed",
            Event::PromptsChanged => "notifications/prompts/list_changed",
            Event::ResourcesChanged => "notifications/resources/list_changed",
            Event::ResourceUpdated(_) => "notifications/resources/updated",
            Event::TaskChanged { .. } => "notifications/tasks",
            Event::Other { method, .. } => method,
        }
    }

    fn params(&self) -> Map<String, Value> {
        match self {
            Event::ResourceUpdated(uri) => Map::from_iter([("uri".to_owned(), json!(uri))]),
            Event::TaskChanged { task: params, .. } | Event::Other { params, .. } => {
                params.as_object().cloned().unwrap_or_default()
            }
            _ => Map::new(),
        }
    }

    /// The notification for a legacy connection, if it concerns that connection.
    pub(crate) fn for_legacy(&self, subscribed: &HashSet<String>, caller: &str) -> Option<Vec<u8>> {
        match self {
            Event::ResourceUpdated(uri) if !subscribed.contains(&**uri) => None,
            Event::TaskChanged { .. } => None,
            Event::Other { owner: Some(owner), .. } if **owner != *caller => None,
            _ => message::encode_call(None, self.method(), &self.params()).ok(),
        }
    }

    /// The notification for a `subscriptions/listen` stream, if the filter matches.
    pub(crate) fn for_listener(&self, filter: &SubscriptionFilter, subscription: &Id, caller: &str) -> Option<Vec<u8>> {
        let wanted = match self {
            Event::ToolsChanged => filter.tools_list_changed,
            Event::PromptsChanged => filter.prompts_list_changed,
            Event::ResourcesChanged => filter.resources_list_changed,
            Event::ResourceUpdated(uri) => filter.resource_subscriptions.iter().any(|wanted| **wanted == **uri),
            Event::TaskChanged { id, owner, .. } => {
                **owner == *caller && filter.task_ids.iter().any(|wanted| **wanted == **id)
            }
            Event::Other { method, owner, .. } => {
                owner.as_ref().is_none_or(|owner| **owner == *caller)
                    && filter.others.contains_key(&filter_member(method))
            }
        };
        if !wanted {
            return None;
        }
        let mut params = self.params();
        params.insert("_meta".into(), json!({ META_SUBSCRIPTION: subscription }));
        message::encode_call(None, self.method(), &params).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p06_a_listener_hears_of_a_programs_own_news_if_it_asked_for_them() {
        let changed = Event::Other {
            method: "notifications/models/list_changed".into(),
            params: Arc::new(json!({})),
            owner: None,
        };
        let hears = |filter: Value| {
            let filter: SubscriptionFilter = serde_json::from_value(filter).expect("a filter");
            changed.for_listener(&filter, &Id::String("1".into()), "somebody").is_some()
        };
        assert!(hears(json!({ "modelsListChanged": true })));
        for silent in [json!({}), json!({ "modelsListChanged": false }), json!({ "toolsListChanged": true })] {
            assert!(!hears(silent.clone()), "{silent}");
        }
    }

    #[test]
    fn members_that_are_no_wish_are_passed_over() {
        let filter: SubscriptionFilter =
            serde_json::from_value(json!({ "taskIds": ["a"], "more": { "x": 1 }, "other": true })).expect("a filter");
        assert_eq!(filter.others.keys().collect::<Vec<_>>(), ["other"]);
        let written = serde_json::to_value(&filter).expect("JSON");
        assert_eq!(written, json!({ "taskIds": ["a"], "other": true }));
    }
}
