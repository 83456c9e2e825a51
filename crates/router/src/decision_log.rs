//! Decision log in memory, which also is the queue of records to write to a shared database.
//!
//! There is no separate queue: the records waiting to be written are the tail of the log. A record evicted from the log
//! is evicted unwritten. The same bound applies to both, so the database would have pruned it as well.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use tokio::sync::Notify;

use super::decision_record::DecisionRecord;
use corbie_util::lock::lock;

/// The most recent records.
#[derive(Debug)]
pub struct DecisionLog {
    capacity: usize,
    /// Number of prompts so far.
    count: AtomicU64,
    /// Number of this process among all that share the database, once assigned.
    instance_number: OnceLock<u32>,
    buffer: Mutex<RecordBuffer>,
    /// Notified when a record is added.
    record_added: Notify,
}

#[derive(Debug, Default)]
struct RecordBuffer {
    /// Oldest first.
    records: VecDeque<DecisionRecord>,
    /// Number of records evicted so far.
    dropped: u64,
    /// Number of records, evicted ones included, that need no write any more.
    written: u64,
}

/// A batch of records to write.
#[derive(Debug, PartialEq)]
pub(super) struct UnwrittenRecords {
    pub(super) records: Vec<DecisionRecord>,
    /// The value of `written` after this batch.
    up_to: u64,
}

/// Bits of an id that count the prompts of one process; the number of the process is above them. Ids stay below 53
/// bits, because many JSON parsers represent numbers as doubles.
const COUNT_BITS: u32 = 32;

impl DecisionLog {
    pub fn new(most: usize) -> DecisionLog {
        DecisionLog {
            capacity: most,
            count: AtomicU64::new(0),
            instance_number: OnceLock::new(),
            buffer: Mutex::default(),
            record_added: Notify::new(),
        }
    }

    /// Capacity.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// The id of the next prompt. The count wraps after 2^32 prompts of a process.
    pub(super) fn next_id(&self) -> u64 {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        match self.instance_number.get() {
            Some(number) => (u64::from(*number) << COUNT_BITS) | (count & ((1 << COUNT_BITS) - 1)),
            None => count,
        }
    }

    /// Whether the number of this process is assigned.
    pub(super) fn has_instance_number(&self) -> bool {
        self.instance_number.get().is_some()
    }

    /// Sets the number of this process; from then on ids are unique among all instances.
    pub(super) fn set_instance_number(&self, number: u32) {
        let _ = self.instance_number.set(number);
    }

    pub fn push(&self, record: DecisionRecord) {
        if self.capacity == 0 {
            return;
        }
        let mut kept = lock(&self.buffer);
        if kept.records.len() >= self.capacity {
            kept.records.pop_front();
            kept.dropped += 1;
        }
        kept.records.push_back(record);
        drop(kept);
        self.record_added.notify_one();
    }

    /// The newest records, newest first.
    pub fn newest(&self, most: usize) -> Vec<DecisionRecord> {
        self.newest_visible(most, |_| true)
    }

    /// The newest records that pass the filter.
    pub(super) fn newest_visible(&self, most: usize, may_see: impl Fn(&DecisionRecord) -> bool) -> Vec<DecisionRecord> {
        lock(&self.buffer).records.iter().rev().filter(|record| may_see(record)).take(most).cloned().collect()
    }

    /// The newest records that pass the filter and are not in the database, or never will be.
    pub(super) fn newest_unwritten(
        &self,
        most: usize,
        may_see: impl Fn(&DecisionRecord) -> bool,
    ) -> Vec<DecisionRecord> {
        let kept = lock(&self.buffer);
        let from = kept.first_unwritten();
        let records = kept.records.iter().enumerate().rev();
        let unwritten = records.filter(|(place, record)| *place >= from || !is_shared_id(record.id));
        unwritten.map(|(_, record)| record).filter(|record| may_see(record)).take(most).cloned().collect()
    }

    pub fn get(&self, id: u64) -> Option<DecisionRecord> {
        lock(&self.buffer).records.iter().find(|record| record.id == id).cloned()
    }

    /// Waits until there is a record to write.
    pub(super) async fn wait_for_unwritten(&self) {
        while self.unwritten(1).is_none() {
            self.record_added.notified().await;
        }
    }

    /// The oldest records to write, or `None`.
    pub(super) fn unwritten(&self, most: usize) -> Option<UnwrittenRecords> {
        let kept = lock(&self.buffer);
        let from = kept.first_unwritten();
        let records: Vec<&DecisionRecord> = kept.records.iter().skip(from).take(most).collect();
        let up_to = kept.dropped + (from + records.len()) as u64;
        // Ids assigned before the process had its number are not unique among instances.
        let shared = records.iter().filter(|record| is_shared_id(record.id));
        (!records.is_empty())
            .then(|| UnwrittenRecords { records: shared.map(|record| (*record).clone()).collect(), up_to })
    }

