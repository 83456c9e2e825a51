//! Asks models through the router, each question with a word of its own: an answer with another's word is a mixed one.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::{Broken, Came, Client, Hand, PATIENCE, Seen};
use crate::http::{Line, Request};
use crate::outcome::Outcome;

pub(crate) struct Asker {
    number: usize,
    asked: u64,
    line: Line,
}

impl Asker {
    pub(crate) fn new(number: usize, address: SocketAddr) -> Asker {
        Asker { number, asked: 0, line: Line::new(address) }
    }

    fn word(&mut self) -> String {
        self.asked += 1;
        format!("nonce-{}-{}-end", self.number, self.asked)
    }

    fn post(&mut self, path: &str, body: &Value) -> Outcome {
        let body = body.to_string();
        let headers = [("Content-Type", "application/json")];
        let request = Request { method: "POST", path, headers: &headers, body: body.as_bytes() };
        match self.line.exchange(&request, PATIENCE) {
            Ok(reply) if reply.status == 200 => Outcome::Said(json!(reply.text())),
            Ok(reply) => match serde_json::from_slice::<Value>(&reply.body) {
                Ok(said) => Outcome::Refused(format!("{} {said}", reply.status)),
                Err(_) => Outcome::Wrong(format!("{path}: {} {}", reply.status, reply.text())),
            },
            Err(error) => Outcome::of_error(&error),
        }
    }

    fn chat(&mut self, hand: &mut Hand) -> Seen {
        let word = self.word();
        let said = hand
            .call("chat_completion", &json!({ "prompt": format!("repeat {word}"), "model": "stand-in/echo-large" }))?;
        match said {
            Came::Said(said) => is_own(&said.to_string(), &word),
            Came::Refused | Came::Lost => Ok(()),
        }
    }

    fn completion(&mut self, hand: &mut Hand, stream: bool) -> Seen {
        let word = self.word();
        let messages = json!([{ "role": "user", "content": format!("repeat {word}") }]);
        let body = json!({ "model": "stand-in/echo-large", "messages": messages, "stream": stream });
        let outcome = self.post("/v1/chat/completions", &body);
        let Came::Said(said) = hand.count(outcome)? else { return Ok(()) };
        let text = said.as_str().unwrap_or_default();
        if !stream {
            return is_own(text, &word);
        }
        // A stream that broke off says so in an event of its own; one that says it is whole is whole.
        let mut answer = String::new();
        for data in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
            if data == "[DONE]" {
                return is_own(&answer, &word);
            }
            let event: Value =
                serde_json::from_str(data).map_err(|_| Broken(format!("an event that is no JSON: {data}")))?;
            if !event["error"].is_null() {
                return Ok(());
            }
            answer += event["choices"][0]["delta"]["content"].as_str().unwrap_or_default();
        }
        Err(Broken(format!("a stream that ends without a word about it: {text}")))
    }
}

/// The word of the question is in the answer, and nobody else's.
fn is_own(answer: &str, word: &str) -> Seen {
    let others = answer.match_indices("nonce-").filter(|(at, _)| !answer[*at..].starts_with(word)).count();
    match answer.contains(word) && others == 0 {
        true => Ok(()),
        false => Err(Broken(format!("asked for {word}, and was told: {answer}"))),
    }
}

impl Client for Asker {
    fn step(&mut self, hand: &mut Hand) -> Seen {
        match hand.chance.below(3) {
            0 => self.chat(hand),
            1 => self.completion(hand, false),
            _ => self.completion(hand, true),
        }
    }

    fn settle(&mut self, _: &mut Hand) -> Seen {
        Ok(())
    }
}
