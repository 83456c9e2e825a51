//! `corbie init`: writes a commented configuration file after three questions.

use std::fmt::Write as _;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::exit::UsageError;
use super::{CommandResult, json_output, output_file, sanitize_line};
use crate::config::{self, ApprovalFile, Config, Scope, Sources};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  corbie init
  corbie init --yes
  corbie init ~/.config/corbie/corbie.yaml")]
pub(super) struct Init {
    /// File to create
    #[arg(value_name = "FILE", default_value = DEFAULT_FILE)]
    file: PathBuf,
    /// Use the defaults without asking
    #[arg(long, short)]
    yes: bool,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const DEFAULT_FILE: &str = "corbie.yaml";
/// Providers that can be chosen, and the variable of the key.
const PROVIDERS: [(&str, &str); 3] =
    [("openai", "OPENAI_API_KEY"), ("anthropic", "ANTHROPIC_API_KEY"), ("google", "GOOGLE_API_KEY")];

/// Answers to the questions; the defaults without questions.
#[derive(Debug, Default, PartialEq, Eq)]
struct Answers {
    /// Name of a provider in `PROVIDERS`; `None` to detect local model servers only.
    provider: Option<&'static str>,
    /// Folder to watch.
    documents: Option<String>,
    /// Also listen for other machines.
    is_remote: bool,
}

/// How the new file takes effect.
enum Effect {
    /// Found in the user's or the system's configuration folder.
    Found,
    /// A project file, now approved.
    Approved,
    /// Only read with `--config`.
    Explicit,
}

pub(super) fn run(command: &Init, sources: &Sources, out: &mut dyn Write) -> CommandResult {
    let path = sources.folder.join(&command.file);
    let extension = path.extension().unwrap_or_default();
    if !["yaml", "yml"].iter().any(|yaml| extension.eq_ignore_ascii_case(yaml)) {
        return Err(
            UsageError::Value("the file is written as YAML; choose a name that ends with `.yaml`".into()).into()
        );
    }
    // Checked before the questions.
    if !command.force && path.symlink_metadata().is_ok() {
        return Err(output_file::exists_message(&command.file).into());
    }
    let stdin = io::stdin();
    let answers = if command.yes || command.json {
        Answers::default()
    } else if stdin.is_terminal() && io::stderr().is_terminal() {
        ask(&mut stdin.lock(), &mut io::stderr())?
    } else {
        return Err(UsageError::Line("questions require a terminal; use --yes for the defaults".into()).into());
    };
    let yaml = render(&answers);
    match command.force {
        true => output_file::replace(&path, yaml.as_bytes())?,
        false => output_file::create(&path, yaml.as_bytes())?,
    }
    let effect = put_into_effect(&path, sources)?;
    if command.json {
        json_output::write(
            &json!({ "success": true, "path": path, "approved": matches!(effect, Effect::Approved) }),
            out,
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    let shown = sanitize_line(&command.file.display().to_string());
    writeln!(out, "Wrote {shown}")?;
    match effect {
        Effect::Approved => writeln!(
            out,
            "The file is approved for this folder. After changing it, run `corbie config trust` to approve it again."
        )?,
        Effect::Explicit | Effect::Found => {}
    }
    if answers.is_remote {
        writeln!(
            out,
            "Callers need a token: create one with `corbie tokens create NAME` before you start the server."
        )?;
    }
    if let Some(provider) = answers.provider {
        writeln!(out, "The provider `{provider}` needs an API key: see `corbie doctor`.")?;
    }
    let corbie = match effect {
        Effect::Explicit => format!("corbie --config {shown}"),
        Effect::Approved | Effect::Found => "corbie".to_owned(),
    };
    writeln!(out, "`{corbie} config validate` checks the file, and `{corbie} serve` starts the server.")?;
    Ok(ExitCode::SUCCESS)
}

/// Approves a project file: the user has just created its content.
fn put_into_effect(path: &Path, sources: &Sources) -> Result<Effect, Box<dyn std::error::Error>> {
    let canonical = |path: &Path| config::approved_place(path).unwrap_or_else(|_| path.to_owned());
    let path = canonical(path);
    // A project is any folder except the configuration folders.
    let folder = path.parent().unwrap_or(&path).to_owned();
    let layers = config::layers(&Sources { file: None, folder: folder.clone(), ..sources.clone() });
    match layers.iter().find(|layer| canonical(&layer.path) == path).map(|layer| layer.scope) {
        Some(Scope::Project) => {
            let Some(approvals) = ApprovalFile::of(&sources.variables) else { return Ok(Effect::Explicit) };
            let candidate = config::approval_candidate(&folder)?;
            if candidate.path != path {
                return Ok(Effect::Explicit);
            }
            approvals.approve_alone(&candidate.path, candidate.hash)?;
            Ok(Effect::Approved)
        }
        Some(_) => Ok(Effect::Found),
        None => Ok(Effect::Explicit),
    }
}

/// Asks the three questions. An invalid answer is asked again; at the end of input the command fails.
fn ask(input: &mut dyn BufRead, out: &mut dyn Write) -> io::Result<Answers> {
    let names: Vec<&str> = PROVIDERS.iter().map(|(name, _)| *name).collect();
    let provider = loop {
        let answer = question(
            &format!("Model provider ({}, or none for local model servers only) [none]: ", names.join(", ")),
            input,
            out,
        )?;
        match answer.to_lowercase().as_str() {
            "" | "none" => break None,
            answer => match PROVIDERS.iter().find(|(name, _)| *name == answer) {
                Some((name, _)) => break Some(*name),
                None => writeln!(out, "Choose one of: {}, none", names.join(", "))?,
            },
        }
    };
    let documents = question("Folder of documents to watch [none]: ", input, out)?;
    let documents = Some(documents).filter(|folder| !folder.is_empty() && folder != "none");
    let is_remote = loop {
        match question("Accept connections from other machines? They need a token. [y/N]: ", input, out)?
            .to_lowercase()
            .as_str()
        {
            "" | "n" | "no" => break false,
            "y" | "yes" => break true,
            _ => writeln!(out, "Answer y or n")?,
        }
    };
    Ok(Answers { provider, documents, is_remote })
}

fn question(text: &str, input: &mut dyn BufRead, out: &mut dyn Write) -> io::Result<String> {
    write!(out, "{text}")?;
    out.flush()?;
    let mut line = String::new();
    match input.read_line(&mut line)? {
        0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "no answer; use --yes for the defaults")),
        _ => Ok(line.trim().to_owned()),
    }
}

/// The file. Settings with their default value are commented out.
fn render(answers: &Answers) -> String {
    let defaults = Config::default();
    let mut yaml = String::from(
        "# Settings of corbie. Reference of all keys: docs/reference/settings.md, or `corbie config schema`.\n\
         # `corbie config validate` checks this file, and `corbie config show` prints the settings in effect.\n\n",
    );
    let mut add = |text: &str| yaml.push_str(text);
    add("# Listen addresses, authentication and limits.\nserver:\n");
    match answers.is_remote {
        true => add(
            "  # All interfaces. Callers need a token: `corbie tokens create NAME`.\n  listen: [\"0.0.0.0:8090\"]\n  \
             # Without TLS, tokens are not encrypted. Set a certificate, or use a proxy with TLS.\n  \
             #tls: { certificate: server.pem, key: server.key }\n",
        ),
        false => add(
            "  # Defaults to ports 8090 and 3000 of this machine.\n  #listen: [\"127.0.0.1:8090\"]\n  # Web console at /.\n  \
             console: true\n",
        ),
    }
    add("\n# Providers of language models. Local model servers are detected automatically.\nproviders:\n");
    for (name, variable) in PROVIDERS {
        let mark = if answers.provider == Some(name) { "" } else { "#" };
        // Writing to a string cannot fail.
        let _ = writeln!(yaml, "  # API key: environment variable {variable}.\n  {mark}{name}: {{}}");
    }
    let _ = writeln!(yaml, "  required: {}", defaults.providers.required);
    yaml.push_str(
        "\n# Model for prompts that no routing rule or category assigns.\n#defaults:\n#  model: openai/gpt-5-mini\n",
    );
    yaml.push_str("\n# Knowledge base of documents.\nknowledge:\n  enabled: true\n");
    match &answers.documents {
        Some(folder) => {
            yaml.push_str("  # Folders whose documents are kept up to date.\n");
            // A JSON string is also a YAML string; `$` begins a variable.
            let _ = writeln!(yaml, "  watch:\n    - path: {}", json!(folder.replace("${", "$${")));
        }
        None => {
            yaml.push_str("  # Folders whose documents are kept up to date.\n  #watch:\n  #  - path: ~/Documents\n")
        }
    }
    yaml.push_str("\n# Logs on stderr: debug, info, warn or error.\n#log:\n#  level: info\n");
    yaml
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(yaml: &str) -> Config {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("corbie.yaml");
        std::fs::write(&file, yaml).unwrap();
        let sources = Sources {
            file: Some(file),
            folder: folder.path().to_owned(),
            system: folder.path().join("none"),
            variables: Default::default(),
            overrides: Vec::new(),
        };
        let loaded = Config::load(sources).unwrap_or_else(|error| panic!("{error}: {yaml}"));
        assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
        loaded.config
    }

    #[test]
    fn default_file_changes_no_setting() {
        let settings = |config: &Config| serde_json::to_value(config).unwrap();
        assert_eq!(settings(&load(&render(&Answers::default()))), settings(&Config::default()));
    }

    #[test]
    fn commented_settings_are_valid() {
        let yaml = render(&Answers::default());
        // A setting has no space after the mark.
        let line = |line: &str| match line.trim_start().strip_prefix('#') {
            Some(setting) if !setting.starts_with("  ") && setting.starts_with(' ') => String::new(),
            Some(setting) => format!("{}{setting}\n", &line[..line.find('#').unwrap()]),
            None => format!("{line}\n"),
        };
        let config = load(&yaml.lines().map(line).collect::<String>());
        assert_eq!(config.server.listen.len(), 1);
        assert_eq!(config.providers.named.len(), 3);
        assert_eq!(config.knowledge.watch.len(), 1);
    }

    #[test]
    fn answers_are_settings() {
        let mut shown = Vec::new();
        let answers = ask(&mut "mistral\nOpenAI\n/data/my docs: a\nmaybe\ny\n".as_bytes(), &mut shown).unwrap();
        let expected =
            Answers { provider: Some("openai"), documents: Some("/data/my docs: a".into()), is_remote: true };
        assert_eq!(answers, expected);
        assert!(String::from_utf8(shown).unwrap().contains("Choose one of: openai, anthropic, google, none"));
        let config = load(&render(&answers));
        assert_eq!(config.providers.named.keys().collect::<Vec<_>>(), ["openai"]);
        assert_eq!(config.knowledge.watch[0].path, Path::new("/data/my docs: a"));
        assert_eq!(config.server.listen[0].to_string(), "0.0.0.0:8090");
        assert_eq!(ask(&mut "\n\n\n".as_bytes(), &mut Vec::new()).unwrap(), Answers::default());
        assert!(ask(&mut "".as_bytes(), &mut Vec::new()).is_err());
    }
}
