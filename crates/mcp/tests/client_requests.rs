//! Requests from a tool to the client: the same tool code, a different exchange in each era.

mod fixture;

use std::time::Duration;

use corbie_mcp::transport::http::Options;
use corbie_mcp::{Context, Error, Limits, Prompt, PromptArguments, PromptResult, Server, Tool, ToolError, TrustLevel};
use fixture::WipeCounter;
use fixture::peer::{
    self, BOTH, EventStream, JSON, Stdio, TestTransport, WebSocket, call, initialize, modern, request_over_stdio,
    text_of,
};
use serde_json::{Map, Value, json};

/// A test case: required capability, request to the client, answer, and result of the tool.
struct Case {
    tool: &'static str,
    capability: &'static str,
    key: &'static str,
    method: &'static str,
    answer: Value,
    text: &'static str,
}

fn cases() -> [Case; 3] {
    [
        Case {
            tool: "ask_name",
            capability: "elicitation",
            key: "name",
            method: "elicitation/create",
            answer: json!({ "action": "accept", "content": { "name": "Ada" } }),
            text: "Accept Ada",
        },
        Case {
            tool: "ask_model",
            capability: "sampling",
            key: "poem",
            method: "sampling/createMessage",
            answer: json!({ "role": "assistant", "content": { "type": "text", "text": "Caw." }, "model": "m" }),
            text: "Caw.",
        },
        Case {
            tool: "ask_roots",
            capability: "roots",
            key: "roots",
            method: "roots/list",
            answer: json!({ "roots": [{ "uri": "file:///a" }, { "uri": "file:///b", "name": "B" }] }),
            text: "file:///a file:///b",
        },
    ]
}

fn elicitation() -> Value {
    json!({ "elicitation": {} })
}

fn answer_to(question: &Value, answer: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer })
}

// === legacy: a server request on the client's stream ===

/// A bidirectional connection.
enum Duplex {
    Stdio(Stdio),
    WebSocket(Box<WebSocket>),
}

impl Duplex {
    async fn both(server: &Server) -> [Duplex; 2] {
        let port = fixture::listen(server, Options::default()).await;
        let socket = Box::new(peer::websocket(port).await);
        [Duplex::Stdio(Stdio::start(server, TrustLevel::Trusted)), Duplex::WebSocket(socket)]
    }

    async fn send(&mut self, message: &Value) {
        match self {
            Duplex::Stdio(peer) => peer.send(&message.to_string()).await,
            Duplex::WebSocket(socket) => peer::ws_send(socket, message).await,
        }
    }

    async fn receive(&mut self) -> Value {
        match self {
            Duplex::Stdio(peer) => peer.receive().await,
            Duplex::WebSocket(socket) => peer::ws_receive(socket).await,
        }
    }

    async fn call(&mut self, message: &Value) -> Value {
        self.send(message).await;
        self.receive().await
    }
}

#[tokio::test]
async fn a_legacy_client_is_asked_on_its_line_and_answers_there() {
    for Case { tool, capability, method, answer, text, .. } in cases() {
        for mut line in Duplex::both(&fixture::server()).await {
            line.call(&initialize("2025-11-25", json!({ capability: {} }))).await;
            let question = line.call(&call(1, tool, json!({}))).await;
            assert_eq!((&question["method"], &question["jsonrpc"]), (&json!(method), &json!("2.0")));
            let answered = line.call(&answer_to(&question, &answer)).await;
            assert_eq!((&answered["id"], text_of(&answered)), (&json!(1), text), "{tool}");
        }
    }
}

/// Opens a legacy HTTP session and returns its ID.
async fn session(port: u16, capabilities: Value) -> String {
    let opened = initialize("2025-11-25", capabilities).to_string();
    peer::http(port, "POST", "/mcp", &[JSON, BOTH], &opened).await.headers["mcp-session-id"].clone()
}

