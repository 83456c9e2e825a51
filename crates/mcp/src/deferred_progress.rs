//! Progress after the response, for calls that only start the work.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::client::RequestMeta;
use crate::message::Id;
use crate::progress::{ProgressReporter, ProgressUpdate};
use crate::session::Session;
use crate::version::Era;

/// Reports progress of work that outlives its call. Cheap to clone, and keeps no connection open.
///
/// Notifications go to the stream the caller has open: stdio, a Unix socket or a WebSocket, or the event stream of its
/// HTTP session. Without a stream nothing is sent. Modern clients receive nothing: their revision ends progress with
/// the response, and reports tasks through `tasks/get` and `notifications/tasks`.
#[derive(Debug, Clone)]
pub struct DeferredProgress(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    session: Arc<Session>,
    era: Era,
    meta: Arc<RequestMeta>,
    /// Last progress of each task that is reported under its task id.
    tasks: Mutex<HashMap<Box<str>, Arc<ProgressReporter>>>,
}

impl DeferredProgress {
    pub(crate) fn new(session: Arc<Session>, era: Era, meta: Arc<RequestMeta>) -> DeferredProgress {
        DeferredProgress(Arc::new(Inner { session, era, meta, tasks: Mutex::default() }))
    }

    /// Reports progress under the progress token of the call, or else under the task id.
    ///
    /// Never blocks: a slow reader misses some notifications. Values must increase; smaller ones are not sent. The caller
    /// need not have called `initialize`.
    pub fn progress(&self, task: Option<&str>, progress: f64, total: Option<f64>, message: Option<&str>) {
        let Inner { session, era, meta, .. } = &*self.0;
        if *era == Era::Modern {
            return;
        }
        let Some(stream) = session.notification_stream() else { return };
        let step = ProgressUpdate { progress, total, message };
        match (&meta.progress_token, task) {
            (Some(token), _) => meta.progress.report(token, step, |notification| stream.try_send(notification)),
            (None, Some(task)) => {
                let token = Id::String(task.into());
                self.task_progress(task).report(&token, step, |notification| stream.try_send(notification));
            }
            (None, None) => {}
        }
    }

    fn task_progress(&self, task: &str) -> Arc<ProgressReporter> {
        let mut tasks = self.0.tasks.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match tasks.get(task) {
            Some(reached) => reached.clone(),
            None => tasks.entry(task.into()).or_default().clone(),
        }
    }
}
