//! Legacy HTTP sessions: remembered for convenience, never needed, bounded in number and age (T-15).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::server::random_id;
use crate::session::Session;

#[derive(Debug)]
pub(crate) struct Sessions {
    max: usize,
    idle: Duration,
    open: Mutex<HashMap<String, Entry>>,
}

#[derive(Debug)]
struct Entry {
    session: Arc<Session>,
    /// Whose it is; to others it does not exist.
    owner: Arc<str>,
    used: Instant,
}

impl Sessions {
    pub(crate) fn new(max: usize, idle: Duration) -> Sessions {
        Sessions { max, idle, open: Mutex::default() }
    }

    /// Remembers a session and names it. When full, the one unused for longest makes room.
    pub(crate) fn add(&self, session: Arc<Session>, owner: Arc<str>) -> String {
        let id = random_id();
        let mut open = self.lock();
        if open.len() >= self.max {
            let now = Instant::now();
            open.retain(|_, entry| now.duration_since(entry.used) < self.idle);
        }
        if open.len() >= self.max
            && let Some(oldest) = open.iter().min_by_key(|(_, entry)| entry.used).map(|(id, _)| id.clone())
        {
            open.remove(&oldest);
        }
        open.insert(id.clone(), Entry { session, owner, used: Instant::now() });
        id
    }

    pub(crate) fn find(&self, id: &str, caller: &str) -> Option<Arc<Session>> {
        let mut open = self.lock();
        let entry = open.get_mut(id).filter(|entry| *entry.owner == *caller)?;
        if entry.used.elapsed() >= self.idle {
            open.remove(id);
            return None;
        }
        entry.used = Instant::now();
        Some(entry.session.clone())
    }

    /// Forgets a session and ends its stream of news.
    pub(crate) fn end(&self, id: &str, caller: &str) -> bool {
        let mut open = self.lock();
        if open.get(id).is_none_or(|entry| *entry.owner != *caller) {
            return false;
        }
        open.remove(id).is_some_and(|entry| {
            entry.session.end_news();
            true
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.open.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t15_sessions_are_bounded_and_the_stalest_goes_first() {
        let sessions = Sessions::new(2, Duration::from_secs(60));
        let first = sessions.add(Arc::new(Session::new()), "ann".into());
        let second = sessions.add(Arc::new(Session::new()), "ann".into());
        assert!(sessions.find(&first, "ann").is_some());
        let third = sessions.add(Arc::new(Session::new()), "ann".into());
        assert!(sessions.find(&second, "ann").is_none());
        assert!(sessions.find(&first, "ann").is_some() && sessions.find(&third, "ann").is_some());
        assert!(
            sessions.find(&first, "bob").is_none() && !sessions.end(&first, "bob"),
            "another caller's does not exist"
        );
        assert!(sessions.end(&first, "ann") && !sessions.end(&first, "ann"));
    }
}
