//! Resolves the paths in settings: a relative path starts from the folder of the file that has it (X-46).
//!
//! The user's own file counts in every working folder. A path in it that started from there would name a file of the
//! author of that folder.

use std::path::PathBuf;

use super::Config;
use super::diagnostic::{KeyPath, ValueSource};
use super::layers::Sources;
use super::program::Program;
use super::spanned_value::SpannedValue;
use corbie_util::fs::atomic_write::parent_dir;

/// Name of the taxonomy in the user's configuration folder.
const USER_TAXONOMY: &str = "taxonomy.yaml";

impl Config {
    /// Makes the paths of all files absolute and sets the folders of programs. `tree` has the file of each setting.
    pub(super) fn resolve_paths(&mut self, tree: &SpannedValue, sources: &Sources) {
        for (key, path) in self.paths() {
            resolve(path, &key, tree, sources);
        }
        for (key, program) in self.programs() {
            if let Some(path) = program.path_mut() {
                expand_home(path, sources);
            }
            program.set_folder(file_folder(&key, tree).unwrap_or_else(|| sources.program_folder()));
        }
    }

    /// Selects the taxonomy in the user's configuration folder if the settings name none. Instances with a shared
    /// database share the taxonomy, so only their settings name it.
    pub(super) fn default_taxonomy(&mut self, sources: &Sources) {
        if self.classification.taxonomy.is_some() || self.knowledge.store.is_some() {
            return;
        }
        let path = sources.user_config_dir().map(|folder| folder.join(USER_TAXONOMY));
        match path {
            Some(path) if path.is_file() => self.classification.taxonomy = Some(path),
            path => self.classification.new_taxonomy = path,
        }
    }

    /// Every path in the settings.
    fn paths(&mut self) -> Vec<(KeyPath, &mut PathBuf)> {
        let Config { server, inference, classification, knowledge, audit, .. } = self;
        let (certificate, private_key) = server.tls.as_mut().map(|tls| (&mut tls.certificate, &mut tls.key)).unzip();
        let single = [
            ("server.tls.certificate", certificate),
            ("server.tls.key", private_key),
            ("server.tokens_file", server.tokens_file.as_mut()),
            ("inference.embedding.path", inference.embedding.path.as_mut()),
            ("classification.taxonomy", classification.taxonomy.as_mut()),
            ("classification.model.path", classification.model.path.as_mut()),
            ("knowledge.storage_path", knowledge.storage_path.as_mut()),
            ("knowledge.vector_db_path", knowledge.vector_db_path.as_mut()),
            ("audit.file", audit.file.as_mut()),
        ];
        let single = single.into_iter().filter_map(|(key, path)| Some((KeyPath::dotted(key), path?)));
        let roots = knowledge.allowed_roots.iter_mut().enumerate();
        let roots = roots.map(|(at, path)| (KeyPath::dotted("knowledge.allowed_roots").index(at), path));
        let watched = knowledge.watch.iter_mut().enumerate();
        let watched =
            watched.map(|(at, watch)| (KeyPath::dotted("knowledge.watch").index(at).key("path"), &mut watch.path));
        single.chain(roots).chain(watched).collect()
    }

    /// Every program in the settings.
    fn programs(&mut self) -> impl Iterator<Item = (KeyPath, &mut Program)> {
        let Config { classification, classifier, ocr, .. } = self;
        let older = classifier.mcp_category_model.as_mut().and_then(|older| older.command.as_mut());
        let programs = [
            ("ocr.tesseract", Some(&mut ocr.tesseract)),
            ("classification.mcp_server.command", classification.mcp_server.command.as_mut()),
            ("classifier.mcp_category_model.command", older),
        ];
        programs.into_iter().filter_map(|(key, program)| Some((KeyPath::dotted(key), program?)))
    }
}

/// Makes the path of a setting absolute, unless it comes from the environment or a flag: what the user types in a
/// terminal starts from the working folder.
pub(super) fn resolve(path: &mut PathBuf, key: &KeyPath, tree: &SpannedValue, sources: &Sources) {
    expand_home(path, sources);
    if let Some(folder) = file_folder(key, tree) {
        *path = folder.join(&path);
    }
}

/// The folder of the file that has a setting; none for other sources.
fn file_folder(key: &KeyPath, tree: &SpannedValue) -> Option<PathBuf> {
    match &tree.get(&key.0)?.origin.source {
        ValueSource::File(file) => Some(parent_dir(file).to_owned()),
        ValueSource::Variable(_) | ValueSource::CommandLine => None,
    }
}

/// Replaces a `~` at the start by the user's home folder, as a shell does. `~name` is not supported.
fn expand_home(path: &mut PathBuf, sources: &Sources) {
    if let (Ok(rest), Some(home)) = (path.strip_prefix("~"), sources.home_folder()) {
        *path = home.join(rest);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// Reads the source: a type that only this file resolves must not appear in a setting unnoticed.
    #[test]
    fn x46_every_path_in_the_settings_is_resolved() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let field = |line: &str, kind: &str| -> Option<String> {
            let (name, written) = line.trim().strip_prefix("pub ")?.split_once(": ")?;
            let types = [kind.to_owned(), format!("Option<{kind}>"), format!("Vec<{kind}>")];
            types.iter().any(|known| written.trim_end_matches(',') == known).then(|| name.to_owned())
        };
        let mut written = BTreeSet::new();
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            // Only types that are part of the schema are settings.
            for block in text
                .split("\n#[derive(")
                .filter(|block| block.lines().next().is_some_and(|first| first.contains("JsonSchema")))
            {
                let body = block.split("\n}").next().unwrap_or_default();
                written
                    .extend(body.lines().filter_map(|line| field(line, "PathBuf").or_else(|| field(line, "Program"))));
            }
        }
        let mut config = Config::default();
        config.server.tls = Some(super::super::tls::Tls { certificate: PathBuf::new(), key: PathBuf::new() });
        config.server.tokens_file = Some(PathBuf::new());
        config.inference.embedding.path = Some(PathBuf::new());
        config.classification.taxonomy = Some(PathBuf::new());
        config.classification.model.path = Some(PathBuf::new());
        config.classification.mcp_server.command = Some("x".into());
        config.classifier.mcp_category_model =
            Some(super::super::classifier::McpCategoryModel { command: Some("x".into()), ..Default::default() });
        config.knowledge.storage_path = Some(PathBuf::new());
        config.knowledge.vector_db_path = Some(PathBuf::new());
        config.knowledge.allowed_roots = vec![PathBuf::new()];
        config.knowledge.watch = serde_json::from_str(r#"[{ "path": "x" }]"#).unwrap();
        config.audit.file = Some(PathBuf::new());
        let last = |key: &KeyPath| {
            key.0.iter().rev().find_map(|segment| match segment {
                super::super::diagnostic::Segment::Key(key) => Some(key.clone()),
                super::super::diagnostic::Segment::Index(_) => None,
            })
        };
        let mut resolved: BTreeSet<String> = config.paths().iter().filter_map(|(key, _)| last(key)).collect();
        resolved.extend(config.programs().filter_map(|(key, _)| last(&key)));
        // The file that a first save of the taxonomy creates: absolute, and no key of the user's.
        written.remove("new_taxonomy");
        assert_eq!(written, resolved);
    }
}
