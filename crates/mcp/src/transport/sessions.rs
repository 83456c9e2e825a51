//! Legacy HTTP sessions: a convenience, never required for correctness, bounded in number and age (T-15).
//!
//! A single instance knows only the sessions it holds. Instances with a shared key issue ids that encode the result of
//! `initialize` ([`SessionId`]). An instance that gets such an id and does not hold the session resumes it in that
//! state, whether another instance opened it or this one dropped it after a restart, an eviction or a long idle time.
//! No instance can determine that a session is unused everywhere, so an id expires one day after its issue; a session
//! in memory continues beyond that.
//!
//! Not transferred: subscriptions, a log level set later, streams, and requests in flight. To cancel a request, or to
//! answer its client requests, a client has to reach the instance that executes it. A stream opened elsewhere is a new
//! one.
//!
//! A session terminated by its client stays terminated on this instance while its id could be resumed; as many
//! terminations are stored as sessions. Other instances are not notified: they resume an id that its owner presents
//! within the day. This gives the owner nothing that a new session would not.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::session_id::{LIFETIME_SECONDS, SessionId};
use crate::request_state;
use crate::server::{random_bytes, random_id};
use crate::session::Session;
use crate::state_keys::StateKeys;

#[derive(Debug)]
pub(crate) struct Sessions {
    max: usize,
    idle_timeout: Duration,
    state_keys: Arc<StateKeys>,
    table: Mutex<SessionTable>,
}

#[derive(Debug, Default)]
struct SessionTable {
    open: HashMap<String, SessionEntry>,
    /// Serials of sessions that their clients terminated here, with their issue time in seconds.
    terminated: HashMap<[u8; 16], u64>,
}

#[derive(Debug)]
struct SessionEntry {
    session: Arc<Session>,
    /// The owner; for other callers the session does not exist.
    owner: Arc<str>,
    last_used: Instant,
}

impl SessionEntry {
    /// Whether a stream or a request is using it.
    fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.session) > 1
    }
}

impl Sessions {
    pub(crate) fn new(max: usize, idle: Duration, keys: Arc<StateKeys>) -> Sessions {
        Sessions { max, idle_timeout: idle, state_keys: keys, table: Mutex::default() }
    }

    /// Stores a session and returns its id. At the limit, evicts the least recently used (LRU) one.
    pub(crate) fn add(&self, session: Arc<Session>, owner: Arc<str>) -> String {
        let id = match self.state_keys.shared() {
            None => random_id(),
            Some(key) => SessionId::new(&session, random_bytes(), request_state::unix_seconds()).encode(&key, &owner),
        };
        self.insert(&mut self.lock(), id.clone(), session, owner);
        id
    }

    pub(crate) fn find(&self, id: &str, caller: &Arc<str>) -> Option<Arc<Session>> {
        {
            let mut known = self.lock();
            match known.open.get_mut(id) {
                Some(entry) if entry.owner != *caller => return None,
                // An idle session with a resumable id continues unchanged, including its subscriptions.
                Some(entry)
                    if entry.last_used.elapsed() < self.idle_timeout || self.decode_id(id, caller).is_some() =>
                {
                    entry.last_used = Instant::now();
                    return Some(entry.session.clone());
                }
                Some(_) => drop(known.open.remove(id)),
                None => {}
            }
        }
        let brought = self.decode_id(id, caller)?;
        let mut known = self.lock();
        if known.terminated.contains_key(&brought.serial) {
            return None;
        }
        // A concurrent request may have resumed it already.
        if let Some(entry) = known.open.get(id) {
            return Some(entry.session.clone());
        }
        let session = Arc::new(brought.session());
        self.insert(&mut known, id.to_owned(), session.clone(), caller.clone());
        Some(session)
    }

    /// Terminates a session and ends its notification stream.
    pub(crate) fn terminate(&self, id: &str, caller: &str) -> bool {
        let brought = self.decode_id(id, caller);
        let mut known = self.lock();
        let held = match known.open.get(id) {
            Some(entry) if *entry.owner != *caller => return false,
            Some(_) => known.open.remove(id),
            None => None,
        };
        if let Some(entry) = &held {
            entry.session.close_notification_stream();
        }
        let is_news = brought.is_some_and(|brought| self.record_termination(&mut known, &brought));
        held.is_some() || is_news
    }

    /// Decodes a session id that any instance with the shared key may have issued.
    fn decode_id(&self, id: &str, caller: &str) -> Option<SessionId> {
        SessionId::decode(id, &*self.state_keys.shared()?, caller, request_state::unix_seconds())
    }

    fn insert(&self, known: &mut SessionTable, id: String, session: Arc<Session>, owner: Arc<str>) {
        let open = &mut known.open;
        if open.len() >= self.max {
            let now = Instant::now();
            open.retain(|_, entry| entry.is_in_use() || now.duration_since(entry.last_used) < self.idle_timeout);
        }
        let rank = |entry: &SessionEntry| (entry.is_in_use(), entry.last_used);
        if open.len() >= self.max
            && let Some(oldest) = open.iter().min_by_key(|(_, entry)| rank(entry)).map(|(id, _)| id.clone())
        {
            open.remove(&oldest);
        }
        open.insert(id, SessionEntry { session, owner, last_used: Instant::now() });
    }

    /// Records a termination; false if it was recorded before.
    fn record_termination(&self, known: &mut SessionTable, id: &SessionId) -> bool {
        let ended = &mut known.terminated;
        if ended.len() >= self.max {
            let now = request_state::unix_seconds();
            ended.retain(|_, issued| now.saturating_sub(*issued) < LIFETIME_SECONDS);
        }
        if ended.len() >= self.max
            && let Some(oldest) = ended.iter().min_by_key(|(_, issued)| **issued).map(|(serial, _)| *serial)
        {
            ended.remove(&oldest);
        }
        ended.insert(id.serial, id.issued).is_none()
    }

