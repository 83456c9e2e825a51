//! Connection limits: in total and per address, with a reserve for health probes and authenticated callers.
//!
//! At the limit a new connection takes the permit of one that is not in use: silent ones go first, oldest first. If all
//! are in use, or the address has its share, the connection goes into the reserve. There it has a few seconds to send a
//! head; silent connections and incomplete heads make room for newer ones, oldest first. Health probes are answered from
//! the reserve; other requests need a regular permit by then, or a valid token.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::turns::{FRESH, Turn, milliseconds};
use crate::limits::Limits;
use crate::server::Server;

/// The connection limiter of one server, over all its HTTP listeners.
#[derive(Debug)]
pub(super) struct Places {
    free: Arc<Semaphore>,
    /// Permits of connections beyond the limit.
    reserve: Arc<Semaphore>,
    /// Permits for authenticated requests in the reserve; the rest of it is for health probes.
    reserve_requests: Arc<Semaphore>,
    most_per_address: usize,
    taken: Mutex<Taken>,
    /// An address uses less of its share.
    share_freed: Notify,
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
    /// The address it is counted for; `None` if it is not counted.
    pub(super) counted_for: Option<IpAddr>,
    /// The listener waits for this token on shutdown.
    pub(super) _open: TaskTrackerToken,
    /// Asks the connection to close after its current request.
    pub(super) leave: CancellationToken,
}

#[derive(Debug)]
struct Held {
    number: u64,
    turn: Turn,
    visitor: Visitor,
    places: Arc<Places>,
    /// It is in the reserve.
    provisional: AtomicBool,
    permits: Mutex<Permits>,
    /// The address of the identity that last called over this connection; 0 for none.
    known_identity: AtomicUsize,
}

#[derive(Debug)]
struct Permits {
    _connection: OwnedSemaphorePermit,
    _reserve_request: Option<OwnedSemaphorePermit>,
    /// Its part of its address's share; `None` for authenticated callers.
    share: Option<Share>,
    /// The same for the client that a proxy forwards a request of.
    client: Option<Share>,
}

/// Counts a connection of an address until dropped.
#[derive(Debug)]
struct Share {
    /// `None` for addresses that are not counted.
    address: Option<IpAddr>,
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
    counted_for: Option<IpAddr>,
    provisional: bool,
}

/// Time for an evicted connection to close. It has no request to finish.
const LEAVING: Duration = Duration::from_secs(1);

/// Maximum concurrent rejection replies. Beyond this it is a flood, and connections are closed without a reply.
const MOST_FAREWELLS: usize = 64;

/// The reserve is this fraction of the connection limit, but not less than the minimum.
const RESERVE_FRACTION: usize = 16;
const MIN_RESERVE: usize = 8;

/// Time for a connection in the reserve to finish its handshake and to send a head.
pub(super) const RESERVE_TIMEOUT: Duration = Duration::from_secs(5);

impl Places {
    pub(super) fn new(limits: &Limits) -> Arc<Places> {
        let reserve = (limits.max_connections / RESERVE_FRACTION).max(MIN_RESERVE);
        Arc::new(Places {
            free: Arc::new(Semaphore::new(limits.max_connections)),
            reserve: Arc::new(Semaphore::new(reserve)),
            reserve_requests: Arc::new(Semaphore::new(reserve / 2)),
            most_per_address: limits.max_connections_per_address,
            taken: Mutex::default(),
            share_freed: Notify::new(),
            farewells: Semaphore::new(MOST_FAREWELLS),
        })
    }

    /// Acquires a permit, if one is free and the address has not used up its share.
    pub(super) fn take(self: &Arc<Places>, visitor: Visitor) -> Result<Place, Visitor> {
        let Some(share) = self.share(visitor.counted_for) else { return Err(visitor) };
        match self.free.clone().try_acquire_owned() {
            Ok(permit) => Ok(self.seat(visitor, permit, Some(share), false)),
            Err(_) => Err(visitor),
        }
    }

