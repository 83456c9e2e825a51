//! Tests of the fair queue against a naive model with linear searches.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

const NO_WAIT_LIMIT: Duration = Duration::MAX;
const SECOND: Duration = Duration::from_secs(1);

fn caller(number: u8) -> Arc<str> {
    format!("caller {number}").into()
}

/// One event.
#[derive(Debug, Clone)]
enum QueueEvent {
    Arrives(u8),
    /// The n-th running request ends.
    Completes(usize),
    /// The n-th queued request is dropped.
    Cancels(usize),
}

fn events() -> impl Strategy<Value = Vec<QueueEvent>> {
    let step = prop_oneof![
        3 => (0..5u8).prop_map(QueueEvent::Arrives),
        2 => any::<usize>().prop_map(QueueEvent::Completes),
        1 => any::<usize>().prop_map(QueueEvent::Cancels),
    ];
    proptest::collection::vec(step, 0..200)
}

fn bounds() -> impl Strategy<Value = QueueLimits> {
    (1..6usize, 1..6usize, 0..20usize).prop_map(|(running, running_per_caller, waiting)| QueueLimits {
        running,
        running_per_caller: running_per_caller.min(running),
        waiting,
    })
}

/// Reference model of the invariants.
#[derive(Default)]
struct ReferenceModel {
    running: Vec<(u8, u64)>,
    /// In order of arrival.
    waiting: Vec<(u8, u64, Ticket)>,
    arrivals: u64,
    /// For each caller that could run if a slot were free: the callers that got one since then.
    passed_over_for: HashMap<u8, HashSet<u8>>,
}

impl ReferenceModel {
    fn running_of(&self, whose: u8) -> usize {
        self.running.iter().filter(|(other, _)| *other == whose).count()
    }

    fn is_eligible(&self, whose: u8, bounds: QueueLimits) -> bool {
        self.waiting.iter().any(|(other, ..)| *other == whose) && self.running_of(whose) < bounds.running_per_caller
    }

    /// A queued request was granted a slot.
    fn record_grant(&mut self, id: u64, bounds: QueueLimits) -> Result<(), TestCaseError> {
        let place = self.waiting.iter().position(|(_, waiting, _)| *waiting == id);
        let Some(place) = place else { return Err(TestCaseError::fail("whoever is woken waits")) };
        let (whose, ..) = self.waiting.remove(place);
        let first = self.waiting.iter().filter(|(other, ..)| *other == whose).all(|(_, later, _)| *later > id);
        prop_assert!(first, "a line is served in its order");
        self.running.push((whose, id));
        for (other, passed) in &mut self.passed_over_for {
            if *other != whose {
                prop_assert!(passed.insert(whose), "{whose} had two turns while {other} had none");
            }
        }
        self.passed_over_for.remove(&whose);
        self.check_eligible(bounds);
        Ok(())
    }

    fn check_eligible(&mut self, bounds: QueueLimits) {
        let eligible: HashSet<u8> = (0..5).filter(|whose| self.is_eligible(*whose, bounds)).collect();
        self.passed_over_for.retain(|whose, _| eligible.contains(whose));
        for whose in eligible {
            self.passed_over_for.entry(whose).or_default();
        }
    }

    fn check(&self, turns: &FairQueue<u64>, bounds: QueueLimits) -> Result<(), TestCaseError> {
        prop_assert_eq!((turns.running(), turns.waiting()), (self.running.len(), self.waiting.len()));
        prop_assert!(self.running.len() <= bounds.running && self.waiting.len() <= bounds.waiting);
        for whose in 0..5 {
            prop_assert!(self.running_of(whose) <= bounds.running_per_caller);
            // No slot stays free while an eligible request is queued.
            prop_assert!(self.running.len() == bounds.running || !self.is_eligible(whose, bounds));
        }
        let known: HashSet<u8> =
            self.running.iter().map(|(whose, _)| *whose).chain(self.waiting.iter().map(|(whose, ..)| *whose)).collect();
        prop_assert_eq!(turns.callers.len(), known.len(), "nobody leaves a trace");
        Ok(())
    }
}

