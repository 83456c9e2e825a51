//! `corbie ask`, with the real binary and an HTTP upstream.

#[cfg(unix)]
use std::time::Duration;

use serde_json::{Value, json};

use crate::process::{TEST_TIMEOUT, corbie, free_port};
use crate::upstream::{FakeUpstream, KEY, local_model_server};
#[cfg(unix)]
use crate::{process::wait_for, terminal::run_in_terminal};

const QUESTION: &str = "what is the derivative of x squared plus three times x";

// === answers ===

#[test]
fn p11_prompt_without_a_model_is_routed() {
    let upstream = FakeUpstream::start();
    let ended = upstream.corbie("ask").arguments(QUESTION).run("");
    assert_eq!((ended.code, ended.stdout), (Some(0), format!("echo: {QUESTION}\n")));
    assert_eq!(ended.stderr, "", "nothing but the answer is said");
    let asked = upstream.requests();
    let body = &asked.last().unwrap()["body"];
    assert_eq!((&body["model"], &body["stream"]), (&json!("echo-large"), &json!(true)));
    assert!(body["messages"][0]["content"].as_str().unwrap().contains("mathematics"), "{body}");
}

#[test]
fn p11_named_model_gets_the_system_prompt_and_the_token_limit() {
    let upstream = FakeUpstream::start();
    let setup = upstream.corbie("ask --model acme/other --max-tokens 3 --system").argument("Be brief.");
    let ended = setup.arguments("one two three four").run("");
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "echo: one two \n"));
    let body = &upstream.requests()[0]["body"];
    assert_eq!(body["model"], "other");
    assert_eq!(body["messages"][0], json!({ "role": "system", "content": "Be brief." }));
}

#[test]
fn answer_is_streamed() {
    let upstream = FakeUpstream::start();
    let mut asking = upstream.corbie("ask --model acme/drip-300").arguments(QUESTION).start();
    let pieces = asking.stdout_chunks();
    let first = pieces.recv_timeout(TEST_TIMEOUT).unwrap();
    assert!(!asking.has_exited(), "the rest is still to come");
    let answer = format!("echo: {QUESTION}\n");
    assert!(answer.starts_with(&first) && first.len() < answer.len() / 2, "{first:?}");
    let rest: Vec<String> = pieces.iter().collect();
    assert!(rest.len() >= 2, "{rest:?}");
    assert_eq!(format!("{first}{}", rest.concat()), answer);
    assert_eq!(asking.wait().code, Some(0));
}

#[test]
fn p02_local_server_is_detected_and_used_without_settings() {
    let (port, _closed) = local_model_server("here I am", true);
    let ports = format!("[{port}]");
    let ended = corbie("ask hello").variable("CORBIE_PROVIDERS__DETECT_PORTS", &ports).run("");
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (Some(0), "here I am\n", ""));
    let ended = corbie("providers").variable("CORBIE_PROVIDERS__DETECT_PORTS", &ports).run("");
    assert!(
        ended.stdout.lines().nth(1).unwrap().starts_with(&format!("local-{port}  openai-compatible  up")),
        "{ended:?}"
    );
}

#[test]
fn prompt_is_read_from_stdin() {
    let upstream = FakeUpstream::start();
    let ask = |arguments: &str, stdin: &str| {
        let ended = upstream.corbie("ask --model acme/echo-small").arguments(arguments).run(stdin);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.stdout
    };
    assert_eq!(ask("", "  why?\n"), "echo:   why?\n");
    assert_eq!(ask("-", "one\ntwo\n\n"), "echo: one\ntwo\n");
    assert_eq!(ask("what is this -", "fn main() {}\n"), "echo: what is this\n\nfn main() {}\n");
    assert_eq!(ask("what is 5 - -3", ""), "echo: what is 5 - -3\n", "a minus is no file");
}

#[test]
fn empty_or_too_large_prompt_is_one_error_line() {
    let upstream = FakeUpstream::start();
    let refused = |stdin: &str| upstream.corbie("ask").run(stdin).startup_error().to_owned();
    assert!(refused("").contains("the prompt is empty"));
    assert!(refused(" \n\n").contains("the prompt is empty"));
    assert!(refused(&"a".repeat(5 << 20)).contains("larger than 4 MB"));
    assert!(upstream.corbie("ask").argument("").run("").startup_error().contains("the prompt is empty"));
    assert_eq!(upstream.requests(), [Value::Null; 0]);
}

