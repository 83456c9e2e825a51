//! Compares the files of the index with a newly built index.

use crate::app;
use crate::config::Config;
use crate::knowledge::document::BaseName;
use crate::knowledge::store::sqlite::Store;

/// Result of a comparison.
pub(super) enum Compared {
    Same,
    /// One sentence per difference.
    Different(Vec<String>),
    /// Documents are being added, so both indexes could differ.
    Busy,
    NotLookedAt,
}

/// Numbers of documents, chunks and vectors.
type Amounts = (usize, usize, usize);

/// Reads the index as a server would, and builds another index from the store.
pub(super) async fn compare(config: &Config, store: &Store) -> Result<Compared, Box<dyn std::error::Error>> {
    let tasks = store.tasks(None, u32::MAX).await?;
    // Opening a knowledge base resumes its unfinished tasks, which a check must not do.
    if tasks.iter().any(|task| !task.state.is_finished()) {
        return Ok(Compared::Busy);
    }
    let bases = store.bases().await?;
    let folder = tempfile::tempdir()?;
    let mut anew = config.clone();
    anew.knowledge.vector_db_path = Some(folder.path().to_owned());
    let (kept, made) = (amounts(config, &bases).await?, amounts(&anew, &bases).await?);
    let different = bases.iter().zip(kept.iter().zip(&made)).filter(|(_, (kept, made))| kept != made);
    let sentence = |(base, (kept, made)): (&BaseName, (&Amounts, &Amounts))| {
        format!("the index of `{base}` has {kept:?} documents, chunks and vectors, and made anew {made:?}")
    };
    let differences: Vec<String> = different.map(sentence).collect();
    Ok(if differences.is_empty() { Compared::Same } else { Compared::Different(differences) })
}

async fn amounts(config: &Config, bases: &[BaseName]) -> Result<Vec<Amounts>, Box<dyn std::error::Error>> {
    let app = app::build(config)?;
    let Some(knowledge) = &app.knowledge else { return Ok(Vec::new()) };
    let Some(library) = knowledge.open().await?.finder.library() else { return Ok(Vec::new()) };
    let mut amounts = Vec::new();
    for base in bases {
        let snapshot = library.base(base).await?;
        amounts.push(snapshot.map_or((0, 0, 0), |index| (index.documents(), index.chunks(), index.vectors())));
    }
    Ok(amounts)
}

impl Compared {
    /// JSON value.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Compared::Same => "same",
            Compared::Different(_) => "different",
            Compared::Busy => "busy",
            Compared::NotLookedAt => "not_compared",
        }
    }

    pub(super) fn sentence(&self) -> &'static str {
        match self {
            Compared::Same => "the index agrees",
            Compared::Different(_) => "the index does not agree",
            Compared::Busy => "the index was not compared, as documents are being added",
            Compared::NotLookedAt => "the index was not compared",
        }
    }
}
