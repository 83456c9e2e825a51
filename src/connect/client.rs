//! Supported MCP clients: location and format of their configuration files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::edit::ClientFileFormat;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum McpClient {
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
pub struct ClientDirs {
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

impl McpClient {
    pub const ALL: [McpClient; 7] = [
        McpClient::ClaudeDesktop,
        McpClient::ClaudeCode,
        McpClient::Cursor,
        McpClient::Vscode,
        McpClient::Copilot,
        McpClient::AmazonQ,
        McpClient::Codex,
    ];

    /// Name on the command line.
    pub fn id(self) -> &'static str {
        match self {
            McpClient::ClaudeDesktop => "claude-desktop",
            McpClient::ClaudeCode => "claude-code",
            McpClient::Cursor => "cursor",
            McpClient::Vscode => "vscode",
            McpClient::Copilot => "copilot",
            McpClient::AmazonQ => "amazon-q",
            McpClient::Codex => "codex",
        }
    }

    /// Product name.
    pub fn title(self) -> &'static str {
        match self {
            McpClient::ClaudeDesktop => "Claude Desktop",
            McpClient::ClaudeCode => "Claude Code",
            McpClient::Cursor => "Cursor",
            McpClient::Vscode => "VS Code",
            McpClient::Copilot => "GitHub Copilot CLI",
            McpClient::AmazonQ => "Amazon Q CLI",
            McpClient::Codex => "Codex",
        }
    }

    /// The user's configuration file.
    pub fn file(self, places: &ClientDirs) -> PathBuf {
        let home = &places.home;
        match self {
            McpClient::ClaudeDesktop => places.settings.join("Claude").join("claude_desktop_config.json"),
            McpClient::ClaudeCode => places.claude_config.as_ref().unwrap_or(home).join(".claude.json"),
            McpClient::Cursor => home.join(".cursor").join("mcp.json"),
            McpClient::Vscode => places.settings.join("Code").join("User").join("mcp.json"),
            McpClient::Copilot => {
                dir_or_default(places.copilot_home.as_ref(), home, ".copilot").join("mcp-config.json")
            }
            McpClient::AmazonQ => home.join(".aws").join("amazonq").join("mcp.json"),
            McpClient::Codex => dir_or_default(places.codex_home.as_ref(), home, ".codex").join("config.toml"),
        }
    }

    /// The project's configuration file, if the client supports one.
    pub fn project_file(self, places: &ClientDirs) -> Option<PathBuf> {
        let project = &places.project;
        match self {
            McpClient::ClaudeCode => Some(project.join(".mcp.json")),
            McpClient::Cursor => Some(project.join(".cursor").join("mcp.json")),
            McpClient::Vscode => Some(project.join(".vscode").join("mcp.json")),
            McpClient::ClaudeDesktop | McpClient::Copilot | McpClient::AmazonQ | McpClient::Codex => None,
        }
    }

    /// Whether the client is installed: its configuration file or its own folder exists.
    pub fn is_installed(self, places: &ClientDirs) -> bool {
        let file = self.file(places);
        let folder = match self {
            // Its configuration file is in the home folder itself.
            McpClient::ClaudeCode => Some(places.home.join(".claude")),
            _ => file.parent().map(Path::to_owned),
        };
        file.exists() || folder.is_some_and(|folder| folder.is_dir())
    }

    pub fn format(self) -> ClientFileFormat {
        match self {
            McpClient::Codex => ClientFileFormat::Toml,
            _ => ClientFileFormat::Json,
        }
    }

    /// Member of the file that contains the servers.
    pub fn section(self) -> &'static str {
        match self {
            McpClient::Vscode => "servers",
            McpClient::Codex => "mcp_servers",
            _ => "mcpServers",
        }
    }

    /// Whether the client supports servers with a URL.
    pub fn supports_url(self) -> bool {
        self != McpClient::ClaudeDesktop
    }

    /// Instructions for loading the changed file.
    pub fn next_step(self) -> &'static str {
        match self {
            McpClient::ClaudeDesktop => "Quit Claude Desktop completely (including its tray icon) and restart it.",
            McpClient::ClaudeCode => "Start a new session of Claude Code; `/mcp` lists its servers.",
            McpClient::Cursor => "Restart Cursor, and check that the server is enabled under MCP in its settings.",
            McpClient::Vscode => "Run `MCP: List Servers` in VS Code to start it.",
            McpClient::Copilot => "Restart `copilot`; `/mcp show` lists its servers.",
            McpClient::AmazonQ => "Restart `q chat`; `/tools` lists its tools.",
            McpClient::Codex => "Restart `codex`; `/mcp` lists its servers.",
        }
    }
}

impl ClientDirs {
    /// `folder` is the working directory.
    pub fn new(variables: &BTreeMap<String, String>, folder: &Path) -> ClientDirs {
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
        ClientDirs {
            settings,
            project: folder.to_owned(),
            claude_config: absolute("CLAUDE_CONFIG_DIR"),
            copilot_home: absolute("COPILOT_HOME"),
            codex_home: absolute("CODEX_HOME"),
            home,
        }
    }
}

fn dir_or_default(named: Option<&PathBuf>, home: &Path, usual: &str) -> PathBuf {
    named.cloned().unwrap_or_else(|| home.join(usual))
}
