//! Client that calls models through the router. Every prompt has a unique nonce; a response with a foreign nonce
//! reveals mixed-up responses.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{CallInfo, CallResult, ChaosClient, CheckResult, ClientContext, InvariantViolation, RESPONSE_TIMEOUT};
use crate::call_outcome::CallOutcome;
use crate::http::{HttpConnection, HttpRequest, ServerAddress};

/// How long a provider may stay unused after the last fault. The circuit breaker stays open for half a minute and then
/// probes with one call; the remainder is slack for a loaded machine.
const MAX_UNANSWERED: Duration = Duration::from_secs(75);
const RETRY_INTERVAL: Duration = Duration::from_millis(500);
const MODEL: &str = "stand-in/echo-large";
const TEXT: &str = "ships waited for the tide";

pub(crate) struct ChatClient {
    number: usize,
    request_count: u64,
    connection: HttpConnection,
    /// The first embedding of the text.
    vector: Option<Value>,
    /// Since when model calls fail although no fault is active.
    unanswered_since: Option<Instant>,
}

impl ChatClient {
    pub(crate) fn new(number: usize, address: SocketAddr) -> ChatClient {
        ChatClient {
            number,
            request_count: 0,
            connection: HttpConnection::new(ServerAddress::Tcp(address)),
            vector: None,
            unanswered_since: None,
        }
    }

    fn next_nonce(&mut self) -> String {
        self.request_count += 1;
        format!("nonce-{}-{}-end", self.number, self.request_count)
    }

    /// Sends a request to the OpenAI-compatible API.
    fn openai_request(
        &mut self,
        path: &str,
        body: Option<&Value>,
        hand: &mut ClientContext,
    ) -> CheckResult<CallResult> {
        let text = body.map(Value::to_string).unwrap_or_default();
        let headers = [("Content-Type", "application/json")];
        let method = if body.is_some() { "POST" } else { "GET" };
        let request = HttpRequest { method, path, headers: &headers, body: text.as_bytes() };
        let outcome = match self.connection.send(&request, RESPONSE_TIMEOUT) {
            Ok(reply) if reply.status == 200 => CallOutcome::Answered(json!(reply.text())),
            Ok(reply) => match serde_json::from_slice::<Value>(&reply.body) {
                Ok(said) if said["error"]["message"].is_string() => {
                    CallOutcome::from_status(reply.status, &said["error"].to_string())
                }
                _ => CallOutcome::Invalid(format!("{path}: {} {}", reply.status, reply.text())),
            },
            Err(error) => CallOutcome::from_io_error(&error),
        };
        hand.record(CallInfo { tool: path, protocol: "openai", is_disconnected: false }, outcome)
    }

    /// Returns whether the call got a response, like the functions below.
    fn chat(&mut self, hand: &mut ClientContext) -> CheckResult<bool> {
        let word = self.next_nonce();
        let arguments = json!({ "prompt": format!("repeat {word}"), "model": MODEL });
        match hand.call("chat_completion", &arguments)? {
            CallResult::Answered(said) => check_nonce(&said.to_string(), &word).map(|()| true),
            CallResult::Refused | CallResult::Lost => Ok(false),
        }
    }

