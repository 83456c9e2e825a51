//! Notifications to clients: progress of a task (K-116, X-09), and changes that other instances made.

use std::sync::Arc;
use std::time::Duration;

use corbie_mcp::Context;
use tokio::sync::watch;

use super::Knowledge;
use super::ingest::documents_of;
use super::jobs::Job;
use super::store::postgres::ChangeCounters;
use super::task::TaskOutcome;

/// Minimum interval between two notifications.
const MIN_NOTIFY_INTERVAL: Duration = Duration::from_millis(200);

/// Waits for a task and sends progress notifications.
pub(super) async fn wait_reporting_progress(context: &Context, job: &Job) -> TaskOutcome {
    let (mut far, mut ended) = (job.progress(), job.outcome());
    loop {
        tokio::select! {
            biased;
            outcome = ended.wait_for(Option::is_some) => {
                return outcome.ok().and_then(|outcome| outcome.clone()).unwrap_or(TaskOutcome::Cancelled);
            }
            Ok(()) = far.changed() => {
                let now = far.borrow_and_update().clone();
                context.progress(now.fraction, Some(1.0), Some(&now.step));
            }
        }
        tokio::select! {
            () = tokio::time::sleep(MIN_NOTIFY_INTERVAL) => {}
            _ = ended.wait_for(Option::is_some) => {}
        }
    }
}

/// Sends progress notifications after the call was answered, if the transport supports them.
pub(super) fn notify_in_background(knowledge: &Knowledge, context: &Context, job: Arc<Job>) {
    let (knowledge, later) = (knowledge.clone(), context.deferred_progress());
    let notify = knowledge.settings().notify_progress;
    let going = knowledge.background_tasks().clone();
    going.spawn(async move {
        let token = job.id.to_string();
        let (mut far, mut ended) = (job.progress(), job.outcome());
        let step = |share: f64, step: &str| {
            if notify {
                later.progress(Some(&token), share, Some(1.0), Some(step));
            }
        };
        loop {
            tokio::select! {
                biased;
                outcome = ended.wait_for(Option::is_some) => {
                    if let Ok(Some(TaskOutcome::Completed(result))) = outcome.as_deref() {
                        step(1.0, "Completed");
                        knowledge.notify_documents_changed(documents_of(result));
                    }
                    break;
                }
                () = knowledge.stopped() => return,
                Ok(()) = far.changed() => {
                    let now = far.borrow_and_update().clone();
                    step(now.fraction, &now.step);
                }
            }
            tokio::select! {
                () = tokio::time::sleep(MIN_NOTIFY_INTERVAL) => {}
                _ = ended.wait_for(Option::is_some) => {}
            }
        }
        if let Some(server) = knowledge.server() {
            server.notify_task_changed(&token).await;
        }
    });
}

/// Forwards change notifications from other instances to the clients of this one, until shutdown.
pub(super) async fn forward_remote_changes(knowledge: Knowledge, mut heard: watch::Receiver<ChangeCounters>) {
    let mut documents = heard.borrow_and_update().documents;
    loop {
        tokio::select! {
            changed = heard.changed() => if changed.is_err() { return },
            () = knowledge.stopped() => return,
        }
        let now = heard.borrow_and_update().documents;
        if std::mem::replace(&mut documents, now) != now {
            knowledge.notify_documents_changed([]);
        }
    }
}
