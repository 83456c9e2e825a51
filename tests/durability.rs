#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! Crash recovery: the program is killed at random times while it adds, changes, removes and clears, and restarted.
//! Every acknowledged document is complete, removed documents stay removed, no document is partial, and the index
//! equals a rebuilt one.
//!
//! Also: concurrent clients, and full or read-only disks.
//!
//! `CORBIE_DURABILITY_ROUNDS=300 cargo nextest run -p corbie --test durability` runs more rounds than the default;
//! `CORBIE_DURABILITY_SEED` repeats a run.

#[path = "durability/concurrent_clients.rs"]
mod concurrent_clients;
#[cfg(target_os = "linux")]
#[path = "durability/disk_faults.rs"]
mod disk_faults;
#[path = "durability/ledger.rs"]
mod ledger;
#[path = "durability/sigkill.rs"]
mod sigkill;
#[path = "durability/stdio_process.rs"]
mod stdio_process;

use corbie_test_support::seeded_rng as rng;
