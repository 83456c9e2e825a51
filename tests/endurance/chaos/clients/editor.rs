//! Client that saves the taxonomy repeatedly with an increasing number in it. An acknowledged save must never be rolled
//! back.

use serde_json::{Value, json};

use super::{Broken, Came, Client, Hand, Seen};
use crate::program::TAXONOMY;

const MARK: &str = "# version ";

#[derive(Default)]
pub(crate) struct Editor {
    sent: u64,
    saved: u64,
}

impl Editor {
    pub(crate) fn new() -> Editor {
        Editor::default()
    }

    fn compare(&mut self, said: &Value) -> Seen {
        // A temporarily unreadable file is reported in `problem`.
        let Some(text) = said["text"].as_str() else {
            return if said["problem"].is_string() { Ok(()) } else { Err(Broken(format!("no taxonomy: {said}"))) };
        };
        let Some(rest) = text.strip_prefix(TAXONOMY) else {
            return Err(Broken(format!("the taxonomy is not what was saved: {said}")));
        };
        let number: u64 = rest.trim().strip_prefix(MARK).unwrap_or("0").parse().unwrap_or(u64::MAX);
        if !(self.saved..=self.sent).contains(&number) {
            return Err(Broken(format!("version {} of the taxonomy was saved, and {number} is there", self.saved)));
        }
        self.saved = number;
        Ok(())
    }
}

impl Client for Editor {
    fn step(&mut self, hand: &mut Hand) -> Seen {
        let Came::Said(there) = hand.call("get_taxonomy", &json!({}))? else { return Ok(()) };
        self.compare(&there)?;
        self.sent += 1;
        let text = format!("{TAXONOMY}{MARK}{}\n", self.sent);
        // Sends the base version: a late save of a disconnected client must not overwrite a later one.
        match hand.call("save_taxonomy", &json!({ "text": text, "version": there["version"] }))? {
            Came::Said(said) if said["saved"] == true => self.saved = self.sent,
            Came::Said(_) | Came::Refused | Came::Lost => {}
        }
        // Saving triggers a reload; without a pause the server would do nothing but reload.
        std::thread::sleep(std::time::Duration::from_millis(100));
        Ok(())
    }

    fn settle(&mut self, hand: &mut Hand) -> Seen {
        let said = hand.must("get_taxonomy", &json!({}))?;
        match said["text"].is_string() {
            true => self.compare(&said),
            false => Err(Broken(format!("the taxonomy of a program at rest cannot be read: {said}"))),
        }
    }
}
