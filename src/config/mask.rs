//! Masks the secret parts of a value as a file has it, and leaves the rest visible.
//!
//! A person who approves a file must see where data goes and which variables leave the machine: the host of a URL, the
//! name of a header and of a parameter, and every `${VAR}`. Only the text of a secret is replaced.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;

use super::schema;
use super::tree::{Data, Node};

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
const WEB_SCHEMES: [&str; 4] = ["http", "https", "ws", "wss"];
/// A query parameter whose name contains one of these has a secret value.
const SECRET_PARAMETERS: [&str; 8] = ["key", "token", "secret", "pass", "pwd", "auth", "sig", "cred"];

/// The value without its secrets, on one line. A value without a schema is no setting, so all of its texts count as
/// secret.
pub(super) fn masked(value: &Node, schema: Option<&Value>) -> String {
    match masked_json(value, schema) {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

fn masked_json(value: &Node, schema: Option<&Value>) -> Value {
    let is_secret = schema.is_none_or(|schema| schema.get("writeOnly").is_some());
    match &value.data {
        Data::String(text) if is_secret => masked_text(text, Sensitivity::Secret).into(),
        Data::String(text) => masked_text(text, Sensitivity::Plain).into(),
        Data::List(items) => {
            let schema = schema.and_then(|schema| schema.get("items"));
            items.iter().map(|item| masked_json(item, schema)).collect()
        }
        Data::Map(entries) => {
            let member = |key: &str| schema.and_then(|schema| schema::member(schema, key));
            entries.iter().map(|(key, entry)| (key.clone(), masked_json(&entry.node, member(key)))).collect()
        }
        Data::Null | Data::Bool(_) | Data::Number(_) if is_secret => MASK.into(),
        Data::Null | Data::Bool(_) | Data::Number(_) => value.to_json(),
    }
}

fn masked_text(text: &str, sensitivity: Sensitivity) -> String {
    if let Some(url) = masked_url(text) {
        return url.into_owned();
    }
    match sensitivity {
        Sensitivity::Plain => text.to_owned(),
        Sensitivity::Secret => {
            let scheme = AUTHENTICATION_SCHEMES
                .iter()
                .find(|scheme| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)));
            let (scheme, secret) = text.split_at(scheme.map_or(0, |scheme| scheme.len()));
            format!("{scheme}{}", masked_secret(secret))
        }
    }
}

/// Replaces everything but references to variables: `${VAR}` stays, and of `${VAR:-default}` the name.
fn masked_secret(text: &str) -> String {
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
            Some((name, _)) => shown.push_str(&format!("${{{name}:-{MASK}}}")),
            None => shown.push_str(&format!("${{{inside}}}")),
        }
        rest = after;
    }
    mask(&mut shown, rest);
    shown
}

/// A URL with its password and the values of secret parameters masked; none where the text is no URL.
fn masked_url(text: &str) -> Option<Cow<'_, str>> {
    let url = Url::split(text)?;
    let secrets: Vec<Range<usize>> = url.password.into_iter().chain(url.secret_values).collect();
    if secrets.is_empty() {
        return Some(text.into());
    }
    let mut shown = String::new();
    let mut end = 0;
    for secret in secrets {
        shown.push_str(&text[end..secret.start]);
        shown.push_str(&masked_secret(&text[secret.clone()]));
        end = secret.end;
    }
    shown.push_str(&text[end..]);
    Some(shown.into())
}

/// The secret parts of a URL, as ranges of its text. References to variables are not expanded, so a parser of URLs would
/// refuse it.
///
/// The host must be found where the receiver finds it, or a hostile file could show one host and mean another. For the
/// web, `\` is `/`, any number of slashes begins the authority, and the last `@` in the authority ends the password. The
/// driver of PostgreSQL takes the first `@` of all.
struct Url {
    password: Option<Range<usize>>,
    secret_values: Vec<Range<usize>>,
}

