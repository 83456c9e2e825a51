//! P-21: egress policy: allowed and forbidden destinations.

use axum::http::Request;
use corbie::providers::http_client::HttpClient;
use corbie::providers::{Error, NetworkError};
use corbie_mcp::Era;
use serde_json::json;
use tokio::time::Instant;

use crate::fixture::{app, complete};
use crate::process::{TEST_TIMEOUT, corbie};
use crate::upstream::{FakeUpstream, ScriptedServer, listing, write_json};

#[test]
fn p21_a_url_that_names_the_metadata_of_a_cloud_is_a_mistake_at_the_start() {
    for (key, settings) in [
        ("providers.cloud.base_url", json!({ "providers": { "cloud": { "base_url": "http://169.254.169.254/v1" } } })),
        ("providers.cloud.base_url", json!({ "providers": { "cloud": { "base_url": "http://[fd00:ec2::254]/v1" } } })),
        ("providers.cloud.base_url", json!({ "providers": { "cloud": { "base_url": "http://2852039166/v1" } } })),
        ("providers.openai.proxy", json!({ "providers": { "openai": { "proxy": "http://100.100.100.200:80" } } })),
        (
            "classification.mcp_server.url",
            json!({ "classification": { "type": "mcp", "mcp_server": { "url": "http://0.0.0.0:8090/mcp" } } }),
        ),
        (
            "classifier.mcp_category_model.url",
            json!({ "classifier": { "mcp_category_model": { "enabled": true, "url": "http://[fe80::1]/mcp" } } }),
        ),
    ] {
        for arguments in ["serve --port 0", "config validate", "ask hello"] {
            let ended = corbie(arguments).file("corbie.json", &settings.to_string()).run("");
            assert_ne!(ended.code, Some(0), "{arguments}: {ended:?}");
            let told = format!("{}{}", ended.stdout, ended.stderr);
            assert!(told.contains(&format!("{key}: is blocked by the egress policy")), "{arguments}: {told}");
            assert!(told.contains("`network.allowed_addresses`"), "{arguments}: {told}");
        }
    }
}

#[test]
fn p21_the_operator_can_allow_an_address_and_a_block_that_is_none_is_a_mistake() {
    let settings = |allowed: &str| {
        let provider = json!({ "base_url": "http://169.254.10.7/v1" });
        json!({ "providers": { "near": provider }, "network": { "allowed_addresses": [allowed] } }).to_string()
    };
    for (allowed, code) in [("169.254.10.0/24", 0), ("169.254.10.7", 0), ("169.254.11.0/24", 1), ("169.254.10.0/33", 1)]
    {
        let ended = corbie("config validate").file("corbie.json", &settings(allowed)).run("");
        assert_eq!(ended.code, Some(code), "{allowed}: {ended:?}");
    }
}

/// The proxy would see the destination; a forbidden address is rejected before the proxy is contacted.
#[tokio::test(flavor = "multi_thread")]
async fn p21_no_proxy_is_asked_for_the_metadata_of_a_cloud() {
    let proxy = ScriptedServer::start(|_, connection| write_json(connection, &json!({})));
    let client = HttpClient::default();
    let through = client.with_proxy(&format!("http://127.0.0.1:{}", proxy.port).parse().unwrap());
    let to_nowhere = client.with_proxy(&format!("http://0.0.0.0:{}", proxy.port).parse().unwrap());
    for (client, url) in [
        (&through, "http://169.254.169.254/latest"),
        (&through, "https://[::ffff:169.254.169.254]/latest"),
        (&to_nowhere, "http://far.invalid/"),
    ] {
        let request = Request::get(url).body(Default::default()).unwrap();
        let error = client.send(request, Instant::now() + TEST_TIMEOUT).await.unwrap_err();
        assert_eq!(error, Error::Network(NetworkError::EgressDenied), "{url}");
    }
    assert!(proxy.requests().is_empty());
}

/// An environment variable must not be able to redirect the traffic of the process.
#[test]
fn p21_variables_for_proxies_are_not_read() {
    let (upstream, proxy) = (FakeUpstream::start(), ScriptedServer::answering(|_| listing(&["m"])));
    let settings = json!({ "providers": { "house": upstream.provider("openai-compatible") } });
    let mut setup = corbie("ask --model house/echo-small hello").file("corbie.json", &settings.to_string());
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
        setup = setup.variable(name, format!("http://127.0.0.1:{}", proxy.port));
    }
    let ended = setup.run("");
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "echo: hello\n"), "{ended:?}");
    assert!(proxy.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn p21_a_provider_at_an_address_that_is_allowed_is_asked() {
    let upstream = FakeUpstream::start();
    let mut provider = upstream.provider("openai-compatible");
    let base = provider["base_url"].as_str().unwrap().replace("127.0.0.1", "0.0.0.0");
    provider["base_url"] = base.into();
    let app = app(json!({
        "providers": { "house": provider },
        "network": { "allowed_addresses": ["0.0.0.0"] },
    }));
    let answered = complete(&app, json!({ "prompt": "Hello", "model": "house/echo-small" })).await;
    let answered = answered.unwrap_or_else(|error| panic!("{:?}", error.to_object(Era::Legacy)));
    assert_eq!(answered["message"]["content"], "echo: Hello");
}
