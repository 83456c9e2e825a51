//! Client-provided request metadata: capabilities, log level, progress token, trace context.

use std::sync::{Arc, LazyLock, OnceLock};

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::error::Error;
use crate::json_scan;
use crate::message::{Id, Params};
use crate::progress::ProgressReporter;
use crate::trace::TraceContext;
use crate::version::{Era, Version};

/// Declared capabilities, unmodified: extensions may read unknown ones.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClientCapabilities(pub Map<String, Value>);

/// Optional client features that a server may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClientFeature {
    Elicitation,
    ElicitationUrl,
    Sampling,
    Roots,
    Tasks,
}

/// Syslog severities, least severe first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

/// `_meta` of a request, with the members we use already parsed.
#[derive(Debug, Default)]
pub(crate) struct RequestMeta {
    /// The protocol version the request declares; present only in modern requests.
    pub version: Option<String>,
    pub capabilities: Option<Arc<ClientCapabilities>>,
    pub log_level: Option<LogLevel>,
    pub progress_token: Option<Id>,
    /// The trace context of this message; takes precedence over the HTTP headers.
    pub trace: Option<TraceContext>,
    /// Last progress reported under that token, during the call and after it.
    pub progress: ProgressReporter,
    /// Whether the request history leaves this request out; metrics and audit log have it.
    pub is_excluded_from_history: bool,
    /// The unparsed text; few handlers use it.
    text: Box<str>,
    all: OnceLock<Map<String, Value>>,
}

/// Most modern clients declare no capabilities with each request.
static NO_CAPABILITIES: LazyLock<Arc<ClientCapabilities>> = LazyLock::new(Arc::default);

pub(crate) const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";
pub(crate) const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(crate) const META_LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
pub(crate) const META_SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
const META_TRACEPARENT: &str = "traceparent";
const META_TRACESTATE: &str = "tracestate";
pub(crate) const META_SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
/// Set to `true` by clients that show the request history, which would otherwise show their own polling.
pub(crate) const META_EXCLUDE_FROM_HISTORY: &str = "corbie/excludeFromHistory";

impl ClientCapabilities {
    pub(crate) fn none() -> Arc<ClientCapabilities> {
        NO_CAPABILITIES.clone()
    }

    pub fn supports(&self, feature: ClientFeature) -> bool {
        let object = |name: &str| self.0.get(name).and_then(Value::as_object);
        match feature {
            // An empty `elicitation` is the older form of declaring support for forms.
            ClientFeature::Elicitation => {
                object("elicitation").is_some_and(|modes| modes.contains_key("form") || !modes.contains_key("url"))
            }
            ClientFeature::ElicitationUrl => object("elicitation").is_some_and(|modes| modes.contains_key("url")),
            ClientFeature::Sampling => object("sampling").is_some(),
            ClientFeature::Roots => object("roots").is_some(),
            ClientFeature::Tasks => object("extensions").is_some_and(|all| all.contains_key(TASKS_EXTENSION)),
        }
    }

    /// Capabilities that declare these features without further details.
    pub(crate) fn from_features(features: impl IntoIterator<Item = ClientFeature>) -> ClientCapabilities {
        let mut all = Map::new();
        for feature in features {
            let (name, member) = match feature {
                ClientFeature::Elicitation => ("elicitation", Some("form")),
                ClientFeature::ElicitationUrl => ("elicitation", Some("url")),
                ClientFeature::Sampling => ("sampling", None),
                ClientFeature::Roots => ("roots", None),
                ClientFeature::Tasks => ("extensions", Some(TASKS_EXTENSION)),
            };
            let members = all.entry(name).or_insert_with(|| json!({}));
            if let Some(member) = member {
                members[member] = json!({});
            }
        }
        ClientCapabilities(all)
    }

    /// Fails with the modern error that names the capability to declare.
    pub fn require(&self, feature: ClientFeature) -> Result<(), Error> {
        if self.supports(feature) { Ok(()) } else { Err(feature.missing_error()) }
    }
}

impl ClientFeature {
    /// Append new features at the end: session ids encode them by index.
    pub(crate) const ALL: [ClientFeature; 5] = [
        ClientFeature::Elicitation,
        ClientFeature::ElicitationUrl,
        ClientFeature::Sampling,
        ClientFeature::Roots,
        ClientFeature::Tasks,
    ];

