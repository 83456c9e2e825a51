//! Trust checks before every tool, for each level and over each transport.

mod fixture;

use corbie_mcp::transport::http::{Http, Options};
use corbie_mcp::transport::{Auth, Token, TrustedProxies};
use corbie_mcp::{AuditOutcome, Server, TrustLevel};
use fixture::WipeCounter;
use fixture::peer::{self, JSON, TestTransport, call, json_of, request, text_of};
use serde_json::{Value, json};
use tokio::net::TcpListener;

const LEVELS: [TrustLevel; 3] = [TrustLevel::Untrusted, TrustLevel::Verified, TrustLevel::Trusted];

fn families(wiped: &WipeCounter) -> Server {
    fixture::families(wiped.clone()).build().expect("valid")
}

// === trust checks ===

#[tokio::test]
async fn m85_v10_a_destructive_tool_runs_for_trusted_callers_alone_over_every_transport() {
    for way in TestTransport::ALL {
        for trust in LEVELS {
            let wiped = WipeCounter::default();
            let answer = way.request(&families(&wiped), trust, &call(1, "wipe", json!({}))).await;
            let allowed = trust == TrustLevel::Trusted;
            assert_eq!(answer["result"]["isError"] == false, allowed, "{trust} over {way:?}: {answer}");
            assert_eq!(answer["error"]["code"] == -32010, !allowed, "{trust} over {way:?}");
            assert_eq!(wiped.count(), usize::from(allowed), "{trust} over {way:?}");
        }
    }
}

#[tokio::test]
async fn m85_x17_e14_a_refusal_is_a_json_rpc_error_and_a_403_in_rest_style() {
    for (way, status) in [(TestTransport::Http, 200), (TestTransport::Rest, 403)] {
        let answer = way.request(&fixture::server(), TrustLevel::Verified, &call(1, "wipe", json!({}))).await;
        assert_eq!((&answer["status"], &answer["error"]["code"]), (&json!(status), &json!(-32010)), "{way:?}");
    }
}

#[tokio::test]
async fn m85_an_alias_leads_through_the_same_gate() {
    let wiped = WipeCounter::default();
    let remove = call(1, "knowledge_remove", json!({ "document_id": "d" }));
    let answer = TestTransport::Stdio.request(&families(&wiped), TrustLevel::Verified, &remove).await;
    assert_eq!((&answer["error"]["code"], wiped.count()), (&json!(-32010), 0));
}

#[tokio::test]
async fn m85_a_batch_leads_through_the_same_gate() {
    let wiped = WipeCounter::default();
    let batch = json!([call(1, "wipe", json!({})), call(2, "echo", json!({ "text": "hi" }))]);
    let answers = TestTransport::Stdio.request(&families(&wiped), TrustLevel::Untrusted, &batch).await;
    let of = |id: i64| answers.as_array().expect("array").iter().find(|one| one["id"] == id).expect("answered").clone();
    assert_eq!((&of(1)["error"]["code"], text_of(&of(2)), wiped.count()), (&json!(-32010), "hi", 0));
}

#[tokio::test]
async fn m95_each_state_allows_what_it_should_and_no_more() {
    for (tool, needed) in
        [("echo", TrustLevel::Untrusted), ("remember", TrustLevel::Verified), ("wipe", TrustLevel::Trusted)]
    {
        for trust in LEVELS {
            let answer =
                TestTransport::Stdio.request(&fixture::server(), trust, &call(1, tool, json!({ "text": "hi" }))).await;
            assert_eq!(answer["result"]["isError"] == false, trust >= needed, "{tool} for {trust}");
        }
    }
}

// === rejection messages ===

#[tokio::test]
async fn m97_a_refusal_names_the_tool_the_state_and_the_way_out() {
    let answer =
        TestTransport::Stdio.request(&fixture::server(), TrustLevel::Verified, &call(1, "wipe", json!({}))).await;
    let message = answer["error"]["message"].as_str().expect("a message");
    for word in ["`wipe`", "`verified`", "`trusted`", "operator", "--trust"] {
        assert!(message.contains(word), "{word} is not in {message}");
    }
    assert_eq!(
        answer["error"]["data"],
        json!({
            "error_type": "TrustDenied",
            "details": { "tool": "wipe", "trust": "VERIFIED", "required": "TRUSTED" },
        })
    );
}

#[tokio::test]
async fn m97_a_refusal_leaves_nothing_but_a_line_in_the_audit_log() {
    let wiped = WipeCounter::default();
    let server = families(&wiped);
    TestTransport::Stdio.request(&server, TrustLevel::Untrusted, &call(1, "wipe", json!({}))).await;
    assert_eq!(wiped.count(), 0);
    let logged = server.audit().latest(10);
    assert_eq!(logged.len(), 1);
    assert_eq!((logged[0].outcome, logged[0].trust), (AuditOutcome::Blocked, TrustLevel::Untrusted));
}

