//! Value parsers for arguments: an invalid value is a usage error, before any work starts.

use std::path::PathBuf;

use corbie_extract::Format;
use serde_json::{Map, Value};
use url::Url;

use crate::knowledge::date;

/// A share from 0 to 1.
pub(super) fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("not a number from 0 to 1, such as 0.5".into()),
    }
}

/// A date or timestamp; returned unchanged.
pub(super) fn day(text: &str) -> Result<String, String> {
    match date::parse_range(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err("not a date; use a date such as 2026-01-31 or a timestamp such as 2026-01-31T12:00:00Z".into()),
    }
}

pub(super) fn json_object(text: &str) -> Result<Map<String, Value>, String> {
    const EXAMPLE: &str = "use the form '{\"key\": \"value\"}'";
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(format!("not a JSON object; {EXAMPLE}")),
        Err(error) => Err(format!("not valid JSON: {error}; {EXAMPLE}")),
    }
}

/// A document format by its file extension.
pub(super) fn format(text: &str) -> Result<Format, String> {
    Format::from_extension(text.trim_start_matches('.'))
        .ok_or_else(|| format!("unknown format; use one of {}", Format::ALL.map(Format::as_str).join(", ")))
}

/// A path for YAML output: the extension decides how the file is read later.
pub(super) fn yaml_file(path: PathBuf) -> Result<PathBuf, &'static str> {
    let extension = path.extension().unwrap_or_default();
    match ["yaml", "yml"].iter().any(|yaml| extension.eq_ignore_ascii_case(yaml)) {
        true => Ok(path),
        false => Err("the name must end with `.yaml` or `.yml`"),
    }
}

/// URL of a server without TLS.
pub(super) fn http_url(text: &str) -> Result<Url, String> {
    const EXAMPLE: &str = "use a URL such as http://127.0.0.1:8090";
    match Url::parse(text) {
        Ok(url) if url.scheme() == "http" && url.has_host() => Ok(url),
        Ok(_) => Err(format!("only http:// is supported; {EXAMPLE}")),
        Err(error) => Err(format!("not a URL: {error}; {EXAMPLE}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_values_are_rejected() {
        assert_eq!(["0", "0.5", "1"].map(|text| share(text).is_ok()), [true; 3]);
        assert_eq!(["-0.1", "1.1", "NaN", "half", ""].map(|text| share(text).is_ok()), [false; 5]);
        assert_eq!(["2026-01-31", "2026-01-31T12:00:00Z"].map(|text| day(text).is_ok()), [true; 2]);
        assert_eq!(["yesterday", "2026-02-30", ""].map(|text| day(text).is_ok()), [false; 3]);
        assert_eq!(["{}", "[]", "{", "1"].map(|text| json_object(text).is_ok()), [true, false, false, false]);
        assert_eq!(["pdf", ".HTM", "xyz"].map(|text| format(text).is_ok()), [true, true, false]);
        assert_eq!(
            ["a.yaml", "a.YML", "a.txt", "a"].map(|text| yaml_file(text.into()).is_ok()),
            [true, true, false, false]
        );
        let urls = ["http://localhost:1", "https://localhost", "localhost:8090", "here"];
        assert_eq!(urls.map(|text| http_url(text).is_ok()), [true, false, false, false]);
    }
}