#[cfg(unix)]
#[test]
fn prompt_that_is_not_utf8_is_one_error_line() {
    let line = format!("printf '\\377\\376' | '{}' ask", env!("CARGO_BIN_EXE_corbie"));
    let ended = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    assert_eq!(ended.stderr, b"corbie: the prompt on stdin is not valid UTF-8; convert it to UTF-8\n");
}

#[test]
fn reasoning_is_shown_on_stderr_only_on_request() {
    let upstream = FakeUpstream::start();
    upstream.configure(
        "acme: {base_url: 'BASE/v1', api_key: KEY, default_model: thinker, models: {thinker: {capabilities: {reasoning: true}}}}",
    );
    // A prompt that is classified as needing reasoning.
    let prompt = "please explain in detail why the roman republic turned into an empire, and compare the reforms of the \
                  gracchi with those of sulla and caesar";
    let ask = |arguments: &str| upstream.corbie("ask").arguments(arguments).argument(prompt).run("");
    let shown = ask("--thinking");
    assert!(shown.stdout.starts_with("echo: please") && !shown.stdout.contains("The user says"), "{shown:?}");
    assert!(shown.stderr.contains("The user says: please"), "{shown:?}");
    assert_eq!(ask("").stderr, "");
    let json: Value = serde_json::from_str(&ask("--thinking --json").stdout).unwrap();
    assert!(json["thinking"].as_str().unwrap().starts_with("The user says"), "{json}");
}

// === for programs ===

#[test]
fn p08_p11_json_has_the_answer_and_the_decision() {
    let upstream = FakeUpstream::start();
    upstream.configure(
        "acme: {base_url: 'BASE/v1', api_key: KEY, default_model: echo-large, models: {echo-large: {price: {input: 1, output: 2}}}}",
    );
    let ended = upstream.corbie("ask --json").arguments(QUESTION).run("");
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let told: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(told["answer"], format!("echo: {QUESTION}"));
    assert_eq!(
        (&told["provider"], &told["model"], &told["stop"]),
        (&json!("acme"), &json!("echo-large"), &json!("finished"))
    );
    let (usage, decision) = (&told["usage"], &told["decision"]);
    let tokens = |name: &str| usage[name].as_u64().unwrap();
    assert_eq!(tokens("totalTokens"), tokens("promptTokens") + tokens("completionTokens"));
    assert_eq!((&decision["classified"]["category"], &decision["reason"]), (&json!("math"), &json!("default")));
    assert_eq!(decision["outcome"], "answered");
    assert!(decision["cost"].as_f64().unwrap() > 0.0);
    assert!(told.get("thinking").is_none());
}

#[test]
fn json_failure_is_an_object_on_stdout() {
    let upstream = FakeUpstream::start();
    let ended = upstream.corbie("ask --json --model acme/status-401 hello").run("");
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(1), ""), "{ended:?}");
    let [told] = &ended.messages()[..] else { panic!("{ended:?}") };
    assert_eq!((&told["success"], &told["error"]), (&json!(false), &json!("authentication")));
    assert!(told["message"].as_str().unwrap().starts_with("acme, model `status-401`: "), "{told}");
}

// === dry runs ===

