//! Tests of queued requests: no slot is lost, whenever a request is dropped.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

fn admission(running: usize, per_caller: usize, waiting: usize, max_queue_wait: Duration) -> Admission {
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

fn slot(entered: Result<AdmissionResult, Error>) -> AdmissionPermit {
    match entered {
        Ok(AdmissionResult::Admitted(slot)) => slot,
        Ok(AdmissionResult::Queued(_)) => panic!("it waits"),
        Err(error) => panic!("{error}"),
    }
}

fn waiting(entered: Result<AdmissionResult, Error>) -> QueuedRequest {
    match entered {
        Ok(AdmissionResult::Queued(waiting)) => waiting,
        Ok(AdmissionResult::Admitted(_)) => panic!("it runs"),
        Err(error) => panic!("{error}"),
    }
}

fn running_and_queued(door: &Admission) -> (usize, usize) {
    let turns = door.lock_queue();
    (turns.running(), turns.waiting())
}

const MAX_WAIT: Duration = Duration::from_secs(30);

#[tokio::test]
async fn s09_a_place_goes_on_when_its_holder_is_done() {
    let door = admission(1, 1, 10, MAX_WAIT);
    let held = slot(door.try_admit(&caller("a")));
    let first = waiting(door.try_admit(&caller("b")));
    let second = waiting(door.try_admit(&caller("c")));
    assert_eq!(running_and_queued(&door), (1, 2));
    drop(held);
    let held = first.wait().await.expect("its turn");
    assert_eq!(running_and_queued(&door), (1, 1));
    drop(held);
    drop(second.wait().await.expect("its turn"));
    assert_eq!(running_and_queued(&door), (0, 0));
}

#[tokio::test]
async fn s09_one_that_went_away_with_its_turn_passes_it_on() {
    let door = admission(1, 1, 10, MAX_WAIT);
    let held = slot(door.try_admit(&caller("a")));
    let gone = waiting(door.try_admit(&caller("b")));
    let patient = waiting(door.try_admit(&caller("c")));
    // It is granted the slot and dropped without polling.
    drop(held);
    drop(gone);
    drop(patient.wait().await.expect("its turn"));
    assert_eq!(running_and_queued(&door), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn s09_nobody_waits_longer_than_the_setting() {
    let door = admission(1, 1, 1, Duration::from_secs(5));
    let held = slot(door.try_admit(&caller("a")));
    let late = waiting(door.try_admit(&caller("b")));
    let Err(Error::Busy { retry_after, .. }) = door.try_admit(&caller("c")) else { panic!("the queue is full") };
    assert_eq!(retry_after, Duration::from_secs(5), "nothing has ended yet to tell by");
    assert!(matches!(late.wait().await, Err(Error::Busy { .. })));
    assert_eq!(running_and_queued(&door), (1, 0), "it leaves no trace");
    drop(held);
    drop(slot(door.try_admit(&caller("c"))));
}

/// Many concurrent requests, some dropped while queued: all remaining ones are served, and no slot leaks.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn s09_no_wake_up_is_lost_among_many() {
    let door = admission(3, 2, 10_000, MAX_WAIT);
    let (served, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let tasks: Vec<_> = (0..2000usize)
        .map(|number| {
            let (door, served, most) = (door.clone(), served.clone(), most.clone());
            tokio::spawn(async move {
                let entered = door.try_admit(&caller(&format!("caller {}", number % 7)));
                let slot = match entered {
                    Ok(AdmissionResult::Admitted(slot)) => slot,
                    Ok(AdmissionResult::Queued(waiting)) if number % 3 == 0 => {
                        // Polled once or not at all, then dropped.
                        let mut turn = Box::pin(waiting.wait());
                        if number % 2 == 0 {
                            let _ = futures_util::poll!(&mut turn);
                        }
                        tokio::task::yield_now().await;
                        return false;
                    }
                    Ok(AdmissionResult::Queued(waiting)) => waiting.wait().await.expect("its turn"),
                    Err(error) => panic!("{error}"),
                };
                most.fetch_max(running_and_queued(&door).0, Ordering::SeqCst);
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
    assert_eq!(running_and_queued(&door), (0, 0));
}
