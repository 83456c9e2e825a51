//! Runs a page from top to bottom, in its own home and working folder.
//!
//! Comments before a block control the run:
//!
//! | comment | meaning |
//! |---|---|
//! | `not run: WHY` | commands that cannot run here; they are counted |
//! | `fails` | its commands end with an error, as the page shows |
//! | `numbers vary` | numbers in the output may differ |
//! | `with: PATH…` | copies these files and folders to the working folder; of `FOLDER/`, its contents |
//! | `keeps running` | a server for the commands below |
//! | `upstream: NAME…` | from here on, the fake upstream of this repository replaces these providers |
//! | `not settings: WHAT` | YAML, TOML or JSON that is not for corbie's settings |
//!
//! Where the text of a page names `corbie config trust`, and no block runs it, the reader does so for each `corbie.yaml`
//! that they write.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::console_block::{ConsoleStep, output_matches, steps, without_times};
use super::page::{Block, blocks, prose};
use crate::process::{free_port, has_ipv6};
use crate::upstream::FakeUpstream;

/// Timeout of one command; far more than it needs.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(120);
/// The port in the pages; replaced by a free one.
const DOCUMENTED_PORT: &str = "8090";
/// A closed port, so that examples with a company's models send no requests to it.
const UNREACHABLE_URL: &str = "http://127.0.0.1:9/v1";
/// Formats of settings; a taxonomy is recognized by its `categories`.
const SETTINGS_LANGUAGES: [&str; 3] = ["yaml", "toml", "json"];

/// Result of a page.
#[derive(Debug, Default)]
pub(super) struct PageReport {
    pub(super) commands: usize,
    pub(super) not_run: usize,
    pub(super) settings: usize,
    pub(super) problems: Vec<String>,
}

struct PageRunner<'a> {
    name: &'a str,
    root: &'a Path,
    temp_dir: TempDir,
    variables: BTreeMap<String, String>,
    /// Whether the page instructs the reader to approve the settings that they write.
    approves: bool,
    /// `${NAME}` of the settings that the page has in place.
    keys: BTreeMap<String, String>,
    /// `export` and `cd` lines so far.
    exports: String,
    upstream: Option<FakeUpstream>,
    server: Option<(Child, u16)>,
    report: PageReport,
}

/// Follows the page `name` of the repository.
pub(super) fn run_page(root: &Path, name: &str) -> PageReport {
    let page = fs::read_to_string(root.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut reader = PageRunner::new(root, name);
    let is_told = prose(&page).iter().any(|(_, line)| line.contains("`corbie config trust`"));
    reader.approves = is_told && !page.contains("$ corbie config trust");
    for block in blocks(&page) {
        reader.prepare(&block);
        if block.language == "console" {
            reader.console(&block);
        } else if SETTINGS_LANGUAGES.contains(&block.language.as_str()) {
            reader.write_settings(&block);
        }
    }
    std::mem::take(&mut reader.report)
}

impl Drop for PageRunner<'_> {
    fn drop(&mut self) {
        if let Some((server, _)) = &mut self.server {
            kill_group(server);
        }
    }
}

impl<'a> PageRunner<'a> {
    fn new(root: &'a Path, name: &'a str) -> Self {
        let place = tempfile::tempdir().expect("a temporary folder");
        for folder in ["home", "work", "bin"] {
            fs::create_dir(place.path().join(folder)).expect("a new folder");
        }
        let program = Path::new(env!("CARGO_BIN_EXE_corbie"));
        std::os::unix::fs::symlink(program, place.path().join("bin/corbie")).expect("a new link");
        let path = std::env::var("PATH").unwrap_or_default();
        let variables = BTreeMap::from([
            ("PATH".into(), format!("{}:{path}", place.path().join("bin").display())),
            ("HOME".into(), place.path().join("home").display().to_string()),
            // Ignore model servers that happen to run on this machine.
            ("CORBIE_PROVIDERS__DETECT_PORTS".into(), "[]".into()),
        ]);
        let report = PageReport::default();
        let keys = BTreeMap::new();
        let exports = String::new();
        Self {
            name,
            root,
            temp_dir: place,
            variables,
            approves: false,
            keys,
            exports,
            upstream: None,
            server: None,
            report,
        }
    }

    fn work_dir(&self) -> PathBuf {
        self.temp_dir.path().join("work")
    }

    fn report_problem(&mut self, block: &Block, what: &str) {
        self.report.problems.push(format!("{}:{}: {what}", self.name, block.line));
    }