    /// Acquires the permit of an evicted connection, or one of the reserve; `None` if all are in use.
    pub(super) async fn make_room(self: &Arc<Places>, visitor: Visitor) -> Option<Place> {
        if let Some(share) = self.wait_for_share(&visitor.server, visitor.counted_for).await
            && let Some(permit) = self.wait_for(&self.free, &visitor.server, Seat::is_regular).await
        {
            return Some(self.seat(visitor, permit, Some(share), false));
        }
        let permit = self.wait_for(&self.reserve, &visitor.server, |seat| seat.provisional).await?;
        Some(self.seat(visitor, permit, None, true))
    }

    fn seat(
        self: &Arc<Places>,
        visitor: Visitor,
        permit: OwnedSemaphorePermit,
        share: Option<Share>,
        provisional: bool,
    ) -> Place {
        let turn = Turn::new();
        let (leave, counted_for) = (visitor.leave.clone(), visitor.counted_for);
        let mut taken = self.taken();
        let number = taken.next_number;
        taken.next_number += 1;
        taken.seats.insert(number, Seat { turn: turn.clone(), leave, counted_for, provisional });
        drop(taken);
        visitor.server.inner().metrics.connections.inc();
        Place(Arc::new(Held {
            number,
            turn,
            visitor,
            places: self.clone(),
            provisional: AtomicBool::new(provisional),
            permits: Mutex::new(Permits { _connection: permit, _reserve_request: None, share, client: None }),
            known_identity: AtomicUsize::new(0),
        }))
    }

    /// Acquires a permit; if none is free, evicts a connection for it.
    async fn wait_for(
        &self,
        permits: &Arc<Semaphore>,
        server: &Server,
        fits: impl Fn(&Seat) -> bool,
    ) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = permits.clone().try_acquire_owned() {
            return Some(permit);
        }
        self.evict(server, fits)?;
        timeout(LEAVING, permits.clone().acquire_owned()).await.ok()?.ok()
    }

    /// Counts a connection of an address; `None` if the address has used up its share.
    fn share(self: &Arc<Places>, address: Option<IpAddr>) -> Option<Share> {
        let address = address.filter(|_| self.most_per_address > 0);
        if let Some(address) = address {
            let mut taken = self.taken();
            let count = taken.by_address.entry(address).or_default();
            if *count >= self.most_per_address {
                return None;
            }
            *count += 1;
        }
        Some(Share { address, places: self.clone() })
    }

    /// Like [`Places::share`]; if the share is used up, evicts a connection of the same address.
    async fn wait_for_share(self: &Arc<Places>, server: &Server, address: Option<IpAddr>) -> Option<Share> {
        if let Some(share) = self.share(address) {
            return Some(share);
        }
        self.evict(server, |seat| seat.is_regular() && seat.counted_for == address)?;
        let deadline = Instant::now() + LEAVING;
        loop {
            let freed = self.share_freed.notified();
            if let Some(share) = self.share(address) {
                return Some(share);
            }
            timeout_at(deadline, freed).await.ok()?;
        }
    }

    /// Asks the connection to close that is least worth keeping; `None` if all that fit are in use.
    fn evict(&self, server: &Server, fits: impl Fn(&Seat) -> bool) -> Option<()> {
        let taken = self.taken();
        let unused = taken.seats.iter().filter(|(_, seat)| !seat.leave.is_cancelled() && fits(seat));
        let unused = unused.filter_map(|(number, seat)| {
            let rank = seat.turn.eviction_rank(seat.provisional)?;
            Some((rank, number, &seat.leave))
        });
        let (.., leave) = unused.min_by_key(|(rank, number, _)| (*rank, **number))?;
        leave.cancel();
        server.inner().metrics.evicted_connections.inc();
        Some(())
    }

    /// Whether a connection with a regular permit is too new to be evicted.
    fn has_fresh(&self) -> bool {
        let now = milliseconds();
        self.taken().seats.values().any(|seat| !seat.provisional && seat.turn.is_fresh(now))
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

    /// It is in the reserve: only health probes are served without [`Place::settle`].
    pub(super) fn is_provisional(&self) -> bool {
        self.0.provisional.load(Ordering::Relaxed)
    }

    /// Whether a request of a connection in the reserve is served. It is if the connection gets a regular permit, or if
    /// the caller is authenticated and the reserve has room for the request.
    pub(super) async fn settle(&self, is_authenticated: bool) -> bool {
        let (held, places) = (&self.0, &self.0.places);
        let deadline = Instant::now() + LEAVING;
        while !held.promote(is_authenticated).await {
            // Those that have just connected may turn out to be silent, and begun heads may stay incomplete.
            if places.has_fresh() && Instant::now() < deadline {
                sleep(FRESH / 4).await;
                continue;
            }
            return held.use_reserve(is_authenticated);
        }
        true
    }

    /// See [`Turn::is_stalled`].
    pub(super) fn is_stalled(&self) -> bool {
        self.0.turn.is_stalled(self.is_provisional())
    }

    /// Whether this identity has called over this connection before.
    pub(super) fn knows(&self, identity: &Arc<str>) -> bool {
        self.0.known_identity.load(Ordering::Relaxed) == address_of(identity)
    }

    /// The caller is authenticated: the connection does not count for its address any more.
    pub(super) fn meet(&self, identity: &Arc<str>) {
        self.0.known_identity.store(address_of(identity), Ordering::Relaxed);
        if let Some(seat) = self.0.places.taken().seats.get_mut(&self.0.number) {
            seat.counted_for = None;
        }
        let share = self.0.permits().share.take();
        drop(share);
    }

    /// Counts a proxy's connection for the client it forwards a request of, until [`Place::release_client`]; false if
    /// the client has used up its share.
    pub(super) fn count_client(&self, client: IpAddr) -> bool {
        self.release_client();
        let share = self.0.places.share(Some(network(client)));
        let fits = share.is_some();
        self.0.permits().client = share;
        fits
    }

    pub(super) fn release_client(&self) {
        let share = self.0.permits().client.take();
        drop(share);
    }
}

