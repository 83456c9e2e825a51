//! Search filters (K-53): translates a caller's filters into facets of the index.
//!
//! The metadata of a document are facets: each member, each element of a list, and each list as a whole. A filter names
//! facet values, and a document matches by equality. For formats and tags, any of several values matches.

use corbie_extract::Format;
use corbie_index::{Facet, Filter};
use serde_json::{Map, Value};

use super::Error;
use super::date;

/// Members of a filter that are not metadata.
const FORMAT_KEY: &str = "format";
const DATE_RANGE_KEY: &str = "date_range";
/// Metadata member whose list elements match individually.
const TAGS_KEY: &str = "tags";
/// Limits far above legitimate use.
const MAX_KEYS: usize = 64;
const MAX_VALUES: usize = 1000;

/// Parses a filter. `None` if it excludes nothing.
pub(super) fn parse(filters: &Map<String, Value>) -> Result<Option<Filter>, Error> {
    if filters.len() > MAX_KEYS {
        return Err(Error::invalid("filters", format!("`filters` has more than {MAX_KEYS} fields")));
    }
    let mut filter = Filter::default();
    for (key, wanted) in filters {
        match (key.as_str(), wanted) {
            (_, Value::Null) => {}
            (DATE_RANGE_KEY, Value::Object(range)) => parse_date_range(range, &mut filter)?,
            (DATE_RANGE_KEY, _) => {
                return Err(malformed(DATE_RANGE_KEY, "must be an object with `start`, `end` or both"));
            }
            (FORMAT_KEY, wanted) => filter.all.push((FORMAT_KEY.into(), parse_formats(wanted)?)),
            (TAGS_KEY, Value::Object(_)) => return Err(malformed(TAGS_KEY, "must be a tag, or a list of tags")),
            (TAGS_KEY, Value::Array(tags)) => filter.all.push((TAGS_KEY.into(), any_of(TAGS_KEY, tags)?)),
            (_, wanted) => filter.all.push((user_key(key), vec![facet_value(wanted)])),
        }
    }
    let is_empty = filter.all.is_empty() && filter.added_from.is_none() && filter.added_to.is_none();
    Ok((!is_empty).then_some(filter))
}

/// Facets of a document. An unknown format counts as text.
pub(super) fn facets(format: &str, metadata: &Map<String, Value>) -> Vec<Facet> {
    let format = Format::from_extension(format).unwrap_or(Format::Text);
    let mut facets = vec![Facet { key: FORMAT_KEY.into(), value: format.as_str().into() }];
    for (key, value) in metadata {
        let key = user_key(key);
        if let Value::Array(entries) = value {
            facets.extend(entries.iter().map(|entry| Facet { key: key.clone(), value: facet_value(entry) }));
        }
        facets.push(Facet { key, value: facet_value(value) });
    }
    facets
}

/// Separates a user's `format` metadata from the format of the file.
fn user_key(key: &str) -> String {
    match key {
        TAGS_KEY => TAGS_KEY.into(),
        key => format!("metadata.{key}"),
    }
}