proptest! {
    #[test]
    fn s09_bounds_hold_lines_are_in_order_and_callers_take_turns(bounds in bounds(), steps in events()) {
        let (mut turns, mut model) = (FairQueue::<u64>::new(bounds), ReferenceModel::default());
        for step in steps {
            match step {
                QueueEvent::Arrives(whose) => {
                    model.arrivals += 1;
                    let id = model.arrivals;
                    match turns.try_acquire(&caller(whose), NO_WAIT_LIMIT) {
                        AcquireResult::Acquired => model.running.push((whose, id)),
                        AcquireResult::MustWait => {
                            let ticket = turns.enqueue(&caller(whose), id);
                            model.waiting.push((whose, id, ticket));
                        }
                        AcquireResult::QueueFull => prop_assert_eq!(model.waiting.len(), bounds.waiting),
                        AcquireResult::WaitTooLong => prop_assert!(false, "nobody is that patient"),
                    }
                }
                QueueEvent::Completes(number) if !model.running.is_empty() => {
                    let (whose, _) = model.running.remove(number % model.running.len());
                    model.check_eligible(bounds);
                    if let Some(woken) = turns.release(&caller(whose), Some(SECOND)) {
                        model.record_grant(woken, bounds)?;
                    }
                }
                QueueEvent::Cancels(number) if !model.waiting.is_empty() => {
                    let (whose, _, ticket) = model.waiting.remove(number % model.waiting.len());
                    prop_assert!(turns.cancel(&caller(whose), ticket));
                    prop_assert!(!turns.cancel(&caller(whose), ticket), "once is enough");
                }
                QueueEvent::Completes(_) | QueueEvent::Cancels(_) => {}
            }
            model.check_eligible(bounds);
            model.check(&turns, bounds)?;
        }
        // All requests end, and every queued one is served on the way.
        while let Some((whose, _)) = model.running.pop() {
            model.check_eligible(bounds);
            if let Some(woken) = turns.release(&caller(whose), None) {
                model.record_grant(woken, bounds)?;
            }
            model.check(&turns, bounds)?;
        }
        prop_assert!(model.waiting.is_empty());
        prop_assert!(turns.callers.is_empty() && turns.round_robin.is_empty());
    }
}

fn fair_queue(running: usize, running_per_caller: usize) -> FairQueue<u64> {
    FairQueue::new(QueueLimits { running, running_per_caller, waiting: 100 })
}

#[test]
fn s09_a_wait_is_foretold_from_the_usual_time_and_the_place() {
    let (mut turns, greedy, modest) = (fair_queue(2, 2), caller(0), caller(1));
    assert_eq!(turns.expected_wait(&greedy), None, "nothing has ended yet");
    assert_eq!(turns.try_acquire(&greedy, NO_WAIT_LIMIT), AcquireResult::Acquired);
    turns.release(&greedy, Some(SECOND * 4));
    for whose in [&greedy, &caller(2)] {
        assert_eq!(turns.try_acquire(whose, NO_WAIT_LIMIT), AcquireResult::Acquired);
    }
    // Two slots of four seconds each: one becomes free every two.
    assert_eq!(turns.expected_wait(&modest), Some(SECOND * 2));
    for waiting in 1..=10 {
        assert_eq!(turns.try_acquire(&greedy, NO_WAIT_LIMIT), AcquireResult::MustWait);
        turns.enqueue(&greedy, waiting);
    }
    assert_eq!(turns.expected_wait(&greedy), Some(SECOND * 22));
    // Only one of the ten is ahead of it.
    assert_eq!(turns.expected_wait(&modest), Some(SECOND * 4));
    assert_eq!(turns.try_acquire(&greedy, SECOND * 5), AcquireResult::WaitTooLong);
    assert_eq!(turns.try_acquire(&modest, SECOND * 5), AcquireResult::MustWait);
}

#[test]
fn s09_a_caller_at_its_own_bound_waits_for_its_own() {
    let (mut turns, greedy, modest) = (fair_queue(10, 2), caller(0), caller(1));
    turns.try_acquire(&greedy, NO_WAIT_LIMIT);
    turns.release(&greedy, Some(SECOND * 4));
    for _ in 0..2 {
        assert_eq!(turns.try_acquire(&greedy, NO_WAIT_LIMIT), AcquireResult::Acquired);
    }
    assert_eq!(turns.try_acquire(&greedy, NO_WAIT_LIMIT), AcquireResult::MustWait);
    assert_eq!(turns.expected_wait(&greedy), Some(SECOND * 2));
    assert_eq!(turns.try_acquire(&greedy, SECOND), AcquireResult::WaitTooLong);
    assert_eq!(turns.try_acquire(&modest, Duration::ZERO), AcquireResult::Acquired);
}

#[test]
fn s09_the_usual_time_follows_the_newest() {
    let (mut turns, one) = (fair_queue(1, 1), caller(0));
    let mut end = |held| {
        turns.try_acquire(&one, NO_WAIT_LIMIT);
        turns.release(&one, Some(held));
    };
    end(SECOND * 60);
    for _ in 0..100 {
        end(Duration::ZERO);
    }
    turns.try_acquire(&one, NO_WAIT_LIMIT);
    assert!(turns.expected_wait(&one).expect("something has ended") < SECOND);
}