    /// Files and providers that a block needs.
    fn prepare(&mut self, block: &Block) {
        for path in block.annotation("with").unwrap_or_default().split_whitespace() {
            let from = self.root.join(path);
            match path.ends_with('/') {
                true => copy_members(&from, &self.work_dir()),
                false => copy(&from, &self.work_dir()),
            }
        }
        if let Some(providers) = block.annotation("upstream") {
            let address = self.upstream.get_or_insert_with(FakeUpstream::start).address();
            for name in providers.split_whitespace() {
                let version = if name == "openai" { "/v1" } else { "" };
                let section = format!("CORBIE_PROVIDERS__{}", name.to_uppercase());
                self.variables.insert(format!("{section}__BASE_URL"), format!("{address}{version}"));
                self.variables.insert(format!("{section}__API_KEY"), "test-key".into());
            }
        }
    }

    // === commands ===

    fn console(&mut self, block: &Block) {
        let needs_curl = block.text.contains("$ curl ") && !has_curl();
        if block.annotation("not run").is_some() || needs_curl {
            self.report.not_run += 1;
            return;
        }
        for step in steps(&block.text) {
            self.report.commands += 1;
            match block.annotation("keeps running") {
                Some(_) => self.serve(block, &step),
                None => self.run_step(block, &step),
            }
        }
    }

    fn run_step(&mut self, block: &Block, step: &ConsoleStep) {
        let command = self.with_port(&step.command);
        if command.starts_with("export ") || command.starts_with("cd ") {
            self.exports += &format!("{command}; ");
        }
        let (code, printed) = match self.run(&command) {
            Ok(ended) => ended,
            Err(problem) => return self.report_problem(block, &format!("`{}` {problem}", step.command)),
        };
        if (code == Some(0)) == block.annotation("fails").is_some() {
            self.report_problem(block, &format!("`{}` ends with {code:?} and\n{printed}", step.command));
        } else if let Some(documented) = &step.expected_output
            && !output_matches(&self.with_port(documented), &printed, block.annotation("numbers vary").is_some())
        {
            let printed = without_times(&printed);
            self.report_problem(
                block,
                &format!("`{}` does not print what the page says, but\n{printed}", step.command),
            );
        }
    }

    /// Exit code and complete output.
    fn run(&self, command: &str) -> Result<(Option<i32>, String), String> {
        let output = self.temp_dir.path().join("output");
        let mut child = self.shell(command, &output);
        let deadline = Instant::now() + COMMAND_TIMEOUT;
        let status = loop {
            match child.try_wait().expect("it can be waited for") {
                Some(status) => break status,
                None if Instant::now() > deadline => {
                    kill_group(&mut child);
                    return Err("does not end".into());
                }
                None => std::thread::park_timeout(Duration::from_millis(5)),
            }
        };
        Ok((status.code(), fs::read_to_string(output).unwrap_or_default()))
    }

    fn shell(&self, command: &str, output: &Path) -> Child {
        let file = File::create(output).expect("a new file");
        let mut shell = Command::new("bash");
        shell.arg("-c").arg(format!("{}{command}", self.exports));
        shell.current_dir(self.work_dir()).env_clear().envs(&self.keys).envs(&self.variables).stdin(Stdio::null());
        shell.stderr(file.try_clone().expect("one more handle")).stdout(file);
        // A separate process group, so that child processes are killed with it.
        shell.process_group(0);
        shell.spawn().expect("a shell")
    }

