//! Connection limits: in total and per address; at the limit an idle connection is evicted.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::turns::Turn;
use crate::limits::Limits;
use crate::server::Server;

/// The connection limiter of one server, over all its HTTP listeners.
#[derive(Debug)]
pub(super) struct Places {
    free: Arc<Semaphore>,
    most_per_address: usize,
    taken: Mutex<Taken>,
    /// Permits for rejection replies.
    pub(super) farewells: Semaphore,
}

/// A connection's permit, carried by its requests: a WebSocket keeps it after the upgrade.
#[derive(Debug, Clone)]
pub(crate) struct Place(Arc<Held>);

/// A connection that requests a permit.
#[derive(Debug)]
pub(super) struct Visitor {
    pub(super) server: Server,
    pub(super) from: IpAddr,
    /// The listener waits for this token on shutdown.
    pub(super) _open: TaskTrackerToken,
    /// Asks the connection to close after its current request.
    pub(super) leave: CancellationToken,
}

/// Why no permit was granted.
#[derive(Debug)]
pub(super) enum NoPlace {
    ForThisAddress,
    AtAll(Visitor),
}

#[derive(Debug)]
struct Held {
    number: u64,
    turn: Turn,
    visitor: Visitor,
    counted: Counted,
    _permit: OwnedSemaphorePermit,
}

/// Counts a connection of an address until dropped.
#[derive(Debug)]
struct Counted {
    /// `None` for addresses that are not counted.
    whose: Option<IpAddr>,
    places: Arc<Places>,
}

#[derive(Debug, Default)]
struct Taken {
    next_number: u64,
    seats: HashMap<u64, Seat>,
    by_address: HashMap<IpAddr, usize>,
}

#[derive(Debug)]
struct Seat {
    turn: Turn,
    leave: CancellationToken,
}

/// Time for an idle connection to close. It has no request to finish.
const LEAVING: Duration = Duration::from_secs(1);

/// Maximum concurrent rejection replies. Beyond this it is a flood, and connections are closed without a reply.
const MOST_FAREWELLS: usize = 64;

impl Places {
    pub(super) fn new(limits: &Limits) -> Arc<Places> {
        Arc::new(Places {
            free: Arc::new(Semaphore::new(limits.max_connections)),
            most_per_address: limits.max_connections_per_address,
            taken: Mutex::default(),
            farewells: Semaphore::new(MOST_FAREWELLS),
        })
    }

    /// Acquires a permit, if one is free.
    pub(super) fn take(self: &Arc<Places>, visitor: Visitor) -> Result<Place, NoPlace> {
        let Some(counted) = self.count(visitor.from) else { return Err(NoPlace::ForThisAddress) };
        match self.free.clone().try_acquire_owned() {
            Ok(permit) => Ok(self.seat(visitor, counted, permit)),
            Err(_) => Err(NoPlace::AtAll(visitor)),
        }
    }

    /// Acquires the permit of an evicted idle connection; `None` if all are busy.
    pub(super) async fn make_room(self: &Arc<Places>, visitor: Visitor) -> Option<Place> {
        let counted = self.count(visitor.from)?;
        self.longest_idle()?.cancel();
        let permit = timeout(LEAVING, self.free.clone().acquire_owned()).await.ok()?.ok()?;
        Some(self.seat(visitor, counted, permit))
    }

    fn seat(&self, visitor: Visitor, counted: Counted, permit: OwnedSemaphorePermit) -> Place {
        let turn = Turn::new();
        let mut taken = self.taken();
        let number = taken.next_number;
        taken.next_number += 1;
        taken.seats.insert(number, Seat { turn: turn.clone(), leave: visitor.leave.clone() });
        drop(taken);
        visitor.server.inner().metrics.connections.inc();
        Place(Arc::new(Held { number, turn, visitor, counted, _permit: permit }))
    }