#[tokio::test]
async fn a_legacy_http_client_is_asked_on_the_stream_of_its_call_and_answers_in_another_post() {
    for Case { tool, capability, method, answer, text, .. } in cases() {
        let port = fixture::listen(&fixture::server(), Options::default()).await;
        let session = session(port, json!({ capability: {} })).await;
        let headers = [JSON, BOTH, ("mcp-session-id", session.as_str())];
        let mut stream = EventStream::open(port, "POST", &headers, &call(1, tool, json!({})).to_string()).await;
        assert_eq!(stream.headers["content-type"], "text/event-stream");
        let question = stream.next().await.expect("a question");
        assert_eq!(question["method"], method);
        let taken = peer::http(port, "POST", "/mcp", &headers, &answer_to(&question, &answer).to_string()).await;
        assert_eq!((taken.status, taken.body.as_str()), (202, ""));
        let answered = stream.next().await.expect("the result");
        assert_eq!((&answered["id"], text_of(&answered)), (&json!(1), text), "{tool}");
        assert_eq!(stream.next().await, None, "the stream ends with the answer");
    }
}

#[tokio::test]
async fn a_form_is_asked_for_in_the_words_of_the_era() {
    let mut peer = Stdio::start(&fixture::server(), TrustLevel::Trusted);
    peer.call(&initialize("2025-06-18", elicitation())).await;
    let question = peer.call(&call(1, "ask_name", json!({}))).await;
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] });
    assert_eq!(question["params"], json!({ "message": "What is your name?", "requestedSchema": schema }));

    let asked = ToolRequest::of("ask_name").over_stdio(elicitation()).await;
    let form = json!({ "mode": "form", "message": "What is your name?", "requestedSchema": schema });
    assert_eq!(asked["inputRequests"]["name"], json!({ "method": "elicitation/create", "params": form }));
}

#[tokio::test]
async fn a_person_may_decline_a_client_may_refuse_and_an_unusable_answer_is_told() {
    for (answer, told) in [
        (json!({ "result": { "action": "decline" } }), "Decline nobody"),
        (json!({ "result": { "action": "cancel" } }), "Cancel nobody"),
        (json!({ "error": { "code": -1, "message": "busy" } }), "the client declined: busy"),
        (json!({ "result": { "action": "accept", "content": { "name": 7 } } }), "invalid response"),
        (json!({ "result": { "action": "shrug" } }), "invalid response"),
        (json!({ "result": [] }), "invalid response"),
    ] {
        let mut peer = Stdio::start(&fixture::server(), TrustLevel::Trusted);
        peer.call(&initialize("2025-11-25", elicitation())).await;
        let question = peer.call(&call(1, "ask_name", json!({}))).await;
        let mut response = answer.clone();
        response["jsonrpc"] = json!("2.0");
        response["id"] = question["id"].clone();
        let answered = peer.call(&response).await;
        assert!(text_of(&answered).contains(told), "{answer}: {answered}");
    }
}

#[tokio::test]
async fn only_the_one_who_was_asked_can_answer() {
    let server = fixture::server();
    let port = fixture::listen(&server, Options::default()).await;
    let mut peer = Stdio::start(&server, TrustLevel::Trusted);
    peer.call(&initialize("2025-11-25", elicitation())).await;
    let question = peer.call(&call(1, "ask_name", json!({}))).await;
    let forged = json!({ "action": "accept", "content": { "name": "Mallory" } });
    assert_eq!(peer::post(port, &answer_to(&question, &forged)).await.status, 202);
    let answered = peer.call(&answer_to(&question, &cases()[0].answer)).await;
    assert_eq!(text_of(&answered), "Accept Ada");
}

#[tokio::test]
async fn the_time_a_person_takes_is_not_the_tools() {
    let slow_person = Tool::builder("hurry").no_input().timeout(Duration::from_millis(50)).run(
        async |context: Context, _| -> Result<String, ToolError> {
            Ok(format!("{} roots", context.roots("r").await?.len()))
        },
    );
    let server = Server::builder("s", "1").tool(slow_person).build().expect("valid");
    let mut peer = Stdio::start(&server, TrustLevel::Trusted);
    peer.call(&initialize("2025-11-25", json!({ "roots": {} }))).await;
    let question = peer.call(&call(1, "hurry", json!({}))).await;
    assert!(peer.silence(Duration::from_millis(200)).await, "the limit must not end the call");
    let answered = peer.call(&answer_to(&question, &json!({ "roots": [] }))).await;
    assert_eq!(text_of(&answered), "0 roots");
}

