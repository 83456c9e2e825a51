//! Client that calls models through the router. Every prompt has a unique nonce; a response with a foreign nonce
//! reveals mixed-up responses.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Broken, Call, Came, Client, Hand, PATIENCE, Seen};
use crate::http::{Line, Place, Request};
use crate::outcome::Outcome;

/// How long a provider may stay unused after the last fault. The circuit breaker stays open for half a minute and then
/// probes with one call; the remainder is slack for a loaded machine.
const MOST_UNANSWERED: Duration = Duration::from_secs(75);
const LOOK_AGAIN: Duration = Duration::from_millis(500);
const MODEL: &str = "stand-in/echo-large";
const TEXT: &str = "ships waited for the tide";

pub(crate) struct Asker {
    number: usize,
    asked: u64,
    line: Line,
    /// The first embedding of the text.
    vector: Option<Value>,
    /// Since when model calls fail although no fault is active.
    unanswered: Option<Instant>,
}

impl Asker {
    pub(crate) fn new(number: usize, address: SocketAddr) -> Asker {
        Asker { number, asked: 0, line: Line::new(Place::Port(address)), vector: None, unanswered: None }
    }

    fn word(&mut self) -> String {
        self.asked += 1;
        format!("nonce-{}-{}-end", self.number, self.asked)
    }

    /// Sends a request to the OpenAI-compatible API.
    fn openai(&mut self, path: &str, body: Option<&Value>, hand: &mut Hand) -> Seen<Came> {
        let text = body.map(Value::to_string).unwrap_or_default();
        let headers = [("Content-Type", "application/json")];
        let method = if body.is_some() { "POST" } else { "GET" };
        let request = Request { method, path, headers: &headers, body: text.as_bytes() };
        let outcome = match self.line.exchange(&request, PATIENCE) {
            Ok(reply) if reply.status == 200 => Outcome::Said(json!(reply.text())),
            Ok(reply) => match serde_json::from_slice::<Value>(&reply.body) {
                Ok(said) if said["error"]["message"].is_string() => {
                    Outcome::of_status(reply.status, &said["error"].to_string())
                }
                _ => Outcome::Wrong(format!("{path}: {} {}", reply.status, reply.text())),
            },
            Err(error) => Outcome::of_error(&error),
        };
        hand.count(Call { tool: path, face: "openai", is_cut_off: false }, outcome)
    }

    /// Returns whether the call got a response, like the functions below.
    fn chat(&mut self, hand: &mut Hand) -> Seen<bool> {
        let word = self.word();
        let arguments = json!({ "prompt": format!("repeat {word}"), "model": MODEL });
        match hand.call("chat_completion", &arguments)? {
            Came::Said(said) => is_own(&said.to_string(), &word).map(|()| true),
            Came::Refused | Came::Lost => Ok(false),
        }
    }

    fn completion(&mut self, hand: &mut Hand, stream: bool) -> Seen<bool> {
        let word = self.word();
        let messages = json!([{ "role": "user", "content": format!("repeat {word}") }]);
        let body = json!({ "model": MODEL, "messages": messages, "stream": stream });
        let Came::Said(said) = self.openai("/v1/chat/completions", Some(&body), hand)? else { return Ok(false) };
        let text = said.as_str().unwrap_or_default();
        if !stream {
            return is_own(text, &word).map(|()| true);
        }
        // An interrupted stream ends with an error event; a stream that ends with `[DONE]` must be complete.
        let mut answer = String::new();
        for data in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
            if data == "[DONE]" {
                return is_own(&answer, &word).map(|()| true);
            }
            let event: Value =
                serde_json::from_str(data).map_err(|_| Broken(format!("an event that is no JSON: {data}")))?;
            if !event["error"].is_null() {
                return Ok(false);
            }
            answer += event["choices"][0]["delta"]["content"].as_str().unwrap_or_default();
        }
        Err(Broken(format!("a stream that ends without a word about it: {text}")))
    }

    /// The built-in model needs no provider and must return the same embedding every time.
    fn embed(&mut self, hand: &mut Hand) -> Seen {
        let Came::Said(said) = self.openai("/v1/embeddings", Some(&json!({ "model": "auto", "input": TEXT })), hand)?
        else {
            return Ok(());
        };
        let said: Value = serde_json::from_str(said.as_str().unwrap_or_default()).unwrap_or_default();
        let vector = said["data"][0]["embedding"].clone();
        if vector.as_array().is_none_or(Vec::is_empty) {
            return Err(Broken(format!("no vector: {said}")));
        }
        match *self.vector.get_or_insert_with(|| vector.clone()) == vector {
            true => Ok(()),
            false => Err(Broken(format!("the same text has another vector: {vector}"))),
        }
    }

    /// The built-in model is always listed.
    fn models(&mut self, hand: &mut Hand) -> Seen {
        match self.openai("/v1/models", None, hand)? {
            Came::Said(said) if !said.as_str().is_some_and(|text| text.contains("\"auto\"")) => {
                Err(Broken(format!("no models: {said}")))
            }
            Came::Said(_) | Came::Refused | Came::Lost => Ok(()),
        }
    }

    /// A question about the documents of the fixed corpus. Without a provider the reply has passages but no answer.
    fn about_documents(&mut self, hand: &mut Hand) -> Seen<bool> {
        match hand.call("knowledge-ask", &json!({ "question": "where did ships wait?" }))? {
            Came::Said(said) if said.get("answer").is_none() && said["error"].is_null() => {
                Err(Broken(format!("neither an answer nor what is wrong: {said}")))
            }
            Came::Said(said) => Ok(said["answer"].as_str().is_some_and(|answer| !answer.is_empty())),
            Came::Refused | Came::Lost => Ok(false),
        }
    }

    fn all_are_answered(&mut self, hand: &mut Hand) -> Seen<bool> {
        Ok(self.completion(hand, false)? && self.completion(hand, true)? && self.about_documents(hand)?)
    }
}

/// The answer contains the nonce of this prompt and no other nonce.
fn is_own(answer: &str, word: &str) -> Seen {
    let others = answer.match_indices("nonce-").filter(|(at, _)| !answer[*at..].starts_with(word)).count();
    match answer.contains(word) && others == 0 {
        true => Ok(()),
        false => Err(Broken(format!("asked for {word}, and was told: {answer}"))),
    }
}

impl Client for Asker {
    fn step(&mut self, hand: &mut Hand) -> Seen {
        match hand.chance.below(6) {
            0 => self.chat(hand).map(drop),
            1 => self.completion(hand, false).map(drop),
            2 => self.completion(hand, true).map(drop),
            3 => self.about_documents(hand).map(drop),
            4 => self.embed(hand),
            _ => self.models(hand),
        }
    }

    /// The circuit breaker stays open longer than a round takes, so this check does not wait for the provider. Calls
    /// may fail for `MOST_UNANSWERED`, not longer.
    fn settle(&mut self, hand: &mut Hand) -> Seen {
        self.embed(hand)?;
        self.models(hand)?;
        if self.all_are_answered(hand)? {
            self.unanswered = None;
            return Ok(());
        }
        if hand.may_reach_provider {
            self.unanswered = Some(Instant::now());
        }
        match self.unanswered.get_or_insert_with(Instant::now).elapsed() > MOST_UNANSWERED {
            true => Err(Broken("the provider has been back for long, and no question is answered".to_owned())),
            false => Ok(()),
        }
    }

    fn end(&mut self, hand: &mut Hand) -> Seen {
        while self.unanswered.is_some() {
            std::thread::sleep(LOOK_AGAIN);
            self.settle(hand)?;
        }
        Ok(())
    }
}
