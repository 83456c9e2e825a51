//! An OpenAI request for a provider of another protocol: everything in it is translated, or the request is rejected by
//! name. No part is dropped silently.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use corbie::providers::chat::UnsupportedPart;
use corbie::providers::{Error, HttpRequest, UnsupportedParameters, UnsupportedRequest, openai};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::protocol_fixture::{ANTHROPIC, GOOGLE, ProtocolFixture};

/// Translates a caller's request for a provider.
fn translate(player: &ProtocolFixture, body: &Value) -> Result<HttpRequest, Error> {
    let chat = openai::parse(body.as_object().unwrap().clone()).unwrap();
    player.request(&chat, &player.endpoint(), UnsupportedParameters::default())
}

fn request_with_parts(parts: &[Value]) -> Value {
    json!({"model": "any", "messages": [{"role": "user", "content": parts}]})
}

/// Every kind of part in OpenAI's format, and some unknown ones, each with a marker; and whether Anthropic and Google
/// support it.
fn content_parts(mark: &str) -> Vec<(Value, [bool; 2])> {
    let encoded = STANDARD.encode(mark);
    let url = |media_type: &str| format!("data:{media_type};base64,{encoded}");
    let file = |media_type: &str| json!({"type": "file", "file": {"filename": "a", "file_data": url(media_type)}});
    let image = |url: String| json!({"type": "image_url", "image_url": {"url": url}});
    vec![
        (json!({"type": "text", "text": mark}), [true, true]),
        (json!({"type": "refusal", "refusal": mark}), [true, true]),
        (image(format!("https://example.org/{mark}.png")), [true, true]),
        (image(url("image/png")), [true, true]),
        (json!({"type": "image_url", "image_url": {"detail": mark}}), [false, false]),
        (file("application/pdf"), [true, true]),
        (file("text/plain"), [true, true]),
        (file("Text/Markdown;charset=utf-8"), [true, true]),
        (file("application/msword"), [false, true]),
        (json!({"type": "file", "file": {"file_id": mark}}), [false, false]),
        (json!({"type": "file", "file": {"filename": mark, "file_data": "bare"}}), [false, false]),
        (json!({"type": "input_audio", "input_audio": {"data": encoded, "format": "wav"}}), [false, true]),
        (json!({"type": "input_audio", "input_audio": {"data": encoded}}), [false, false]),
        (json!({"type": "text", "words": mark}), [false, false]),
        (json!({"type": mark}), [false, false]),
        (json!({"said": mark}), [false, false]),
        (json!(mark), [false, false]),
    ]
}

proptest! {
    #[test]
    fn every_part_is_put_into_the_other_protocol_or_refused(
        chosen in prop::collection::vec(0..content_parts("").len(), 1..4),
        in_result in any::<bool>(),
    ) {
        let marks: Vec<String> = (0..chosen.len()).map(|place| format!("mark-{place}")).collect();
        let parts: Vec<(Value, [bool; 2])> =
            chosen.iter().zip(&marks).map(|(kind, mark)| content_parts(mark).swap_remove(*kind)).collect();
        let content: Vec<&Value> = parts.iter().map(|(part, _)| part).collect();
        let body = match in_result {
            false => json!({"model": "any", "messages": [{"role": "user", "content": content}]}),
            true => json!({"model": "any", "messages": [
                {"role": "user", "content": "Look."},
                {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "look", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "1", "content": content},
            ]}),
        };
        for (place, player) in [ANTHROPIC, GOOGLE].iter().enumerate() {
            let is_taken = parts.iter().all(|(_, taken)| taken[place]);
            match translate(player, &body) {
                Ok(request) => {
                    prop_assert!(is_taken, "{body}");
                    let sent = String::from_utf8(request.body().to_vec()).unwrap();
                    for mark in &marks {
                        prop_assert!(sent.contains(mark) || sent.contains(&STANDARD.encode(mark)), "{mark} in {sent}");
                    }
                }
                Err(Error::Unsupported(what)) => {
                    prop_assert!(!is_taken, "{what} for {body}");
                    prop_assert_eq!(what.parameter(), "messages");
                }
                Err(error) => prop_assert!(false, "{error:?}"),
            }
        }
    }
}