/// Identities are compared by where they are: a token's identity is made once.
fn address_of(identity: &Arc<str>) -> usize {
    Arc::as_ptr(identity).cast::<u8>() as usize
}

impl Seat {
    /// It has a regular permit, and its client has had time to send a head.
    fn is_regular(&self) -> bool {
        !self.provisional && !self.turn.is_fresh(milliseconds())
    }
}

impl Held {
    /// Exchanges the permit of the reserve for a regular one.
    async fn promote(&self, is_authenticated: bool) -> bool {
        let (places, server) = (&self.places, &self.visitor.server);
        let share = match is_authenticated {
            true => None,
            false => match places.wait_for_share(server, self.visitor.counted_for).await {
                Some(share) => Some(share),
                None => return false,
            },
        };
        let Some(permit) = places.wait_for(&places.free, server, Seat::is_regular).await else { return false };
        let mut permits = self.permits();
        let client = permits.client.take();
        *permits = Permits { _connection: permit, _reserve_request: None, share, client };
        drop(permits);
        self.provisional.store(false, Ordering::Relaxed);
        if let Some(seat) = places.taken().seats.get_mut(&self.number) {
            seat.provisional = false;
        }
        true
    }

    /// Serves one request of an authenticated caller from the reserve.
    fn use_reserve(&self, is_authenticated: bool) -> bool {
        let permit = self.places.reserve_requests.clone().try_acquire_owned().ok().filter(|_| is_authenticated);
        let is_served = permit.is_some();
        self.permits()._reserve_request = permit;
        is_served
    }

    /// Never held across an await, nor locked while [`Places::taken`] is held.
    fn permits(&self) -> MutexGuard<'_, Permits> {
        self.permits.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.places.taken().seats.remove(&self.number);
        self.visitor.server.inner().metrics.connections.dec();
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let Some(address) = self.address else { return };
        let mut taken = self.places.taken();
        if let Some(count) = taken.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                taken.by_address.remove(&address);
            }
        }
        drop(taken);
        self.places.share_freed.notify_waiters();
    }
}