// === without a client channel ===

#[tokio::test]
async fn a_client_without_the_capability_is_told_so() {
    for Case { tool, capability, .. } in cases() {
        for way in TestTransport::ALL {
            let answer = way.request(&fixture::server(), TrustLevel::Trusted, &call(1, tool, json!({}))).await;
            assert_eq!(answer["result"]["isError"], true, "{tool} over {way:?}");
            assert!(text_of(&answer).contains(&format!("does not support {capability}")), "{answer}");
        }
    }
}

#[tokio::test]
async fn a_client_without_a_stream_is_told_how_to_connect() {
    let port = fixture::listen(&fixture::server(), Options::default()).await;
    let session = session(port, elicitation()).await;
    let headers = [JSON, ("accept", "application/json"), ("mcp-session-id", session.as_str())];
    let reply = peer::http(port, "POST", "/mcp", &headers, &call(1, "ask_name", json!({})).to_string()).await;
    assert_eq!((reply.status, reply.is_stream()), (200, false));
    assert!(text_of(&reply.json()).contains("text/event-stream"), "{}", reply.body);
}

#[tokio::test]
async fn a_modern_client_without_the_capability_gets_32021_and_http_400() {
    let port = fixture::listen(&fixture::server(), Options::default()).await;
    for Case { tool, capability, .. } in cases() {
        let reply = peer::post_modern(port, &modern(1, "tools/call", json!({ "name": tool }), json!({}))).await;
        let error = reply.json()["error"].take();
        assert_eq!((reply.status, &error["code"]), (400, &json!(-32021)), "{tool}");
        assert_eq!(error["data"]["requiredCapabilities"], json!({ capability: {} }));
    }
}

// === modern: input_required, then the call with the answers ===

/// A modern call that can be repeated.
#[derive(Clone)]
struct ToolRequest {
    tool: &'static str,
    arguments: Value,
    state: Option<Value>,
    answers: Map<String, Value>,
}

impl ToolRequest {
    fn of(tool: &'static str) -> ToolRequest {
        ToolRequest { tool, arguments: json!({}), state: None, answers: Map::new() }
    }

    /// Repeats the call with the given state and one answer.
    fn retry_with(&self, asked: &Value, key: &str, answer: Value) -> ToolRequest {
        let answers = Map::from_iter([(key.to_owned(), answer)]);
        ToolRequest { state: Some(asked["requestState"].clone()), answers, ..self.clone() }
    }

    fn request(&self, capabilities: Value) -> Value {
        let mut params = json!({ "name": self.tool, "arguments": self.arguments, "inputResponses": self.answers });
        if let Some(state) = &self.state {
            params["requestState"] = state.clone();
        }
        modern(1, "tools/call", params, capabilities)
    }

    async fn over_stdio(&self, capabilities: Value) -> Value {
        request_over_stdio(&fixture::server(), &self.request(capabilities)).await["result"].take()
    }
}

fn accept(name: &str, value: &str) -> Value {
    json!({ "action": "accept", "content": { name: value } })
}

#[tokio::test]
async fn a_modern_client_is_asked_in_the_result_and_calls_again() {
    for Case { tool, capability, key, method, answer, text } in cases() {
        let server = fixture::server();
        let port = fixture::listen(&server, Options::default()).await;
        let capabilities = json!({ capability: {} });
        let first = ToolRequest::of(tool);
        let asked = peer::post_modern(port, &first.request(capabilities.clone())).await.json()["result"].take();
        assert_eq!(
            (&asked["resultType"], &asked["inputRequests"][key]["method"]),
            (&json!("input_required"), &json!(method))
        );
        let answered =
            peer::post_modern(port, &first.retry_with(&asked, key, answer).request(capabilities)).await.json();
        assert_eq!((&answered["result"]["resultType"], text_of(&answered)), (&json!("complete"), text), "{tool}");
    }
}

