//! What a client said about itself: what it can do, what it wants logged, where progress goes.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::error::Error;
use crate::message::Id;
use crate::version::{Era, Version};

/// Capabilities as declared, kept whole: unknown ones are for extensions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClientCapabilities(pub Map<String, Value>);

/// The three things a server may ask of a client.
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

/// `_meta` of a request, with the members we act on taken out.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestMeta {
    /// The revision this request is in, if it says so: then it is modern.
    pub version: Option<String>,
    pub capabilities: Option<ClientCapabilities>,
    pub log_level: Option<LogLevel>,
    pub progress_token: Option<Id>,
    /// Everything as sent.
    pub all: Map<String, Value>,
}

pub(crate) const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";
pub(crate) const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(crate) const META_LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
pub(crate) const META_SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
pub(crate) const META_SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

impl ClientCapabilities {
    pub fn supports(&self, feature: ClientFeature) -> bool {
        let object = |name: &str| self.0.get(name).and_then(Value::as_object);
        match feature {
            // An empty `elicitation` is the older way to say that forms are supported.
            ClientFeature::Elicitation => {
                object("elicitation").is_some_and(|modes| modes.contains_key("form") || !modes.contains_key("url"))
            }
            ClientFeature::ElicitationUrl => object("elicitation").is_some_and(|modes| modes.contains_key("url")),
            ClientFeature::Sampling => object("sampling").is_some(),
            ClientFeature::Roots => object("roots").is_some(),
            ClientFeature::Tasks => object("extensions").is_some_and(|all| all.contains_key(TASKS_EXTENSION)),
        }
    }

    /// Refuses with the modern error that tells the client what to declare.
    pub fn require(&self, feature: ClientFeature) -> Result<(), Error> {
        if self.supports(feature) { Ok(()) } else { Err(feature.missing()) }
    }
}

impl ClientFeature {
    pub fn missing(self) -> Error {
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
    pub fn parse(text: &str) -> Option<LogLevel> {
        serde_json::from_value(Value::String(text.to_owned())).ok()
    }
}

impl RequestMeta {
    /// Takes `_meta` apart. Unreadable members are mistakes only in the era that defines them.
    pub(crate) fn read(all: Map<String, Value>) -> Result<RequestMeta, Error> {
        let version = match all.get(META_VERSION) {
            None => None,
            Some(Value::String(version)) => Some(version.clone()),
            Some(_) => return Err(Error::invalid_params(format!("`_meta.{META_VERSION}` must be a string"))),
        };
        let capabilities = match all.get(META_CAPABILITIES) {
            None => None,
            Some(Value::Object(members)) => Some(ClientCapabilities(members.clone())),
            Some(_) => return Err(Error::invalid_params(format!("`_meta.{META_CAPABILITIES}` must be an object"))),
        };
        let log_level = match all.get(META_LOG_LEVEL) {
            None => None,
            Some(level) => Some(level.as_str().and_then(LogLevel::parse).ok_or_else(|| {
                Error::invalid_params(format!(
                    "`_meta.{META_LOG_LEVEL}` is {level}; use debug, info, notice, warning, error, critical, alert or emergency"
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
        Ok(RequestMeta { version, capabilities, log_level, progress_token, all })
    }

    /// The era this request claims, right or wrong.
    pub(crate) fn era(&self) -> Era {
        if self.version.is_some() { Era::Modern } else { Era::Legacy }
    }

    /// The era this request says it is in, with what that era requires checked.
    pub(crate) fn modern(&self) -> Result<Option<(Version, &ClientCapabilities)>, Error> {
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