    /// Starts a server on a free port and waits until it has logged the lines that the page shows for port 8090.
    fn serve(&mut self, block: &Block, step: &ConsoleStep) {
        let port = free_port();
        let command = match step.command.contains(DOCUMENTED_PORT) {
            true => step.command.replace(DOCUMENTED_PORT, &port.to_string()),
            false => format!("{} --port {port}", step.command),
        };
        let log = self.temp_dir.path().join("log");
        self.server = Some((self.shell(&format!("exec {command}"), &log), port));
        let documented = self.with_port(step.expected_output.as_deref().unwrap_or_default());
        let is_here = |line: &&str| line.contains(&port.to_string()) && (has_ipv6() || !line.contains("[::1]"));
        let wanted: Vec<&str> = documented.lines().filter(is_here).collect();
        let deadline = Instant::now() + COMMAND_TIMEOUT;
        loop {
            let logged = without_times(&fs::read_to_string(&log).unwrap_or_default());
            let listens = logged.contains("listening url=");
            if listens && wanted.iter().all(|line| logged.lines().any(|logged| output_matches(line, logged, false))) {
                return;
            }
            if Instant::now() > deadline {
                return self
                    .report_problem(block, &format!("`{command}` does not log what the page says, but\n{logged}"));
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    /// A text of the page with the port of the running server.
    fn with_port(&self, text: &str) -> String {
        match &self.server {
            Some((_, port)) => text.replace(DOCUMENTED_PORT, &port.to_string()),
            None => text.to_owned(),
        }
    }

    // === settings ===

    fn write_settings(&mut self, block: &Block) {
        let named = block.text.lines().next().and_then(|line| line.strip_prefix("# ")).filter(|name| is_file(name));
        let is_ours = named.is_none_or(|name| name.starts_with("corbie."));
        let keys = keys(&block.text);
        let before = self.keys.clone();
        self.keys.extend(keys.clone());
        self.check_settings(block, named.is_none() || is_ours);
        self.keys = if named.is_some() && is_ours { keys } else { before };
        if let Some(name) = named {
            fs::write(self.work_dir().join(name), &block.text).expect("a new file");
            if is_ours && self.approves && !matches!(self.run("corbie config trust"), Ok((Some(0), _))) {
                self.report_problem(block, "the settings cannot be approved");
            }
        }
    }

    fn check_settings(&mut self, block: &Block, is_ours: bool) {
        let is_message = block.language == "json" && !is_settings_object(&block.text);
        if block.annotation("not settings").is_some() || is_message {
            return;
        }
        let file = format!(".checked.{}", block.language);
        fs::write(self.work_dir().join(&file), &block.text).expect("a new file");
        let is_taxonomy = block.language == "yaml" && block.text.lines().any(|line| line.starts_with("categories:"));
        let command = match (is_taxonomy, is_ours) {
            (true, _) => format!("corbie taxonomy check {file}"),
            (false, true) => format!("corbie --config {file} config show"),
            // The file of another program.
            (false, false) => return,
        };
        self.report.settings += 1;
        match self.run(&command) {
            Ok((Some(0), _)) => {}
            Ok((_, printed)) => self.report_problem(block, &format!("the settings are refused:\n{printed}")),
            Err(problem) => self.report_problem(block, &problem),
        }
    }
}

/// A dummy value for provider keys, long enough for the token of a server.
const DUMMY_KEY: &str = "5f0a3c9d1e7b486282c4d6f0a1b3e5978d2c4b6a0f1e3d5c";

/// A dummy key for each `${NAME}`; requests to the providers go nowhere.
fn keys(settings: &str) -> BTreeMap<String, String> {
    let names = settings.split("${").skip(1).filter_map(|rest| rest.split('}').next());
    let mut keys: BTreeMap<String, String> = names.map(|name| (name.to_owned(), DUMMY_KEY.to_owned())).collect();
    for name in ["OPENAI", "ANTHROPIC", "GOOGLE"] {
        if keys.contains_key(&format!("{name}_API_KEY")) {
            keys.insert(format!("CORBIE_PROVIDERS__{name}__BASE_URL"), UNREACHABLE_URL.into());
        }
    }
    keys
}

fn has_curl() -> bool {
    Command::new("curl").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Kills a shell and its child processes.
fn kill_group(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.wait();
}

fn is_file(name: &str) -> bool {
    let ends = [".yaml", ".yml", ".toml"].iter().any(|end| name.ends_with(end));
    ends && !name.contains([' ', '/'])
}

/// Most JSON in the pages is requests and responses; settings have only top-level sections of the settings.
fn is_settings_object(text: &str) -> bool {
    let known = |key: &String| corbie::config::schema()["properties"].get(key).is_some();
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(members)) => members.keys().all(known),
        _ => false,
    }
}

fn copy(from: &Path, folder: &Path) {
    let to = folder.join(from.file_name().expect("a name"));
    if from.is_dir() {
        fs::create_dir_all(&to).expect("a new folder");
        copy_members(from, &to);
    } else {
        fs::copy(from, &to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
    }
}

fn copy_members(from: &Path, folder: &Path) {
    for entry in fs::read_dir(from).unwrap_or_else(|error| panic!("{}: {error}", from.display())) {
        copy(&entry.expect("an entry").path(), folder);
    }
}

#[test]
fn a_page_that_is_not_true_is_found_out() {
    let root = tempfile::tempdir().unwrap();
    let page = "```console\n$ corbie --version\ncorbie 0.0.0\n$ corbie nosuch\n$ echo $KEY\nnothing\n```\n\n```yaml\nserver:\n  nmae: ${KEY}\n```\n\n\
        <!-- fails -->\n```console\n$ true\n```\n\n<!-- not run: it is long -->\n```console\n$ false\n```\n\n```json\n{\"isError\": false}\n```\n";
    fs::write(root.path().join("page.md"), page).unwrap();
    let report = run_page(root.path(), "page.md");
    assert_eq!((report.commands, report.not_run, report.settings), (4, 1, 1));
    let expected = [
        "page.md:1: `corbie --version` does not print",
        "page.md:1: `corbie nosuch` ends with Some(2)",
        "page.md:1: `echo $KEY` does not print",
        "page.md:9: the settings are refused",
        "page.md:15: `true` ends with Some(0)",
    ];
    assert_eq!(report.problems.len(), expected.len(), "{:#?}", report.problems);
    for (problem, expected) in report.problems.iter().zip(expected) {
        assert!(problem.starts_with(expected), "{problem}");
    }
}
