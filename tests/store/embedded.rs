//! Tests specific to the embedded store: its files, processes that share them, and its change log. Excluded by name
//! when the tests run on PostgreSQL.

mod care;
mod changes;
mod checksums;
mod damaged_log;
mod files;
mod loading;
mod migration_copies;
mod processes;
mod readers;
mod room;
mod speed;
mod versions;
mod versions_each;
