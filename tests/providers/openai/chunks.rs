//! Streams written for a caller: our own decoder reads what the encoder wrote.

use corbie::providers::Delta;
use corbie::providers::openai::Encoder;

use crate::protocol_fixture::{ALL, OPENAI};

/// Every golden stream of every protocol, written in OpenAI's format and read again.
#[test]
fn what_is_written_for_a_caller_reads_as_what_came() {
    for player in ALL {
        for (case, bytes) in player.cases(".stream.txt") {
            let Ok((deltas, true)) = player.decode_stream([&*bytes]) else { continue };
            let mut encoder = Encoder::new("auto", 5, true);
            let mut out = Vec::new();
            deltas.iter().for_each(|delta| encoder.delta(delta, &mut out));
            encoder.end(&mut out);
            let (again, complete) = OPENAI.decode_stream([&*out]).unwrap();
            assert!(complete, "{case}");
            assert_eq!(visible_content(&again), visible_content(&deltas), "{case}");
        }
    }
}

#[test]
fn an_answer_that_broke_off_has_no_end() {
    let mut encoder = Encoder::new("auto", 5, false);
    let mut out = Vec::new();
    encoder.delta(&Delta::Started { id: "x".into(), model: "m".into() }, &mut out);
    encoder.delta(&Delta::Text { text: "half".into() }, &mut out);
    let (_, complete) = OPENAI.decode_stream([&*out]).unwrap();
    assert!(!complete && !String::from_utf8(out).unwrap().contains("[DONE]"));
}

/// The parts visible to a caller: all but the provider's model name, thought signatures, and finish reasons unknown to
/// OpenAI. Chunk boundaries may differ.
fn visible_content(deltas: &[Delta]) -> Vec<String> {
    let mut said: Vec<String> = Vec::new();
    let mut usage = None;
    for delta in deltas {
        match delta {
            // An empty id is replaced.
            Delta::Started { id, .. } if id.is_empty() => said.push("started chatcmpl-5".into()),
            Delta::Started { id, .. } => said.push(format!("started {id}")),
            Delta::Text { text } | Delta::Reasoning { text } if text.is_empty() => {}
            Delta::Text { text } => said.push(format!("text {text}")),
            Delta::Reasoning { text } => said.push(format!("thinks {text}")),
            Delta::ToolCall { index, id, name } => said.push(format!("call {index} {id} {name}")),
            Delta::Arguments { index, json } => said.push(format!("arguments {index} {json}")),
            Delta::Proof { index: Some(index), proof } => said.push(format!("proof {index} {proof}")),
            Delta::Proof { index: None, .. } | Delta::Stopped { .. } => {}
            Delta::Used { usage: told } => usage = Some(*told),
        }
    }
    said.push(format!("{usage:?}"));
    said
}
