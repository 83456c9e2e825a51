//! What is true of the embedded store only: of its files, of processes that share them, and of what follows its changes.
//! Left out by name where tests use another store.

mod care;
mod changes;
mod checksums;
mod files;
mod loading;
mod migration_copies;
mod processes;
mod readers;
mod room;
mod speed;
mod versions;
mod versions_each;