#[test]
fn explain_sends_no_prompt() {
    let upstream = FakeUpstream::start();
    upstream.configure(
        "acme: {base_url: 'BASE/v1', api_key: KEY, api_keys: [KEY-2], default_model: echo-large, models: {echo-large: {price: {input: 0.15, output: 2}}}}",
    );
    let ended = upstream.corbie("ask --explain").arguments(QUESTION).run("");
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let lines: Vec<(&str, &str)> = ended.stdout.lines().map(|line| line.split_at(15)).collect();
    let told = |label: &str| lines.iter().find(|(name, _)| name.trim_end() == label).map(|(_, text)| *text);
    assert!(told("category").unwrap().starts_with("math (confidence "), "{}", ended.stdout);
    assert!(told("category").unwrap().contains(" %, method "), "{}", ended.stdout);
    assert_eq!(told("reasoning"), Some("no"));
    assert!(told("system prompt").unwrap().starts_with("You are a mathematics expert."), "{}", ended.stdout);
    assert_eq!(told("model"), Some("acme/echo-large · default · 2 API keys · 0.15 input, 2 output per million tokens"));
    assert_eq!(told("skipped"), Some("openai/gpt-oss-20b (no provider offers it)"));

    let ended = upstream.corbie("ask --explain --json --model acme/other hello").run("");
    let told: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(
        (&told["candidates"][0]["model"], &told["candidates"][0]["reason"]),
        (&json!("other"), &json!("requested"))
    );
    // Model lists may be requested, as for a prompt that is sent.
    assert!(upstream.requests().iter().all(|request| request["method"] == "GET"), "{:?}", upstream.requests());
}

#[test]
fn explain_shows_why_no_provider_can_answer() {
    let upstream = FakeUpstream::start();
    let ended = upstream.corbie("ask --explain --model mystery hello").run("");
    assert_eq!(ended.code, Some(0));
    assert!(ended.stdout.contains("error          no provider offers model `mystery`"), "{}", ended.stdout);
    let ended = corbie("ask --explain hello").run("");
    assert!(ended.stdout.contains("error          no provider is configured; set `OPENAI_API_KEY`"), "{ended:?}");
}

// === failures ===

#[test]
fn p13_p16_failure_is_one_line_with_advice() {
    let upstream = FakeUpstream::start();
    for (model, told) in [
        ("acme/status-401", "corbie: acme, model `status-401`: authentication failed; check"),
        ("acme/status-500", "corbie: acme, model `status-500`: provider is unavailable (status 500)"),
        ("acme/not-json", "corbie: acme, model `not-json`: "),
        ("echo-largo", "corbie: no provider offers model `echo-largo`; did you mean `echo-large` or `echo-small`?"),
    ] {
        let ended = upstream.corbie("ask --model").argument(model).argument("hello").run("");
        assert_eq!(ended.code, Some(1), "{model}");
        assert!(ended.startup_error().starts_with(told), "{model}: {ended:?}");
    }
}

#[test]
fn p18_unreachable_provider_fails_within_the_timeout() {
    let upstream = FakeUpstream::start();
    let port = free_port();
    upstream.configure(&format!("acme: {{base_url: 'http://127.0.0.1:{port}/v1', api_key: KEY, default_model: one}}"));
    let ended = upstream.corbie("ask hello").variable("CORBIE_ROUTER__TIMEOUT", "500ms").run("");
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.startup_error().contains("acme, model `one`: cannot connect to the provider: connection refused"),
        "{ended:?}"
    );
}

#[test]
fn p13_error_without_a_provider_names_the_variables() {
    let ended = corbie("ask hello").run("");
    let line = ended.startup_error();
    for variable in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"] {
        assert!(line.contains(variable), "{line}");
    }
}

#[test]
fn truncated_answer_is_shown_and_fails() {
    let upstream = FakeUpstream::start();
    for model in ["cut-3", "end-3", "error-mid"] {
        let ended = upstream.corbie("ask --model").argument(format!("acme/{model}")).arguments(QUESTION).run("");
        assert_eq!(ended.code, Some(1), "{ended:?}");
        let shown = ended.stdout.strip_suffix('\n').unwrap();
        assert!(!shown.is_empty() && format!("echo: {QUESTION}").starts_with(shown), "{ended:?}");
        assert!(ended.stderr_line().starts_with(&format!("corbie: acme, model `{model}`: ")), "{ended:?}");
    }
}

#[test]
fn endless_stream_is_cut_off_and_fails() {
    let upstream = FakeUpstream::start();
    let setup = upstream.corbie("ask --model acme/trickle-20").arguments(QUESTION);
    let ended = setup.variable("CORBIE_ROUTER__STREAM_TIMEOUT", "300ms").run("");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let shown = ended.stdout.strip_suffix('\n').unwrap();
    assert!(!shown.is_empty() && format!("echo: {QUESTION}").starts_with(shown), "{ended:?}");
    assert!(ended.stderr_line().contains("`router.stream_timeout`"), "{ended:?}");
}

