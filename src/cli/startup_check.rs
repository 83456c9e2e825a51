//! Everything that `corbie serve` would refuse, found without starting a server: for `corbie config validate`.

use std::fs::OpenOptions;
use std::path::Path;

use super::{certificates, listeners};
use crate::access::Access;
use crate::app;
use crate::classify::taxonomy::Taxonomy;
use crate::config::audit::OnFailure;
use crate::config::{Config, ConfigError, Diagnostic, LoadedConfig, Sources};
use crate::providers::http_client::HttpClient;
use crate::providers::registry::ProviderRegistry;

/// The loaded settings, unless their sources are unusable, and all mistakes in reading order.
pub(super) fn check(sources: Sources) -> (Option<Box<LoadedConfig>>, Vec<Diagnostic>) {
    let checked = Config::check(sources);
    let mut mistakes = checked.mistakes;
    if let Some(loaded) = &checked.loaded {
        let found = check_loaded(loaded, &mistakes);
        mistakes.extend(found);
    }
    if !mistakes.is_empty() {
        mistakes = ConfigError::sorted(mistakes).diagnostics;
        mistakes.dedup();
    }
    (checked.loaded, mistakes)
}

/// Mistakes that only show when the settings are used. A section with an invalid setting is not checked: what is missing
/// there may be what was invalid.
fn check_loaded(loaded: &LoadedConfig, invalid: &[Diagnostic]) -> Vec<Diagnostic> {
    let is_valid = |section: &str| !invalid.iter().any(|mistake| mistake.path.to_string().starts_with(section));
    let config = &loaded.config;
    let mut found = Vec::new();
    let mut add =
        |checked: Result<(), ConfigError>| found.extend(checked.err().into_iter().flat_map(|e| e.diagnostics));
    if is_valid("classification") {
        add(check_taxonomy(loaded));
    }
    if is_valid("providers") && config.providers.required {
        let client = HttpClient::default();
        if ProviderRegistry::new(&config.providers, &config.defaults, client).providers().is_empty() {
            let message = "is set, and no provider is usable; a server that is found on this machine does not count";
            add(Err(loaded.error_at("providers.required", message)));
        }
    }
    if is_valid("server") {
        add(loaded.check_token(false));
        add(certificates::open(loaded).map(drop));
        match Access::new(config, &HttpClient::default()) {
            Ok(access) => {
                for unfit in listeners::check_authentication(loaded, &[], !access.callers.is_empty()) {
                    add(Err(unfit));
                }
            }
            Err(error) => add(Err(loaded.error_at("server.tokens_file", error.to_string()))),
        }
    }
    if let Some(file) =
        config.audit.file.as_deref().filter(|_| is_valid("audit") && config.audit.on_failure == OnFailure::Refuse)
    {
        add(check_appendable(file).map_err(|why| loaded.error_at("audit.file", why)));
    }
    found
}

fn check_taxonomy(loaded: &LoadedConfig) -> Result<(), ConfigError> {
    let taxonomy = Taxonomy::open(loaded.config.classification.taxonomy.as_deref())?;
    let mistakes = app::unknown_categories(&loaded.config, Some(loaded), &taxonomy);
    if mistakes.is_empty() { Ok(()) } else { Err(ConfigError::sorted(mistakes)) }
}

/// Whether lines can be added to the file, without creating it.
fn check_appendable(file: &Path) -> Result<(), String> {
    let folder = file.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let checked = match file.exists() {
        true => OpenOptions::new().append(true).open(file).map(drop),
        false => folder.metadata().and_then(|found| match found.is_dir() {
            true => Ok(()),
            false => Err(std::io::ErrorKind::NotADirectory.into()),
        }),
    };
    checked.map_err(|error| format!("cannot be written: {error}; make its folder, or name another file"))
}
