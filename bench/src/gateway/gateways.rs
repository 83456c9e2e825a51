//! The gateways, and their commands in front of the mock upstream.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use super::peers;
use super::request::ResponseShape;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) enum Gateway {
    /// No gateway: the baseline.
    Direct,
    Floor,
    /// A pinned model of a provider with OpenAI's protocol.
    CorbiePassthrough,
    /// The same for a provider with Anthropic's protocol.
    CorbieTranslated,
    /// The prompt is classified, and its category names the model.
    CorbieAuto,
    Nginx,
    VllmRouter,
    Portkey,
    LiteLlm,
}

/// `direct` first: it is the baseline.
pub(super) const GATEWAYS: [Gateway; 9] = [
    Gateway::Direct,
    Gateway::Floor,
    Gateway::CorbiePassthrough,
    Gateway::CorbieTranslated,
    Gateway::CorbieAuto,
    Gateway::Nginx,
    Gateway::VllmRouter,
    Gateway::Portkey,
    Gateway::LiteLlm,
];

pub(super) const PROGRAMS: &str = ".tools/bench/target/release";
/// Built with the profile of packages.
const CORBIE: &str = ".tools/bench/target/dist/corbie";
/// Generated configuration of the gateways.
const FOLDER: &str = ".tools/bench/gateway";

impl Gateway {
    pub(super) fn name(self) -> &'static str {
        match self {
            Gateway::Direct => "direct",
            Gateway::Floor => "bare floor",
            Gateway::CorbiePassthrough => "corbie, same protocol",
            Gateway::CorbieTranslated => "corbie, translated",
            Gateway::CorbieAuto => "corbie, `auto`",
            Gateway::Nginx => "nginx",
            Gateway::VllmRouter => "vllm-router 0.1.16",
            Gateway::Portkey => "Portkey 1.15.2",
            Gateway::LiteLlm => "LiteLLM 1.106.2",
        }
    }

    /// Name on the command line; `corbie` selects all three.
    fn cli_name(self) -> &'static str {
        match self {
            Gateway::Direct => "direct",
            Gateway::Floor => "floor",
            Gateway::CorbiePassthrough => "corbie-passthrough",
            Gateway::CorbieTranslated => "corbie-translated",
            Gateway::CorbieAuto => "corbie-auto",
            Gateway::Nginx => "nginx",
            Gateway::VllmRouter => "vllm-router",
            Gateway::Portkey => "portkey",
            Gateway::LiteLlm => "litellm",
        }
    }

    /// The gateways with these names, or all; always includes `direct`.
    pub(super) fn select(names: &[String]) -> Result<Vec<Gateway>> {
        let fits = |gateway: Gateway, name: &String| {
            gateway.cli_name() == name
                || gateway.cli_name().strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('-'))
        };
        for name in names {
            let words = GATEWAYS.map(Gateway::cli_name).join(", ");
            ensure!(GATEWAYS.iter().any(|&gateway| fits(gateway, name)), "no gateway `{name}`; there are {words}");
        }
        let is_chosen = |gateway: Gateway| {
            names.is_empty() || gateway == Gateway::Direct || names.iter().any(|name| fits(gateway, name))
        };
        Ok(GATEWAYS.into_iter().filter(|&gateway| is_chosen(gateway)).collect())
    }

    /// Slow peers need a longer warm-up.
    pub(super) fn is_slow(self) -> bool {
        matches!(self, Gateway::Portkey | Gateway::LiteLlm)
    }

    /// The model in the request.
    pub(super) fn model(self, shape: ResponseShape) -> &'static str {
        match (self, shape) {
            (Gateway::CorbieAuto, _) => "auto",
            (Gateway::CorbieTranslated, ResponseShape::Paced) => "anthropic/claude-test-spaced",
            (Gateway::CorbieTranslated, _) => "anthropic/claude-test",
            (Gateway::CorbiePassthrough, ResponseShape::Paced) => "upstream/gpt-test-spaced",
            (Gateway::CorbiePassthrough, _) => "upstream/gpt-test",
            (_, ResponseShape::Paced) => "gpt-test-spaced",
            (_, _) => "gpt-test",
        }
    }

    /// Additional headers of a request, each with its line end.
    pub(super) fn headers(self, upstream: u16) -> String {
        match self {
            Gateway::Portkey => {
                format!("x-portkey-provider: openai\r\nx-portkey-custom-host: http://127.0.0.1:{upstream}/v1\r\n")
            }
            _ => String::new(),
        }
    }

    /// The command in front of the upstream; `None` for `direct`.
    pub(super) fn command(self, port: u16, upstream: u16) -> Result<Option<Command>> {
        let command = match self {
            Gateway::Direct => return Ok(None),
            Gateway::Floor => {
                let mut command = installed_command(&format!("{PROGRAMS}/proxy_server"))?;
                command.args(["--port", &port.to_string(), "--to", &format!("127.0.0.1:{upstream}")]);
                command
            }
            Gateway::CorbiePassthrough => self.corbie(port, &openai_provider(upstream))?,
            Gateway::CorbieTranslated => self.corbie(port, &anthropic_provider(upstream))?,
            Gateway::CorbieAuto => self.corbie(port, &(openai_provider(upstream) + AUTO_SETTINGS))?,
            Gateway::Nginx => peers::nginx(port, upstream)?,
            Gateway::VllmRouter => peers::vllm_router(port, upstream)?,
            Gateway::Portkey => peers::portkey(port)?,
            Gateway::LiteLlm => peers::litellm(port, upstream)?,
        };
        Ok(Some(command))
    }

    fn corbie(self, port: u16, settings: &str) -> Result<Command> {
        let mut command = corbie_command(&write_settings(&format!("{}.yaml", self.cli_name()), settings)?)?;
        command.args(["serve", "--port", &port.to_string()]);
        Ok(command)
    }

    /// Path of its log.
    pub(super) fn log(self) -> String {
        format!(".tools/bench/logs/gateway-{}.log", self.cli_name())
    }
}

