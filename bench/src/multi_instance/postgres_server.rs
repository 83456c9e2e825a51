//! The PostgreSQL server started by `bench/run`, with settings for the data size.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::process_tree;

#[derive(Debug)]
pub(super) struct PostgresServer {
    /// URL of the default database.
    address: String,
    folder: PathBuf,
}

/// A separate database, which is removed with the server.
#[derive(Debug)]
pub(super) struct BenchDatabase {
    name: String,
    pub(super) address: String,
}

const SCRIPT: &str = "tests/postgres/server";
/// Uses the `psql` of the server's installation.
const PSQL_SCRIPT: &str = r#"source tests/postgres/shared.bash && exec "$(installed 18)/psql" --no-psqlrc --quiet --tuples-only \
    --no-align --field-separator=' ' --set=ON_ERROR_STOP=1 --command="$2" "$1""#;
/// As for a small database server: the defaults are twenty years old.
const SETTINGS: [&str; 3] = ["shared_buffers = '1GB'", "maintenance_work_mem = '1GB'", "max_wal_size = '4GB'"];

impl PostgresServer {
    /// The server named in the environment, restarted with these settings.
    pub(super) fn start_tuned() -> Result<PostgresServer> {
        let named =
            |name: &str| std::env::var(name).with_context(|| format!("{name} is not set; use `bench/run many`"));
        let server = PostgresServer {
            address: named("CORBIE_TEST_POSTGRES")?,
            folder: named("CORBIE_TEST_POSTGRES_FOLDER")?.into(),
        };
        for setting in SETTINGS {
            query(&server.address, &format!("ALTER SYSTEM SET {setting}"))?;
        }
        for what in ["stop", "start"] {
            let done = Command::new(SCRIPT).arg(what).arg(&server.folder).status().context(SCRIPT)?;
            ensure!(done.success(), "{SCRIPT} {what} failed");
        }
        Ok(server)
    }

    /// Version of the server and its extension.
    pub(super) fn describe(&self) -> Result<String> {
        let version = query(&self.address, "SHOW server_version")?;
        let vector = query(&self.address, "SELECT default_version FROM pg_available_extensions WHERE name = 'vector'")?;
        Ok(format!(
            "PostgreSQL {version} with pgvector {vector} ({})",
            SETTINGS.map(|line| line.replace('\'', "")).join(", ")
        ))
    }

    /// Creates an empty database.
    pub(super) fn database(&self, name: &str) -> Result<BenchDatabase> {
        let database = self.create_database(name, "")?;
        database.query("CREATE EXTENSION vector")?;
        Ok(database)
    }

    /// Copies a database without open connections. Copies the files: with the default strategy a large database would
    /// go through the WAL and cause a checkpoint in the middle of the next measurement.
    pub(super) fn copy(&self, of: &BenchDatabase, name: &str) -> Result<BenchDatabase> {
        self.create_database(name, &format!("TEMPLATE {} STRATEGY FILE_COPY", of.name))
    }

    fn create_database(&self, name: &str, how: &str) -> Result<BenchDatabase> {
        query(&self.address, &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))?;
        query(&self.address, &format!("CREATE DATABASE {name} {how}"))?;
        let (server, _) = self.address.rsplit_once('/').context("an address names a database")?;
        Ok(BenchDatabase { name: name.to_owned(), address: format!("{server}/{name}") })
    }

    /// CPU time of all its processes, including ended ones.
    pub(super) fn cpu_seconds(&self) -> Result<f64> {
        let file = self.folder.join("data/postmaster.pid");
        let told = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        process_tree::cpu_seconds(told.lines().next().unwrap_or_default().trim().parse()?)
    }
}

impl BenchDatabase {
    /// The plain result of a statement.
    pub(super) fn query(&self, sql: &str) -> Result<String> {
        query(&self.address, sql)
    }
}

fn query(address: &str, sql: &str) -> Result<String> {
    let output = Command::new("bash").args(["-c", PSQL_SCRIPT, "-", address, sql]).output().context("bash")?;
    ensure!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
