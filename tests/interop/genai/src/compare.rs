//! Compares bodies, and finds accepted differences that are unnecessary.

use serde_json::{Value, json};

use crate::accepted_differences::{ACCEPTED_DIFFERENCES, BodyChange};

/// A golden chat, our request, and genai's.
pub(crate) struct Case {
    /// Such as `openai/plain`.
    pub(crate) label: String,
    pub(crate) chat: Value,
    pub(crate) ours: Value,
    pub(crate) theirs: Value,
}

impl Case {
    /// Differences that are not accepted.
    pub(crate) fn unaccepted_differences(&self) -> Option<String> {
        let mut found = Vec::new();
        list_differences(&self.ours, &self.theirs_after_changes(None), "", &mut found);
        (!found.is_empty()).then(|| found.join("; "))
    }

    /// Genai's body after all accepted changes but one.
    fn theirs_after_changes(&self, without: Option<&BodyChange>) -> Value {
        let mut body = self.theirs.clone();
        let accepted = ACCEPTED_DIFFERENCES.iter().filter(|accepted| accepted.names().any(|name| self.is_called(name)));
        for change in accepted.flat_map(|accepted| accepted.changes) {
            if without.is_none_or(|without| !std::ptr::eq(without, change)) {
                apply(change, &self.chat, &mut body);
            }
        }
        body
    }

    /// `openai/plain` is that case, `openai/` every case of that provider.
    fn is_called(&self, name: &str) -> bool {
        self.label == name || (name.ends_with('/') && self.label.starts_with(name))
    }
}

/// Accepted differences, each with a name of cases that also agree without one of its changes.
pub(crate) fn unneeded_differences(cases: &[Case]) -> Vec<(&'static str, &'static str)> {
    let mut found = Vec::new();
    for accepted in ACCEPTED_DIFFERENCES {
        for change in accepted.changes {
            let needs = |case: &Case| case.theirs_after_changes(Some(change)) != case.theirs_after_changes(None);
            let idle = accepted.names().filter(|name| !cases.iter().any(|case| case.is_called(name) && needs(case)));
            found.extend(idle.map(|name| (accepted.why, name)));
        }
    }
    found
}

fn apply(change: &BodyChange, chat: &Value, body: &mut Value) {
    match change {
        BodyChange::At(place, theirs, ours) => {
            let path: Vec<&str> = place.split('/').skip(1).collect();
            let value = |text: &str| (!text.is_empty()).then(|| serde_json::from_str(text).expect("valid JSON"));
            swap(body, &path, value(theirs).as_ref(), value(ours).as_ref());
        }
        BodyChange::Shape(reshape) => reshape(chat, body),
    }
}

/// Lists the differences, path by path.
fn list_differences(ours: &Value, theirs: &Value, place: &str, found: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            let more = theirs.keys().filter(|name| !ours.contains_key(*name));
            for name in ours.keys().chain(more) {
                match (ours.get(name), theirs.get(name)) {
                    (Some(ours), Some(theirs)) => list_differences(ours, theirs, &format!("{place}/{name}"), found),
                    (Some(ours), None) => found.push(format!("{place}/{name} is {ours}, with genai missing")),
                    (None, theirs) => found.push(format!("{place}/{name} is missing, with genai {}", json!(theirs))),
                }
            }
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            for (index, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
                list_differences(ours, theirs, &format!("{place}/{index}"), found);
            }
        }
        (ours, theirs) if ours == theirs => {}
        (ours, theirs) => found.push(format!("{place} is {ours}, with genai {theirs}")),
    }
}

/// Replaces genai's value by ours at every match of the path. In a list, ours is inserted before the existing items.
fn swap(value: &mut Value, path: &[&str], theirs: Option<&Value>, ours: Option<&Value>) {
    match (path, value) {
        (["*", rest @ ..], Value::Array(items)) => items.iter_mut().for_each(|item| swap(item, rest, theirs, ours)),
        ([name], Value::Object(members)) if members.get(*name) == theirs => {
            match ours {
                Some(ours) => members.insert((*name).to_owned(), ours.clone()),
                None => members.shift_remove(*name),
            };
        }
        ([index], Value::Array(items)) => match (index.parse().unwrap_or(usize::MAX), theirs, ours) {
            (index, None, Some(ours)) if index <= items.len() => items.insert(index, ours.clone()),
            (index, Some(theirs), None) if items.get(index) == Some(theirs) => drop(items.remove(index)),
            _ => {}
        },
        ([step, rest @ ..], value) if !rest.is_empty() => {
            if let Some(inner) = value.pointer_mut(&format!("/{step}")) {
                swap(inner, rest, theirs, ours);
            }
        }
        _ => {}
    }
}