    fn lock(&self) -> MutexGuard<'_, SessionTable> {
        self.table.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::LogLevel;
    use crate::request_state::StateKey;

    const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

    fn alone(max: usize, idle: Duration) -> Sessions {
        Sessions::new(max, idle, Arc::new(StateKeys::new(None)))
    }

    fn shared(max: usize, idle: Duration) -> Sessions {
        Sessions::new(max, idle, Arc::new(StateKeys::new(Some(StateKey::from_secret(b"shared")))))
    }

    fn open(sessions: &Sessions) -> String {
        sessions.add(Arc::new(Session::new()), "ann".into())
    }

    fn finds(sessions: &Sessions, id: &str, caller: &str) -> bool {
        sessions.find(id, &caller.into()).is_some()
    }

    #[test]
    fn a13_who_was_silent_for_long_and_can_be_known_by_an_id_goes_on_with_the_same_session() {
        let sessions = shared(2, Duration::ZERO);
        let id = open(&sessions);
        let one = sessions.find(&id, &"ann".into()).expect("known");
        let other = sessions.find(&id, &"ann".into()).expect("known");
        assert!(Arc::ptr_eq(&one, &other), "a stream that is open is of the same session");
        // It is not evicted while it is in use.
        let second = open(&sessions);
        open(&sessions);
        assert!(Arc::ptr_eq(&one, &sessions.find(&id, &"ann".into()).expect("known")));
        assert!(finds(&sessions, &second, "ann"), "it is opened anew by its id");
    }

    #[test]
    fn t15_sessions_are_bounded_and_the_stalest_goes_first() {
        let sessions = alone(2, IDLE_TIMEOUT);
        let (first, second) = (open(&sessions), open(&sessions));
        assert!(finds(&sessions, &first, "ann"));
        let third = open(&sessions);
        assert!(!finds(&sessions, &second, "ann"));
        assert!(finds(&sessions, &first, "ann") && finds(&sessions, &third, "ann"));
        assert!(
            !finds(&sessions, &first, "bob") && !sessions.terminate(&first, "bob"),
            "another caller's does not exist"
        );
        assert!(sessions.terminate(&first, "ann") && !sessions.terminate(&first, "ann"));
    }

    #[test]
    fn t15_without_a_shared_key_what_is_forgotten_is_gone() {
        let sessions = alone(2, Duration::ZERO);
        let id = open(&sessions);
        assert!(!finds(&sessions, &id, "ann"));
    }

    #[test]
    fn a13_a_session_is_taken_up_where_the_key_is_the_same_and_by_its_owner_alone() {
        let (here, there) = (shared(2, IDLE_TIMEOUT), shared(2, IDLE_TIMEOUT));
        let id = open(&here);
        assert!(!finds(&there, &id, "bob") && !there.terminate(&id, "bob"));
        let taken = there.find(&id, &"ann".into()).expect("taken up");
        taken.set_log_level(LogLevel::Error);
        let again = there.find(&id, &"ann".into()).expect("held now");
        assert!(Arc::ptr_eq(&taken, &again), "it is remembered from then on");
        assert!(!finds(&there, &id, "bob") && !there.terminate(&id, "bob"), "also when it is held");
        assert!(!finds(&alone(2, IDLE_TIMEOUT), &id, "ann"));
    }

    #[test]
    fn t15_sessions_that_are_taken_up_are_bounded_too() {
        let (here, there) = (shared(100, IDLE_TIMEOUT), shared(3, IDLE_TIMEOUT));
        for id in (0..20).map(|_| open(&here)).collect::<Vec<_>>() {
            assert!(finds(&there, &id, "ann"));
            assert!(there.terminate(&open(&here), "ann"));
        }
        let known = there.lock();
        assert_eq!((known.open.len(), known.terminated.len()), (3, 3));
    }

    #[test]
    fn a13_what_is_forgotten_for_want_of_room_or_use_is_taken_up_again() {
        for sessions in [shared(1, IDLE_TIMEOUT), shared(9, Duration::ZERO)] {
            let (first, second) = (open(&sessions), open(&sessions));
            assert!(finds(&sessions, &first, "ann") && finds(&sessions, &second, "ann"));
        }
    }

    #[test]
    fn t15_an_ended_session_is_over_here_and_elsewhere_nobody_knows() {
        let (here, there, later) = (shared(9, IDLE_TIMEOUT), shared(9, IDLE_TIMEOUT), shared(9, IDLE_TIMEOUT));
        let id = open(&here);
        assert!(here.terminate(&id, "ann") && !here.terminate(&id, "ann") && !finds(&here, &id, "ann"));
        assert!(finds(&there, &id, "ann"), "as the head of this file says");
        assert!(there.terminate(&id, "ann") && !finds(&there, &id, "ann"));
        assert!(later.terminate(&id, "ann") && !finds(&later, &id, "ann"), "one that is not held can be ended");
    }

    #[test]
    fn t15_sessions_from_before_the_key_was_known_go_on_here() {
        let keys = Arc::new(StateKeys::new(None));
        let sessions = Sessions::new(9, IDLE_TIMEOUT, keys.clone());
        let before = open(&sessions);
        keys.set_shared(StateKey::from_secret(b"shared"));
        let after = open(&sessions);
        assert!(finds(&sessions, &before, "ann") && !finds(&shared(9, IDLE_TIMEOUT), &before, "ann"));
        assert!(finds(&sessions, &after, "ann") && finds(&shared(9, IDLE_TIMEOUT), &after, "ann"));
        assert!(sessions.terminate(&before, "ann") && !finds(&sessions, &before, "ann"));
    }
}
