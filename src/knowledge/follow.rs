//! Progress notifications to callers (K-116, X-09).

use std::sync::Arc;
use std::time::Duration;

use corbie_mcp::Context;

use super::Knowledge;
use super::task::Outcome;
use super::work::Job;

/// Minimum interval between two notifications.
const PAUSE: Duration = Duration::from_millis(200);

/// Waits for a task and sends progress notifications.
pub(super) async fn wait(context: &Context, job: &Job) -> Outcome {
    let (mut far, mut ended) = (job.far(), job.ended());
    loop {
        tokio::select! {
            biased;
            outcome = ended.wait_for(Option::is_some) => {
                return outcome.ok().and_then(|outcome| outcome.clone()).unwrap_or(Outcome::Cancelled);
            }
            Ok(()) = far.changed() => {
                let now = far.borrow_and_update().clone();
                context.progress(now.share, Some(1.0), Some(&now.step));
            }
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            _ = ended.wait_for(Option::is_some) => {}
        }
    }
}

/// Sends progress notifications after the call was answered, if the transport supports them.
pub(super) fn tell(knowledge: &Knowledge, context: &Context, job: Arc<Job>) {
    let (knowledge, later) = (knowledge.clone(), context.later());
    let notify = knowledge.settings().notify_progress;
    let going = knowledge.going().clone();
    going.spawn(async move {
        let token = job.id.to_string();
        let (mut far, mut ended) = (job.far(), job.ended());
        let step = |share: f64, step: &str| {
            if notify {
                later.progress(Some(&token), share, Some(1.0), Some(step));
            }
        };
        loop {
            tokio::select! {
                biased;
                outcome = ended.wait_for(Option::is_some) => {
                    if matches!(outcome.as_deref(), Ok(Some(Outcome::Completed(_)))) {
                        step(1.0, "Completed");
                        knowledge.documents_changed();
                    }
                    break;
                }
                () = knowledge.stopping() => return,
                Ok(()) = far.changed() => {
                    let now = far.borrow_and_update().clone();
                    step(now.share, &now.step);
                }
            }
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                _ = ended.wait_for(Option::is_some) => {}
            }
        }
        if let Some(server) = knowledge.server() {
            server.task_changed(&token).await;
        }
    });
}
