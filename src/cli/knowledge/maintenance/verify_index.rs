//! Compares the files of the index with a newly built index.

use crate::app;
use crate::config::Config;
use crate::knowledge::document::BaseName;
use crate::knowledge::store::sqlite::Store;

/// Result of a comparison.
pub(super) enum IndexComparison {
    Same,
    /// One sentence per difference.
    Different(Vec<String>),
    /// Documents are being added, so both indexes could differ.
    Busy,
    NotCompared,
}

/// Numbers of documents, chunks and vectors.
type IndexSize = (usize, usize, usize);

/// Reads the index as a server would, and builds another index from the store.
pub(super) async fn compare(config: &Config, store: &Store) -> Result<IndexComparison, Box<dyn std::error::Error>> {
    let tasks = store.tasks(None, u32::MAX).await?;
    // Opening a knowledge base resumes its unfinished tasks, which a check must not do.
    if tasks.iter().any(|task| !task.state.is_finished()) {
        return Ok(IndexComparison::Busy);
    }
    let bases = store.bases().await?;
    let folder = tempfile::tempdir()?;
    let mut anew = config.clone();
    anew.knowledge.vector_db_path = Some(folder.path().to_owned());
    let (kept, made) = (index_sizes(config, &bases).await?, index_sizes(&anew, &bases).await?);
    let different = bases.iter().zip(kept.iter().zip(&made)).filter(|(_, (kept, made))| kept != made);
    let sentence = |(base, (kept, made)): (&BaseName, (&IndexSize, &IndexSize))| {
        format!("the index of `{base}` has {kept:?} documents, chunks and vectors, a rebuilt index has {made:?}")
    };
    let differences: Vec<String> = different.map(sentence).collect();
    Ok(if differences.is_empty() { IndexComparison::Same } else { IndexComparison::Different(differences) })
}

async fn index_sizes(config: &Config, bases: &[BaseName]) -> Result<Vec<IndexSize>, Box<dyn std::error::Error>> {
    let app = app::build(config)?;
    let Some(knowledge) = &app.knowledge else { return Ok(Vec::new()) };
    let Some(library) = knowledge.open().await?.retriever.local_index() else { return Ok(Vec::new()) };
    let mut amounts = Vec::new();
    for base in bases {
        let snapshot = library.base_snapshot(base).await?;
        amounts.push(snapshot.map_or((0, 0, 0), |index| (index.documents(), index.chunks(), index.vectors())));
    }
    Ok(amounts)
}

impl IndexComparison {
    /// JSON value.
    pub(super) fn as_str(&self) -> &'static str {
        match self {
            IndexComparison::Same => "same",
            IndexComparison::Different(_) => "different",
            IndexComparison::Busy => "busy",
            IndexComparison::NotCompared => "not_compared",
        }
    }

    pub(super) fn sentence(&self) -> &'static str {
        match self {
            IndexComparison::Same => "the index matches",
            IndexComparison::Different(_) => "the index does not match",
            IndexComparison::Busy => "the index was not compared because documents are being added",
            IndexComparison::NotCompared => "the index was not compared",
        }
    }
}
