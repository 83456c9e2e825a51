//! The fake upstream of `examples/upstream`, and a program that knows no other provider.

use tempfile::TempDir;

use crate::process::{Running, Setup, corbie, example};

/// The key of every provider. Nothing that is written may hold it.
const KEY: &str = "sk-marker-7c1e40";

pub(crate) struct Upstream {
    port: u16,
    folder: TempDir,
    _running: Running,
}

impl Upstream {
    /// With one provider in the settings: `acme`, whose default model is `echo-large`.
    pub(crate) fn start() -> Upstream {
        let mut running = example("corbie", "upstream").arguments("--port 0").start();
        let line = running.line();
        let port = line.trim_end().rsplit(':').next().and_then(|port| port.parse().ok());
        let port = port.unwrap_or_else(|| panic!("no port in {line:?}"));
        let upstream = Upstream { port, folder: tempfile::tempdir().expect("a temporary folder"), _running: running };
        upstream.configure("acme: {base_url: 'BASE/v1', api_key: KEY, default_model: echo-large}");
        upstream
    }

    /// Writes the settings: these providers, where `BASE` is the address of the upstream, and no others.
    pub(crate) fn configure(&self, providers: &str) {
        let providers = providers.replace("BASE", &format!("http://127.0.0.1:{}", self.port)).replace("KEY", KEY);
        let settings = format!("providers:\n  detect_ports: []\n  {}\n", providers.trim().replace('\n', "\n  "));
        std::fs::write(self.folder.path().join("corbie.yaml"), settings).expect("a new file");
    }

    /// `corbie` with the settings.
    pub(crate) fn corbie(&self, arguments: &str) -> Setup {
        corbie("--config").argument(self.settings()).arguments(arguments)
    }

    /// Where the settings are.
    fn settings(&self) -> String {
        self.folder.path().join("corbie.yaml").display().to_string()
    }
}
