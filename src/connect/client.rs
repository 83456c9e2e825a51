//! Supported MCP clients: location and format of their configuration files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::edit::Format;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Client {
    /// Anthropic's chat application
    ClaudeDesktop,
    /// Anthropic's coding agent
    ClaudeCode,
    /// Cursor editor
    Cursor,
    /// Visual Studio Code editor
    Vscode,
    /// GitHub Copilot in the terminal
    Copilot,
    /// Amazon Q in the terminal
    AmazonQ,
    /// OpenAI's coding agent
    Codex,
}

/// Base folders of all configuration files, for this user and machine.
#[derive(Debug, Clone, Default)]
pub struct Places {
    pub home: PathBuf,
    /// Settings folder of GUI applications.
    pub settings: PathBuf,
    /// Working directory, for project files.
    pub project: PathBuf,
    /// Folders from client-specific variables that replace the ones in `home`.
    pub claude_config: Option<PathBuf>,
    pub copilot_home: Option<PathBuf>,
    pub codex_home: Option<PathBuf>,
}

impl Client {
    pub const ALL: [Client; 7] = [
        Client::ClaudeDesktop,
        Client::ClaudeCode,
        Client::Cursor,
        Client::Vscode,
        Client::Copilot,
        Client::AmazonQ,
        Client::Codex,
    ];

    /// Name on the command line.
    pub fn id(self) -> &'static str {
        match self {
            Client::ClaudeDesktop => "claude-desktop",
            Client::ClaudeCode => "claude-code",
            Client::Cursor => "cursor",
            Client::Vscode => "vscode",
            Client::Copilot => "copilot",
            Client::AmazonQ => "amazon-q",
            Client::Codex => "codex",
        }
    }

    /// Product name.
    pub fn title(self) -> &'static str {
        match self {
            Client::ClaudeDesktop => "Claude Desktop",
            Client::ClaudeCode => "Claude Code",
            Client::Cursor => "Cursor",
            Client::Vscode => "VS Code",
            Client::Copilot => "GitHub Copilot CLI",
            Client::AmazonQ => "Amazon Q CLI",
            Client::Codex => "Codex",
        }
    }

    /// The user's configuration file.
    pub fn file(self, places: &Places) -> PathBuf {
        let home = &places.home;
        match self {
            Client::ClaudeDesktop => places.settings.join("Claude").join("claude_desktop_config.json"),
            Client::ClaudeCode => places.claude_config.as_ref().unwrap_or(home).join(".claude.json"),
            Client::Cursor => home.join(".cursor").join("mcp.json"),
            Client::Vscode => places.settings.join("Code").join("User").join("mcp.json"),
            Client::Copilot => own(places.copilot_home.as_ref(), home, ".copilot").join("mcp-config.json"),
            Client::AmazonQ => home.join(".aws").join("amazonq").join("mcp.json"),
            Client::Codex => own(places.codex_home.as_ref(), home, ".codex").join("config.toml"),
        }
    }

    /// The project's configuration file, if the client supports one.
    pub fn project_file(self, places: &Places) -> Option<PathBuf> {
        let project = &places.project;
        match self {
            Client::ClaudeCode => Some(project.join(".mcp.json")),
            Client::Cursor => Some(project.join(".cursor").join("mcp.json")),
            Client::Vscode => Some(project.join(".vscode").join("mcp.json")),
            Client::ClaudeDesktop | Client::Copilot | Client::AmazonQ | Client::Codex => None,
        }
    }

    /// Whether the client is installed: its configuration file or its own folder exists.
    pub fn seems_installed(self, places: &Places) -> bool {
        let file = self.file(places);
        let folder = match self {
            // Its configuration file is in the home folder itself.
            Client::ClaudeCode => Some(places.home.join(".claude")),
            _ => file.parent().map(Path::to_owned),
        };
        file.exists() || folder.is_some_and(|folder| folder.is_dir())
    }

    pub fn format(self) -> Format {
        match self {
            Client::Codex => Format::Toml,
            _ => Format::Json,
        }
    }

    /// Member of the file that contains the servers.
    pub fn section(self) -> &'static str {
        match self {
            Client::Vscode => "servers",
            Client::Codex => "mcp_servers",
            _ => "mcpServers",
        }
    }

    /// Whether the client supports servers with a URL.
    pub fn takes_url(self) -> bool {
        self != Client::ClaudeDesktop
    }

    /// Instructions for loading the changed file.
    pub fn next_step(self) -> &'static str {
        match self {
            Client::ClaudeDesktop => "Quit Claude Desktop and start it again to use it.",
            Client::ClaudeCode => "Start a new session of Claude Code to use it; `/mcp` shows it.",
            Client::Cursor => "Restart Cursor, and see that it is switched on under MCP in its settings.",
            Client::Vscode => "In VS Code, `MCP: List Servers` shows it and starts it.",
            Client::Copilot => "Start `copilot` again to use it; `/mcp show` shows it.",
            Client::AmazonQ => "Start `q chat` again to use it; `/tools` shows it.",
            Client::Codex => "Start `codex` again to use it; `/mcp` shows it.",
        }
    }
}

impl Places {
    /// `folder` is the working directory.
    pub fn new(variables: &BTreeMap<String, String>, folder: &Path) -> Places {
        let absolute = |name: &str| variables.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = absolute(if cfg!(windows) { "USERPROFILE" } else { "HOME" });
        let home = home.or_else(std::env::home_dir).unwrap_or_else(|| folder.to_owned());
        let settings = if cfg!(windows) {
            absolute("APPDATA").unwrap_or_else(|| home.join("AppData").join("Roaming"))
        } else if cfg!(target_os = "macos") {
            home.join("Library").join("Application Support")
        } else {
            absolute("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"))
        };
        Places {
            settings,
            project: folder.to_owned(),
            claude_config: absolute("CLAUDE_CONFIG_DIR"),
            copilot_home: absolute("COPILOT_HOME"),
            codex_home: absolute("CODEX_HOME"),
            home,
        }
    }
}

fn own(named: Option<&PathBuf>, home: &Path, usual: &str) -> PathBuf {
    named.cloned().unwrap_or_else(|| home.join(usual))
}
