//! Masks the secret parts of a value as a file has it, and leaves the rest visible.
//!
//! A person who approves a file must see where data goes and which variables leave the machine: the host of a URL, the
//! name of a header and of a parameter, and every `${VAR}`. Only the text of a secret is replaced, and only where the parser
//! that connects finds it. A URL with references, whose host is known only once they are expanded, is shown as written.

use serde_json::Value;
use url::Url;

use super::schema;
use super::spanned_value::{SpannedValue, ValueData};

/// How much of a text is secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sensitivity {
    /// All of it, unless it is a URL.
    Secret,
    /// In a URL the password and some parameters, otherwise nothing.
    Plain,
}

const MASK: &str = "***";
/// Words at the start of a header value that name the kind of secret after them.
const AUTHENTICATION_SCHEMES: [&str; 5] = ["Bearer ", "Basic ", "Token ", "Digest ", "ApiKey "];
const POSTGRES_SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];
/// A query parameter whose name contains one of these has a secret value.
const SECRET_PARAMETERS: [&str; 8] = ["key", "token", "secret", "pass", "pwd", "auth", "sig", "cred"];
/// Text with one of these may name a host.
const URL_CHARACTERS: [char; 6] = ['@', '/', '\\', '?', '#', ':'];

/// The value without its secrets, on one line. A value without a schema is no setting, so all of its texts count as
/// secret.
pub(super) fn masked(value: &SpannedValue, schema: Option<&Value>) -> String {
    match masked_json(value, schema) {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// An environment variable of a program as a file sets it: shown where it decides which code runs, otherwise masked.
pub(super) fn masked_variable(name: &str, value: &SpannedValue) -> String {
    match &value.data {
        ValueData::String(text) if chooses_code(name) || looks_like_path(text) => masked_text(text, Sensitivity::Plain),
        _ => masked(value, None),
    }
}

/// Whether programs, libraries or modules are searched or configured by this variable.
fn chooses_code(name: &str) -> bool {
    const NAMES: [&str; 12] = [
        "PATH",
        "IFS",
        "ENV",
        "BASH_ENV",
        "SHELL",
        "HOME",
        "NODE_OPTIONS",
        "NODE_PATH",
        "RUBYOPT",
        "RUBYLIB",
        "CLASSPATH",
        "JAVA_TOOL_OPTIONS",
    ];
    const PREFIXES: [&str; 7] = ["LD_", "DYLD_", "PYTHON", "PERL5", "GIT_", "NPM_CONFIG_", "UV_"];
    let name = name.to_ascii_uppercase();
    NAMES.contains(&name.as_str()) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

fn looks_like_path(text: &str) -> bool {
    ["/", "./", "../", "~", "\\", ".\\", "..\\"].iter().any(|start| text.starts_with(start))
        || text.get(1..3) == Some(":\\")
}

fn masked_json(value: &SpannedValue, schema: Option<&Value>) -> Value {
    let is_secret = schema.is_none_or(|schema| schema.get("writeOnly").is_some());
    match &value.data {
        ValueData::String(text) if is_secret => masked_text(text, Sensitivity::Secret).into(),
        ValueData::String(text) => masked_text(text, Sensitivity::Plain).into(),
        ValueData::List(items) => {
            let schema = schema.and_then(|schema| schema.get("items"));
            items.iter().map(|item| masked_json(item, schema)).collect()
        }
        ValueData::Map(entries) => {
            let member = |key: &str| schema.and_then(|schema| schema::member(schema, key));
            entries.iter().map(|(key, entry)| (key.clone(), masked_json(&entry.node, member(key)))).collect()
        }
        ValueData::Null | ValueData::Bool(_) | ValueData::Number(_) if is_secret => MASK.into(),
        ValueData::Null | ValueData::Bool(_) | ValueData::Number(_) => value.to_json(),
    }
}

fn masked_text(text: &str, sensitivity: Sensitivity) -> String {
    if text.contains('$') {
        return match sensitivity {
            Sensitivity::Secret if !text.contains("//") && !text.contains('\\') => masked_secret(text),
            _ => text.to_owned(),
        };
    }
    match (masked_url(text), sensitivity) {
        (Some(url), _) => url,
        (None, Sensitivity::Plain) => text.to_owned(),
        (None, Sensitivity::Secret) => masked_secret(text),
    }
}

/// Replaces everything but the kind of secret and references to variables.
fn masked_secret(text: &str) -> String {
    let scheme = AUTHENTICATION_SCHEMES
        .iter()
        .find(|scheme| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)));
    let (scheme, secret) = text.split_at(scheme.map_or(0, |scheme| scheme.len()));
    format!("{scheme}{}", masked_literals(secret))
}

/// Replaces everything but references to variables: `${VAR}` stays, and of `${VAR:-default}` the name. A default that may
/// name a host stays as well.
fn masked_literals(text: &str) -> String {
    let mut shown = String::new();
    let mask = |shown: &mut String, literal: &str| {
        if !literal.is_empty() && !shown.ends_with(MASK) {
            shown.push_str(MASK);
        }
    };
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, reference) = rest.split_at(start);
        let inside = reference[2..].split_once('}').filter(|_| !before.ends_with('$'));
        let Some((inside, after)) = inside else {
            // An escape, or no reference at all.
            mask(&mut shown, before);
            mask(&mut shown, "${");
            rest = &reference[2..];
            continue;
        };
        mask(&mut shown, before);
        match inside.split_once(":-") {
            Some((name, default)) if !default.contains(URL_CHARACTERS) => {
                shown.push_str(&format!("${{{name}:-{MASK}}}"));
            }
            _ => shown.push_str(&format!("${{{inside}}}")),
        }
        rest = after;
    }
    mask(&mut shown, rest);
    shown
}

