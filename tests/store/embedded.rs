//! Tests specific to the embedded store: its files, processes that share them, and its change log. Excluded by name
//! when the tests run on PostgreSQL.

mod change_log;
mod checksums;
mod concurrent_processes;
mod damaged_log;
mod disk_space;
mod export_for_index;
mod files;
mod first_schema_version;
mod maintenance;
mod migration_copies;
mod readers;
mod schema_versions;
mod speed;