    pub fn missing_error(self) -> Error {
        let (name, capabilities) = match self {
            ClientFeature::Elicitation => ("elicitation", json!({ "elicitation": {} })),
            ClientFeature::ElicitationUrl => ("elicitation in `url` mode", json!({ "elicitation": { "url": {} } })),
            ClientFeature::Sampling => ("sampling", json!({ "sampling": {} })),
            ClientFeature::Roots => ("roots", json!({ "roots": {} })),
            ClientFeature::Tasks => ("the tasks extension", json!({ "extensions": { TASKS_EXTENSION: {} } })),
        };
        Error::MissingClientCapability { required: name, capabilities: Box::new(capabilities) }
    }
}

impl LogLevel {
    /// Indexed by severity number.
    pub(crate) const ALL: [LogLevel; 8] = [
        LogLevel::Debug,
        LogLevel::Info,
        LogLevel::Notice,
        LogLevel::Warning,
        LogLevel::Error,
        LogLevel::Critical,
        LogLevel::Alert,
        LogLevel::Emergency,
    ];

    pub fn parse(text: &str) -> Option<LogLevel> {
        serde_json::from_value(Value::String(text.to_owned())).ok()
    }
}

impl RequestMeta {
    /// Parses `_meta` from a request's params.
    pub(crate) fn parse(params: &Params) -> Result<RequestMeta, Error> {
        #[derive(Deserialize)]
        struct MetaOnly {
            #[serde(rename = "_meta")]
            meta: Option<Map<String, Value>>,
        }
        match params.pick(["_meta"]) {
            Some([None]) => Ok(RequestMeta::default()),
            Some([Some(meta)]) if let Some(read) = RequestMeta::parse_fast(meta) => Ok(read),
            _ => RequestMeta::from_members(params.parse::<MetaOnly>()?.meta.unwrap_or_default()),
        }
    }

    /// Fast path of [`RequestMeta::from_members`] for the usual members; `None` for anything else. Building a full tree of
    /// `_meta` to read three members took a fifth of a modern call.
    fn parse_fast(meta: &str) -> Option<RequestMeta> {
        let names = [
            META_VERSION,
            META_CAPABILITIES,
            META_LOG_LEVEL,
            "progressToken",
            META_TRACEPARENT,
            META_TRACESTATE,
            META_EXCLUDE_FROM_HISTORY,
        ];
        let [version, capabilities, log_level, progress_token, parent, state, excluded] = json_scan::pick(meta, names)?;
        let version = match version {
            None => None,
            Some(text) => Some(json_scan::decode_string(text)?.into_owned()),
        };
        let capabilities = match capabilities {
            None => None,
            Some("{}") => Some(ClientCapabilities::none()),
            Some(members) => Some(Arc::new(serde_json::from_str(members).ok()?)),
        };
        let log_level = match log_level {
            None => None,
            Some(level) => Some(LogLevel::parse(&json_scan::decode_string(level)?)?),
        };
        let progress_token = match progress_token {
            None => None,
            Some(token) => Some(serde_json::from_str(token).ok()?),
        };
        let state = state.and_then(json_scan::decode_string);
        let trace =
            parent.and_then(json_scan::decode_string).and_then(|parent| TraceContext::parse(&parent, state.as_deref()));
        // Copied: a task may keep it for its whole lifetime, and it must not keep a large body alive.
        let (text, all, progress) = (meta.into(), OnceLock::new(), ProgressReporter::default());
        let is_excluded_from_history = excluded == Some("true");
        Some(RequestMeta {
            version,
            capabilities,
            log_level,
            progress_token,
            trace,
            progress,
            is_excluded_from_history,
            text,
            all,
        })
    }

    /// All members as sent.
    pub(crate) fn all(&self) -> &Map<String, Value> {
        self.all.get_or_init(|| {
            // Parse member by member, so that a member that serde_json cannot represent (JSON numbers are unbounded)
            // does not lose the rest.
            let members: IndexMap<String, &RawValue> = serde_json::from_str(&self.text).unwrap_or_default();
            let read = |(name, raw): (String, &RawValue)| Some((name, serde_json::from_str(raw.get()).ok()?));
            members.into_iter().filter_map(read).collect()
        })
    }

