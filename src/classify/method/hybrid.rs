//! Method `hybrid`: a cascade with early exit. A `certain` rule decides first, then the words, then the embedding
//! model.

use std::sync::Arc;

use super::{By, First, Verdict};
use crate::classify::learned::Learned;
use crate::classify::rules::RuleSet;

#[derive(Debug)]
pub struct Hybrid(pub Arc<Learned>);

impl Hybrid {
    pub(super) fn first(&self, text: &str, rules: &RuleSet) -> First {
        if let Some(verdict) = rules.certain(text) {
            return First::Settled(Verdict::by(By::Rules, verdict));
        }
        if let Some(verdict) = self.0.glance(text) {
            return First::Settled(Verdict::by(By::Words, verdict));
        }
        let mended = self.0.mend(text);
        match mended.as_deref().and_then(|mended| self.0.glance(mended)) {
            Some(verdict) => First::Settled(Verdict::by(By::Words, verdict)),
            None => First::Embed(mended),
        }
    }
}