    fn completion(&mut self, hand: &mut ClientContext, stream: bool) -> CheckResult<bool> {
        let word = self.next_nonce();
        let messages = json!([{ "role": "user", "content": format!("repeat {word}") }]);
        let body = json!({ "model": MODEL, "messages": messages, "stream": stream });
        let CallResult::Answered(said) = self.openai_request("/v1/chat/completions", Some(&body), hand)? else {
            return Ok(false);
        };
        let text = said.as_str().unwrap_or_default();
        if !stream {
            return check_nonce(text, &word).map(|()| true);
        }
        // An interrupted stream ends with an error event; a stream that ends with `[DONE]` must be complete.
        let mut answer = String::new();
        for data in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
            if data == "[DONE]" {
                return check_nonce(&answer, &word).map(|()| true);
            }
            let event: Value = serde_json::from_str(data)
                .map_err(|_| InvariantViolation(format!("an event that is no JSON: {data}")))?;
            if !event["error"].is_null() {
                return Ok(false);
            }
            answer += event["choices"][0]["delta"]["content"].as_str().unwrap_or_default();
        }
        Err(InvariantViolation(format!("a stream that ends without a word about it: {text}")))
    }

    /// The built-in model needs no provider and must return the same embedding every time.
    fn embed(&mut self, hand: &mut ClientContext) -> CheckResult {
        let CallResult::Answered(said) =
            self.openai_request("/v1/embeddings", Some(&json!({ "model": "auto", "input": TEXT })), hand)?
        else {
            return Ok(());
        };
        let said: Value = serde_json::from_str(said.as_str().unwrap_or_default()).unwrap_or_default();
        let vector = said["data"][0]["embedding"].clone();
        if vector.as_array().is_none_or(Vec::is_empty) {
            return Err(InvariantViolation(format!("no vector: {said}")));
        }
        match *self.vector.get_or_insert_with(|| vector.clone()) == vector {
            true => Ok(()),
            false => Err(InvariantViolation(format!("the same text has another vector: {vector}"))),
        }
    }

    /// The built-in model is always listed.
    fn models(&mut self, hand: &mut ClientContext) -> CheckResult {
        match self.openai_request("/v1/models", None, hand)? {
            CallResult::Answered(said) if !said.as_str().is_some_and(|text| text.contains("\"auto\"")) => {
                Err(InvariantViolation(format!("no models: {said}")))
            }
            CallResult::Answered(_) | CallResult::Refused | CallResult::Lost => Ok(()),
        }
    }

    /// A question about the documents of the fixed corpus. Without a provider the reply has passages but no answer.
    fn ask_documents(&mut self, hand: &mut ClientContext) -> CheckResult<bool> {
        match hand.call("knowledge-ask", &json!({ "question": "where did ships wait?" }))? {
            CallResult::Answered(said) if said.get("answer").is_none() && said["error"].is_null() => {
                Err(InvariantViolation(format!("neither an answer nor what is wrong: {said}")))
            }
            CallResult::Answered(said) => Ok(said["answer"].as_str().is_some_and(|answer| !answer.is_empty())),
            CallResult::Refused | CallResult::Lost => Ok(false),
        }
    }

    fn all_are_answered(&mut self, hand: &mut ClientContext) -> CheckResult<bool> {
        Ok(self.completion(hand, false)? && self.completion(hand, true)? && self.ask_documents(hand)?)
    }
}

/// The answer contains the nonce of this prompt and no other nonce.
fn check_nonce(answer: &str, word: &str) -> CheckResult {
    let others = answer.match_indices("nonce-").filter(|(at, _)| !answer[*at..].starts_with(word)).count();
    match answer.contains(word) && others == 0 {
        true => Ok(()),
        false => Err(InvariantViolation(format!("asked for {word}, and was told: {answer}"))),
    }
}

impl ChaosClient for ChatClient {
    fn step(&mut self, hand: &mut ClientContext) -> CheckResult {
        match hand.rng.below(6) {
            0 => self.chat(hand).map(drop),
            1 => self.completion(hand, false).map(drop),
            2 => self.completion(hand, true).map(drop),
            3 => self.ask_documents(hand).map(drop),
            4 => self.embed(hand),
            _ => self.models(hand),
        }
    }

    /// The circuit breaker stays open longer than a round takes, so this check does not wait for the provider. Calls
    /// may fail for `MOST_UNANSWERED`, not longer.
    fn verify(&mut self, hand: &mut ClientContext) -> CheckResult {
        self.embed(hand)?;
        self.models(hand)?;
        if self.all_are_answered(hand)? {
            self.unanswered_since = None;
            return Ok(());
        }
        if hand.may_reach_provider {
            self.unanswered_since = Some(Instant::now());
        }
        match self.unanswered_since.get_or_insert_with(Instant::now).elapsed() > MAX_UNANSWERED {
            true => {
                Err(InvariantViolation("the provider has been back for long, and no question is answered".to_owned()))
            }
            false => Ok(()),
        }
    }

    fn finish(&mut self, hand: &mut ClientContext) -> CheckResult {
        while self.unanswered_since.is_some() {
            std::thread::sleep(RETRY_INTERVAL);
            self.verify(hand)?;
        }
        Ok(())
    }
}
