//! The PostgreSQL server started by `bench/run`, with settings for the data size.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::tree;

#[derive(Debug)]
pub(super) struct Server {
    /// URL of the default database.
    address: String,
    folder: PathBuf,
}

/// A separate database, which is removed with the server.
#[derive(Debug)]
pub(super) struct Database {
    name: String,
    pub(super) address: String,
}

const SCRIPT: &str = "tests/postgres/server";
/// Uses the `psql` of the server's installation.
const ASK: &str = r#"source tests/postgres/shared.bash && exec "$(installed 18)/psql" --no-psqlrc --quiet --tuples-only \
    --no-align --field-separator=' ' --set=ON_ERROR_STOP=1 --command="$2" "$1""#;
/// As for a small database server: the defaults are twenty years old.
const SETTINGS: [&str; 3] = ["shared_buffers = '1GB'", "maintenance_work_mem = '1GB'", "max_wal_size = '4GB'"];

impl Server {
    /// The server named in the environment, restarted with these settings.
    pub(super) fn tuned() -> Result<Server> {
        let named =
            |name: &str| std::env::var(name).with_context(|| format!("{name} is not set; use `bench/run many`"));
        let server =
            Server { address: named("CORBIE_TEST_POSTGRES")?, folder: named("CORBIE_TEST_POSTGRES_FOLDER")?.into() };
        for setting in SETTINGS {
            ask(&server.address, &format!("ALTER SYSTEM SET {setting}"))?;
        }
        for what in ["stop", "start"] {
            let done = Command::new(SCRIPT).arg(what).arg(&server.folder).status().context(SCRIPT)?;
            ensure!(done.success(), "{SCRIPT} {what} failed");
        }
        Ok(server)
    }

    /// Version of the server and its extension.
    pub(super) fn describe(&self) -> Result<String> {
        let version = ask(&self.address, "SHOW server_version")?;
        let vector = ask(&self.address, "SELECT default_version FROM pg_available_extensions WHERE name = 'vector'")?;
        Ok(format!(
            "PostgreSQL {version} with pgvector {vector} ({})",
            SETTINGS.map(|line| line.replace('\'', "")).join(", ")
        ))
    }

    /// Creates an empty database.
    pub(super) fn database(&self, name: &str) -> Result<Database> {
        let database = self.make(name, "")?;
        database.ask("CREATE EXTENSION vector")?;
        Ok(database)
    }

    /// Copies a database without open connections. Copies the files: with the default strategy a large database would
    /// go through the WAL and cause a checkpoint in the middle of the next measurement.
    pub(super) fn copy(&self, of: &Database, name: &str) -> Result<Database> {
        self.make(name, &format!("TEMPLATE {} STRATEGY FILE_COPY", of.name))
    }

    fn make(&self, name: &str, how: &str) -> Result<Database> {
        ask(&self.address, &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))?;
        ask(&self.address, &format!("CREATE DATABASE {name} {how}"))?;
        let (server, _) = self.address.rsplit_once('/').context("an address names a database")?;
        Ok(Database { name: name.to_owned(), address: format!("{server}/{name}") })
    }

    /// CPU time of all its processes, including ended ones.
    pub(super) fn cpu_seconds(&self) -> Result<f64> {
        let file = self.folder.join("data/postmaster.pid");
        let told = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        tree::cpu_seconds(told.lines().next().unwrap_or_default().trim().parse()?)
    }
}

impl Database {
    /// The plain result of a statement.
    pub(super) fn ask(&self, sql: &str) -> Result<String> {
        ask(&self.address, sql)
    }
}

fn ask(address: &str, sql: &str) -> Result<String> {
    let output = Command::new("bash").args(["-c", ASK, "-", address, sql]).output().context("bash")?;
    ensure!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
