//! Clock jumps: `faketime` intercepts the clock of the server and reads its offset from a file.

use std::fs;
use std::path::{Path, PathBuf};

use super::{FaultContext, fault_duration};
use crate::rng::SeededRng;

const OFFSET_FILE: &str = "clock";
const LIBRARY_PATHS: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/local/lib/faketime/libfaketimeMT.so.1",
];
/// From two days back to a month ahead.
const JUMPS: [&str; 5] = ["-2d", "-61s", "+61s", "+1h", "+31d"];

pub(crate) fn faketime_library() -> Option<&'static str> {
    LIBRARY_PATHS.into_iter().find(|place| Path::new(place).exists())
}

fn offset_file(home: &Path) -> PathBuf {
    home.join(OFFSET_FILE)
}

/// Resets the offset and returns the environment variables that let the clock jump later.
pub(crate) fn reset(home: &Path) -> std::io::Result<Vec<(String, String)>> {
    let Some(library) = faketime_library() else { return Ok(Vec::new()) };
    fs::write(offset_file(home), "+0")?;
    let pair = |name: &str, value: String| (name.to_owned(), value);
    Ok(vec![
        pair("LD_PRELOAD", library.to_owned()),
        pair("FAKETIME_TIMESTAMP_FILE", offset_file(home).display().to_string()),
        pair("FAKETIME_NO_CACHE", "1".to_owned()),
        // Deadlines use the monotonic clock and are not affected.
        pair("DONT_FAKE_MONOTONIC", "1".to_owned()),
    ])
}

pub(super) fn jump(world: &mut FaultContext, chance: &mut SeededRng) -> Result<(), String> {
    let home = world.server()?.program.home.clone();
    for _ in 0..3 {
        let jump = JUMPS[chance.below(JUMPS.len())];
        fs::write(offset_file(&home), jump).map_err(|error| error.to_string())?;
        std::thread::sleep(fault_duration(chance) / 2);
    }
    fs::write(offset_file(&home), "+0").map_err(|error| error.to_string())?;
    world.server()?.wait_for_answer()
}
