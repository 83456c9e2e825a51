//! Dynamic resources: listed in pages after the static ones, counted, and read through a template.

mod fixture;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use corbie_mcp::{
    Context, Error, Limits, PageRequest, Resource, ResourceContents, ResourceLister, ResourceListing, ResourcePage,
    ResourceTemplate, Server, ServerBuilder, TrustLevel, Variables,
};
use fixture::peer::{Stdio, TestTransport, initialize, modern, request, request_over_stdio};
use serde_json::{Value, json};

/// A store with `count` documents that records the number of list requests.
#[derive(Debug, Clone, Default)]
struct Documents {
    count: Arc<AtomicUsize>,
    asked: Arc<AtomicUsize>,
}

impl Documents {
    fn new(count: usize) -> Documents {
        Documents { count: Arc::new(count.into()), asked: Arc::default() }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// The cursor is the last document of the previous page.
    fn page(&self, wanted: &PageRequest) -> Result<ResourcePage, Error> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let start = match wanted.cursor.as_deref() {
            None => 0,
            Some(last) => last.parse::<usize>().map_err(|_| Error::invalid_params("no such page"))? + 1,
        };
        let count = self.count.load(Ordering::SeqCst);
        let end = count.min(start + wanted.limit);
        let listing = |number: usize| {
            ResourceListing::new(format!("fixture://documents/{number}"), format!("document {number}"))
                .mime_type("text/plain")
                .member("size", 7)
        };
        let next = (end < count).then(|| (end - 1).to_string());
        Ok(ResourcePage { resources: (start..end).map(listing).collect(), next })
    }

    fn lister(&self) -> ResourceLister {
        let (counted, listed) = (self.clone(), self.clone());
        ResourceLister::new(
            move || counted.count.load(Ordering::SeqCst),
            move |_: Context, wanted: PageRequest| std::future::ready(listed.page(&wanted)),
        )
    }
}

/// A server with static resources, a page size of three, and a template that reads documents.
fn builder(fixed: usize) -> ServerBuilder {
    let template =
        ResourceTemplate::new("fixture://documents/{id}", "document", async |_, uri: String, named: Variables| {
            Ok(vec![ResourceContents::text(uri, "text/plain", format!("text of {}", named["id"]))])
        });
    let builder = Server::builder("s", "1")
        .limits(Limits { page_size: 3, ..fixture::quick_limits() })
        .resource_template(template);
    (0..fixed).fold(builder, |builder, number| {
        builder.resource(Resource::text(format!("fixture://fixed/{number}"), "fixed", "text/plain", "fixed"))
    })
}

fn server(fixed: usize, documents: &Documents) -> Server {
    builder(fixed).resource_lister(documents.lister()).build().expect("valid")
}

/// The URIs of every page.
async fn pages(server: &Server, way: TestTransport) -> Vec<Vec<String>> {
    let (mut pages, mut params) = (Vec::new(), json!({}));
    loop {
        let answer = way.request(server, TrustLevel::Untrusted, &request(1, "resources/list", params)).await;
        let listed = answer["result"]["resources"].as_array().unwrap_or_else(|| panic!("{answer}")).clone();
        pages.push(listed.iter().map(|entry| entry["uri"].as_str().expect("a URI").to_owned()).collect());
        match answer["result"].get("nextCursor") {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => return pages,
        }
        assert!(pages.len() < 100, "the list never ends");
    }
}

#[tokio::test]
async fn k118_documents_are_listed_in_pages_after_the_fixed_resources() {
    for (fixed, documents) in [(0, 0), (2, 0), (3, 0), (4, 0), (0, 3), (0, 7), (2, 1), (2, 2), (3, 1), (4, 5), (6, 6)] {
        let store = Documents::new(documents);
        let listed = pages(&server(fixed, &store), TestTransport::Stdio).await;
        let expected: Vec<String> = (0..fixed)
            .map(|number| format!("fixture://fixed/{number}"))
            .chain((0..documents).map(|number| format!("fixture://documents/{number}")))
            .collect();
        assert_eq!(listed.concat(), expected);
        let full: Vec<usize> = expected.chunks(3).map(<[String]>::len).collect();
        let sizes: Vec<usize> = listed.iter().map(Vec::len).collect();
        let expected_sizes = if full.is_empty() { vec![0] } else { full };
        assert_eq!(sizes, expected_sizes, "{fixed} fixed and {documents} documents: only the last page has room");
    }
}

