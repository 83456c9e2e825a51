//! The categories, and what is known about each: one immutable value that listing and classifying share.

pub(super) mod default;
mod file;
mod stable;
mod yaml;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use file::{MAX_EXAMPLE, MAX_FILE_BYTES, schema};
pub use yaml::scalar;

use super::advice::Routing;
use crate::config::{ConfigError, KeyPath, Problem};

/// Categories in order; a category's place is its number (`class`).
#[derive(Debug, Clone, PartialEq)]
pub struct Taxonomy {
    /// The file it was read from; none for the one inside corbie.
    pub path: Option<PathBuf>,
    pub categories: Vec<Category>,
    /// The category of everything that fits nowhere else.
    pub remainder: Option<usize>,
    pub routing: Arc<Routing>,
}

/// One category.
#[derive(Debug, Clone, PartialEq)]
pub struct Category {
    pub name: String,
    pub description: String,
    /// Put before a request that is sent to a model.
    pub system_prompt: String,
    /// The model recommended where no rule says otherwise.
    pub model: String,
    pub use_reasoning: bool,
    /// Regular expressions that speak for it.
    pub patterns: Vec<String>,
    /// Words and phrases that speak for it.
    pub words: Vec<String>,
    /// Regular expressions that leave no doubt.
    pub certain: Vec<String>,
    pub examples: Vec<Cow<'static, str>>,
    /// It is no longer in the file; its place is kept so that the others keep theirs.
    pub retired: bool,
}

/// What is recommended where the taxonomy says nothing (C-29).
pub const DEFAULT_MODEL: &str = "openai/gpt-oss-20b";

impl Taxonomy {
    /// The one inside corbie.
    pub fn builtin() -> Taxonomy {
        default::taxonomy()
    }

    /// The one inside corbie, written as a file that people could go on with.
    pub fn builtin_text() -> &'static str {
        default::text()
    }

    /// Reads a file; every mistake in it has its line and column.
    pub fn read(path: &Path) -> Result<Taxonomy, ConfigError> {
        file::read(path)
    }

    /// Reads YAML that is in no file.
    pub fn parse(yaml: &str) -> Result<Taxonomy, ConfigError> {
        file::parse(yaml)
    }

    /// Reads a text that is to become the content of a file, whose name tells the format.
    pub fn parse_for(text: &str, file: &Path) -> Result<Taxonomy, ConfigError> {
        file::parse_for(text, file)
    }

    /// Categories with examples and nothing else.
    pub fn of<'a>(categories: impl Iterator<Item = (&'a str, Vec<&'a str>)>) -> Result<Taxonomy, ConfigError> {
        file::of(categories)
    }

    /// The one that settings name.
    pub fn open(path: Option<&Path>) -> Result<Taxonomy, ConfigError> {
        path.map_or_else(|| Ok(Taxonomy::builtin()), Taxonomy::read)
    }

    /// What is said of a file that made the reading itself fail.
    pub(super) fn unreadable() -> ConfigError {
        mistake("could not be read; please report this with the file")
    }

    /// The same categories with the numbers they had before; new ones come after the old (C-55). Places that are kept
    /// for those that are gone count too.
    pub fn keeping_places_of(self, before: &Taxonomy) -> Result<Taxonomy, ConfigError> {
        let arranged = stable::arrange(self, before);
        if arranged.categories.len() <= file::MAX_CATEGORIES {
            return Ok(arranged);
        }
        Err(mistake(
            "has too many categories with the places that are kept for those that are gone; start again to drop them",
        ))
    }

    /// The same categories with the numbers that everybody gives them. What is known of those that are gone is their names,
    /// so that it is the same for all.
    pub fn in_places(self, places: &[String]) -> Result<Taxonomy, ConfigError> {
        let before = Taxonomy::of(places.iter().map(|name| (name.as_str(), Vec::new())))?;
        self.keeping_places_of(&before)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.categories.iter().map(|category| category.name.as_str())
    }

    /// The categories that are not retired, with their places.
    pub fn in_use(&self) -> impl Iterator<Item = (usize, &Category)> {
        self.categories.iter().enumerate().filter(|(_, category)| !category.retired)
    }

    /// How many examples were written, not counting what stands in for missing ones.
    pub fn example_count(&self) -> usize {
        self.categories.iter().map(|category| category.examples.len()).sum()
    }

    /// What deserves a second look but is no mistake.
    pub fn remarks(&self) -> Vec<String> {
        let bare = self.categories.iter().filter(|category| category.examples.is_empty() && !category.retired);
        let bare = bare.map(|category| {
            format!("`{}` has no examples; it is recognised by its name, description and patterns only", category.name)
        });
        let few = self.categories.iter().filter(|category| (1..5).contains(&category.examples.len()));
        let few = few.map(|category| {
            format!("`{}` has {} example(s); give it 20 or more", category.name, category.examples.len())
        });
        bare.chain(few).collect()
    }
}

impl Category {
    /// What it is learned from: its examples, or else its name and description.
    pub fn lessons(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let own = self.examples.iter().map(|example| Cow::Borrowed(&**example));
        let told = || Cow::Owned(format!("{}: {}", self.name, self.description));
        own.chain(self.examples.is_empty().then(told))
    }
}

/// A mistake of the whole.
fn mistake(message: &str) -> ConfigError {
    Problem { origin: None, path: KeyPath::default(), message: format!("the taxonomy {message}"), suggestion: None }
        .into()
}
