//! The genai crate as an independent check of the requests made by corbie's adapters.
//!
//! Golden chats are converted to genai's types and sent to the mock upstream. The requests that arrive there must equal
//! the expected requests of our own adapters in `tests/providers`, except for [`accepted_differences`] differences. If both agree,
//! two independent interpretations of a provider's documentation agree.
//!
//! ```text
//! genai-interop http://127.0.0.1:4000 tests/providers
//! ```

mod accepted_differences;
mod compare;
mod genai_request;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use std::{env, fs};

use futures::StreamExt;
use genai::adapter::AdapterKind;
use genai::resolver::{AuthData, Endpoint, ServiceTargetResolver};
use genai::{Client, ModelIden, ServiceTarget};
use serde_json::Value;

use accepted_differences::ACCEPTED_DIFFERENCES;
use compare::Case;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// A provider API, and its golden chats that genai can express.
struct Api {
    name: &'static str,
    adapter: AdapterKind,
    key_header: &'static str,
    cases: &'static str,
}

const APIS: [Api; 3] = [
    Api {
        name: "openai",
        // Chat completions for all models; by default, genai uses the responses API for newer ones.
        adapter: AdapterKind::OpenAI,
        key_header: "authorization",
        cases: "plain plain_stream turns image json schema tools tool_named tool_results \
                reasoning_effort reasoning_off reasoning_on",
    },
    Api {
        name: "anthropic",
        adapter: AdapterKind::Anthropic,
        key_header: "x-api-key",
        cases: "plain plain_streamed conversation image schema tools tool_named tool_none tool_required results \
                budget thinking_max thinking_minimal",
    },
    Api {
        name: "google",
        adapter: AdapterKind::Gemini,
        key_header: "x-goog-api-key",
        cases: "plain system_and_turns limits image structured parallel_calls forced_tool no_tool required_tool \
                tool_results proofs reasoning_budget reasoning_effort reasoning_max reasoning_no_budget reasoning_on",
    },
];

struct UpstreamClient {
    url: String,
    http: reqwest::Client,
    genai: Client,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [url, golden] = arguments.as_slice() else {
        return Err("usage: genai-interop URL-OF-UPSTREAM FOLDER-OF-GOLDEN-FILES".into());
    };
    let upstream = UpstreamClient::at(url)?;
    let mut cases = Vec::new();
    let mut failed = 0;
    for api in &APIS {
        for name in api.cases.split_whitespace() {
            let label = format!("{}/{name}", api.name);
            let problem = match upstream.captured_bodies(api, PathBuf::from(golden).join(&label)).await {
                Ok((chat, ours, theirs)) => {
                    let case = Case { label: label.clone(), chat, ours, theirs };
                    let problem = case.unaccepted_differences();
                    cases.push(case);
                    problem
                }
                Err(error) => Some(error.to_string()),
            };
            failed += usize::from(problem.is_some());
            match problem {
                None => println!("ok    genai: {label}"),
                Some(problem) => println!("FAIL  genai: {label}: {problem}"),
            }
        }
    }
    // Cases that were not compared may need an entry that no other case needs.
    let needless = if failed == 0 { compare::unneeded_differences(&cases) } else { Vec::new() };
    for (difference, name) in &needless {
        println!("FAIL  genai: {name} does not need the accepted difference \"{difference}\"; remove it there");
    }
    failed += needless.len();
    println!(
        "{} requests compared, {} differences accepted, {failed} failures",
        cases.len(),
        ACCEPTED_DIFFERENCES.len()
    );
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl UpstreamClient {
    /// The upstream, used by genai for every provider.
    fn at(url: &str) -> Result<UpstreamClient, Box<dyn Error>> {
        let http = reqwest::Client::builder().no_proxy().timeout(REQUEST_TIMEOUT).build()?;
        let base = url.to_owned();
        let resolver = ServiceTargetResolver::from_resolver_fn(move |target: ServiceTarget| {
            let version = if target.model.adapter_kind == AdapterKind::Gemini { "v1beta" } else { "v1" };
            let endpoint = Endpoint::from_owned(format!("{base}/{version}/"));
            Ok(ServiceTarget { endpoint, auth: AuthData::from_single("test-key"), ..target })
        });
        let genai = Client::builder().with_reqwest(http.clone()).with_service_target_resolver(resolver).build()?;
        Ok(UpstreamClient { url: url.to_owned(), http, genai })
    }

    /// A golden chat, our request, and the body of genai's, after checking that its path and key match ours.
    async fn captured_bodies(&self, api: &Api, golden: PathBuf) -> Result<(Value, Value, Value), Box<dyn Error>> {
        let read = |kind: &str| -> Result<Value, Box<dyn Error>> {
            let path = golden.with_extension(kind);
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            Ok(serde_json::from_str(&text)?)
        };
        let (chat, ours) = (read("chat.json")?, read("request.json")?);
        let requests = format!("{}/_requests", self.url);
        self.http.delete(&requests).send().await?.error_for_status()?;

        // We also accept Google's models with the collection prefix, genai only without.
        let model = chat["model"].as_str().unwrap_or_default().trim_start_matches("models/");
        let target = ModelIden::new(api.adapter, model.to_owned());
        let (request, options) = (genai_request::chat_request(&chat), genai_request::chat_options(&chat));
        if chat["stream"] == true {
            let mut answer = self.genai.exec_chat_stream(target, request, Some(&options)).await?.stream;
            while let Some(event) = answer.next().await {
                event?;
            }
        } else {
            self.genai.exec_chat(target, request, Some(&options)).await?;
        }

        let seen: Vec<Value> = self.http.get(&requests).send().await?.json().await?;
        let [seen] = seen.as_slice() else { return Err(format!("{} requests came", seen.len()).into()) };
        let path = api.path(model, chat["stream"] == true);
        if seen["path"] != path {
            return Err(format!("genai asks {}, we `{path}`", seen["path"]).into());
        }
        let keys = APIS.iter().map(|api| api.key_header).filter(|name| !seen["headers"][name].is_null());
        let keys: Vec<&str> = keys.collect();
        if keys != [api.key_header] {
            return Err(format!("genai's key is in {keys:?}, ours in `{}`", api.key_header).into());
        }
        Ok((chat, ours, seen["body"].clone()))
    }
}

impl Api {
    /// The path of our requests.
    fn path(&self, model: &str, stream: bool) -> String {
        match (self.name, stream) {
            ("openai", _) => "/v1/chat/completions".into(),
            ("anthropic", _) => "/v1/messages".into(),
            (_, false) => format!("/v1beta/models/{model}:generateContent"),
            (_, true) => format!("/v1beta/models/{model}:streamGenerateContent?alt=sse"),
        }
    }
}
