//! Builds the examples of this workspace if cargo has not built them for the tests.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Maximum age difference of programs built together; building one example alone rebuilds many of its dependencies.
const MAX_BUILD_AGE_GAP: Duration = Duration::from_secs(300);

/// The binary of an example, as new as the product.
pub(crate) fn build_example(package: &str, name: &str) -> PathBuf {
    /// Examples already checked. One test builds, the other tests wait.
    static READY: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let product = Path::new(env!("CARGO_BIN_EXE_corbie"));
    let built = product.parent().expect("the folder of the build profile");
    let program = built.join("examples").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    let mut ready = READY.lock().unwrap_or_else(PoisonError::into_inner);
    // Testing the product does not build the example; one older than the product may come from older sources.
    let age = |path: &Path| path.metadata().and_then(|file| file.modified()).ok();
    let is_older =
        age(&program).is_none_or(|age_of| age(product).is_some_and(|product| age_of + MAX_BUILD_AGE_GAP < product));
    let is_built = std::env::var_os("BUILT_FOR_TESTS").is_some() && program.exists();
    if !ready.iter().any(|known| known == name) && is_older && !is_built {
        let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        build.current_dir(env!("CARGO_MANIFEST_DIR"));
        // Build scripts that depend on these variables would run again, also for the next build.
        let of_this_package = |name: &String| ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|of| name.starts_with(of));
        std::env::vars().map(|(name, _)| name).filter(of_this_package).for_each(|name| {
            build.env_remove(name);
        });
        build.args(["build", "--quiet", "-p", package, "--example", name, "--target-dir"]);
        build.arg(built.parent().expect("the folder of all builds"));
        if built.ends_with("release") {
            build.arg("--release");
        }
        let output = build.output().expect("cargo");
        assert!(output.status.success(), "`{name}` can be built: {}", String::from_utf8_lossy(&output.stderr));
    }
    ready.push(name.to_owned());
    program
}