#[test]
fn what_is_refused_is_named() {
    let check = |player: ProtocolFixture, part: Value, expected: UnsupportedRequest, named: &str| {
        assert!(expected.to_string().contains(named), "{expected}");
        assert_eq!(translate(&player, &request_with_parts(&[part])).unwrap_err(), Error::Unsupported(expected));
    };
    let sound = json!({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}});
    let word = json!({"type": "file", "file": {"file_data": "data:application/msword;base64,AAAA"}});
    // Not text: UTF-8 never contains the byte 255.
    let broken = json!({"type": "file", "file": {"file_data": "data:text/plain;base64,/w=="}});
    check(ANTHROPIC, sound, UnsupportedRequest::Audio, "`input_audio`");
    check(ANTHROPIC, word, UnsupportedRequest::File("application/msword".into()), "`application/msword`");
    check(ANTHROPIC, broken, UnsupportedRequest::File("text/plain".into()), "UTF-8");
    for player in [ANTHROPIC, GOOGLE] {
        let unread =
            |part: Value, why: UnsupportedPart, named: &str| check(player, part, UnsupportedRequest::Part(why), named);
        unread(json!({"type": "file", "file": {"file_id": "file-1"}}), UnsupportedPart::FileId, "`file_id`");
        unread(json!({"type": "bogus"}), UnsupportedPart::Type("bogus".into()), "`bogus`");
        unread(json!({"type": "b".repeat(999)}), UnsupportedPart::Type("b".repeat(64)), "`bbb");
        unread(json!({}), UnsupportedPart::Type(String::new()), "no `type`");
        unread(json!({"type": "image_url"}), UnsupportedPart::Content("image_url".into()), "`image_url`");
        unread(json!({"type": "file", "file": {}}), UnsupportedPart::Content("file".into()), "`file_data`");
    }
}

#[test]
fn what_is_no_part_of_a_list_is_not_left_out_either() {
    // Instructions that are not text, audio stored by the provider, and invalid content.
    let image = json!({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}});
    let hello = json!({"role": "user", "content": "Hello"});
    let system = json!({"model": "any", "messages": [{"role": "system", "content": [image]}, hello]});
    let audio = json!({"role": "assistant", "content": null, "audio": {"id": "audio_1"}});
    let said = json!({"model": "any", "messages": [hello, audio, hello]});
    let number = json!({"model": "any", "messages": [{"role": "user", "content": 7}]});
    for player in [ANTHROPIC, GOOGLE] {
        assert_eq!(translate(&player, &system).unwrap_err(), Error::Unsupported(UnsupportedRequest::Instructions));
        let unread = UnsupportedRequest::Part(UnsupportedPart::Type("audio".into()));
        assert_eq!(translate(&player, &said).unwrap_err(), Error::Unsupported(unread));
        let unread = UnsupportedRequest::Part(UnsupportedPart::Type(String::new()));
        assert_eq!(translate(&player, &number).unwrap_err(), Error::Unsupported(unread));
    }
}

#[test]
fn one_answer_is_given_and_more_are_refused() {
    for player in [ANTHROPIC, GOOGLE] {
        for (n, taken) in [(json!(null), true), (json!(1), true), (json!(2), false)] {
            let mut body = request_with_parts(&[json!({"type": "text", "text": "Hello"})]);
            body["n"] = n.clone();
            let expected = if taken { None } else { Some(Error::Unsupported(UnsupportedRequest::Choices)) };
            assert_eq!(translate(&player, &body).err(), expected, "{n}");
        }
    }
    assert_eq!(UnsupportedRequest::Choices.parameter(), "n");
}

#[test]
fn settings_of_openais_reach_those_who_have_them() {
    let caller: Map<String, Value> = crate::protocol_fixture::OPENAI.json("settings.caller.json");
    let chat = openai::parse(caller).unwrap();
    for player in [ANTHROPIC, GOOGLE] {
        player.check("settings.crossed.json", player.request_body(&chat, UnsupportedParameters::default()));
    }
}