#[tokio::test]
async fn two_questions_are_two_rounds_and_the_state_remembers_the_first_answer() {
    let mut peer = Stdio::start(&fixture::server(), TrustLevel::Trusted);
    let call = ToolRequest::of("ask_twice");
    let first = peer.call(&call.request(elicitation())).await["result"].take();
    assert_eq!(first["inputRequests"].as_object().expect("questions").keys().collect::<Vec<_>>(), ["first"]);
    let second =
        peer.call(&call.retry_with(&first, "first", accept("a", "x")).request(elicitation())).await["result"].take();
    assert_eq!(second["inputRequests"].as_object().expect("questions").keys().collect::<Vec<_>>(), ["second"]);
    let done = peer.call(&call.retry_with(&second, "second", accept("b", "y")).request(elicitation())).await;
    assert_eq!(text_of(&done), r#""x" "y""#);
}

#[tokio::test]
async fn questions_put_side_by_side_come_in_one_round() {
    let both = Tool::builder("both").no_input().run(async |context: Context, _| -> Result<String, ToolError> {
        let (roots, poem) = futures_util::future::join(context.roots("r"), context.sample("s", "?", 9)).await;
        Ok(format!("{} {}", roots?.len(), poem?.model))
    });
    let server = Server::builder("s", "1").tool(both).build().expect("valid");
    let request = modern(1, "tools/call", json!({ "name": "both" }), json!({ "roots": {}, "sampling": {} }));
    let asked = request_over_stdio(&server, &request).await["result"].take();
    assert_eq!(asked["inputRequests"].as_object().map(Map::len), Some(2), "{asked}");
}

#[tokio::test]
async fn a_state_that_was_changed_or_given_for_another_call_is_refused() {
    let server = fixture::server();
    let mut peer = Stdio::start(&server, TrustLevel::Trusted);
    let call = ToolRequest::of("ask_name");
    let asked = peer.call(&call.request(elicitation())).await["result"].take();
    let good = call.retry_with(&asked, "name", accept("name", "Ada"));

    let mut tampered = good.clone();
    let text = asked["requestState"].as_str().expect("text");
    let flipped = if text.starts_with('A') { "B" } else { "A" };
    tampered.state = Some(json!(format!("{flipped}{}", &text[1..])));
    let invented = ToolRequest { state: Some(json!("e30.e30")), ..good.clone() };
    let another_tool = ToolRequest { tool: "ask_twice", ..good.clone() };
    let other_arguments = ToolRequest { arguments: json!({ "x": 1 }), ..good.clone() };
    for bad in [tampered, invented, another_tool, other_arguments] {
        let error = peer.call(&bad.request(elicitation())).await["error"].take();
        assert_eq!(error["code"], -32602, "{error}");
        assert!(error["message"].as_str().is_some_and(|text| text.contains("requestState")), "{error}");
    }
    let port = fixture::listen(&server, Options::default()).await;
    let another_caller = peer::post_modern(port, &good.request(elicitation())).await.json();
    assert_eq!(another_caller["error"]["code"], -32602, "{another_caller}");
    assert_eq!(text_of(&peer.call(&good.request(elicitation())).await), "Accept Ada", "the good one still stands");
}

#[tokio::test]
async fn an_answer_of_the_wrong_form_is_asked_for_again() {
    let mut peer = Stdio::start(&fixture::server(), TrustLevel::Trusted);
    let call = ToolRequest::of("ask_name");
    let asked = peer.call(&call.request(elicitation())).await["result"].take();
    for wrong in [json!("Ada"), json!({ "action": "accept" }), json!({ "action": "accept", "content": { "name": 7 } })]
    {
        let again =
            peer.call(&call.retry_with(&asked, "name", wrong.clone()).request(elicitation())).await["result"].take();
        assert_eq!(again["resultType"], "input_required", "{wrong}");
        assert!(again["inputRequests"]["name"].is_object(), "{wrong}");
    }
}

#[tokio::test]
async fn a_prompt_may_ask_as_a_tool_does() {
    let prompt =
        Prompt::new("who", "Asks", async |context: Context, _: PromptArguments| -> Result<PromptResult, Error> {
            let roots = context.roots("r").await?;
            Ok(PromptResult::user([corbie_mcp::ContentBlock::text(format!("{} roots", roots.len()))]))
        });
    let server = fixture::builder(WipeCounter::default()).prompt(prompt).build().expect("valid");
    let mut peer = Stdio::start(&server, TrustLevel::Trusted);
    let get = |more: Value| {
        let mut params = json!({ "name": "who" });
        params.as_object_mut().expect("object").extend(more.as_object().expect("object").clone());
        modern(1, "prompts/get", params, json!({ "roots": {} }))
    };
    let asked = peer.call(&get(json!({}))).await["result"].take();
    assert_eq!(asked["inputRequests"]["r"]["method"], "roots/list");
    let more = json!({ "requestState": asked["requestState"], "inputResponses": { "r": { "roots": [] } } });
    let filled = peer.call(&get(more)).await["result"].take();
    assert_eq!(filled["messages"][0]["content"]["text"], "0 roots");
}

// === in a task: input_required until tasks/update has the answer ===

#[tokio::test]
async fn m21_a_task_waits_for_its_answer_and_asks_again_for_a_usable_one() {
    let capabilities = json!({ "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let mut peer = Stdio::start(&fixture::server(), TrustLevel::Trusted);
    let started = peer.call(&ToolRequest::of("job_asks").request(capabilities.clone())).await["result"].take();
    let id = started["taskId"].clone();
    assert_eq!(started["resultType"], "task");

    let asking = status(&mut peer, &id, "input_required", &capabilities).await;
    assert_eq!(asking["inputRequests"]["go"]["method"], "elicitation/create");
    for (answer, then) in [
        (json!({ "nobody asked": {} }), "input_required"),
        (json!({ "go": { "action": "accept", "content": { "go": "yes" } } }), "input_required"),
        (json!({ "go": { "action": "accept", "content": { "go": true } } }), "completed"),
    ] {
        let update = json!({ "taskId": id, "inputResponses": answer });
        let taken = peer.call(&modern(2, "tasks/update", update, capabilities.clone())).await;
        assert_eq!(taken["result"]["resultType"], "complete", "{taken}");
        let task = status(&mut peer, &id, then, &capabilities).await;
        if then == "completed" {
            assert_eq!(task["result"]["content"][0]["text"], "Accept");
        }
    }
}

/// Polls the task until it has this status.
async fn status(peer: &mut Stdio, id: &Value, wanted: &str, capabilities: &Value) -> Value {
    let get = modern(3, "tasks/get", json!({ "taskId": id }), capabilities.clone());
    let reached = async {
        loop {
            let task = peer.call(&get).await["result"].take();
            if task["status"] == wanted {
                return task;
            }
            assert!(["working", "input_required"].contains(&task["status"].as_str().unwrap_or_default()), "{task}");
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(peer::TEST_TIMEOUT, reached).await.unwrap_or_else(|_| panic!("never {wanted}"))
}

#[tokio::test]
async fn a_question_from_a_task_of_the_handlers_own_is_put_at_once() {
    let tool = Tool::builder("aside").no_input().run(async |context: Context, _| {
        let aside = tokio::spawn(async move {
            tokio::task::yield_now().await;
            context.elicit("go", "Go on?", json!({ "type": "object", "properties": {} })).await.map(|_| "went on")
        });
        aside.await.map_err(|error| ToolError::new("Lost", error.to_string()))?.map_err(ToolError::from)
    });
    let limits = Limits { tool_timeout: Duration::from_secs(600), ..Limits::default() };
    let server = Server::builder("s", "1").limits(limits).tool(tool).build().expect("valid");
    let call = peer::modern(1, "tools/call", json!({ "name": "aside" }), json!({ "elicitation": {} }));
    let answer = Stdio::start(&server, TrustLevel::Trusted).call(&call).await;
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
}
