//! Word-based F1 scoring and CPU timing shared by the examples.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// CPU time consumed by this thread. Unlike wall-clock time, it is independent of the load on the machine.
pub(crate) fn spent_so_far() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// Splits text into lowercase alphanumeric words. U+0002, which marks a removed hyphen, joins the two halves of its
/// word.
pub(crate) fn words(text: &str) -> Vec<String> {
    let text = text.replace('\u{2}', "").to_lowercase();
    text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

pub(crate) fn count<T: Hash + Eq>(items: impl Iterator<Item = T>) -> HashMap<T, usize> {
    let mut counts = HashMap::new();
    for item in items {
        *counts.entry(item).or_default() += 1;
    }
    counts
}

pub(crate) fn f1<T: Hash + Eq>(found: impl Iterator<Item = T>, expected: impl Iterator<Item = T>) -> f64 {
    let (found, expected) = (count(found), count(expected));
    let all = found.values().sum::<usize>() + expected.values().sum::<usize>();
    let both: usize = found.iter().map(|(item, count)| (*count).min(expected.get(item).copied().unwrap_or(0))).sum();
    if all == 0 { 1.0 } else { 2.0 * both as f64 / all as f64 }
}