/// Canonical text of a value: equal values have equal texts, for example 1 and 1.0.
fn facet_value(value: &Value) -> String {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(whole) if whole.fract() == 0.0 && whole.abs() < 9e15 => (whole as i64).to_string(),
            _ => number.to_string(),
        },
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by_key(|(key, _)| *key);
            let members =
                sorted.into_iter().map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), facet_value(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        Value::Array(entries) => {
            format!("[{}]", entries.iter().map(facet_value).collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}

fn parse_formats(wanted: &Value) -> Result<Vec<String>, Error> {
    let one = |value: &Value| {
        let name = value
            .as_str()
            .ok_or_else(|| malformed(FORMAT_KEY, "must be a string such as \"pdf\", or a list of strings"))?;
        let format = Format::from_extension(name.trim_start_matches('.'));
        let format = format.ok_or_else(|| {
            malformed(FORMAT_KEY, &format!("has the unknown format `{}`", super::truncate_for_error(name)))
        })?;
        Ok(format.as_str().to_owned())
    };
    match wanted {
        Value::Array(formats) if formats.is_empty() || formats.len() > MAX_VALUES => {
            Err(malformed(FORMAT_KEY, "must have at least one format, and no more than the supported ones"))
        }
        Value::Array(formats) => formats.iter().map(one).collect(),
        format => one(format).map(|format| vec![format]),
    }
}

fn any_of(key: &str, values: &[Value]) -> Result<Vec<String>, Error> {
    match values.len() {
        0 => Err(malformed(key, "is an empty list, which matches nothing; remove it")),
        more if more > MAX_VALUES => Err(malformed(key, &format!("has more than {MAX_VALUES} values"))),
        _ => Ok(values.iter().map(facet_value).collect()),
    }
}

fn parse_date_range(range: &Map<String, Value>, filter: &mut Filter) -> Result<(), Error> {
    for (key, value) in range {
        let bound = match value {
            Value::Null => continue,
            Value::String(text) => date::parse_range(text),
            _ => None,
        };
        let what = "must be a date such as `2025-01-31`, or a time such as `2025-01-31T12:00:00Z`";
        let (first, last) = bound.ok_or_else(|| malformed(&format!("{DATE_RANGE_KEY}.{key}"), what))?;
        match key.as_str() {
            "start" => filter.added_from = Some(first),
            "end" => filter.added_to = Some(last),
            _ => return Err(malformed(&format!("{DATE_RANGE_KEY}.{key}"), "is not supported; use `start` and `end`")),
        }
    }
    match (filter.added_from, filter.added_to) {
        (Some(from), Some(to)) if from > to => Err(malformed(DATE_RANGE_KEY, "has an end before its start")),
        _ => Ok(()),
    }
}

fn malformed(key: &str, what: &str) -> Error {
    Error::invalid(format!("filters.{key}"), format!("`filters.{key}` {what}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filter(value: Value) -> Result<Option<Filter>, Error> {
        parse(value.as_object().expect("an object"))
    }

    /// Whether a document with these metadata matches the filter.
    fn matches(asked: Value, metadata: Value) -> bool {
        let Some(filter) = filter(asked).expect("valid") else { return true };
        let facets = facets("pdf", metadata.as_object().expect("an object"));
        let has = |key: &String, value: &String| facets.iter().any(|facet| facet.key == *key && facet.value == *value);
        filter.all.iter().all(|(key, values)| values.iter().any(|value| has(key, value)))
    }

    #[test]
    fn k53_tags_match_any_and_everything_else_by_equality() {
        let metadata =
            json!({ "tags": ["api", "draft"], "author": "Ann", "year": 2024, "of": ["a", "b"], "x": {"b": 1, "a": 2} });
        for (asked, expected) in [
            (json!({ "tags": ["api"] }), true),
            (json!({ "tags": ["other", "draft"] }), true),
            (json!({ "tags": "draft" }), true),
            (json!({ "tags": ["other"] }), false),
            (json!({ "author": "Ann" }), true),
            (json!({ "author": "ann" }), false),
            (json!({ "year": 2024.0 }), true),
            (json!({ "year": "2024" }), false),
            (json!({ "of": ["a", "b"] }), true),
            (json!({ "of": ["b", "a"] }), false),
            (json!({ "of": "a" }), true),
            (json!({ "x": { "a": 2, "b": 1 } }), true),
            (json!({ "format": "PDF", "author": null }), true),
            (json!({ "format": ["html", "pdf"] }), true),
            (json!({ "format": "docx" }), false),
            (json!({ "nobody": "has this" }), false),
            (json!({}), true),
        ] {
            assert_eq!(matches(asked.clone(), metadata.clone()), expected, "{asked}");
        }
    }

    #[test]
    fn k53_metadata_cannot_pass_for_the_format_of_a_file() {
        let own = json!({ "format": "docx" });
        assert!(!matches(json!({ "format": "docx" }), own.clone()));
        assert!(matches(json!({ "format": "pdf" }), own));
    }

    #[test]
    fn k53_what_is_malformed_names_the_member() {
        for (asked, member) in [
            (json!({ "format": 7 }), "filters.format"),
            (json!({ "format": "xyz" }), "filters.format"),
            (json!({ "format": [] }), "filters.format"),
            (json!({ "tags": [] }), "filters.tags"),
            (json!({ "date_range": "2025" }), "filters.date_range"),
            (json!({ "date_range": { "start": 2025 } }), "filters.date_range.start"),
            (json!({ "date_range": { "start": "2025-02-30" } }), "filters.date_range.start"),
            (json!({ "date_range": { "from": "2025-01-01" } }), "filters.date_range.from"),
            (json!({ "date_range": { "start": "2025-02-01", "end": "2025-01-01" } }), "filters.date_range"),
        ] {
            match filter(asked.clone()) {
                Err(Error::InvalidParameter { parameter, .. }) => assert_eq!(parameter, member, "{asked}"),
                other => panic!("{asked}: {other:?}"),
            }
        }
    }

    #[test]
    fn k53_both_days_of_a_range_are_in_it() {
        let day = filter(json!({ "date_range": { "start": "2025-01-31", "end": "2025-01-31" } })).expect("valid");
        let day = day.expect("it leaves something out");
        assert_eq!(day.added_to.zip(day.added_from).map(|(to, from)| to - from), Some(24 * 3600 * 1000 - 1));
    }
}