#[tokio::test]
async fn x17_a_refusal_reveals_nothing_the_tool_would_have_said() {
    let server = families(&WipeCounter::default());
    let unconfirmed = call(1, "knowledge-clear", json!({ "confirm": false }));
    let refused = TestTransport::Stdio.request(&server, TrustLevel::Verified, &unconfirmed).await;
    assert_eq!(refused["error"]["code"], -32010);
    assert!(!refused.to_string().contains("7 documents"));
    let asked = TestTransport::Stdio.request(&server, TrustLevel::Trusted, &unconfirmed).await;
    assert_eq!(json_of(&asked)["error"], "confirmation_required");
}

#[tokio::test]
async fn x17_the_schema_is_checked_before_trust() {
    let server = families(&WipeCounter::default());
    for trust in LEVELS {
        let answer = TestTransport::Stdio
            .request(&server, trust, &call(1, "knowledge-remove", json!({ "document_id": 7 })))
            .await;
        assert_eq!(json_of(&answer)["error"], "invalid_parameter", "{trust}");
    }
}

// === destructive tools ===

#[tokio::test]
async fn m99_of_the_knowledge_tools_remove_and_clear_are_destructive() {
    let server = families(&WipeCounter::default());
    let listed = peer::request_over_stdio(&server, &request(1, "tools/list", json!({}))).await;
    let destructive: Vec<&Value> = listed["result"]["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .filter(|tool| tool["metadata"]["destructive"] == true && tool["annotations"]["destructiveHint"] == true)
        .map(|tool| &tool["name"])
        .filter(|name| name.as_str().is_some_and(|name| name.starts_with("knowledge")))
        .collect();
    assert_eq!(destructive, ["knowledge-remove", "knowledge-clear"]);
}

#[tokio::test]
async fn m99_v10_both_are_refused_below_trusted_and_run_for_trusted() {
    for (tool, arguments) in
        [("knowledge-remove", json!({ "document_id": "d" })), ("knowledge-clear", json!({ "confirm": true }))]
    {
        for trust in LEVELS {
            let wiped = WipeCounter::default();
            let answer =
                TestTransport::Stdio.request(&families(&wiped), trust, &call(1, tool, arguments.clone())).await;
            assert_eq!(wiped.count(), usize::from(trust == TrustLevel::Trusted), "{tool} for {trust}: {answer}");
        }
    }
}

// === changing the trust level ===

#[tokio::test]
async fn m96_nothing_a_caller_sends_raises_its_trust() {
    let wiped = WipeCounter::default();
    let server = families(&wiped);
    let port = fixture::listen(&server, fixture::with_trust(TrustLevel::Untrusted)).await;
    let claims = json!({ "trust": "TRUSTED", "trusted": true, "experimental": { "trust": "TRUSTED" } });
    let opened = peer::initialize("2025-11-25", claims.clone());
    let headers = [peer::JSON, ("x-trust", "trusted"), ("trust", "trusted"), ("authorization", "Bearer trusted")];
    let opened = peer::http(port, "POST", "/mcp", &headers, &opened.to_string()).await;
    let session = opened.headers["mcp-session-id"].clone();

    let mut wipe = call(1, "wipe", claims.clone());
    wipe["params"]["_meta"] = claims.clone();
    wipe["params"]["trust"] = json!("TRUSTED");
    wipe["trust"] = json!("TRUSTED");
    let headers = [&headers[..], &[("mcp-session-id", session.as_str())]].concat();
    let answer = peer::http(port, "POST", "/mcp?trust=trusted", &headers, &wipe.to_string()).await.json();
    assert_eq!((&answer["error"]["code"], wiped.count()), (&json!(-32010), 0));
}

#[tokio::test]
async fn m96_no_tool_raises_the_trust_of_its_caller() {
    let wiped = WipeCounter::default();
    let server = families(&wiped);
    let port = fixture::listen(&server, fixture::with_trust(TrustLevel::Verified)).await;
    let names: Vec<_> = server.registry().iter().map(|tool| tool.name().to_owned()).collect();
    for name in names.iter().filter(|name| *name != "wait") {
        peer::post(port, &call(1, name, json!({ "trust": "TRUSTED", "text": "trusted", "name": "wipe" }))).await;
    }
    let told = peer::post(port, &call(2, "inspect_server", json!({}))).await.json();
    assert_eq!((&json_of(&told)["trust"], wiped.count()), (&json!("VERIFIED"), 0));
}

// === source of the trust level ===

#[tokio::test]
async fn x16_the_state_belongs_to_the_connection_and_is_told() {
    for way in TestTransport::ALL {
        for (trust, word) in LEVELS.into_iter().zip(["UNTRUSTED", "VERIFIED", "TRUSTED"]) {
            let told = way.request(&fixture::server(), trust, &call(1, "inspect_server", json!({}))).await;
            assert_eq!(json_of(&told)["trust"], word, "{way:?}");
        }
    }
}

#[tokio::test]
async fn x16_loopback_is_trusted_and_other_addresses_are_verified_unless_said_otherwise() {
    let trust_of = async |address: &str, options: Options| {
        let listener = TcpListener::bind((address, 0)).await.expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let http = Http::new(fixture::server(), options);
        tokio::spawn(async move { http.serve(listener).await });
        let headers = [peer::JSON, ("authorization", "Bearer secret")];
        let inspect = call(1, "inspect_server", json!({})).to_string();
        json_of(&peer::http(port, "POST", "/mcp", &headers, &inspect).await.json())["trust"].take()
    };
    let token = || Options { auth: Auth::bearer(["secret"]), ..Options::default() };
    assert_eq!(trust_of("127.0.0.1", Options::default()).await, "TRUSTED");
    assert_eq!(trust_of("0.0.0.0", token()).await, "VERIFIED");
    let raised = Options { trust_remote: TrustLevel::Trusted.into(), ..token() };
    assert_eq!(trust_of("0.0.0.0", raised).await, "TRUSTED");
}

#[test]
fn x16_an_operator_writes_the_state_in_one_word() {
    for (word, trust) in ["untrusted", "verified", "trusted"].into_iter().zip(LEVELS) {
        assert_eq!(word.parse(), Ok(trust));
        assert_eq!(word.to_uppercase().parse(), Ok(trust));
    }
    let refused = "root".parse::<TrustLevel>().expect_err("not a state");
    assert!(["root", "untrusted", "verified", "trusted"].iter().all(|word| refused.contains(word)), "{refused}");
}

#[tokio::test]
async fn x16_f35_a_token_can_be_trusted_further_than_its_listener() {
    let wiped = WipeCounter::default();
    let server = fixture::builder(wiped.clone()).build().expect("valid");
    let tokens = vec![
        Token::new("guest", "guest-secret", None),
        Token::new("operator", "operator-secret", Some(TrustLevel::Trusted)),
    ];
    let options = Options { auth: Auth::tokens(tokens), ..fixture::with_trust(TrustLevel::Untrusted) };
    let port = fixture::listen(&server, options).await;
    let wipe = peer::call(1, "wipe", json!({})).to_string();
    let guest = peer::http(port, "POST", "/mcp", &[JSON, ("authorization", "Bearer guest-secret")], &wipe).await;
    assert_eq!((guest.json()["error"]["code"].clone(), wiped.count()), (json!(-32010), 0));
    let operator = peer::http(port, "POST", "/mcp", &[JSON, ("authorization", "Bearer operator-secret")], &wipe).await;
    assert_eq!((operator.json()["result"]["isError"].clone(), wiped.count()), (json!(false), 1));
    let callers: Vec<_> = server.audit().latest(2).into_iter().map(|entry| entry.caller.to_string()).collect();
    assert_eq!(callers, ["token:operator", "token:guest"]);
}

#[tokio::test]
async fn x16_a_caller_behind_a_trusted_proxy_is_not_of_this_machine() {
    let inspect = async |options: Options, headers: &[(&str, &str)]| {
        let port = fixture::listen(&fixture::server(), options).await;
        let call = call(1, "inspect_server", json!({})).to_string();
        json_of(&peer::http(port, "POST", "/mcp", &[&[peer::JSON], headers].concat(), &call).await.json())["trust"]
            .take()
    };
    let levels = || Options {
        trust_loopback: TrustLevel::Trusted.into(),
        trust_remote: TrustLevel::Untrusted.into(),
        ..Options::default()
    };
    let proxied = || Options { trusted_proxies: TrustedProxies::new(|address| address.is_loopback()), ..levels() };
    for header in [("x-forwarded-for", "203.0.113.7"), ("forwarded", "for=127.0.0.1"), ("x-forwarded-for", "unknown")] {
        assert_eq!(inspect(proxied(), &[header]).await, "UNTRUSTED", "{header:?}");
        assert_eq!(inspect(levels(), &[header]).await, "TRUSTED", "without a trusted proxy the header is ignored");
    }
    assert_eq!(inspect(proxied(), &[]).await, "TRUSTED", "the proxy's own call");
}
