//! Daily budget of a caller.

use serde_json::json;

use crate::fixture::{ApiServer, chat_request, expect_error, server_command, with_members};

fn server_with_budget() -> ApiServer {
    ApiServer::from_command(server_command(
        "serve --port 0",
        &json!({
            "providers": { "mock": { "models": { "mock": { "price": { "input": 1, "output": 1 } } } } },
            "router": { "budget": { "tokens_per_day": 20 } },
        }),
    ))
}

#[test]
fn over_budget_is_a_429_that_says_so_and_until_when() {
    let face = server_with_budget();
    // Three prompt tokens and eight completion tokens each time.
    for _ in 0..2 {
        assert_eq!(face.chat(&chat_request("mock", "Hello, world!")).status, 200);
    }
    let reply = face.chat(&chat_request("mock", "Hello, world!"));
    let told = expect_error(&reply, 429);
    assert_eq!((&told["type"], &told["code"]), (&json!("rate_limit_error"), &json!("over_budget")));
    assert!(told["message"].as_str().unwrap().contains("`router.budget.tokens_per_day`"), "{told}");
    let seconds: u64 = reply.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=86_400).contains(&seconds), "{seconds}");
    assert_eq!(reply.header("x-should-retry"), Some("false"));
}

#[test]
fn streams_count_and_so_do_the_tools_of_mcp() {
    let face = server_with_budget();
    let streamed = face.stream(&with_members(chat_request("mock", "Hello, world!"), json!({})));
    assert!(streamed.has_done_event);
    let call = |prompt: &str| {
        let arguments = json!({ "prompt": prompt, "model": "mock" });
        face.client.post("/mcp/tools/call", &json!({ "name": "chat_completion", "arguments": arguments })).json()
    };
    assert_eq!(call("Hello, world!")["isError"], false);
    let refused = call("Hello, world!");
    assert!(refused["content"][0]["text"].as_str().unwrap().contains("over_budget"), "{refused}");
    let method = face.client.post("/mcp/completion/complete", &json!({ "prompt": "Hello, world!", "model": "mock" }));
    assert_eq!(method.status, 429);
}
