//! Databases that follow the primary, and are searched in turn.
//!
//! One is searched only while it is known to be fit: it answers, it is a copy of this very database, and it is not far
//! behind. That is looked at every few seconds, and until the first look is over the primary is searched. How far behind
//! one is, the heartbeat of this instance tells, which the primary has written and the replica has read: both times are of
//! the primary's clock, and something is written every two seconds, so that one that has stopped to follow is seen too.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, Weak};
use std::time::Duration;

use deadpool_postgres::Pool;
use futures_util::future::join_all;
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use super::address::Address;
use super::session::Session;
use super::{CONNECTIONS, Shared, Store, rows};
use crate::knowledge::store::Error;
use crate::locked::locked;

/// So long one that failed is left alone: a machine that is gone says nothing, and everybody would wait for it.
const REST: Duration = Duration::from_secs(10);
/// One that lets a search wait for longer has failed; a machine that is gone says nothing.
const PATIENCE: Duration = Duration::from_secs(15);
/// One that is so far behind is not searched.
const BEHIND: Duration = Duration::from_secs(30);
/// Between two looks at all of them, and how long one may take.
const LOOK: Duration = Duration::from_secs(3);
const LONGEST_LOOK: Duration = Duration::from_secs(6);

/// All of them, and whose turn it is.
#[derive(Debug)]
pub(super) struct Replicas {
    all: Vec<Replica>,
    turn: AtomicUsize,
}

#[derive(Debug)]
pub(super) struct Replica {
    address: Address,
    pool: Pool,
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    fitness: Fitness,
    /// Not asked before this.
    rests: Option<Instant>,
}

/// Whether a replica can be searched.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fitness {
    /// Nobody has looked yet.
    Unknown,
    Fit,
    /// A sentence that says why not.
    Unfit(String),
}

/// When this instance last gave a sign of life, and when it began, as the primary knows it, in milliseconds.
#[derive(Debug, Clone, Copy)]
struct Sign {
    started: i64,
    beat: i64,
}

/// A session for all that a search reads: everything is of one moment of one database.
#[derive(Debug)]
pub(super) struct Reading<'r> {
    session: Session,
    /// None where it is the primary.
    replica: Option<&'r Replica>,
}

impl Store {
    /// Reads for a search: from a replica where there is one that is fit, and otherwise from the primary.
    pub(super) async fn searching(&self) -> Result<Reading<'_>, Error> {
        match self.0.replicas.reading().await {
            Some(reading) => Ok(reading),
            None => Ok(Reading { session: self.reading().await?, replica: None }),
        }
    }

    /// Reads from the primary in the place of a replica that failed in the middle of a search, whatever with. What the
    /// primary has failed with is told as it is.
    pub(super) async fn instead(&self, of: Reading<'_>, error: Error) -> Result<Reading<'_>, Error> {
        let Some(replica) = of.replica else { return Err(error) };
        replica.rest(&error);
        drop(of);
        Ok(Reading { session: self.reading().await?, replica: None })
    }
}

impl Reading<'_> {
    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    /// Whether what is read may be older than what the primary has.
    pub(super) fn is_replica(&self) -> bool {
        self.replica.is_some()
    }

    /// Waits for what is read here; not long for a replica, as there is somebody else to ask.
    pub(super) async fn in_time<T>(&self, read: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        match self.is_replica() {
            true => timeout(PATIENCE, read).await.unwrap_or_else(|_| Err(silent())),
            false => read.await,
        }
    }

    /// Gives the connection back. All was read by now, so that nobody minds if that fails.
    pub(super) async fn end(self) {
        let _ = self.session.leave().await;
    }
}

impl Replicas {
    pub(super) fn of(addresses: &[Address]) -> Result<Replicas, Error> {
        let replica = |address: &Address| {
            let known = Mutex::new(Known { fitness: Fitness::Unknown, rests: None });
            Ok(Replica { address: address.clone(), pool: address.pool(CONNECTIONS)?, known })
        };
        Ok(Replicas { all: addresses.iter().map(replica).collect::<Result<_, Error>>()?, turn: AtomicUsize::new(0) })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn is_any_fit(&self) -> bool {
        self.all.iter().any(Replica::is_fit)
    }

    /// Reads from the next one that is fit and answers; none where none does.
    async fn reading(&self) -> Option<Reading<'_>> {
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        for at in 0..self.all.len() {
            let replica = &self.all[(first + at) % self.all.len()];
            if !replica.is_fit() {
                continue;
            }
            let begun = timeout(PATIENCE, Session::reading(&replica.pool)).await;
            match begun.unwrap_or_else(|_| Err(silent())) {
                Ok(session) => return Some(Reading { session, replica: Some(replica) }),
                Err(error) => replica.rest(&error),
            }
        }
        None
    }
}

/// Looks at all replicas for as long as the store is open.
pub(super) async fn look_after(store: Weak<Shared>) {
    loop {
        let Some(shared) = store.upgrade() else { return };
        let primary = timeout(LONGEST_LOOK, sign(&shared.primary, shared.instance.id())).await;
        // A primary that is away tells nothing about those who follow it.
        let primary = primary.ok().and_then(Result::ok).flatten();
        let id = shared.instance.id();
        join_all(shared.replicas.all.iter().map(|replica| replica.look(&shared.history, id, primary))).await;
        drop(shared);
        sleep(LOOK).await;
    }
}

