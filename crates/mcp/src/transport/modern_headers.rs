//! Validation of modern request headers against the body; a mismatch is rejected (T-16).
//!
//! A gateway in front of us may route or meter by these headers, so a request with headers that differ from its body
//! must not be served.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use serde::Deserialize;
use serde_json::Value;

use crate::client::{META_CAPABILITIES, META_VERSION, RequestMeta};
use crate::error::Error;
use crate::json_scan;
use crate::message::Request;
use crate::registry::Registry;

pub(crate) const VERSION_HEADER: &str = "mcp-protocol-version";
const METHOD_HEADER: &str = "mcp-method";
const NAME_HEADER: &str = "mcp-name";

/// Checks in the order of the most specific error: `_meta`, version, method, name.
pub(crate) fn check(headers: &HeaderMap, request: &Request, meta: &RequestMeta) -> Result<(), Error> {
    let Some(version) = &meta.version else {
        return Err(Error::invalid_params(format!("`params._meta` requires `{META_VERSION}`")));
    };
    if meta.capabilities.is_none() {
        return Err(Error::invalid_params(format!("`params._meta` requires `{META_CAPABILITIES}`")));
    }
    require_match("MCP-Protocol-Version", header_text(headers, VERSION_HEADER)?.as_deref(), version)?;
    meta.modern()?;
    require_match("Mcp-Method", header_text(headers, METHOD_HEADER)?.as_deref(), &request.method)?;
    match body_name(request)? {
        Some(name) => require_match("Mcp-Name", decoded_header(headers, NAME_HEADER)?.as_deref(), &name),
        None => Ok(()),
    }
}

/// Checks `Mcp-Param-*` against the arguments that the tool's schema marks as mirrored.
pub(crate) fn check_parameters(headers: &HeaderMap, request: &Request, registry: &Registry) -> Result<(), Error> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(default)]
        arguments: Value,
    }
    if &*request.method != "tools/call" {
        return Ok(());
    }
    let Ok(Some(name)) = body_name(request) else { return Ok(()) };
    let Ok(tool) = registry.find(&name) else { return Ok(()) };
    if tool.input_schema().mirrored_parameters().is_empty() {
        return Ok(());
    }
    let Ok(Params { arguments }) = request.params.parse() else { return Ok(()) };
    for parameter in tool.input_schema().mirrored_parameters() {
        let header = format!("mcp-param-{}", parameter.header.to_ascii_lowercase());
        let shown = format!("Mcp-Param-{}", parameter.header);
        let value = parameter.path.iter().try_fold(&arguments, |value, step| value.get(step));
        let sent = decoded_header(headers, &header)?;
        match (value, sent) {
            (None | Some(Value::Null), None) => {}
            (None | Some(Value::Null), Some(_)) => {
                return Err(Error::HeaderMismatch(format!(
                    "Header mismatch: {shown} is present but the argument is not"
                )));
            }
            (Some(value), sent) => require_value_match(&shown, sent.as_deref(), value)?,
        }
    }
    Ok(())
}

/// The body member for a method's `Mcp-Name`. Only the member the method uses is parsed; if unreadable, the request is
/// rejected.
fn body_name(request: &Request) -> Result<Option<Cow<'_, str>>, Error> {
    #[derive(Deserialize)]
    struct Name {
        name: String,
    }
    #[derive(Deserialize)]
    struct Uri {
        uri: String,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct TaskId {
        task_id: String,
    }
    let member = match &*request.method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return Ok(None),
    };
    if let Some([Some(text)]) = request.params.pick([member])
        && let Some(name) = json_scan::decode_string(text)
    {
        return Ok(Some(name));
    }
    // It is missing, not a string, or duplicated: the parser reports which.
    Ok(Some(match member {
        "name" => request.params.parse::<Name>()?.name.into(),
        "uri" => request.params.parse::<Uri>()?.uri.into(),
        _ => request.params.parse::<TaskId>()?.task_id.into(),
    }))
}

fn require_match(header: &str, sent: Option<&str>, body: &str) -> Result<(), Error> {
    match sent {
        Some(sent) if sent == body => Ok(()),
        Some(sent) => Err(Error::HeaderMismatch(format!(
            "Header mismatch: {header} header value '{}' does not match body value '{}'",
            crate::dispatch::truncate_owned(sent),
            crate::dispatch::truncate_owned(body)
        ))),
        None => Err(Error::HeaderMismatch(format!("Header mismatch: the {header} header is missing"))),
    }
}

/// Numbers are compared by value: `42.0` equals `42`.
fn require_value_match(header: &str, sent: Option<&str>, value: &Value) -> Result<(), Error> {
    let body = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if let (Some(sent), Some(number)) = (sent, value.as_f64())
        && sent.parse() == Ok(number)
    {
        return Ok(());
    }
    require_match(header, sent, &body)
}

/// A header's text without surrounding whitespace.
fn header_text(headers: &HeaderMap, name: &str) -> Result<Option<String>, Error> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    // A gateway may use the last of several values where we use the first.
    if values.next().is_some() {
        return Err(Error::HeaderMismatch(format!("Header mismatch: {name} is sent more than once")));
    }
    match first {
        None => Ok(None),
        Some(value) => match value.to_str() {
            Ok(text) => Ok(Some(text.trim_matches([' ', '\t']).to_owned())),
            Err(_) => Err(Error::HeaderMismatch(format!(
                "Header mismatch: {name} contains characters that are not allowed in \
                    a header"
            ))),
        },
    }
}

/// A header's text, decoded from `=?base64?…?=` if present.
fn decoded_header(headers: &HeaderMap, name: &str) -> Result<Option<String>, Error> {
    let Some(text) = header_text(headers, name)? else { return Ok(None) };
    let Some(inner) = text.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) else {
        return Ok(Some(text));
    };
    STANDARD
        .decode(inner)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .map(Some)
        .ok_or_else(|| Error::HeaderMismatch(format!("Header mismatch: {name} is not valid Base64 of UTF-8 text")))
}
