//! JSON Schema of the configuration, generated from the types and used for validation.

use std::sync::LazyLock;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use serde_json::Value;

use super::diagnostic::Segment;
use super::{Config, address, duration, network, oauth, secret, size, socket_mode};

/// A custom `format` with its check and its description. It has no standard name, because editors validate standard
/// formats.
pub(super) struct SchemaFormat {
    pub(super) name: &'static str,
    pub(super) is_valid: fn(&str) -> bool,
    pub(super) expected: &'static str,
}

/// The checks use the parsers of the types, so that schema and serde cannot disagree.
pub(super) const FORMATS: [SchemaFormat; 12] = [
    SchemaFormat {
        name: "non-negative-duration",
        is_valid: |text| text.parse::<duration::ConfigDuration>().is_ok(),
        expected: "a duration such as `2s`, `5m` or `100ms`, or a number of seconds",
    },
    SchemaFormat {
        name: "timeout",
        is_valid: |text| text.parse::<duration::Timeout>().is_ok(),
        expected: "a duration greater than zero such as `2s`, `5m` or `100ms`, or a number of seconds",
    },
    SchemaFormat {
        name: "byte-size",
        is_valid: |text| text.parse::<size::ByteSize>().is_ok(),
        expected: "a size such as `16KiB` or `4MiB`, up to `1GiB`, or a number of bytes",
    },
    SchemaFormat {
        name: "listen",
        is_valid: |text| text.parse::<address::Listen>().is_ok(),
        expected: "`host:port`, such as `127.0.0.1:8090` or `[::1]:8090`, or a socket such as `unix:/run/corbie/corbie.sock`",
    },
    SchemaFormat {
        name: "socket-mode",
        is_valid: |text| text.parse::<socket_mode::SocketMode>().is_ok(),
        expected: "permissions in octal digits such as `0660`",
    },
    SchemaFormat {
        name: "origin",
        is_valid: |text| text.parse::<address::WebOrigin>().is_ok(),
        expected: "an origin such as `https://example.org`, without a path and without `*`",
    },
    SchemaFormat {
        name: "host",
        is_valid: |text| text.parse::<address::HostName>().is_ok(),
        expected: "a host name such as `example.org` or `example.org:8090`, without `*`",
    },
    SchemaFormat {
        name: "http-url",
        is_valid: |text| text.parse::<address::HttpUrl>().is_ok(),
        expected: "a URL such as `https://api.example/v1`",
    },
    SchemaFormat {
        name: "address-block",
        is_valid: |text| text.parse::<network::AddressBlock>().is_ok(),
        expected: "an address such as `169.254.10.1` or a network such as `169.254.10.0/24`",
    },
    SchemaFormat {
        name: "server-identifier",
        is_valid: |text| text.parse::<oauth::ServerIdentifier>().is_ok(),
        expected: "a URL without credentials, query and fragment, such as `https://login.example.org`",
    },
    SchemaFormat {
        name: "token",
        is_valid: secret::is_token,
        expected: "one or more visible ASCII characters without spaces",
    },
    SchemaFormat {
        name: "header-value",
        is_valid: secret::is_header_value,
        expected: "one line of visible ASCII characters without leading or trailing spaces",
    },
];

/// The published schema of the whole configuration, without references.
pub fn schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> = LazyLock::new(derive::<Config>);
    &SCHEMA
}

/// The schema of a file format, without references.
pub fn derive<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    RecursiveTransform(simplify).transform(&mut schema);
    schema.to_value()
}

/// Removes `null`, because a key without a value counts as missing, and the defaults of sections, because they repeat
/// those of their keys.
fn simplify(schema: &mut schemars::Schema) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    if object.get("default").is_some_and(|default| default.is_null() || default.is_object()) {
        object.remove("default");
    }
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
        if let [Value::Object(only)] = choices.as_mut_slice() {
            let mut only = std::mem::take(only);
            object.remove("anyOf");
            // Keywords of the key take precedence over those of its type.
            only.retain(|key, _| !object.contains_key(key));
            object.extend(only);
        }
    }
}

/// The schema of the value at `path`.
pub(super) fn schema_at<'a>(schema: &'a Value, path: &[Segment]) -> Option<&'a Value> {
    path.iter().try_fold(schema, |schema, segment| match segment {
        Segment::Key(key) => member(schema, key),
        Segment::Index(_) => schema.get("items"),
    })
}

/// The schema of one key of a map.
pub(super) fn member<'a>(schema: &'a Value, key: &str) -> Option<&'a Value> {
    let property = schema.get("properties").and_then(|properties| properties.get(key));
    property.or_else(|| schema.get("additionalProperties").filter(|others| others.is_object()))
}

/// Whether a value of this JSON type is allowed.
pub(super) fn allows(schema: &Value, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(only)) => only == kind,
        Some(Value::Array(kinds)) => kinds.iter().any(|allowed| allowed == kind),
        _ => false,
    }
}

/// The values of an enumeration.
pub(super) fn choices(schema: &Value) -> Vec<&str> {
    let list = |key: &str| schema.get(key).and_then(Value::as_array).into_iter().flatten();
    let described = list("oneOf").flat_map(choices);
    let one = schema.get("const").and_then(Value::as_str);
    list("enum").filter_map(Value::as_str).chain(described).chain(one).collect()
}
