//! Precomputed request bytes and reply checks.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::workload::{Era, Tool};

pub(crate) const LEGACY_VERSION: &str = "2025-11-25";
pub(crate) const MODERN_VERSION: &str = "2026-07-28";

/// A `tools/call` that can be sent repeatedly with new ids.
///
/// Ids have a fixed width, so a new one overwrites the old one, and all correct replies have the same length.
#[derive(Debug, Clone)]
pub(crate) struct PreparedCall {
    pub(crate) bytes: Vec<u8>,
    /// `None` in the REST style, where a call has no id.
    id_at: Option<usize>,
    tool: Tool,
    era: Era,
}

/// First id; nine digits fit the integer type of every peer.
pub(crate) const FIRST_ID: u64 = 100_000_000;
const ID_WIDTH: usize = 9;
/// The id of a call outside the measured time.
pub(crate) const SINGLE_ID: u64 = 999_999_999;

impl PreparedCall {
    pub(crate) fn new(tool: Tool, era: Era) -> PreparedCall {
        let arguments = match tool {
            Tool::Echo { .. } | Tool::Classify { .. } => json!({ "text": tool.text() }),
            Tool::TenKb => json!({}),
        };
        let mut params = json!({ "name": tool.name(), "arguments": arguments });
        if era == Era::Modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN_VERSION,
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        if era == Era::Rest {
            return PreparedCall { bytes: params.to_string().into_bytes(), id_at: None, tool, era };
        }
        let before_id = br#"{"jsonrpc":"2.0","id":"#;
        let bytes = [before_id, FIRST_ID.to_string().as_bytes(), br#","method":"tools/call","params":"#].concat();
        let bytes = [&bytes[..], params.to_string().as_bytes(), b"}"].concat();
        PreparedCall { bytes, id_at: Some(before_id.len()), tool, era }
    }

    pub(crate) fn tool(&self) -> Tool {
        self.tool
    }

    pub(crate) fn era(&self) -> Era {
        self.era
    }

    /// The same call with the bytes that the transport needs around it.
    pub(crate) fn with_framing(mut self, before: &[u8], after: &[u8]) -> PreparedCall {
        self.id_at = self.id_at.map(|at| at + before.len());
        self.bytes = [before, &self.bytes, after].concat();
        self
    }

    pub(crate) fn set_id(&mut self, mut id: u64) {
        let Some(at) = self.id_at else { return };
        for digit in self.bytes[at..at + ID_WIDTH].iter_mut().rev() {
            *digit = b'0' + (id % 10) as u8;
            id /= 10;
        }
    }

    /// Parses the complete reply and compares it with the expected result.
    pub(crate) fn check(&self, id: u64, reply: &[u8]) -> Result<()> {
        self.compare(id, reply).with_context(|| format!("a wrong reply to `{}`: {}", self.tool.name(), preview(reply)))
    }

    fn compare(&self, id: u64, reply: &[u8]) -> Result<()> {
        let reply: Value = serde_json::from_slice(reply)?;
        let result = if self.id_at.is_some() {
            ensure!(reply["id"] == id, "its id is {}, not {id}", reply["id"]);
            &reply["result"]
        } else {
            &reply
        };
        ensure!(result["isError"] != true, "it tells of an error");
        let is_complete = self.era != Era::Modern || result["resultType"] == "complete";
        ensure!(is_complete, "it is not what 2026-07-28 asks for");
        let content = result["content"].as_array().context("it has no content")?;
        ensure!(content.len() == 1 && content[0]["type"] == "text", "its content is not one text");
        let text = content[0]["text"].as_str().context("its text is none")?;
        ensure!(self.tool.is_correct(text), "its text is not the right one");
        Ok(())
    }
}

pub(crate) fn initialize() -> Vec<u8> {
    let params = json!({
        "protocolVersion": LEGACY_VERSION,
        "capabilities": {},
        "clientInfo": { "name": "bench", "version": "1.0.0" },
    });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string().into_bytes()
}

pub(crate) fn initialized() -> Vec<u8> {
    br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_vec()
}

/// The id of a reply, found without parsing: it is near one end or the other.
pub(crate) fn id_of(reply: &[u8]) -> Result<u64> {
    const NAME: &[u8] = br#""id":"#;
    const SEARCH_WINDOW: usize = 64;
    let near_start = &reply[..reply.len().min(SEARCH_WINDOW)];
    let near_end = &reply[reply.len().saturating_sub(SEARCH_WINDOW)..];
    let found = [near_start, near_end].into_iter().find_map(|part| {
        let at = part.windows(NAME.len()).position(|window| window == NAME)?;
        let digits = part[at + NAME.len()..].iter().take_while(|byte| byte.is_ascii_digit());
        Some(digits.fold(0, |id, digit| id * 10 + u64::from(digit - b'0')))
    });
    match found {
        Some(id) => Ok(id),
        None => bail!("no id in {}", preview(reply)),
    }
}

/// The beginning of some bytes, for messages.
pub(crate) fn preview(bytes: &[u8]) -> String {
    const MAX_PREVIEW: usize = 300;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_PREVIEW)]).into_owned();
    if bytes.len() > MAX_PREVIEW { format!("{text}… ({} bytes)", bytes.len()) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO: Tool = Tool::Echo { bytes: 5 };

    #[test]
    fn a_call_is_sent_again_under_a_new_id() {
        let mut call = PreparedCall::new(HELLO, Era::Modern).with_framing(b"before ", b"\n");
        call.set_id(987_654_321);
        let body = call.bytes.strip_prefix(b"before ").and_then(|rest| rest.strip_suffix(b"\n")).expect("framed");
        let body: Value = serde_json::from_slice(body).expect("JSON");
        assert_eq!(body["id"], 987_654_321);
        assert_eq!(body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], MODERN_VERSION);
    }

    #[test]
    fn the_id_is_found_at_either_end() {
        let first = br#"{"jsonrpc":"2.0","id":123456789,"result":{"content":[]}}"#.to_vec();
        let padding = "x".repeat(500);
        let last = format!(r#"{{"result":{{"content":[{{"text":"{padding}"}}]}},"jsonrpc":"2.0","id":123456789}}"#);
        assert_eq!(id_of(&first).expect("an id"), 123_456_789);
        assert_eq!(id_of(last.as_bytes()).expect("an id"), 123_456_789);
        assert!(id_of(padding.as_bytes()).is_err());
    }

    #[test]
    fn wrong_replies_are_told_apart_from_right_ones() {
        let call = PreparedCall::new(HELLO, Era::Legacy);
        let right = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"The q"}]}}"#;
        assert!(call.check(7, right.as_bytes()).is_ok());
        assert!(call.check(8, right.as_bytes()).is_err());
        assert!(call.check(7, right.replace("The q", "The p").as_bytes()).is_err());
        assert!(call.check(7, right.replace(r#"}]}}"#, r#"}],"isError":true}}"#).as_bytes()).is_err());
        assert!(call.check(7, br#"{"jsonrpc":"2.0","id":7,"error":{"code":-32603}}"#).is_err());
        assert!(PreparedCall::new(HELLO, Era::Modern).check(7, right.as_bytes()).is_err());
    }

    #[test]
    fn in_the_rest_style_the_reply_is_the_bare_result() {
        let call = PreparedCall::new(Tool::Classify { text: "hello" }, Era::Rest);
        assert_eq!(call.bytes, br#"{"arguments":{"text":"hello"},"name":"classify_text"}"#);
        let right = r#"{"content":[{"type":"text","text":"{\"class\":4,\"confidence\":0.9}"}],"isError":false}"#;
        assert!(call.check(7, right.as_bytes()).is_ok());
        assert!(call.check(7, right.replace("class", "error").as_bytes()).is_err());
    }
}
