//! Decision log in memory, which also is the queue of records to write to a shared database.
//!
//! There is no separate queue: the records waiting to be written are the tail of the log. A record evicted from the log
//! is evicted unwritten. The same bound applies to both, so the database would have pruned it as well.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use tokio::sync::Notify;

use super::record::Record;
use crate::locked::locked;

/// The most recent records.
#[derive(Debug)]
pub struct Records {
    most: usize,
    /// Number of prompts so far.
    count: AtomicU64,
    /// Number of this process among all that share the database, once assigned.
    number: OnceLock<u32>,
    kept: Mutex<Kept>,
    /// Notified when a record is added.
    more: Notify,
}

#[derive(Debug, Default)]
struct Kept {
    /// Oldest first.
    records: VecDeque<Record>,
    /// Number of records evicted so far.
    gone: u64,
    /// Number of records, evicted ones included, that need no write any more.
    written: u64,
}

/// A batch of records to write.
#[derive(Debug, PartialEq)]
pub(super) struct Unwritten {
    pub(super) records: Vec<Record>,
    /// The value of `written` after this batch.
    up_to: u64,
}

/// Bits of an id that count the prompts of one process; the number of the process is above them. Ids stay below 53
/// bits, because many JSON parsers represent numbers as doubles.
const COUNT: u32 = 32;

impl Records {
    pub fn new(most: usize) -> Records {
        Records { most, count: AtomicU64::new(0), number: OnceLock::new(), kept: Mutex::default(), more: Notify::new() }
    }

    /// Capacity.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// The id of the next prompt. The count wraps after 2^32 prompts of a process.
    pub(super) fn next_id(&self) -> u64 {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        match self.number.get() {
            Some(number) => (u64::from(*number) << COUNT) | (count & ((1 << COUNT) - 1)),
            None => count,
        }
    }

    /// Whether the number of this process is assigned.
    pub(super) fn is_numbered(&self) -> bool {
        self.number.get().is_some()
    }

    /// Sets the number of this process; from then on ids are unique among all instances.
    pub(super) fn number(&self, number: u32) {
        let _ = self.number.set(number);
    }

    pub fn keep(&self, record: Record) {
        if self.most == 0 {
            return;
        }
        let mut kept = locked(&self.kept);
        if kept.records.len() >= self.most {
            kept.records.pop_front();
            kept.gone += 1;
        }
        kept.records.push_back(record);
        drop(kept);
        self.more.notify_one();
    }

    /// The newest records, newest first.
    pub fn newest(&self, most: usize) -> Vec<Record> {
        self.newest_seen(most, |_| true)
    }

    /// The newest records that pass the filter.
    pub(super) fn newest_seen(&self, most: usize, may_see: impl Fn(&Record) -> bool) -> Vec<Record> {
        locked(&self.kept).records.iter().rev().filter(|record| may_see(record)).take(most).cloned().collect()
    }

    /// The newest records that pass the filter and are not in the database, or never will be.
    pub(super) fn newest_unwritten(&self, most: usize, may_see: impl Fn(&Record) -> bool) -> Vec<Record> {
        let kept = locked(&self.kept);
        let from = kept.first_unwritten();
        let records = kept.records.iter().enumerate().rev();
        let unwritten = records.filter(|(place, record)| *place >= from || !is_shared(record.id));
        unwritten.map(|(_, record)| record).filter(|record| may_see(record)).take(most).cloned().collect()
    }

    pub fn get(&self, id: u64) -> Option<Record> {
        locked(&self.kept).records.iter().find(|record| record.id == id).cloned()
    }

    /// Waits until there is a record to write.
    pub(super) async fn more(&self) {
        while self.unwritten(1).is_none() {
            self.more.notified().await;
        }
    }

    /// The oldest records to write, or `None`.
    pub(super) fn unwritten(&self, most: usize) -> Option<Unwritten> {
        let kept = locked(&self.kept);
        let from = kept.first_unwritten();
        let records: Vec<&Record> = kept.records.iter().skip(from).take(most).collect();
        let up_to = kept.gone + (from + records.len()) as u64;
        // Ids assigned before the process had its number are not unique among instances.
        let shared = records.iter().filter(|record| is_shared(record.id));
        (!records.is_empty()).then(|| Unwritten { records: shared.map(|record| (*record).clone()).collect(), up_to })
    }

