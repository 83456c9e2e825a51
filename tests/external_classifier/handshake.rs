//! C-61, X-44: the handshake in each style.

use corbie::external_classifier::{Error, State};

use crate::fake_classifier::{Behaviour, ClassifyBehaviour, FakeClassifier, Style, verdict};
use crate::{client, client_of, wait_for_state};

#[tokio::test]
async fn c61_x44_a_server_is_greeted_looked_over_and_asked_in_every_style() {
    for (style, transport, greeted) in [
        (Style::Rest, "http", 1),
        // The REST style is tried first for the handshake; such a server does not see that attempt.
        (Style::JsonRpc, "http", 1),
        (Style::JsonRpc, "streamable-http", 1),
        (Style::Events, "http", 1),
        (Style::Events, "streamable-http", 1),
    ] {
        let fake = FakeClassifier::start(Behaviour { style, ..Behaviour::default() }).await;
        let remote = client_of(&fake.url(), &format!("transport: {transport}"));
        assert_eq!(remote.state(), State::Starting);
        let verdict = remote.classify("Is this contract valid?").await.unwrap();
        assert_eq!((verdict.class, verdict.category(), verdict.confidence), (1, "law", 0.9));
        assert_eq!((&*verdict.model, verdict.use_reasoning), ("acme/lawyer", true));
        assert_eq!(verdict.categories.system_prompt("law"), Some("You know the law."));
        assert_eq!(remote.state(), State::Ready { categories: 3 });
        let asked = fake.take_requests();
        assert_eq!(asked.iter().filter(|asked| *asked == "initialize").count(), greeted);
        assert_eq!(asked[1..], ["tools/list", "tools/call list_categories", "tools/call classify_text"]);
    }
}

#[tokio::test]
async fn c61_following_a_server_makes_it_ready_before_the_first_prompt() {
    let fake = FakeClassifier::start(Behaviour::default()).await;
    let remote = client_of(&fake.url(), "");
    let following = tokio::spawn(remote.clone().run());
    assert_eq!(wait_for_state(&remote, |state| *state != State::Starting).await, State::Ready { categories: 3 });
    assert_eq!(fake.take_requests(), ["initialize", "tools/list", "tools/call list_categories"]);
    assert_eq!(remote.categories().await.unwrap().names(), ["math", "law", "general"]);
    remote.classify("hello").await.unwrap();
    assert_eq!(fake.take_requests(), ["tools/call classify_text"]);
    following.abort();
}

#[tokio::test]
async fn c61_many_prompts_at_once_start_the_server_once() {
    let fake = FakeClassifier::start(Behaviour::default()).await;
    let remote = client_of(&fake.url(), "");
    let texts: Vec<String> = (0..20).map(|number| format!("text {number}")).collect();
    let verdicts = futures_util::future::join_all(texts.iter().map(|text| remote.classify(text))).await;
    assert!(verdicts.iter().all(Result::is_ok));
    assert_eq!(fake.take_requests().iter().filter(|asked| *asked == "initialize").count(), 1);
}

#[tokio::test]
async fn c61_c62_f22_a_tool_that_is_missing_is_named_and_names_can_be_set() {
    let tools = vec!["drawers", "sort"];
    let fake = FakeClassifier::start(Behaviour { tools, ..Behaviour::default() }).await;
    let missing = client_of(&fake.url(), "tools: {list_categories: drawers}").classify("hello").await.unwrap_err();
    let key = "classification.mcp_server.tools.classify";
    assert_eq!(missing, Error::MissingTool { tool: "classify_text".into(), key });
    let named = client_of(&fake.url(), "tools: {classify: sort, list_categories: drawers}");
    assert_eq!(named.classify("hello").await.unwrap().class, 1);
}

#[tokio::test]
async fn c60_f31_the_older_section_reaches_the_same_server() {
    let fake = FakeClassifier::start(Behaviour::default()).await;
    let yaml = format!("classifier: {{mcp_category_model: {{enabled: true, url: '{}'}}}}", fake.url());
    assert_eq!(client(&yaml, &[]).classify("hello").await.unwrap().class, 1);
}

#[tokio::test]
async fn c62_f26_headers_go_with_every_request() {
    for style in [Style::Rest, Style::JsonRpc] {
        let fake =
            FakeClassifier::start(Behaviour { style, authorization: Some("Bearer sk-1"), ..Behaviour::default() })
                .await;
        let yaml = format!(
            "classification: {{type: mcp, mcp_server: {{url: '{}', headers: {{Authorization: 'Bearer ${{KEY}}'}}}}}}",
            fake.url()
        );
        assert_eq!(client(&yaml, &[("KEY", "sk-1")]).classify("hello").await.unwrap().class, 1);
        let refused = client(&yaml, &[("KEY", "sk-wrong")]);
        let error = refused.classify("hello").await.unwrap_err();
        assert_eq!(error, Error::Refused { status: 401 });
        assert_eq!(refused.state(), State::Down(error.clone()));
        assert!(!format!("{error} {error:?} {refused:?}").contains("sk-"));
    }
}

#[tokio::test]
async fn c62_f27_a_server_with_another_number_of_categories_is_not_used() {
    let fake = FakeClassifier::start(Behaviour::default()).await;
    let of_five =
        |url: String| format!("classification: {{type: mcp, num_categories: 5, mcp_server: {{url: '{url}'}}}}");
    let remote = client(&of_five(fake.url()), &[]);
    let wrong = Error::CategoryCountMismatch { expected: 5, found: 3 };
    assert_eq!(remote.classify("hello").await.unwrap_err(), wrong);
    assert_eq!(remote.state(), State::Down(wrong));
    assert!(!fake.take_requests().contains(&"tools/call classify_text".to_owned()));
    fake.set_categories(serde_json::json!(["a", "b", "c", "d", "e"]));
    fake.set_classify(ClassifyBehaviour::Answers(verdict(4)));
    assert_eq!(remote.classify("hello").await.unwrap().category(), "e");
}