#[test]
fn s01_no_output_holds_a_key() {
    let upstream = FakeUpstream::start();
    let mut commands = vec!["providers".to_owned(), "providers --models --json".to_owned()];
    for model in ["acme/echo-large", "acme/leak", "acme/leak-401", "acme/leak-500", "mystery"] {
        for flags in ["", "--json", "--explain", "--explain --json"] {
            commands.push(format!("ask {flags} --model {model} hello"));
        }
    }
    for command in commands {
        let ended = upstream.corbie("--log-level debug").arguments(&command).run("");
        assert!(!ended.stdout.contains(KEY) && !ended.stderr.contains(KEY), "{command}: {ended:?}");
    }
    assert!(upstream.requests()[0]["headers"]["authorization"].as_str().unwrap().contains(KEY), "it was sent");
}

// === in a terminal ===

#[cfg(unix)]
#[test]
fn p18_interrupt_exits_and_closes_the_connection() {
    let upstream = FakeUpstream::start();
    let (port, is_closed) = local_model_server("to be continued", false);
    upstream.configure(&format!("acme: {{base_url: 'http://127.0.0.1:{port}/v1', api_key: KEY}}"));
    let mut asking = upstream.corbie("ask --model acme/one hello").start();
    assert_eq!(asking.stdout_chunks().recv_timeout(TEST_TIMEOUT).unwrap(), "to be continued");
    asking.signal("INT");
    let ended = asking.wait_timeout(Duration::from_secs(1));
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(130), ""));
    is_closed.recv_timeout(TEST_TIMEOUT).expect("the connection is closed");
}

#[cfg(unix)]
#[test]
fn p18_interrupt_exits_before_the_answer() {
    let upstream = FakeUpstream::start();
    let mut asking = upstream.corbie("ask --model acme/stall hello").start();
    wait_for("the request", || (!upstream.requests().is_empty()).then_some(()));
    asking.signal("INT");
    assert_eq!(asking.wait_timeout(Duration::from_secs(1)).code, Some(130));
}

#[cfg(unix)]
#[test]
fn terminal_shows_a_summary_and_a_sanitized_answer() {
    let upstream = FakeUpstream::start();
    let program = env!("CARGO_BIN_EXE_corbie");
    let prompt = "$(printf 'hello\\033[2Jthere\\007')";
    let line = format!("'{program}' --config '{}' ask --model acme/echo-small \"{prompt}\"", upstream.settings());
    let Some(ended) = run_in_terminal(&line, "") else { return };
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("echo: hello[2Jthere\r\n"), "{ended:?}");
    assert!(ended.stdout.contains("→ acme/echo-small · requested · "), "{ended:?}");
    assert!(!ended.stdout.contains("routed"), "{ended:?}");

    let ended = upstream.corbie("ask --model acme/echo-small").argument("hello\u{1b}[2Jthere").run("");
    assert_eq!(ended.stdout, "echo: hello\u{1b}[2Jthere\n", "a pipe gets what came");
}

#[cfg(unix)]
#[test]
fn closed_pipe_is_no_failure() {
    let upstream = FakeUpstream::start();
    let (program, settings) = (env!("CARGO_BIN_EXE_corbie"), upstream.settings());
    let line =
        format!("( '{program}' --config '{settings}' ask --model acme/drip-50 {QUESTION}; echo $? >&2 ) | head -c 3");
    let ended = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
    assert_eq!((ended.stdout.as_slice(), ended.stderr.as_slice()), (&b"ech"[..], &b"0\n"[..]));
}

#[test]
fn routing_is_logged_at_level_info() {
    let upstream = FakeUpstream::start();
    let ended = upstream.corbie("--log-level info ask --model acme/echo-small hello").run("");
    assert!(ended.stderr.contains("routed"), "{ended:?}");
    let ended = upstream.corbie("ask --model acme/echo-small hello").variable("LOG_LEVEL", "info").run("");
    assert!(ended.stderr.contains("routed"), "{ended:?}");
}