    /// Counts a connection of an address; `None` if the address is at its limit.
    fn count(self: &Arc<Places>, from: IpAddr) -> Option<Counted> {
        let whose = counted_as(from).filter(|_| self.most_per_address > 0);
        if let Some(whose) = whose {
            let mut taken = self.taken();
            let count = taken.by_address.entry(whose).or_default();
            if *count >= self.most_per_address {
                return None;
            }
            *count += 1;
        }
        Some(Counted { whose, places: self.clone() })
    }

    /// The connection that has been idle longest and was not asked to close yet.
    fn longest_idle(&self) -> Option<CancellationToken> {
        let taken = self.taken();
        let idle = taken.seats.values().filter(|seat| !seat.leave.is_cancelled());
        let idle = idle.filter_map(|seat| Some((seat.turn.idle_since()?, &seat.leave)));
        idle.min_by_key(|(since, _)| *since).map(|(_, leave)| leave.clone())
    }

    /// Never held across an await.
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Place {
    pub(super) fn from(&self) -> IpAddr {
        self.0.visitor.from
    }

    pub(super) fn turn(&self) -> &Turn {
        &self.0.turn
    }

    pub(super) fn leave(&self) -> &CancellationToken {
        &self.0.visitor.leave
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.counted.places.taken().seats.remove(&self.number);
        self.visitor.server.inner().metrics.connections.dec();
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let Some(whose) = self.whose else { return };
        let mut taken = self.places.taken();
        if let Some(count) = taken.by_address.get_mut(&whose) {
            *count -= 1;
            if *count == 0 {
                taken.by_address.remove(&whose);
            }
        }
    }
}

/// The unit an address is counted as. Loopback is not counted: a proxy forwards the callers of a whole network. An IPv6
/// /64 network counts as one, since each host has more addresses than the limit.
pub(super) fn counted_as(from: IpAddr) -> Option<IpAddr> {
    match from.to_canonical() {
        from if from.is_loopback() => None,
        IpAddr::V4(from) => Some(IpAddr::V4(from)),
        IpAddr::V6(from) => {
            let [a, b, c, d, ..] = from.segments();
            Some(IpAddr::from([a, b, c, d, 0, 0, 0, 0]))
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio_util::task::TaskTracker;

    use super::*;

    fn places(most: usize, per_address: usize) -> Arc<Places> {
        let limits = Limits { max_connections: most, max_connections_per_address: per_address, ..Limits::default() };
        Places::new(&limits)
    }

    fn visitor(from: &str) -> Visitor {
        Visitor {
            server: Server::builder("test", "1").build().expect("valid"),
            from: from.parse().expect("an address"),
            _open: TaskTracker::new().token(),
            leave: CancellationToken::new(),
        }
    }

    #[tokio::test]
    async fn s10_one_address_cannot_take_all_places() {
        let places = places(100, 2);
        let mut held = Vec::new();
        for from in ["192.0.2.1", "192.0.2.1", "2001:db8::1", "2001:db8::2", "192.0.2.2"] {
            held.push(places.take(visitor(from)).expect("a place"));
        }
        for from in ["192.0.2.1", "::ffff:192.0.2.1", "2001:db8::3"] {
            assert!(places.take(visitor(from)).is_err(), "{from}");
        }
        assert!(places.take(visitor("2001:db8:0:1::1")).is_ok(), "another network");
        held.remove(0);
        assert!(places.take(visitor("192.0.2.1")).is_ok(), "one has left");
    }

    #[tokio::test]
    async fn s10_callers_of_this_machine_are_counted_together_only() {
        let places = places(10, 1);
        let mut held = Vec::new();
        for from in ["127.0.0.1", "127.0.0.1", "::1", "::1", "::ffff:127.0.0.1"] {
            held.push(places.take(visitor(from)).expect("a place"));
        }
        assert_eq!(places.taken().by_address.len(), 0);
        drop(held);
        assert_eq!(places.taken().seats.len(), 0);
    }

    #[tokio::test]
    async fn s10_no_bound_for_an_address_is_none() {
        let places = places(3, 0);
        let held = [places.take(visitor("192.0.2.1")), places.take(visitor("192.0.2.1"))];
        assert!(held.iter().all(Result::is_ok));
    }
}
