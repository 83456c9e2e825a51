#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! The program is killed at random moments while it adds, changes, removes and clears, and started again: what it had
//! acknowledged is there whole, what it had removed stays gone, nothing is half there, and its index is what a new one
//! would be.
//!
//! Beside that: many clients at once, and disks that are full or cannot be written.
//!
//! `CORBIE_DURABILITY_ROUNDS=300 cargo nextest run -p corbie --test durability` takes longer than the rounds that always
//! run; `CORBIE_DURABILITY_SEED` plays a run again.

#[path = "durability/bookkeeping.rs"]
mod bookkeeping;
#[path = "durability/chance.rs"]
mod chance;
#[path = "durability/crowd.rs"]
mod crowd;
#[cfg(target_os = "linux")]
#[path = "durability/disk.rs"]
mod disk;
#[path = "durability/peer.rs"]
mod peer;
#[path = "durability/sigkill.rs"]
mod sigkill;
