//! Taxonomy: the categories and their data, one immutable value shared by listing and classifying.

pub(super) mod default;
mod file;
mod stable_ids;
mod validate;
mod yaml;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use file::{MAX_FILE_BYTES, schema};
pub use validate::MAX_EXAMPLE_CHARS;
pub use yaml::scalar;

use super::model_recommendation::ModelRecommender;
use corbie_config::{ConfigError, Diagnostic, KeyPath};

/// Categories in order; the index of a category is its `class`.
#[derive(Debug, Clone, PartialEq)]
pub struct Taxonomy {
    /// Source file; `None` for the built-in taxonomy.
    pub path: Option<PathBuf>,
    pub categories: Vec<Category>,
    /// The catch-all category.
    pub remainder: Option<usize>,
    pub routing: Arc<ModelRecommender>,
}

/// One category.
#[derive(Debug, Clone, PartialEq)]
pub struct Category {
    pub name: String,
    pub description: String,
    /// System prompt of requests in this category.
    pub system_prompt: String,
    /// Recommended model if no routing rule matches.
    pub model: String,
    pub use_reasoning: bool,
    /// Regular expressions that score for the category.
    pub patterns: Vec<String>,
    /// Words and phrases that score for the category.
    pub words: Vec<String>,
    /// Regular expressions that decide without a model.
    pub certain: Vec<String>,
    pub examples: Vec<Cow<'static, str>>,
    /// Removed from the file; keeps its index so that the indices of other categories stay stable.
    pub retired: bool,
}

/// Default model of a taxonomy (C-29).
pub const DEFAULT_MODEL: &str = "openai/gpt-oss-20b";

impl Taxonomy {
    /// The built-in taxonomy.
    pub fn builtin() -> Taxonomy {
        default::taxonomy()
    }

    /// The built-in taxonomy as an editable file.
    pub fn builtin_text() -> &'static str {
        default::text()
    }

    /// Reads a file; every error has a line and column.
    pub fn read(path: &Path) -> Result<Taxonomy, ConfigError> {
        file::read(path)
    }

    /// Parses YAML that does not come from a file.
    pub fn parse(yaml: &str) -> Result<Taxonomy, ConfigError> {
        file::parse(yaml)
    }

    /// Parses the future content of a file. The file name determines the format.
    pub fn parse_for(text: &str, file: &Path) -> Result<Taxonomy, ConfigError> {
        file::parse_for(text, file)
    }

    /// Builds a taxonomy of categories with examples only.
    pub fn from_examples<'a>(
        categories: impl IntoIterator<Item = (&'a str, Vec<&'a str>)>,
    ) -> Result<Taxonomy, ConfigError> {
        file::from_examples(categories.into_iter())
    }

    /// Opens the configured taxonomy.
    pub fn open(path: Option<&Path>) -> Result<Taxonomy, ConfigError> {
        path.map_or_else(|| Ok(Taxonomy::builtin()), Taxonomy::read)
    }

    /// The error for a file on which the parser itself failed.
    pub(super) fn unreadable() -> ConfigError {
        taxonomy_error("failed internally; please report this with the file")
    }

    /// Keeps the category indices of an earlier version and appends new categories (C-55). Retired categories count
    /// towards the limit.
    pub fn with_stable_ids(self, before: &Taxonomy) -> Result<Taxonomy, ConfigError> {
        let arranged = stable_ids::assign_stable_ids(self, before);
        if arranged.categories.len() <= validate::MAX_CATEGORIES {
            return Ok(arranged);
        }
        Err(taxonomy_error(
            "has too many categories together with the reserved indices of removed ones; restart to release these",
        ))
    }

    /// Assigns the category indices shared by all instances. Only the names of removed categories are stored, so every
    /// instance gets the same result.
    pub fn with_shared_ids(self, places: &[String]) -> Result<Taxonomy, ConfigError> {
        let before = Taxonomy::from_examples(places.iter().map(|name| (name.as_str(), Vec::new())))?;
        self.with_stable_ids(&before)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.categories.iter().map(|category| category.name.as_str())
    }

    /// The categories that are not retired, with their indices.
    pub fn active_categories(&self) -> impl Iterator<Item = (usize, &Category)> {
        self.categories.iter().enumerate().filter(|(_, category)| !category.retired)
    }

    /// Number of examples, without generated placeholders.
    pub fn example_count(&self) -> usize {
        self.categories.iter().map(|category| category.examples.len()).sum()
    }

    /// Warnings about a valid taxonomy.
    pub fn warnings(&self) -> Vec<String> {
        let bare = self.categories.iter().filter(|category| category.examples.is_empty() && !category.retired);
        let bare = bare.map(|category| {
            format!("`{}` has no examples; it is matched only by name, description and patterns", category.name)
        });
        let few = self.categories.iter().filter(|category| (1..5).contains(&category.examples.len()));
        let few = few.map(|category| {
            format!(
                "`{}` has {} example(s); add more (20 or more are recommended)",
                category.name,
                category.examples.len()
            )
        });
        bare.chain(few).collect()
    }
}

impl Category {
    /// The training texts: the examples, or else the name and description.
    pub fn training_texts(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let own = self.examples.iter().map(|example| Cow::Borrowed(&**example));
        let told = || Cow::Owned(format!("{}: {}", self.name, self.description));
        own.chain(self.examples.is_empty().then(told))
    }
}

/// An error about the taxonomy as a whole.
fn taxonomy_error(message: &str) -> ConfigError {
    Diagnostic { origin: None, path: KeyPath::default(), message: format!("the taxonomy {message}"), suggestion: None }
        .into()
}
