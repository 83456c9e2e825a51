//! Progress that is told after the answer: a call that only began the work is over long before it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::client::RequestMeta;
use crate::message::Id;
use crate::progress::{Reached, Step};
use crate::session::Session;
use crate::version::Era;

/// A way to tell the caller how far work is that outlives its call. Cheap to clone, and keeps no connection open.
///
/// What is told goes to the stream the caller has open: the line of stdio, a Unix socket or a WebSocket, or the event
/// stream of its HTTP session. Where there is none, nothing is sent. Modern clients are told nothing: their revision
/// ends progress with the answer, and shows tasks by `tasks/get` and `notifications/tasks`.
#[derive(Debug, Clone)]
pub struct Later(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    session: Arc<Session>,
    era: Era,
    meta: Arc<RequestMeta>,
    /// How far each task was told to be, for those told under their own id.
    tasks: Mutex<HashMap<Box<str>, Arc<Reached>>>,
}

impl Later {
    pub(crate) fn new(session: Arc<Session>, era: Era, meta: Arc<RequestMeta>) -> Later {
        Later(Arc::new(Inner { session, era, meta, tasks: Mutex::default() }))
    }

    /// Tells how far the work is, under the token the caller gave with its call, or else under the id of the task.
    ///
    /// Never waits: a caller that reads slowly misses some. Values must grow, others are not sent. A caller that gave no
    /// token and never opened with `initialize` is spared what it cannot expect.
    pub fn progress(&self, task: Option<&str>, progress: f64, total: Option<f64>, message: Option<&str>) {
        let Inner { session, era, meta, .. } = &*self.0;
        if *era == Era::Modern {
            return;
        }
        let Some(stream) = session.stream() else { return };
        let step = Step { progress, total, message };
        match (&meta.progress_token, task) {
            (Some(token), _) => meta.reached.tell(token, step, |notification| stream.offer(notification)),
            (None, Some(task)) if session.version().is_some() => {
                let token = Id::String(task.into());
                self.reached(task).tell(&token, step, |notification| stream.offer(notification));
            }
            (None, _) => {}
        }
    }

    fn reached(&self, task: &str) -> Arc<Reached> {
        let mut tasks = self.0.tasks.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match tasks.get(task) {
            Some(reached) => reached.clone(),
            None => tasks.entry(task.into()).or_default().clone(),
        }
    }
}
