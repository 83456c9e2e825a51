//! Method `embedding`: k-nearest-neighbour vote of the labelled examples.

use std::sync::Arc;

use super::{By, First, Verdict};
use crate::classify::learned::Learned;
use crate::inference;

#[derive(Debug)]
pub struct Embedding(pub Arc<Learned>);

impl Embedding {
    pub(super) fn first(&self, text: &str) -> First {
        First::Embed(self.0.mend(text))
    }

    pub(super) fn judge(&self, text: &str, embedding: &corbie_infer::Embedding) -> Result<Verdict, inference::Error> {
        Ok(Verdict::by(By::Embedding, self.0.vote(text, embedding)?))
    }
}