    /// Parses all members. A malformed member is an error only in the era that defines it.
    fn from_members(all: Map<String, Value>) -> Result<RequestMeta, Error> {
        let version = match all.get(META_VERSION) {
            None => None,
            Some(Value::String(version)) => Some(version.clone()),
            Some(_) => return Err(Error::invalid_params(format!("`_meta.{META_VERSION}` must be a string"))),
        };
        let capabilities = match all.get(META_CAPABILITIES) {
            None => None,
            Some(Value::Object(members)) => Some(Arc::new(ClientCapabilities(members.clone()))),
            Some(_) => return Err(Error::invalid_params(format!("`_meta.{META_CAPABILITIES}` must be an object"))),
        };
        let log_level = match all.get(META_LOG_LEVEL) {
            None => None,
            Some(level) => Some(level.as_str().and_then(LogLevel::parse).ok_or_else(|| {
                Error::invalid_params(format!(
                    "invalid `_meta.{META_LOG_LEVEL}` {level}; use debug, info, notice, warning, error, critical, \
                     alert or emergency"
                ))
            })?),
        };
        let progress_token = match all.get("progressToken") {
            None | Some(Value::Null) => None,
            Some(token) => Some(
                serde_json::from_value(token.clone())
                    .map_err(|_| Error::invalid_params("`_meta.progressToken` must be a string or an integer"))?,
            ),
        };
        let text_of = |name: &str| all.get(name).and_then(Value::as_str);
        let trace = text_of(META_TRACEPARENT).and_then(|parent| TraceContext::parse(parent, text_of(META_TRACESTATE)));
        let is_excluded_from_history = all.get(META_EXCLUDE_FROM_HISTORY) == Some(&Value::Bool(true));
        let (text, all, progress) = (Box::default(), OnceLock::from(all), ProgressReporter::default());
        Ok(RequestMeta {
            version,
            capabilities,
            log_level,
            progress_token,
            trace,
            progress,
            is_excluded_from_history,
            text,
            all,
        })
    }

    /// The era this request declares, unvalidated.
    pub(crate) fn era(&self) -> Era {
        if self.version.is_some() { Era::Modern } else { Era::Legacy }
    }

    /// The declared modern version and capabilities, validated; `None` for a legacy request.
    pub(crate) fn modern(&self) -> Result<Option<(Version, &Arc<ClientCapabilities>)>, Error> {
        let Some(text) = &self.version else { return Ok(None) };
        let Some(capabilities) = &self.capabilities else {
            return Err(Error::invalid_params(format!("`_meta.{META_CAPABILITIES}` is missing")));
        };
        match Version::parse(text) {
            Some(version) if version.era() == Era::Modern => Ok(Some((version, capabilities))),
            _ => Err(Error::UnsupportedVersion { requested: text.clone() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn member() -> impl Strategy<Value = (&'static str, Value)> {
        let value = prop_oneof![
            Just(json!({})),
            Just(json!({ "elicitation": { "form": {} } })),
            Just(json!("2026-07-28")),
            Just(json!("info")),
            Just(json!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")),
            Just(json!("vendor=1")),
            Just(json!("wörd\n")),
            Just(json!(7)),
            Just(json!(null)),
            Just(json!([1])),
            Just(json!(true)),
        ];
        let name = prop::sample::select(vec![
            META_VERSION,
            META_CAPABILITIES,
            META_LOG_LEVEL,
            "progressToken",
            META_TRACEPARENT,
            META_TRACESTATE,
            META_EXCLUDE_FROM_HISTORY,
            "com.example/own",
        ]);
        (name, value)
    }

    proptest! {
        #[test]
        fn meta_read_quickly_is_what_the_plain_way_reads(members in prop::collection::vec(member(), 0..6)) {
            let all: Map<String, Value> = members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            let params = Params::from_value(&json!({ "name": "echo", "_meta": all }));
            let (quick, plain) = (RequestMeta::parse(&params), RequestMeta::from_members(all.clone()));
            match (quick, plain) {
                (Ok(quick), Ok(plain)) => {
                    prop_assert_eq!(&quick.version, &plain.version);
                    prop_assert_eq!(&quick.capabilities, &plain.capabilities);
                    prop_assert_eq!(quick.log_level, plain.log_level);
                    prop_assert_eq!(&quick.progress_token, &plain.progress_token);
                    prop_assert_eq!(&quick.trace, &plain.trace);
                    prop_assert_eq!(quick.all(), &all);
                }
                (Err(quick), Err(plain)) => prop_assert_eq!(quick.to_string(), plain.to_string()),
                (quick, plain) => prop_assert!(false, "{quick:?} is not {plain:?}"),
            }
        }
    }
}