/// The sign of life of this instance on the primary; none where it has been forgotten there.
async fn sign(pool: &Pool, id: Uuid) -> Result<Option<Sign>, Error> {
    let sql = "SELECT (extract(epoch FROM started) * 1000)::bigint, (extract(epoch FROM beat) * 1000)::bigint \
               FROM instances WHERE name = $1";
    let row = Session::plain(pool).await?.maybe(sql, &[&id]).await?;
    row.map(|row| Ok(Sign { started: rows::get(&row, 0)?, beat: rows::get(&row, 1)? })).transpose()
}

impl Replica {
    fn is_fit(&self) -> bool {
        let known = locked(&self.known);
        known.fitness == Fitness::Fit && known.rests.is_none_or(|until| until <= Instant::now())
    }

    fn rest(&self, error: &Error) {
        tracing::debug!(%error, replica = %self.address, "a replica is left alone for a while");
        locked(&self.known).rests = Some(Instant::now() + REST);
    }

    async fn look(&self, history: &str, id: Uuid, primary: Option<Sign>) {
        let asked = timeout(LONGEST_LOOK, self.seen(id)).await.unwrap_or_else(|_| Err(silent()));
        self.note(judge(history, primary, asked));
    }

    /// Which database it follows, and what it has last seen of this instance.
    async fn seen(&self, id: Uuid) -> Result<(Option<String>, Option<i64>), Error> {
        let session = Session::plain(&self.pool).await?;
        let told = session.row("SELECT to_regclass('corbie.meta')::text", &[]).await?;
        if rows::get::<Option<String>>(&told, 0)?.is_none() {
            return Ok((None, None));
        }
        let sql = "SELECT (SELECT value FROM meta WHERE name = 'history'), \
                   (SELECT (extract(epoch FROM beat) * 1000)::bigint FROM instances WHERE name = $1)";
        let row = session.row(sql, &[&id]).await?;
        Ok((rows::get(&row, 0)?, rows::get(&row, 1)?))
    }

    /// Each change is told once.
    fn note(&self, fitness: Fitness) {
        let before = std::mem::replace(&mut locked(&self.known).fitness, fitness.clone());
        match &fitness {
            _ if fitness == before => {}
            Fitness::Unfit(why) if !matches!(before, Fitness::Unfit(_)) => {
                tracing::warn!(replica = %self.address, "a replica is not searched: {why}");
            }
            Fitness::Fit if matches!(before, Fitness::Unfit(_)) => {
                tracing::info!(replica = %self.address, "a replica is searched again");
            }
            _ => {}
        }
    }
}

/// What follows from a look at a replica.
fn judge(history: &str, primary: Option<Sign>, asked: Result<(Option<String>, Option<i64>), Error>) -> Fitness {
    let (told, beat) = match asked {
        Ok(seen) => seen,
        Err(Error::Away(why)) => return Fitness::Unfit(format!("it cannot be reached ({why})")),
        Err(error) => return Fitness::Unfit(error.to_string()),
    };
    if told.as_deref() != Some(history) {
        let why = "it is no copy of the primary's database; correct `knowledge.store_replicas`";
        return Fitness::Unfit(why.to_owned());
    }
    let behind = primary.map_or(0, |Sign { started, beat: last }| last - beat.unwrap_or(started));
    match u64::try_from(behind).is_ok_and(|behind| Duration::from_millis(behind) > BEHIND) {
        true => Fitness::Unfit(format!("it is more than {} seconds behind the primary", BEHIND.as_secs())),
        false => Fitness::Fit,
    }
}

fn silent() -> Error {
    Error::Away("it does not answer".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000_000;

    #[track_caller]
    fn check(told: Option<&str>, beat: Option<i64>, primary: Option<Sign>, wanted: &str) {
        let told = told.map(str::to_owned);
        let said = match judge("a", primary, Ok((told, beat))) {
            Fitness::Fit => "fit".to_owned(),
            Fitness::Unfit(why) => why,
            Fitness::Unknown => "unknown".to_owned(),
        };
        assert!(said.contains(wanted), "{said}");
    }

    #[test]
    fn a_replica_is_searched_that_follows_this_database_closely() {
        let primary = Some(Sign { started: NOW - 100_000, beat: NOW });
        check(Some("a"), Some(NOW), primary, "fit");
        check(Some("a"), Some(NOW + 2000), primary, "fit");
        check(Some("a"), Some(NOW - 29_000), primary, "fit");
        check(Some("a"), Some(NOW - 31_000), primary, "30 seconds behind");
        check(Some("b"), Some(NOW), primary, "no copy");
        check(None, None, primary, "no copy");
    }

    #[test]
    fn one_that_has_never_heard_of_this_instance_is_behind_since_that_began() {
        check(Some("a"), None, Some(Sign { started: NOW - 1000, beat: NOW }), "fit");
        check(Some("a"), None, Some(Sign { started: NOW - 40_000, beat: NOW }), "30 seconds behind");
    }

    #[test]
    fn while_the_primary_is_away_nobody_is_behind() {
        check(Some("a"), Some(NOW - 1_000_000), None, "fit");
        check(Some("b"), None, None, "no copy");
    }

    #[test]
    fn one_that_does_not_answer_is_not_searched() {
        let Fitness::Unfit(why) = judge("a", None, Err(silent())) else { panic!("it is fit") };
        assert_eq!(why, "it cannot be reached (it does not answer)");
    }
}