/// A URL with its password and the values of secret parameters masked; none where the text is no URL. The host is where
/// the parser that connects finds it: that of the `url` crate for the web, and for PostgreSQL after the first `@`.
fn masked_url(text: &str) -> Option<String> {
    if let Some(scheme) = POSTGRES_SCHEMES.iter().find(|scheme| text.starts_with(**scheme)) {
        let rest = &text[scheme.len()..];
        let (user, rest) = match rest.split_once('@') {
            Some((user, rest)) => (Some(user), rest),
            None => (None, rest),
        };
        let user = user.map(|user| match user.split_once(':') {
            Some((name, _)) => format!("{name}:{MASK}@"),
            None => format!("{user}@"),
        });
        let parameters = rest.split_once('?');
        let query = parameters.map(|(_, query)| format!("?{}", masked_query(query)));
        let place = parameters.map_or(rest, |(place, _)| place);
        return Some(format!("{scheme}{}{place}{}", user.unwrap_or_default(), query.unwrap_or_default()));
    }
    let mut url = Url::parse(text).ok().filter(Url::has_host)?;
    let query = url.query().map(masked_query);
    if url.password().is_none() && query.as_deref() == url.query() {
        return Some(text.to_owned());
    }
    if url.password().is_some() {
        url.set_password(Some(MASK)).ok()?;
    }
    url.set_query(query.as_deref());
    Some(url.into())
}