impl Url {
    fn split(text: &str) -> Option<Url> {
        let (scheme, after) = text.trim_start().split_once(':')?;
        let is_web = WEB_SCHEMES.iter().any(|web| web.eq_ignore_ascii_case(scheme));
        let rest = match is_web {
            true => after.trim_start_matches(['/', '\\']),
            false => after.strip_prefix("//").filter(|_| is_scheme(scheme))?,
        };
        let start = text.len() - rest.len();
        let at_sign = match is_web {
            true => rest[..end_of(rest, &['/', '\\', '?', '#'])].rfind('@'),
            false => rest.find('@'),
        };
        let password = at_sign.and_then(|at| {
            let colon = rest[..at].find(':')?;
            Some(start + colon + 1..start + at)
        });
        let after_password = password.as_ref().map_or(start, |password| password.end);
        let query = text[after_password..].find('?').map(|query| after_password + query + 1);
        Some(Url { password, secret_values: query.map(|query| secret_values(text, query)).unwrap_or_default() })
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
}

/// The values of parameters from `start` on whose names look as if they were secret.
fn secret_values(text: &str, start: usize) -> Vec<Range<usize>> {
    let mut values = Vec::new();
    let mut at = start;
    for parameter in text[start..].split('&') {
        if let Some((name, value)) = parameter.split_once('=') {
            let name = name.to_ascii_lowercase();
            if SECRET_PARAMETERS.iter().any(|secret| name.contains(secret)) {
                let begin = at + parameter.len() - value.len();
                values.push(begin..begin + end_of(value, &['#']));
            }
        }
        at += parameter.len() + 1;
    }
    values
}

/// Where the first of these letters stands outside of a reference such as `${HOST:-example.org/v1}`.
fn end_of(text: &str, letters: &[char]) -> usize {
    let mut in_reference = false;
    for (at, letter) in text.char_indices() {
        match letter {
            '$' if text[at..].starts_with("${") => in_reference = true,
            '}' => in_reference = false,
            letter if !in_reference && letters.contains(&letter) => return at,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x46_a_url_shows_its_host_and_hides_its_password() {
        for (written, shown) in [
            ("https://evil.example/v1", "https://evil.example/v1"),
            ("https://user:hunter2@evil.example/v1", "https://user:***@evil.example/v1"),
            ("https://user:a:b@c@evil.example", "https://user:***@evil.example"),
            ("postgres://corbie:hunter2@db.example:5432/notes", "postgres://corbie:***@db.example:5432/notes"),
            ("http://u:${AWS_SECRET_ACCESS_KEY}@evil.example", "http://u:${AWS_SECRET_ACCESS_KEY}@evil.example"),
            ("http://u:x${KEY}y@evil.example", "http://u:***${KEY}***@evil.example"),
            ("http://u:${KEY:-hunter2}@evil.example", "http://u:${KEY:-***}@evil.example"),
            // A name without a password is no secret.
            ("http://user@evil.example", "http://user@evil.example"),
            // Neither a port nor a path hides a host.
            ("https://evil.example:80\\:x@good.example/", "https://evil.example:80\\:x@good.example/"),
            ("https://evil.example:80/:x@good.example/", "https://evil.example:80/:x@good.example/"),
            ("https:\\\\evil.example:80/x@good.example", "https:\\\\evil.example:80/x@good.example"),
            ("https:u:hunter2@evil.example", "https:u:***@evil.example"),
            (
                "postgres://u:p/w?d@evil.example/notes?x=@good.example",
                "postgres://u:***@evil.example/notes?x=@good.example",
            ),
        ] {
            assert_eq!(masked_text(written, Sensitivity::Plain), shown);
            assert_eq!(masked_text(written, Sensitivity::Secret), shown);
        }
    }

    #[test]
    fn x46_a_parameter_with_a_secret_name_shows_its_name_alone() {
        for (written, shown) in [
            ("https://a.example/?api_key=hunter2&page=2", "https://a.example/?api_key=***&page=2"),
            ("https://a.example/?page=2&X-Amz-Signature=1f#top", "https://a.example/?page=2&X-Amz-Signature=***#top"),
            ("https://a.example?to=${HOME}&TOKEN=${KEY}", "https://a.example?to=${HOME}&TOKEN=${KEY}"),
            ("postgres://db.example/notes?password=hunter2", "postgres://db.example/notes?password=***"),
        ] {
            assert_eq!(masked_text(written, Sensitivity::Plain), shown);
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
            ("$${A}", "***"),
            ("${open", "***"),
            ("", ""),
        ] {
            assert_eq!(masked_text(written, Sensitivity::Secret), shown, "{written}");
            assert_eq!(masked_text(written, Sensitivity::Plain), written);
        }
    }
}
