//! Test fixture: a knowledge base for the commands.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::{ProcessOutput, TestCommand, TestProcess, call, corbie, wait_for};

/// Storage and documents, shared by several processes of a test.
pub(crate) struct KnowledgeFixture {
    folder: TempDir,
}

pub(crate) const BEES: &str = "# Bees\n\nA honey bee colony has one queen, who lays all the eggs of the hive.\n\n\
    ## Winter\n\nIn winter the workers keep the queen warm by shivering around her.\n";
pub(crate) const TAXES: &str =
    "The invoice of March was paid late, so the tax office asked for interest of 12 euros.\n";

impl KnowledgeFixture {
    pub(crate) fn new() -> KnowledgeFixture {
        KnowledgeFixture { folder: tempfile::tempdir().unwrap() }
    }

    /// With two documents added.
    pub(crate) fn with_documents() -> KnowledgeFixture {
        let place = KnowledgeFixture::new();
        place.write("bees.md", BEES);
        place.write("taxes.txt", TAXES);
        let ended = place.run("add --tag first .");
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "2 files: 2 added\n"), "{ended:?}");
        place
    }

    pub(crate) fn documents(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a document.
    pub(crate) fn write(&self, name: &str, content: &str) {
        let path = self.documents().join("documents").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn storage(&self) -> String {
        self.folder.path().join("storage").display().to_string()
    }

    pub(crate) fn with(&self, setup: TestCommand) -> TestCommand {
        setup.variable("CORBIE_KNOWLEDGE__STORAGE_PATH", self.storage())
    }

    /// A leading `.` in an argument is replaced by the documents folder.
    pub(crate) fn corbie(&self, arguments: &str) -> TestCommand {
        let documents = self.folder.path().join("documents").display().to_string();
        let mut setup = self.with(corbie(""));
        for argument in arguments.split_whitespace() {
            setup = match argument.strip_prefix('.') {
                Some(rest) => setup.argument(format!("{documents}{rest}")),
                None => setup.argument(argument),
            };
        }
        setup
    }

    #[track_caller]
    pub(crate) fn run(&self, arguments: &str) -> ProcessOutput {
        self.corbie(arguments).run("")
    }

    /// Runs a command and parses its single line of output.
    #[track_caller]
    pub(crate) fn json(&self, arguments: &str) -> Value {
        let ended = self.run(arguments);
        match &ended.messages()[..] {
            [reply] => reply.clone(),
            _ => panic!("not one line: {ended:?}"),
        }
    }

    /// A server with the storage open, which commands can connect to.
    pub(crate) fn serve(&self) -> TestProcess {
        let mut server = self.with(corbie("stdio")).start();
        let status = server.send_and_receive(&call(1, "knowledge-status", json!({})));
        assert_eq!(status["result"]["isError"], false, "{status}");
        let sockets = Path::new(&self.storage()).join("sockets");
        wait_for("the socket of the server", || std::fs::read_dir(&sockets).ok()?.next()?.ok());
        server
    }

    /// The id of the document with this name.
    #[track_caller]
    pub(crate) fn id(&self, name: &str) -> String {
        let listed = self.json("show --json");
        let documents = listed["documents"].as_array().unwrap();
        let found = documents.iter().find(|document| document["filename"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {listed}"))["id"].as_str().unwrap().to_owned()
    }
}

/// Runs a check without a server and with one.
pub(crate) fn with_and_without_server(check: impl Fn(&KnowledgeFixture, bool)) {
    let place = KnowledgeFixture::with_documents();
    check(&place, false);
    #[cfg(unix)]
    {
        let place = KnowledgeFixture::with_documents();
        let server = place.serve();
        check(&place, true);
        drop(server);
    }
}