/// A query string without the values of parameters whose names look secret.
fn masked_query(query: &str) -> String {
    let parameters = query.split('&').map(|parameter| match parameter.split_once('=') {
        Some((name, _)) if is_secret_name(name) => format!("{name}={MASK}"),
        _ => parameter.to_owned(),
    });
    parameters.collect::<Vec<_>>().join("&")
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_PARAMETERS.iter().any(|secret| name.contains(secret))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::diagnostic::Origin;
    use super::*;

    fn plain(text: &str) -> String {
        masked_text(text, Sensitivity::Plain)
    }

    #[test]
    fn x46_a_url_shows_its_host_and_hides_its_password() {
        for (written, shown) in [
            ("https://evil.example/v1", "https://evil.example/v1"),
            ("https://user:hunter2@evil.example/v1", "https://user:***@evil.example/v1"),
            ("https://user:a:b@c@evil.example/", "https://user:***@evil.example/"),
            ("postgres://corbie:hunter2@db.example:5432/notes", "postgres://corbie:***@db.example:5432/notes"),
            // A name without a password is no secret.
            ("http://user@evil.example", "http://user@evil.example"),
            // The display has the host that the parser finds.
            ("https:\\\\u:hunter2@evil.example:80/x@good.example", "https://u:***@evil.example:80/x@good.example"),
            ("https:u:hunter2@evil.example", "https://u:***@evil.example/"),
            (
                "postgres://u:p/w?d@evil.example/notes?x=@good.example",
                "postgres://u:***@evil.example/notes?x=@good.example",
            ),
        ] {
            assert_eq!(plain(written), shown);
            assert_eq!(masked_text(written, Sensitivity::Secret), shown);
        }
    }

    /// An escape, a default and a user name with a `?` once hid the real host.
    #[test]
    fn x46_a_url_whose_host_depends_on_references_is_shown_as_written() {
        for written in [
            "http://u:${AWS_SECRET_ACCESS_KEY}@evil.example",
            "http://u:$${@evil.example/}@api.example/v1",
            "http://u:${NONE:-p@evil.example/}@api.example/v1",
            "${NONE:-postgres://evil.example/notes}",
            "\\\\${HOST}",
        ] {
            assert_eq!(plain(written), written);
            assert_eq!(masked_text(written, Sensitivity::Secret), written);
        }
        let written = "postgres://db.example?password=x@evil.example:5432/notes?sslmode=disable";
        assert_eq!(masked_text(written, Sensitivity::Secret), written);
    }

    #[test]
    fn x46_a_parameter_with_a_secret_name_shows_its_name_alone() {
        for (written, shown) in [
            ("https://a.example/?api_key=hunter2&page=2", "https://a.example/?api_key=***&page=2"),
            ("https://a.example/?page=2&X-Amz-Signature=1f#top", "https://a.example/?page=2&X-Amz-Signature=***#top"),
            ("postgres://db.example/notes?password=hunter2", "postgres://db.example/notes?password=***"),
        ] {
            assert_eq!(plain(written), shown);
        }
    }

    #[test]
    fn x46_a_header_shows_its_variables_and_hides_the_rest() {
        for (written, shown) in [
            ("hunter2", "***"),
            ("Bearer hunter2", "Bearer ***"),
            ("bearer ${AWS_SECRET_ACCESS_KEY}", "bearer ${AWS_SECRET_ACCESS_KEY}"),
            ("${A}${B}", "${A}${B}"),
            ("hunter2 ${A:-hunter3}", "***${A:-***}"),
            ("${A:-evil.example:80}", "${A:-evil.example:80}"),
            ("$${A}", "***"),
            ("${open", "***"),
            ("", ""),
        ] {
            assert_eq!(masked_text(written, Sensitivity::Secret), shown, "{written}");
            assert_eq!(plain(written), written);
        }
    }

    #[test]
    fn x46_a_variable_that_chooses_code_is_shown() {
        let shown = |name, value: &str| masked_variable(name, &SpannedValue::string(value, Origin::command_line()));
        for name in ["PATH", "LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "PYTHONPATH", "NODE_OPTIONS", "Path"] {
            assert_eq!(shown(name, "bin:hunter2"), "bin:hunter2", "{name}");
        }
        for path in ["/tmp/bin", "./bin", "../bin", "~/bin", "C:\\bin"] {
            assert_eq!(shown("TOOLS", path), path);
        }
        assert_eq!(shown("API_KEY", "hunter2"), "***");
        assert_eq!(shown("API_KEY", "${KEY}"), "${KEY}");
        assert_eq!(shown("PATH", "https://user:hunter2@evil.example/"), "https://user:***@evil.example/");
    }

    proptest! {
        #[test]
        fn x46_the_shown_url_has_the_host_of_the_written_one(text in "(http|https|ws)(:|://|:/|:\\\\)[a-c:@/?#.=&\\\\\\[\\]$%]{0,24}") {
            let host = |text: &str| Url::parse(text).ok().map(|url| (url.host_str().map(str::to_owned), url.port()));
            prop_assert_eq!(host(&plain(&text)), host(&text));
        }
    }
}
