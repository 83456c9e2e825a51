//! Picture descriptions by a provider's vision model, if the operator allows it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use crate::command::{ExtractFolder, page_texts};
use crate::sample_files;

/// A provider that describes everything as a lighthouse, and a channel with its requests.
fn vision_provider() -> (String, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let (sender, requests) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut length = 0;
            let mut first = String::new();
            reader.read_line(&mut first).unwrap();
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                if line.trim().is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let answer = if first.contains("/chat/completions") {
                sender.send(serde_json::from_slice(&body).unwrap()).unwrap();
                json!({"id": "1", "object": "chat.completion", "created": 1, "model": "seer", "choices": [{"index": 0, "finish_reason": "stop",
                    "message": {"role": "assistant", "content": "A red lighthouse on a rock."}}], "usage": {"prompt_tokens": 9, "completion_tokens": 6, "total_tokens": 15}})
            } else {
                json!({"object": "list", "data": [{"id": "seer", "object": "model", "created": 1, "owned_by": "tests"}]})
            };
            let answer = answer.to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                answer.len()
            );
            stream.write_all((head + &answer).as_bytes()).unwrap();
        }
    });
    (base, requests)
}

fn folder_with_settings(base: &str, vision: bool) -> ExtractFolder {
    let model = if vision { "ocr:\n  vision_model: here/seer\n" } else { "" };
    let settings = format!(
        "providers:\n  detect_ports: []\n  here:\n    type: openai\n    base_url: {base}\n    api_key: key\n{model}"
    );
    ExtractFolder::with_files([("harbour.png", &sample_files::png() as &[u8]), ("corbie.yaml", settings.as_bytes())])
}

#[test]
fn k10_no_picture_leaves_the_machine_unless_a_model_is_named() {
    let (base, requests) = vision_provider();
    let read = folder_with_settings(&base, false).json("--config corbie.yaml harbour.png");
    assert_eq!(read["error"], Value::Null, "{read}");
    assert!(!page_texts(&read)[0].contains("lighthouse"));
    assert!(requests.try_recv().is_err());
}

#[test]
fn k10_a_named_model_describes_pictures_without_words() {
    let (base, requests) = vision_provider();
    let read = folder_with_settings(&base, true).json("--config corbie.yaml harbour.png");
    assert!(page_texts(&read)[0].starts_with("A red lighthouse on a rock."), "{read}");
    assert!(page_texts(&read)[0].contains("harbour"), "{read}");
    let request = requests.try_recv().unwrap();
    let parts = request["messages"][0]["content"].as_array().unwrap();
    let url = parts.iter().find_map(|part| part["image_url"]["url"].as_str()).unwrap();
    assert!(url.starts_with("data:image/png;base64,"), "{url}");
    assert!(requests.try_recv().is_err());
}

#[test]
fn a_model_that_cannot_be_asked_is_a_warning() {
    let read = folder_with_settings("http://127.0.0.1:9/v1", true)
        .variable("CORBIE_ROUTER__TIMEOUT", "1s")
        .json("--config corbie.yaml harbour.png");
    assert_eq!(read["error"], Value::Null, "{read}");
    assert!(read["warnings"][0]["message"].as_str().unwrap().contains("image description failed"), "{read}");
    assert!(page_texts(&read)[0].contains("harbour"), "{read}");
}

#[test]
fn k10_a_picture_that_was_not_looked_at_stays_where_it_is() {
    let (base, requests) = vision_provider();
    for (flags, engine) in [("--ocr=off", "builtin"), ("", "off"), ("", "tesseract")] {
        let files = folder_with_settings(&base, true).ocr_setting("engine", engine).variable("PATH", "/nowhere");
        let read = files.json(&format!("{flags} --config corbie.yaml harbour.png"));
        assert!(page_texts(&read)[0].contains("harbour") && !page_texts(&read)[0].contains("lighthouse"), "{read}");
    }
    assert!(requests.try_recv().is_err());
}