    /// Marks a batch as written.
    pub(super) fn mark_written(&self, unwritten: &UnwrittenRecords) {
        let mut kept = lock(&self.buffer);
        kept.written = kept.written.max(unwritten.up_to);
    }
}

impl RecordBuffer {
    fn first_unwritten(&self) -> usize {
        self.written.saturating_sub(self.dropped) as usize
    }
}

/// Whether an id is unique among all instances that share a database.
pub(super) fn is_shared_id(id: u64) -> bool {
    id >> COUNT_BITS > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(records: &DecisionLog, ids: impl IntoIterator<Item = u64>) {
        ids.into_iter().for_each(|id| records.push(DecisionRecord { id, ..DecisionRecord::default() }));
    }

    fn ids(records: &[DecisionRecord]) -> Vec<u64> {
        records.iter().map(|record| record.id).collect()
    }

    /// An id of process 1.
    const OURS: u64 = 1 << COUNT_BITS;

    #[test]
    fn records_are_kept_up_to_a_bound_and_found_by_their_number() {
        let records = DecisionLog::new(2);
        kept(&records, 1..=3);
        assert_eq!(ids(&records.newest(9)), [3, 2]);
        assert_eq!(ids(&records.newest_visible(9, |record| record.id < 3)), [2]);
        assert!(records.get(1).is_none() && records.get(2).is_some());
        let none = DecisionLog::new(0);
        none.push(DecisionRecord::default());
        assert!(none.newest(9).is_empty() && none.unwritten(9).is_none());
    }

    #[test]
    fn ids_are_of_one_process_once_its_number_is_known_and_readers_of_json_know_them() {
        let (one, other) = (DecisionLog::new(9), DecisionLog::new(9));
        assert_eq!([one.next_id(), one.next_id(), other.next_id()], [1, 2, 1]);
        one.set_instance_number(1);
        other.set_instance_number((1 << 21) - 1);
        assert_eq!([one.next_id(), one.next_id()], [OURS + 3, OURS + 4]);
        assert!(other.next_id() < 1 << 53);
        one.count.store((1 << COUNT_BITS) - 1, Ordering::Relaxed);
        assert_eq!([one.next_id(), one.next_id()], [OURS, OURS + 1], "never one of process 2");
    }

    #[test]
    fn what_is_not_written_is_written_once_and_in_its_order() {
        let records = DecisionLog::new(9);
        kept(&records, [7]);
        kept(&records, OURS + 1..=OURS + 3);
        let first = records.unwritten(2).unwrap();
        assert_eq!(ids(&first.records), [OURS + 1], "what others may have too stays here");
        assert_eq!(records.unwritten(2).unwrap(), first, "it is not written yet");
        records.mark_written(&first);
        assert_eq!(ids(&records.newest_unwritten(9, |_| true)), [OURS + 3, OURS + 2, 7]);
        let second = records.unwritten(9).unwrap();
        assert_eq!(ids(&second.records), [OURS + 2, OURS + 3]);
        records.mark_written(&second);
        assert_eq!((records.unwritten(9), ids(&records.newest_unwritten(9, |_| true))), (None, vec![7]));
    }

    #[test]
    fn where_nothing_can_be_written_the_oldest_make_room() {
        let records = DecisionLog::new(3);
        kept(&records, OURS + 1..=OURS + 2);
        let early = records.unwritten(9).unwrap();
        kept(&records, OURS + 3..=OURS + 5);
        // Records added while the first batch was being written.
        records.mark_written(&early);
        assert_eq!(ids(&records.unwritten(9).unwrap().records), [OURS + 3, OURS + 4, OURS + 5]);
        kept(&records, OURS + 6..=OURS + 9);
        assert_eq!(ids(&records.unwritten(9).unwrap().records), [OURS + 7, OURS + 8, OURS + 9]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_writes_is_woken_by_what_is_to_be_written_and_by_nothing_else() {
        let records = DecisionLog::new(3);
        let soon = std::time::Duration::from_secs(1);
        assert!(tokio::time::timeout(soon, records.wait_for_unwritten()).await.is_err());
        kept(&records, [OURS + 1]);
        records.wait_for_unwritten().await;
        records.wait_for_unwritten().await;
        records.mark_written(&records.unwritten(9).unwrap());
        assert!(tokio::time::timeout(soon, records.wait_for_unwritten()).await.is_err());
    }
}