    /// Marks a batch as written.
    pub(super) fn written(&self, unwritten: &Unwritten) {
        let mut kept = locked(&self.kept);
        kept.written = kept.written.max(unwritten.up_to);
    }
}

impl Kept {
    fn first_unwritten(&self) -> usize {
        self.written.saturating_sub(self.gone) as usize
    }
}

/// Whether an id is unique among all instances that share a database.
pub(super) fn is_shared(id: u64) -> bool {
    id >> COUNT > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(records: &Records, ids: impl IntoIterator<Item = u64>) {
        ids.into_iter().for_each(|id| records.keep(Record { id, ..Record::default() }));
    }

    fn ids(records: &[Record]) -> Vec<u64> {
        records.iter().map(|record| record.id).collect()
    }

    /// An id of process 1.
    const OURS: u64 = 1 << COUNT;

    #[test]
    fn records_are_kept_up_to_a_bound_and_found_by_their_number() {
        let records = Records::new(2);
        kept(&records, 1..=3);
        assert_eq!(ids(&records.newest(9)), [3, 2]);
        assert_eq!(ids(&records.newest_seen(9, |record| record.id < 3)), [2]);
        assert!(records.get(1).is_none() && records.get(2).is_some());
        let none = Records::new(0);
        none.keep(Record::default());
        assert!(none.newest(9).is_empty() && none.unwritten(9).is_none());
    }

    #[test]
    fn ids_are_of_one_process_once_its_number_is_known_and_readers_of_json_know_them() {
        let (one, other) = (Records::new(9), Records::new(9));
        assert_eq!([one.next_id(), one.next_id(), other.next_id()], [1, 2, 1]);
        one.number(1);
        other.number((1 << 21) - 1);
        assert_eq!([one.next_id(), one.next_id()], [OURS + 3, OURS + 4]);
        assert!(other.next_id() < 1 << 53);
        one.count.store((1 << COUNT) - 1, Ordering::Relaxed);
        assert_eq!([one.next_id(), one.next_id()], [OURS, OURS + 1], "never one of process 2");
    }

    #[test]
    fn what_is_not_written_is_written_once_and_in_its_order() {
        let records = Records::new(9);
        kept(&records, [7]);
        kept(&records, OURS + 1..=OURS + 3);
        let first = records.unwritten(2).unwrap();
        assert_eq!(ids(&first.records), [OURS + 1], "what others may have too stays here");
        assert_eq!(records.unwritten(2).unwrap(), first, "it is not written yet");
        records.written(&first);
        assert_eq!(ids(&records.newest_unwritten(9, |_| true)), [OURS + 3, OURS + 2, 7]);
        let second = records.unwritten(9).unwrap();
        assert_eq!(ids(&second.records), [OURS + 2, OURS + 3]);
        records.written(&second);
        assert_eq!((records.unwritten(9), ids(&records.newest_unwritten(9, |_| true))), (None, vec![7]));
    }

    #[test]
    fn where_nothing_can_be_written_the_oldest_make_room() {
        let records = Records::new(3);
        kept(&records, OURS + 1..=OURS + 2);
        let early = records.unwritten(9).unwrap();
        kept(&records, OURS + 3..=OURS + 5);
        // Records added while the first batch was being written.
        records.written(&early);
        assert_eq!(ids(&records.unwritten(9).unwrap().records), [OURS + 3, OURS + 4, OURS + 5]);
        kept(&records, OURS + 6..=OURS + 9);
        assert_eq!(ids(&records.unwritten(9).unwrap().records), [OURS + 7, OURS + 8, OURS + 9]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_writes_is_woken_by_what_is_to_be_written_and_by_nothing_else() {
        let records = Records::new(3);
        let soon = std::time::Duration::from_secs(1);
        assert!(tokio::time::timeout(soon, records.more()).await.is_err());
        kept(&records, [OURS + 1]);
        records.more().await;
        records.more().await;
        records.written(&records.unwritten(9).unwrap());
        assert!(tokio::time::timeout(soon, records.more()).await.is_err());
    }
}