/// The prompt is always the same, so the cache would bypass the classifier.
const AUTO_SETTINGS: &str = "\
classification: {cache_entries: 0}
router:
  models: {math: upstream/gpt-test, history: upstream/gpt-test-spaced}
";

fn openai_provider(upstream: u16) -> String {
    format!(
        "providers:\n  detect_ports: []\n  upstream: {{base_url: 'http://127.0.0.1:{upstream}/v1', api_key: sk-bench, \
         default_model: gpt-test}}\n"
    )
}

fn anthropic_provider(upstream: u16) -> String {
    format!(
        "providers:\n  detect_ports: []\n  anthropic: {{base_url: 'http://127.0.0.1:{upstream}', api_key: sk-bench, \
         default_model: claude-test}}\n"
    )
}

/// Default configuration: no settings of this machine or user.
pub(super) fn corbie_command(settings: &Path) -> Result<Command> {
    let mut command = installed_command(CORBIE)?;
    command.env_clear().arg("--config").arg(settings);
    Ok(command)
}

pub(super) fn installed_command(program: &str) -> Result<Command> {
    ensure!(Path::new(program).exists(), "not installed");
    Ok(Command::new(program))
}

/// Writes a configuration file and returns its absolute path.
pub(super) fn write_settings(name: &str, text: &str) -> Result<PathBuf> {
    fs::create_dir_all(FOLDER)?;
    let file = std::path::absolute(Path::new(FOLDER).join(name))?;
    fs::write(&file, text).with_context(|| file.display().to_string())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corbie_is_all_three_and_direct_is_always_there() {
        let chosen = Gateway::select(&["corbie".into(), "floor".into()]).expect("all of them are known");
        assert_eq!(chosen, GATEWAYS[..5]);
        let chosen = Gateway::select(&["corbie-auto".into()]).expect("it is known");
        assert_eq!(chosen, [Gateway::Direct, Gateway::CorbieAuto]);
        assert_eq!(Gateway::select(&[]).expect("nothing is asked for"), GATEWAYS);
        Gateway::select(&["corb".into()]).expect_err("nobody is called so");
    }
}
