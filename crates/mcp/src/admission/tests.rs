//! Tests of queued requests: no slot is lost, whenever a request is dropped.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

fn door(running: usize, per_caller: usize, waiting: usize, max_queue_wait: Duration) -> Admission {
    let limits = Limits {
        max_concurrent: running,
        max_concurrent_per_caller: per_caller,
        max_queued: waiting,
        max_queue_wait,
        ..Limits::default()
    };
    Admission::new(&limits, &Metrics::new(std::iter::empty()))
}

fn caller(name: &str) -> Arc<str> {
    name.into()
}

fn slot(entered: Result<Entered, Error>) -> Slot {
    match entered {
        Ok(Entered::Runs(slot)) => slot,
        Ok(Entered::Waits(_)) => panic!("it waits"),
        Err(error) => panic!("{error}"),
    }
}

fn waiting(entered: Result<Entered, Error>) -> Waiting {
    match entered {
        Ok(Entered::Waits(waiting)) => waiting,
        Ok(Entered::Runs(_)) => panic!("it runs"),
        Err(error) => panic!("{error}"),
    }
}

fn counted(door: &Admission) -> (usize, usize) {
    let turns = door.turns();
    (turns.running(), turns.waiting())
}

const LONG: Duration = Duration::from_secs(30);

#[tokio::test]
async fn s09_a_place_goes_on_when_its_holder_is_done() {
    let door = door(1, 1, 10, LONG);
    let held = slot(door.enter(&caller("a")));
    let first = waiting(door.enter(&caller("b")));
    let second = waiting(door.enter(&caller("c")));
    assert_eq!(counted(&door), (1, 2));
    drop(held);
    let held = first.turn().await.expect("its turn");
    assert_eq!(counted(&door), (1, 1));
    drop(held);
    drop(second.turn().await.expect("its turn"));
    assert_eq!(counted(&door), (0, 0));
}

#[tokio::test]
async fn s09_one_that_went_away_with_its_turn_passes_it_on() {
    let door = door(1, 1, 10, LONG);
    let held = slot(door.enter(&caller("a")));
    let gone = waiting(door.enter(&caller("b")));
    let patient = waiting(door.enter(&caller("c")));
    // It is granted the slot and dropped without polling.
    drop(held);
    drop(gone);
    drop(patient.turn().await.expect("its turn"));
    assert_eq!(counted(&door), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn s09_nobody_waits_longer_than_the_setting() {
    let door = door(1, 1, 1, Duration::from_secs(5));
    let held = slot(door.enter(&caller("a")));
    let late = waiting(door.enter(&caller("b")));
    let Err(Error::Busy { retry_after, .. }) = door.enter(&caller("c")) else { panic!("the queue is full") };
    assert_eq!(retry_after, Duration::from_secs(5), "nothing has ended yet to tell by");
    assert!(matches!(late.turn().await, Err(Error::Busy { .. })));
    assert_eq!(counted(&door), (1, 0), "it leaves no trace");
    drop(held);
    drop(slot(door.enter(&caller("c"))));
}

/// Many concurrent requests, some dropped while queued: all remaining ones are served, and no slot leaks.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn s09_no_wake_up_is_lost_among_many() {
    let door = door(3, 2, 10_000, LONG);
    let (served, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let tasks: Vec<_> = (0..2000usize)
        .map(|number| {
            let (door, served, most) = (door.clone(), served.clone(), most.clone());
            tokio::spawn(async move {
                let entered = door.enter(&caller(&format!("caller {}", number % 7)));
                let slot = match entered {
                    Ok(Entered::Runs(slot)) => slot,
                    Ok(Entered::Waits(waiting)) if number % 3 == 0 => {
                        // Polled once or not at all, then dropped.
                        let mut turn = Box::pin(waiting.turn());
                        if number % 2 == 0 {
                            let _ = futures_util::poll!(&mut turn);
                        }
                        tokio::task::yield_now().await;
                        return false;
                    }
                    Ok(Entered::Waits(waiting)) => waiting.turn().await.expect("its turn"),
                    Err(error) => panic!("{error}"),
                };
                most.fetch_max(counted(&door).0, Ordering::SeqCst);
                tokio::task::yield_now().await;
                drop(slot);
                served.fetch_add(1, Ordering::SeqCst);
                true
            })
        })
        .collect();
    let mut stayed = 0;
    for task in tasks {
        let ended = tokio::time::timeout(Duration::from_secs(60), task).await.expect("woken").expect("no panic");
        stayed += usize::from(ended);
    }
    assert_eq!(served.load(Ordering::SeqCst), stayed);
    assert!(most.load(Ordering::SeqCst) <= 3);
    assert_eq!(counted(&door), (0, 0));
}
