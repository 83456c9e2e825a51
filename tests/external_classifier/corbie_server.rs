//! C-60, X-44: a second corbie as the classification server of the first, over every transport.

use std::process::Stdio;

use corbie::external_classifier::{Error, State};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::{STATE_TIMEOUT, client, wait_for_state};

const PROGRAM: &str = env!("CARGO_BIN_EXE_corbie");

/// A listening corbie; it ends with the test.
struct CorbieProcess {
    _child: Child,
    url: String,
    _folder: tempfile::TempDir,
}

async fn start_corbie(variables: &[(&str, &str)]) -> CorbieProcess {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(PROGRAM)
        .args(["serve", "--port", "0"])
        .current_dir(folder.path())
        .env_clear()
        .env("HOME", folder.path())
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let url = tokio::time::timeout(STATE_TIMEOUT, async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if let Some(rest) = line.split("url=").nth(1).filter(|rest| rest.starts_with("http://127.0.0.1")) {
                return rest.split(' ').next().unwrap().to_owned();
            }
        }
        panic!("it ended without listening");
    });
    let url = url.await.expect("it listens in time");
    // Drains the log, so that the process does not block on a full pipe.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    CorbieProcess { _child: child, url, _folder: folder }
}

#[tokio::test]
async fn c60_c61_x44_another_corbie_sorts_prompts_over_http_and_streamable_http() {
    let server = start_corbie(&[]).await;
    for transport in ["http", "streamable-http"] {
        let yaml = format!(
            "classification: {{type: mcp, num_categories: 5, mcp_server: {{url: '{}', transport: {transport}}}}}",
            server.url
        );
        let remote = client(&yaml, &[]);
        let verdict = remote.classify("What is the derivative of x squared?").await.unwrap();
        assert_eq!((verdict.category(), remote.state()), ("math", State::Ready { categories: 5 }));
        assert!(verdict.confidence > 0.5 && !verdict.model.is_empty());
        assert!(verdict.categories.system_prompt("math").is_some());
        // A text over its limit is a tool error and does not end the connection.
        let error = remote.classify(&"x ".repeat(40_000)).await.unwrap_err();
        assert_eq!(error, Error::Tool { tool: "classify_text".into() });
    }
}

const TOKEN: &str = "1581e27de87bffae0bd4d745cd7964e68528d7a8";

#[tokio::test]
async fn c60_f26_s02_another_corbie_that_asks_for_a_token() {
    let server = start_corbie(&[("CORBIE_SERVER__AUTH", "bearer"), ("MCP_API_KEY", TOKEN)]).await;
    for transport in ["http", "streamable-http"] {
        let yaml = format!(
            "
classification:
  type: mcp
  mcp_server:
    url: {}
    transport: {transport}
    headers: {{Authorization: 'Bearer ${{SORTER_KEY}}'}}
",
            server.url
        );
        let remote = client(&yaml, &[("SORTER_KEY", TOKEN)]);
        assert_eq!(remote.classify("Who was Napoleon?").await.unwrap().category(), "history");
        let refused = client(&yaml, &[("SORTER_KEY", "sk-2")]).classify("Who was Napoleon?").await;
        assert_eq!(refused.unwrap_err(), Error::Refused { status: 401 });
    }
}

#[tokio::test]
async fn c60_x44_another_corbie_is_asked_over_stdio() {
    let yaml = format!(
        "classification: {{type: mcp, mcp_server: {{transport: stdio, command: '{PROGRAM}', args: [stdio], \
         timeout: 30s}}}}"
    );
    let remote = client(&yaml, &[]);
    let following = tokio::spawn(remote.clone().run());
    assert_eq!(wait_for_state(&remote, |state| *state != State::Starting).await, State::Ready { categories: 5 });
    assert_eq!(remote.classify("What is the derivative of x squared?").await.unwrap().category(), "math");
    following.abort();
}

#[cfg(unix)]
#[tokio::test]
async fn x44_s01_a_program_sees_only_its_own_variables_and_ends_with_its_client() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let script = format!("echo $$ > {}; env > {}; exec {PROGRAM} stdio", file("pid"), file("env"));
    let yaml = format!(
        "
classification:
  type: mcp
  mcp_server:
    transport: stdio
    command: sh
    args: [-c, '{script}']
    env: {{SORTER_KEY: '${{KEY}}'}}
    timeout: 30s
"
    );
    let remote = client(&yaml, &[("KEY", "sk-1")]);
    remote.classify("hello").await.unwrap();
    let variables = std::fs::read_to_string(file("env")).unwrap();
    assert!(variables.contains("SORTER_KEY=sk-1\n"), "{variables}");
    // The last four are set by the shell.
    let expected =
        ["SORTER_KEY", "PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "PWD", "OLDPWD", "SHLVL", "_"];
    let names = variables.lines().filter_map(|line| line.split('=').next());
    assert_eq!(names.filter(|name| !expected.contains(name)).collect::<Vec<_>>(), [""; 0]);

    let pid = std::fs::read_to_string(file("pid")).unwrap();
    drop(remote);
    let gone = async {
        while Command::new("kill").args(["-0", pid.trim()]).stderr(Stdio::null()).status().await.unwrap().success() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(STATE_TIMEOUT, gone).await.expect("it ends");
}

#[tokio::test]
async fn x44_a_program_that_cannot_be_started_or_says_nothing_is_told() {
    let stdio = |command: &str| {
        format!("classification: {{type: mcp, mcp_server: {{transport: stdio, command: '{command}', timeout: 5s}}}}")
    };
    let missing = client(&stdio("/no/such/program"), &[]);
    assert_eq!(missing.classify("hello").await.unwrap_err(), Error::SpawnFailed(std::io::ErrorKind::NotFound));
    let silent = client(&stdio("true"), &[]);
    assert_eq!(silent.classify("hello").await.unwrap_err(), Error::Unreachable("connection closed"));
}