/// The unit an address is counted as. All of loopback is one: a program can use any of its addresses. An IPv6 /64
/// network counts as one, since each host has more addresses than the limit.
pub(super) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        address if address.is_loopback() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
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
        let from = from.parse().expect("an address");
        Visitor {
            server: Server::builder("test", "1").build().expect("valid"),
            from,
            counted_for: Some(network(from)),
            _open: TaskTracker::new().token(),
            leave: CancellationToken::new(),
        }
    }

    /// A connection that is in use.
    fn busy(place: Place) -> Place {
        place.turn().take();
        place
    }

    #[tokio::test]
    async fn s10_one_address_cannot_take_all_places() {
        let places = places(100, 2);
        let mut held = Vec::new();
        for from in ["192.0.2.1", "192.0.2.1", "2001:db8::1", "2001:db8::2", "192.0.2.2", "127.0.0.1", "::1"] {
            held.push(places.take(visitor(from)).expect("a place"));
        }
        for from in ["192.0.2.1", "::ffff:192.0.2.1", "2001:db8::3", "127.0.0.2", "::ffff:127.0.0.1"] {
            assert!(places.take(visitor(from)).is_err(), "{from}");
        }
        assert!(places.take(visitor("2001:db8:0:1::1")).is_ok(), "another network");
        held.remove(0);
        assert!(places.take(visitor("192.0.2.1")).is_ok(), "one has left");
        drop(held);
        assert!(places.taken().by_address.is_empty());
        assert!(places.taken().seats.is_empty());
    }

    #[tokio::test]
    async fn s10_authenticated_callers_and_those_that_are_not_counted_use_no_share() {
        let places = places(10, 1);
        let first = places.take(visitor("192.0.2.1")).expect("a place");
        assert!(places.take(visitor("192.0.2.1")).is_err());
        let identity: Arc<str> = "token:a".into();
        assert!(!first.knows(&identity));
        first.meet(&identity);
        assert!(first.knows(&identity) && !first.knows(&"token:b".into()));
        let _second = places.take(visitor("192.0.2.1")).expect("the first does not count any more");
        for _ in 0..3 {
            let held = places.take(Visitor { counted_for: None, ..visitor("127.0.0.1") });
            std::mem::forget(held.expect("not counted"));
        }
    }

    #[tokio::test]
    async fn s10_no_bound_for_an_address_is_none() {
        let places = places(3, 0);
        let held = [places.take(visitor("192.0.2.1")), places.take(visitor("192.0.2.1"))];
        assert!(held.iter().all(Result::is_ok));
    }

    #[tokio::test]
    async fn s10_the_oldest_silent_connection_makes_room() {
        let places = places(2, 0);
        let silent = [visitor("192.0.2.1"), visitor("192.0.2.2")].map(|visitor| places.take(visitor).expect("free"));
        let [oldest, other] = silent.map(|place| (place.leave().clone(), place));
        let leaving = tokio::spawn(async move {
            oldest.0.cancelled().await;
            drop(oldest.1);
        });
        let newcomer = places.make_room(visitor("192.0.2.3")).await.expect("room");
        assert!(newcomer.is_provisional(), "the others may have sent something");
        newcomer.turn().take();
        assert!(newcomer.settle(false).await && !newcomer.is_provisional());
        assert!(!other.0.is_cancelled());
        leaving.await.expect("no panic");
    }

    #[tokio::test]
    async fn s10_the_reserve_serves_authenticated_callers_and_leaves_half_to_probes() {
        let places = places(1, 0);
        let regular = busy(places.take(visitor("192.0.2.1")).expect("free"));
        let mut reserve = Vec::new();
        for _ in 0..MIN_RESERVE {
            let place = busy(places.make_room(visitor("192.0.2.2")).await.expect("in the reserve"));
            assert!(place.is_provisional() && !place.settle(false).await);
            reserve.push(place);
        }
        let mut served = 0;
        for place in &reserve {
            served += usize::from(place.settle(true).await);
        }
        assert_eq!(served, MIN_RESERVE / 2);
        assert!(places.make_room(visitor("192.0.2.3")).await.is_none(), "bounded");
        drop(regular);
        let last = reserve.last().expect("one");
        assert!(last.settle(false).await && !last.is_provisional(), "a regular permit is free");
    }

    #[tokio::test]
    async fn s10_a_proxy_counts_for_its_clients() {
        let places = places(10, 1);
        let proxy = || Visitor { counted_for: None, ..visitor("127.0.0.1") };
        let [first, second] = [proxy(), proxy()].map(|visitor| places.take(visitor).expect("a place"));
        let client: IpAddr = "203.0.113.7".parse().expect("an address");
        assert!(first.count_client(client) && first.count_client(client), "one after the other");
        assert!(!second.count_client(client));
        assert!(second.count_client("203.0.113.8".parse().expect("an address")));
        first.release_client();
        assert!(second.count_client(client));
    }
}
