//! Settings that were renamed in an earlier version.
//!
//! An old name is an error that contains the new name. It is not accepted as an alias, because two keys for one setting
//! would need a precedence.

use super::diagnostic::{KeyPath, Segment};

/// Path of an old key and its new name in the same section; `*` matches any key of a map.
const KEYS: [(&str, &str); 22] = [
    ("audit.keep", "max_rotated_files"),
    ("documents.cpu", "max_cpu_time"),
    ("inference.max_waiting", "max_queued"),
    ("knowledge.keep_tasks", "task_retention"),
    ("knowledge.keep_uploads", "upload_retention"),
    ("knowledge.max_waiting_tasks", "max_queued_tasks"),
    ("providers.*.models.*.capabilities.refuses", "unsupported_parameters"),
    ("router.cache.keep", "ttl"),
    ("router.decisions", "max_decisions"),
    ("router.grounding.known_above", "answered_above"),
    ("router.grounding.known_model", "answered_model"),
    ("router.grounding.unknown_below", "unanswered_below"),
    ("router.grounding.unknown_model", "unanswered_model"),
    ("router.stay", "restricted_categories"),
    ("server.limits.ask_timeout", "client_response_timeout"),
    ("server.limits.keep_alive", "keep_alive_interval"),
    ("server.limits.max_running", "max_concurrent"),
    ("server.limits.max_running_per_caller", "max_concurrent_per_caller"),
    ("server.limits.max_wait", "max_queue_wait"),
    ("server.limits.max_waiting", "max_queued"),
    ("server.limits.session_idle", "session_idle_timeout"),
    ("trust.ask_person", "confirm_destructive"),
];

/// Path of a setting, an old value and the new one; `*` matches any key of a map or any item of a list.
const VALUES: [(&str, &str, &str); 1] =
    [("providers.*.models.*.capabilities.unsupported_parameters.*", "old_max_tokens", "max_tokens")];

/// The new name of the key `path`.
pub(super) fn key(path: &KeyPath) -> Option<&'static str> {
    KEYS.iter().find(|(old, _)| matches(old, path)).map(|(_, new)| *new)
}

/// The new name of `value`, a choice of the setting `path`.
pub(super) fn value(path: &KeyPath, value: &str) -> Option<&'static str> {
    VALUES.iter().find(|(setting, old, _)| *old == value && matches(setting, path)).map(|(_, _, new)| *new)
}

fn matches(pattern: &str, path: &KeyPath) -> bool {
    let mut patterns = pattern.split('.');
    let fits = |segment: &Segment| match (patterns.next(), segment) {
        (Some(pattern), Segment::Key(key)) => pattern == "*" || pattern == key,
        (Some(pattern), Segment::Index(_)) => pattern == "*",
        (None, _) => false,
    };
    path.0.iter().all(fits) && patterns.next().is_none()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::diagnostic::{Diagnostics, Origin};
    use super::super::spanned_value::SpannedValue;
    use super::super::validate::validate;
    use super::super::{schema, schema::schema_at};
    use super::*;

    /// The path with `name` in place of each `*`.
    fn example(pattern: &str) -> KeyPath {
        KeyPath::dotted(&pattern.replace('*', "name"))
    }

    fn mistakes(path: &KeyPath, value: &Value) -> Vec<String> {
        let mut tree = SpannedValue::nested(path, SpannedValue::from_json(value.clone(), Origin::command_line()));
        let mut findings = Diagnostics::default();
        validate(&mut tree, schema(), &mut findings);
        findings.errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn f12_every_old_key_is_an_error_that_names_the_new_key() {
        for (old, new) in KEYS {
            let path = example(old);
            let (_, parent) = path.0.split_last().unwrap();
            let renamed = KeyPath(parent.to_vec()).key(new);
            assert!(schema_at(schema(), &path.0).is_none(), "{path} is still a setting");
            assert!(schema_at(schema(), &renamed.0).is_some(), "{renamed} is not a setting");
            let expected = format!("command line: {path}: was renamed to `{renamed}`");
            assert_eq!(mistakes(&path, &json!("any")), [expected]);
        }
    }

    #[test]
    fn f12_every_old_value_is_an_error_that_names_the_new_value() {
        for (setting, old, new) in VALUES {
            let list = example(setting.strip_suffix(".*").unwrap());
            assert_eq!(mistakes(&list, &json!([new])), [""; 0]);
            let [mistake] = mistakes(&list, &json!([old])).try_into().unwrap();
            assert!(mistake.ends_with(&format!("; `{old}` was renamed to `{new}`")), "{mistake}");
        }
    }
}
