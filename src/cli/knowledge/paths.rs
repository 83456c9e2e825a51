//! Makes paths absolute, because a server has another working directory.

use std::path::{Path, absolute};

use super::error::KnowledgeError;

/// Absolute files, folders and patterns.
pub(super) fn resolve(paths: &[String]) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let here = std::env::current_dir()?;
    paths.iter().map(|path| Ok(resolved(path, &here).map_err(|why| KnowledgeError::argument("paths", why))?)).collect()
}

fn resolved(path: &str, here: &Path) -> Result<String, String> {
    let given = Path::new(path);
    let is_pattern = path.contains(['*', '?', '[', '{']) && !here.join(given).exists();
    let not_text = || format!("the path `{}` is not valid UTF-8", here.display());
    if !is_pattern {
        let whole = absolute(here.join(given)).map_err(|error| format!("`{path}`: {error}"))?;
        return whole.to_str().map(String::from).ok_or_else(not_text);
    }
    if given.is_absolute() {
        return Ok(path.to_owned());
    }
    // The working directory is literal text, not a pattern.
    let folder = globset::escape(here.to_str().ok_or_else(not_text)?);
    let pattern = path.strip_prefix("./").unwrap_or(path);
    Ok(format!("{}/{pattern}", folder.trim_end_matches('/')))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn paths_and_patterns_become_absolute() {
        let folder = tempfile::Builder::new().prefix("a[b]").tempdir().unwrap();
        let here = folder.path().to_str().unwrap();
        std::fs::write(folder.path().join("odd[1].txt"), "").unwrap();
        let resolve = |path: &str| resolved(path, folder.path()).unwrap();
        assert_eq!(resolve("a.pdf"), format!("{here}/a.pdf"));
        assert_eq!(resolve("./docs"), format!("{here}/docs"));
        assert_eq!(resolve("/elsewhere/*.pdf"), "/elsewhere/*.pdf");
        assert_eq!(resolve("odd[1].txt"), format!("{here}/odd[1].txt"), "a file that is there is no pattern");
        let pattern = globset::Glob::new(&resolve("./docs/**/*.pdf")).unwrap().compile_matcher();
        assert!(pattern.is_match(format!("{here}/docs/x/a.pdf")));
    }
}