#[tokio::test]
async fn k118_the_list_is_the_same_over_every_transport_and_in_both_eras() {
    let server = server(2, &Documents::new(5));
    let first = pages(&server, TestTransport::Stdio).await;
    for way in TestTransport::ALL {
        assert_eq!(pages(&server, way).await, first, "{way:?}");
    }
    let answer = request_over_stdio(&server, &modern(1, "resources/list", json!({}), json!({}))).await["result"].take();
    assert_eq!(
        answer["resources"][2],
        json!({ "uri": "fixture://documents/0", "name": "document 0", "mimeType": "text/plain", "size": 7 })
    );
    assert_eq!((&answer["ttlMs"], &answer["cacheScope"]), (&json!(0), &json!("private")));
}

#[tokio::test]
async fn k118_a_page_of_fixed_resources_does_not_ask_the_store() {
    let documents = Documents::new(1000);
    let server = server(4, &documents);
    request_over_stdio(&server, &request(1, "resources/list", json!({}))).await;
    assert_eq!(documents.asked(), 0);
}

#[tokio::test]
async fn k118_a_document_is_read_through_the_template() {
    let read = request(1, "resources/read", json!({ "uri": "fixture://documents/3" }));
    let answer = request_over_stdio(&server(0, &Documents::new(5)), &read).await;
    assert_eq!(answer["result"]["contents"][0]["text"], "text of 3");
}

#[tokio::test]
async fn m48_the_count_is_of_both_and_follows_the_store() {
    let documents = Documents::new(5);
    let server = server(2, &documents);
    let counted = async || {
        request_over_stdio(&server, &initialize("2025-11-25", json!({}))).await["result"]["resources_count"].take()
    };
    assert_eq!(counted().await, 7);
    documents.count.store(1, Ordering::SeqCst);
    assert_eq!(counted().await, 3);
}

#[tokio::test]
async fn k118_a_cursor_of_nobody_is_refused() {
    let server = server(2, &Documents::new(5));
    // `x`, `at:99`, `from:x`, `else:1`
    for cursor in ["x", "YXQ6OTk", "ZnJvbTp4", "ZWxzZTox"] {
        let refused = request_over_stdio(&server, &request(1, "resources/list", json!({ "cursor": cursor }))).await;
        assert_eq!(refused["error"]["code"], -32602, "{cursor}: {refused}");
    }
    // Other lists do not accept cursors of the lister.
    let other = request_over_stdio(&server, &request(1, "prompts/list", json!({ "cursor": "ZnJvbTp4" }))).await;
    assert_eq!(other["error"]["code"], -32602);
}

/// A server with this lister.
fn failing(list: fn(PageRequest) -> Result<ResourcePage, Error>) -> Server {
    let lister = ResourceLister::new(|| 1, move |_: Context, wanted| async move { list(wanted) });
    builder(1).resource_lister(lister).build().expect("valid")
}

#[tokio::test]
async fn k118_a_list_that_fails_fails_alone() {
    let too_many = |wanted: PageRequest| {
        let resources = (0..=wanted.limit).map(|_| ResourceListing::new("fixture://documents/1", "one")).collect();
        Ok(ResourcePage { resources, next: None })
    };
    let servers = [
        failing(|_| Err(Error::internal("the store does not answer", "secret detail"))),
        failing(|_| panic!("secret detail")),
        failing(too_many),
    ];
    for server in servers {
        let mut peer = Stdio::start(&server, TrustLevel::Trusted);
        let failed = peer.call(&request(1, "resources/list", json!({}))).await;
        assert_eq!(failed["error"]["code"], -32603, "{failed}");
        assert!(!failed.to_string().contains("secret"), "{failed}");
        for (method, params) in
            [("resources/templates/list", json!({})), ("resources/read", json!({ "uri": "fixture://fixed/0" }))]
        {
            let served: Value = peer.call(&request(2, method, params)).await;
            assert!(served["result"].is_object(), "{method}: {served}");
        }
    }
}
