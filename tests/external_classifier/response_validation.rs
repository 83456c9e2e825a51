//! Validation of classification server responses.

use corbie::external_classifier::{Error, State};
use serde_json::json;

use crate::client_of;
use crate::fake_classifier::{Behaviour, ClassifyBehaviour, FakeClassifier, Style, verdict};

#[tokio::test]
async fn c61_an_answer_that_breaks_the_rules_is_not_used() {
    let fake = FakeClassifier::start(Behaviour::default()).await;
    for answer in [
        json!({"class": 0}),
        json!({"class": 0, "confidence": 7, "model": "m", "use_reasoning": false}),
        json!({"class": 0, "confidence": 0.7, "model": "m", "use_reasoning": false, "probabilities": [0.1, 0.1, 0.1]}),
    ] {
        let remote = client_of(&fake.url(), "");
        fake.set_classify(ClassifyBehaviour::Answers(answer));
        assert!(matches!(remote.classify("hello").await, Err(Error::Invalid(_))));
        assert!(remote.state().is_ready(), "one bad answer is no reason to give it up");
    }
}

#[tokio::test]
async fn c61_an_error_of_the_tool_is_an_error_in_every_form() {
    let flagged = json!({"content": [{"type": "text", "text": "the disk of db-7 is full"}], "isError": true});
    for style in [Style::Rest, Style::JsonRpc, Style::Events] {
        let fake = FakeClassifier::start(Behaviour { style, ..Behaviour::default() }).await;
        let remote = client_of(&fake.url(), "");
        for classify in [
            ClassifyBehaviour::Answers(json!({"error": "db-7"})),
            ClassifyBehaviour::Results(flagged.clone()),
            ClassifyBehaviour::Fails,
        ] {
            fake.set_classify(classify);
            let error = remote.classify("hello").await.unwrap_err();
            assert_eq!(error, Error::Tool { tool: "classify_text".into() });
            assert!(!format!("{error:?}").contains("db-7"));
        }
        // Such errors may concern the text, so they do not open the circuit breaker.
        assert_eq!(remote.state(), State::Ready { categories: 3 });
        fake.set_classify(ClassifyBehaviour::Answers(verdict(0)));
        assert_eq!(remote.classify("hello").await.unwrap().class, 0);
    }
}

#[tokio::test]
async fn c61_structured_content_is_read_where_there_is_no_text() {
    let fake = FakeClassifier::start(Behaviour::default()).await;
    fake.set_classify(ClassifyBehaviour::Results(json!({"content": [], "structuredContent": verdict(2)})));
    assert_eq!(client_of(&fake.url(), "").classify("hello").await.unwrap().category(), "general");
}

#[tokio::test]
async fn c61_what_is_no_answer_is_told_as_that() {
    let fake = FakeClassifier::start(Behaviour::default()).await;
    for (classify, expected) in [
        (ClassifyBehaviour::Results(json!({"content": []})), Error::Unreadable("result is not a JSON object")),
        (ClassifyBehaviour::Status(500), Error::Status { status: 500 }),
        (ClassifyBehaviour::Status(403), Error::Refused { status: 403 }),
    ] {
        fake.set_classify(classify);
        assert_eq!(client_of(&fake.url(), "").classify("hello").await.unwrap_err(), expected);
    }
    let huge = json!({"content": [{"type": "text", "text": "x".repeat(5 << 20)}]});
    fake.set_classify(ClassifyBehaviour::Results(huge));
    let too_large = client_of(&fake.url(), "").classify("hello").await.unwrap_err();
    assert_eq!(too_large, Error::Unreadable("response is larger than 4 MiB"));
}

#[tokio::test]
async fn c62_a_class_beyond_the_list_asks_for_the_list_once_more() {
    let fake = FakeClassifier::start(Behaviour::default()).await;
    let remote = client_of(&fake.url(), "");
    remote.classify("hello").await.unwrap();
    fake.take_requests();

    fake.set_categories(json!(["math", "law", "general", "cooking"]));
    fake.set_classify(ClassifyBehaviour::Answers(verdict(3)));
    assert_eq!(remote.classify("How long do eggs boil?").await.unwrap().category(), "cooking");
    assert_eq!(fake.take_requests(), ["tools/call classify_text", "tools/call list_categories"]);
    assert_eq!(remote.state(), State::Ready { categories: 4 });

    fake.set_classify(ClassifyBehaviour::Answers(verdict(9)));
    assert!(matches!(remote.classify("something else").await, Err(Error::Invalid(_))));
    assert_eq!(fake.take_requests(), ["tools/call classify_text", "tools/call list_categories"]);
}
