//! Parses a tool result: the JSON object in it, or a tool error. Pure.

use serde_json::{Map, Value};

use super::Error;

/// The JSON object in a tool result.
pub(super) type ToolResult = Map<String, Value>;

/// Most servers return JSON in the first text block, some only as structured content. An error is either flagged with
/// `isError` or given as a member `error`.
pub(super) fn parse(tool: &str, result: &Value) -> Result<ToolResult, Error> {
    let failed = || Error::Tool { tool: tool.into() };
    if result.get("isError").and_then(Value::as_bool) == Some(true) {
        return Err(failed());
    }
    let text = result.pointer("/content/0/text").and_then(Value::as_str);
    let written = text.and_then(|text| serde_json::from_str::<ToolResult>(text).ok());
    let structured = || result.get("structuredContent").and_then(Value::as_object).cloned();
    let answer = written.or_else(structured).ok_or(Error::Unreadable("result is not a JSON object"))?;
    if answer.get("error").is_some_and(|error| !error.is_null()) { Err(failed()) } else { Ok(answer) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(result: Value, expected: Result<Value, Error>) {
        assert_eq!(parse("classify_text", &result).map(Value::Object), expected);
    }

    #[test]
    fn c61_the_answer_is_the_json_in_the_first_text_or_else_the_structured_content() {
        let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        check(text(r#"{"class": 1}"#), Ok(json!({"class": 1})));
        check(json!({"content": [], "structuredContent": {"class": 1}}), Ok(json!({"class": 1})));
        let unreadable = Err(Error::Unreadable("result is not a JSON object"));
        for result in [text("hello"), text("[1]"), json!({}), json!(null), json!({"content": "x"})] {
            check(result, unreadable.clone());
        }
    }

    #[test]
    fn c61_an_error_is_one_whether_flagged_or_written() {
        let text = r#"{"error": "the disk of db-7 is full"}"#;
        let error = Error::Tool { tool: "classify_text".into() };
        assert!(!error.to_string().contains("db-7"));
        let failed = Err(error);
        check(json!({"content": [{"type": "text", "text": text}], "isError": false}), failed.clone());
        check(json!({"content": [{"type": "text", "text": "{}"}], "isError": true}), failed);
    }
}
