//! The two message types of docs/spec as values: a tool call and its reply, validated on parsing (M-02, M-03, M-06).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::Error;
use crate::message::Id;
use crate::outcome::CallResult;

/// `MCPToolCall`: a `tools/call` request.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    pub id: Id,
    pub name: String,
    pub arguments: Map<String, Value>,
    pub meta: Option<Map<String, Value>>,
}

/// `MCPToolResult`: the response.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolReply {
    pub id: Id,
    pub result: CallResult,
}

#[derive(Serialize, Deserialize)]
struct CallOnTheWire {
    jsonrpc: String,
    method: String,
    id: Id,
    params: CallParams,
}

#[derive(Serialize, Deserialize)]
struct CallParams {
    name: String,
    arguments: Map<String, Value>,
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    meta: Option<Map<String, Value>>,
}

#[derive(Serialize, Deserialize)]
struct ReplyOnTheWire {
    jsonrpc: String,
    id: Id,
    result: ReplyResult,
}

/// `isError` is required: a reader must not have to guess whether a call failed.
#[derive(Serialize, Deserialize)]
struct ReplyResult {
    content: Vec<crate::content::ContentBlock>,
    #[serde(rename = "isError")]
    is_error: bool,
    #[serde(rename = "structuredContent", default, skip_serializing_if = "Option::is_none")]
    structured: Option<Value>,
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    meta: Option<Map<String, Value>>,
}

impl ToolCall {
    pub fn from_json(text: &str) -> Result<ToolCall, Error> {
        let wire: CallOnTheWire = read(text)?;
        check("jsonrpc", &wire.jsonrpc, "2.0")?;
        check("method", &wire.method, "tools/call")?;
        let CallParams { name, arguments, meta } = wire.params;
        Ok(ToolCall { id: wire.id, name, arguments, meta })
    }

    pub fn to_json(&self) -> String {
        let ToolCall { name, arguments, meta, .. } = self.clone();
        let params = CallParams { name, arguments, meta };
        let wire = CallOnTheWire { jsonrpc: "2.0".into(), method: "tools/call".into(), id: self.id.clone(), params };
        serde_json::to_string(&wire).expect("a call has string keys and JSON values only")
    }
}

impl ToolReply {
    pub fn from_json(text: &str) -> Result<ToolReply, Error> {
        let ReplyOnTheWire { jsonrpc, id, result } = read(text)?;
        check("jsonrpc", &jsonrpc, "2.0")?;
        let ReplyResult { content, is_error, structured, meta } = result;
        Ok(ToolReply { id, result: CallResult { content, structured, is_error, meta } })
    }

    pub fn to_json(&self) -> String {
        let CallResult { content, structured, is_error, meta } = self.result.clone();
        let result = ReplyResult { content, is_error, structured, meta };
        let wire = ReplyOnTheWire { jsonrpc: "2.0".into(), id: self.id.clone(), result };
        serde_json::to_string(&wire).expect("a reply has string keys and JSON values only")
    }
}

fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| Error::Validation(format!("not a valid message: {error}")))
}

fn check(member: &str, found: &str, wanted: &str) -> Result<(), Error> {
    if found == wanted {
        return Ok(());
    }
    Err(Error::Validation(format!("`{member}` is `{found}`; it must be `{wanted}`")))
}
