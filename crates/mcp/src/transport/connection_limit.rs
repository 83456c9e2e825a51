//! Connection limits: in total and per address, with a reserve for health probes and authenticated callers.
//!
//! An address may use more than its share as long as permits are free. When all are taken, a new connection takes the
//! permit of another one (see `eviction.rs`): of any that is not in use, or, if its address has its share, of one of the
//! same address. Connections of authenticated callers give way only to those of other authenticated callers.
//!
//! If none can be evicted, the connection goes into the reserve. There it has a few seconds to send a head; silent
//! connections and incomplete heads make room for newer ones, oldest first. Health probes are answered from the reserve;
//! other requests need a regular permit by then, or a valid token.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::connection_phase::{ConnectionPhase, milliseconds};
use super::eviction::{EvictionRank, FRESH, Protection};
use crate::limits::Limits;
use crate::server::Server;

/// The connection limiter of one server, over all its HTTP listeners.
#[derive(Debug)]
pub(super) struct ConnectionLimiter {
    free: Arc<Semaphore>,
    /// Permits of connections beyond the limit.
    reserve: Arc<Semaphore>,
    /// Permits for authenticated requests in the reserve; the rest of it is for health probes.
    reserve_requests: Arc<Semaphore>,
    /// Permits for requests in the reserve that wait for a regular one. The rest of it is not blocked by them.
    reserve_waits: Semaphore,
    max_per_address: usize,
    open: Mutex<OpenConnections>,
    /// Permits for rejection replies.
    pub(super) rejection_permits: Semaphore,
}

/// A connection's permit, carried by its requests: a WebSocket keeps it after the upgrade.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionPermit(Arc<Inner>);

/// A connection that requests a permit.
#[derive(Debug)]
pub(super) struct IncomingConnection {
    pub(super) server: Server,
    pub(super) from: IpAddr,
    /// The address it is counted for; `None` if it is not counted.
    pub(super) counted_for: Option<IpAddr>,
    /// The listener waits for this token on shutdown.
    pub(super) _open: TaskTrackerToken,
    /// Requests that the connection closes after its current request.
    pub(super) close: CancellationToken,
}

#[derive(Debug)]
struct Inner {
    number: u64,
    phase: ConnectionPhase,
    connection: IncomingConnection,
    places: Arc<ConnectionLimiter>,
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
    places: Arc<ConnectionLimiter>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    next_number: u64,
    connections: HashMap<u64, OpenConnection>,
    by_address: HashMap<IpAddr, usize>,
}

#[derive(Debug)]
struct OpenConnection {
    phase: ConnectionPhase,
    close: CancellationToken,
    /// The address it is counted for, or the client whose request a proxy forwards over it.
    counted_for: Option<IpAddr>,
    provisional: bool,
    /// Its last caller had a valid token.
    is_authenticated: bool,
}

/// A connection that needs a regular permit.
#[derive(Debug, Clone, Copy)]
struct Newcomer {
    address: Option<IpAddr>,
    is_over_share: bool,
    is_authenticated: bool,
}

/// Time for an evicted connection to close. It has no request to finish.
const EVICTION_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum concurrent rejection replies. Beyond this it is a flood, and connections are closed without a reply.
const MAX_REJECTION_REPLIES: usize = 64;

/// The reserve is this fraction of the connection limit, but not less than the minimum.
const RESERVE_FRACTION: usize = 16;
const MIN_RESERVE: usize = 8;

/// Time for a connection in the reserve to finish its handshake and to send a head.
pub(super) const RESERVE_TIMEOUT: Duration = Duration::from_secs(5);

impl ConnectionLimiter {
    pub(super) fn new(limits: &Limits) -> Arc<ConnectionLimiter> {
        let reserve = (limits.max_connections / RESERVE_FRACTION).max(MIN_RESERVE);
        Arc::new(ConnectionLimiter {
            free: Arc::new(Semaphore::new(limits.max_connections)),
            reserve: Arc::new(Semaphore::new(reserve)),
            reserve_requests: Arc::new(Semaphore::new(reserve / 2)),
            reserve_waits: Semaphore::new(reserve / 4),
            max_per_address: limits.max_connections_per_address,
            open: Mutex::default(),
            rejection_permits: Semaphore::new(MAX_REJECTION_REPLIES),
        })
    }

    /// Acquires a permit, if one is free.
    pub(super) fn try_acquire(
        self: &Arc<ConnectionLimiter>,
        visitor: IncomingConnection,
    ) -> Result<ConnectionPermit, IncomingConnection> {
        match self.free.clone().try_acquire_owned() {
            Ok(permit) => Ok(self.register(visitor, permit, false)),
            Err(_) => Err(visitor),
        }
    }

    /// Acquires the permit of an evicted connection, or one of the reserve; `None` if all are in use.
    pub(super) async fn acquire_by_eviction(
        self: &Arc<ConnectionLimiter>,
        visitor: IncomingConnection,
    ) -> Option<ConnectionPermit> {
        if let Some(permit) = self.wait_for_regular(&visitor, false).await {
            return Some(self.register(visitor, permit, false));
        }
        let permit = self.wait_for(&self.reserve, &visitor.server, |seat, _| seat.provisional).await?;
        Some(self.register(visitor, permit, true))
    }

    fn register(
        self: &Arc<ConnectionLimiter>,
        visitor: IncomingConnection,
        permit: OwnedSemaphorePermit,
        provisional: bool,
    ) -> ConnectionPermit {
        let turn = ConnectionPhase::new();
        let share = (!provisional).then(|| self.share(visitor.counted_for));
        let (leave, counted_for) = (visitor.close.clone(), visitor.counted_for);
        let mut taken = self.lock_open();
        let number = taken.next_number;
        taken.next_number += 1;
        let seat =
            OpenConnection { phase: turn.clone(), close: leave, counted_for, provisional, is_authenticated: false };
        taken.connections.insert(number, seat);
        drop(taken);
        visitor.server.inner().metrics.connections.inc();
        ConnectionPermit(Arc::new(Inner {
            number,
            phase: turn,
            connection: visitor,
            places: self.clone(),
            provisional: AtomicBool::new(provisional),
            permits: Mutex::new(Permits { _connection: permit, _reserve_request: None, share, client: None }),
            known_identity: AtomicUsize::new(0),
        }))
    }

    /// Acquires a regular permit; if none is free, evicts a connection that has less claim to one.
    async fn wait_for_regular(
        &self,
        visitor: &IncomingConnection,
        is_authenticated: bool,
    ) -> Option<OwnedSemaphorePermit> {
        let address = visitor.counted_for;
        let newcomer = Newcomer { address, is_over_share: self.has_used_share(address), is_authenticated };
        self.wait_for(&self.free, &visitor.server, |seat, rank| newcomer.may_evict(seat, rank)).await
    }

    /// Acquires a permit; if none is free, evicts a connection for it.
    async fn wait_for(
        &self,
        permits: &Arc<Semaphore>,
        server: &Server,
        fits: impl Fn(&OpenConnection, EvictionRank) -> bool,
    ) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = permits.clone().try_acquire_owned() {
            return Some(permit);
        }
        self.evict(server, fits)?;
        timeout(EVICTION_TIMEOUT, permits.clone().acquire_owned()).await.ok()?.ok()
    }

    /// Counts a connection of an address.
    fn share(self: &Arc<ConnectionLimiter>, address: Option<IpAddr>) -> Share {
        let address = address.filter(|_| self.max_per_address > 0);
        if let Some(address) = address {
            *self.lock_open().by_address.entry(address).or_default() += 1;
        }
        Share { address, places: self.clone() }
    }

    /// Whether a further connection of an address is more than its share.
    fn has_used_share(&self, address: Option<IpAddr>) -> bool {
        let most = self.max_per_address;
        most > 0 && address.is_some_and(|address| self.lock_open().connections(address) >= most)
    }

    /// Closes the connection with the lowest eviction rank; `None` if all matching ones are in use.
    fn evict(&self, server: &Server, fits: impl Fn(&OpenConnection, EvictionRank) -> bool) -> Option<()> {
        let (taken, now) = (self.lock_open(), milliseconds());
        let candidates = taken.connections.iter().filter(|(_, seat)| !seat.close.is_cancelled());
        let candidates = candidates.filter_map(|(number, seat)| {
            let rank = seat.phase.eviction_rank(taken.protection(seat, self.max_per_address), now)?;
            fits(seat, rank).then_some((rank, number, seat))
        });
        let (rank, _, seat) = candidates.min_by_key(|(rank, number, _)| (*rank, **number))?;
        if rank == EvictionRank::BusyOverShare {
            seat.phase.abort();
        }
        seat.close.cancel();
        server.inner().metrics.evicted_connections.inc();
        Some(())
    }

    /// Whether a connection with a regular permit is too new to be evicted.
    fn has_fresh(&self) -> bool {
        let now = milliseconds();
        self.lock_open().connections.values().any(|seat| !seat.provisional && seat.phase.is_fresh(now))
    }

    /// Never held across an await.
    fn lock_open(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl ConnectionPermit {
    pub(super) fn remote_address(&self) -> IpAddr {
        self.0.connection.from
    }

    pub(super) fn phase(&self) -> &ConnectionPhase {
        &self.0.phase
    }

    pub(super) fn close_token(&self) -> &CancellationToken {
        &self.0.connection.close
    }

    /// It is in the reserve: only health probes are served without [`ConnectionPermit::settle`].
    pub(super) fn is_provisional(&self) -> bool {
        self.0.provisional.load(Ordering::Relaxed)
    }

    /// Whether a request of a connection in the reserve is served. It is if the connection gets a regular permit, or if
    /// the caller is authenticated and the reserve has room for the request.
    pub(super) async fn settle(&self, is_authenticated: bool) -> bool {
        let (held, places) = (&self.0, &self.0.places);
        let (wait, deadline) = (places.reserve_waits.try_acquire(), Instant::now() + EVICTION_TIMEOUT);
        while !held.promote(is_authenticated).await {
            // New connections may turn out to be silent, and begun heads may stay incomplete.
            if wait.is_ok() && places.has_fresh() && Instant::now() < deadline {
                sleep(FRESH / 4).await;
                continue;
            }
            return held.use_reserve(is_authenticated);
        }
        true
    }

    /// A permit to keep a connection in the reserve while its request waits; `None` if too many of them wait.
    pub(super) fn try_wait_in_reserve(&self) -> Option<SemaphorePermit<'_>> {
        self.0.places.reserve_waits.try_acquire().ok()
    }

    /// See [`ConnectionPhase::is_stalled`].
    pub(super) fn is_stalled(&self) -> bool {
        self.0.phase.is_stalled(self.is_provisional())
    }

    /// Whether this identity was the last one to call over this connection.
    pub(super) fn knows(&self, identity: &Arc<str>) -> bool {
        self.0.known_identity.load(Ordering::Relaxed) == address_of(identity)
    }

    /// The caller is authenticated: the connection does not count for its address any more, and is protected from
    /// eviction for unauthenticated callers.
    pub(super) fn meet(&self, identity: &Arc<str>) {
        self.0.known_identity.store(address_of(identity), Ordering::Relaxed);
        if let Some(seat) = self.0.places.lock_open().connections.get_mut(&self.0.number) {
            seat.counted_for = None;
            seat.is_authenticated = true;
        }
        let share = self.0.permits().share.take();
        drop(share);
    }

    /// The caller sent a wrong token: the connection is not protected any more.
    pub(super) fn forget_identity(&self) {
        if self.0.known_identity.swap(0, Ordering::Relaxed) != 0
            && let Some(seat) = self.0.places.lock_open().connections.get_mut(&self.0.number)
        {
            seat.is_authenticated = false;
        }
    }

    /// Counts a proxy's connection for the client it forwards a request of, until [`ConnectionPermit::release_client`]; false if
    /// the client has used up its share and no permit is free.
    pub(super) fn count_client(&self, client: IpAddr) -> bool {
        self.release_client();
        let (places, client) = (&self.0.places, Some(network(client)));
        if places.has_used_share(client) && places.free.available_permits() == 0 {
            return false;
        }
        self.0.permits().client = Some(places.share(client));
        self.count_for(client);
        true
    }

    pub(super) fn release_client(&self) {
        let share = self.0.permits().client.take();
        if share.is_some() {
            self.count_for(None);
        }
    }

    fn count_for(&self, address: Option<IpAddr>) {
        if let Some(seat) = self.0.places.lock_open().connections.get_mut(&self.0.number) {
            seat.counted_for = address;
        }
    }
}

/// Identities are compared by address: a token's identity is allocated once.
fn address_of(identity: &Arc<str>) -> usize {
    Arc::as_ptr(identity).cast::<u8>() as usize
}

impl Newcomer {
    /// Whether a connection with a regular permit has less claim to it.
    fn may_evict(self, seat: &OpenConnection, rank: EvictionRank) -> bool {
        if seat.provisional {
            return false;
        }
        match rank {
            EvictionRank::Authenticated(_) => self.is_authenticated,
            // An address gains nothing from its own requests being aborted.
            EvictionRank::BusyOverShare => self.is_authenticated || !self.is_over_share,
            _ => self.is_authenticated || !self.is_over_share || seat.counted_for == self.address,
        }
    }
}

impl OpenConnections {
    fn connections(&self, address: IpAddr) -> usize {
        self.by_address.get(&address).copied().unwrap_or_default()
    }

    fn protection(&self, seat: &OpenConnection, most_per_address: usize) -> Protection {
        let is_over_share = || seat.counted_for.is_some_and(|address| self.connections(address) > most_per_address);
        match seat {
            OpenConnection { provisional: true, .. } => Protection::Reserve,
            OpenConnection { is_authenticated: true, .. } => Protection::Authenticated,
            _ if most_per_address > 0 && is_over_share() => Protection::OverShare,
            _ => Protection::WithinShare,
        }
    }
}

impl Inner {
    /// Exchanges the permit of the reserve for a regular one.
    async fn promote(&self, is_authenticated: bool) -> bool {
        let places = &self.places;
        let Some(permit) = places.wait_for_regular(&self.connection, is_authenticated).await else { return false };
        let share = (!is_authenticated).then(|| places.share(self.connection.counted_for));
        let mut permits = self.permits();
        let client = permits.client.take();
        *permits = Permits { _connection: permit, _reserve_request: None, share, client };
        drop(permits);
        self.provisional.store(false, Ordering::Relaxed);
        if let Some(seat) = places.lock_open().connections.get_mut(&self.number) {
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

    /// Never held across an await, nor locked while [`ConnectionLimiter::lock_open`] is held.
    fn permits(&self) -> MutexGuard<'_, Permits> {
        self.permits.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.places.lock_open().connections.remove(&self.number);
        self.connection.server.inner().metrics.connections.dec();
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let Some(address) = self.address else { return };
        let mut taken = self.places.lock_open();
        if let Some(count) = taken.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                taken.by_address.remove(&address);
            }
        }
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
    use crate::transport::connection_phase::Phase;

    fn places(most: usize, per_address: usize) -> Arc<ConnectionLimiter> {
        let limits = Limits { max_connections: most, max_connections_per_address: per_address, ..Limits::default() };
        ConnectionLimiter::new(&limits)
    }

    fn visitor(from: &str) -> IncomingConnection {
        let from = from.parse().expect("an address");
        IncomingConnection {
            server: Server::builder("test", "1").build().expect("valid"),
            from,
            counted_for: Some(network(from)),
            _open: TaskTracker::new().token(),
            close: CancellationToken::new(),
        }
    }

    /// A connection that is in use.
    fn busy(place: ConnectionPermit) -> ConnectionPermit {
        place.phase().start_request();
        place
    }

    /// Closes once it is evicted.
    fn closes_when_evicted(place: ConnectionPermit) -> tokio::task::JoinHandle<()> {
        tokio::spawn(async move { place.close_token().clone().cancelled().await })
    }

    fn idle(place: ConnectionPermit) -> ConnectionPermit {
        place.phase().enter(Phase::Idle, milliseconds());
        place
    }

    #[tokio::test]
    async fn s10_connections_count_for_their_address_or_network() {
        let places = places(100, 2);
        let mut held = Vec::new();
        for from in ["192.0.2.1", "192.0.2.1", "2001:db8::1", "2001:db8::2", "192.0.2.2", "127.0.0.1", "::1"] {
            held.push(places.try_acquire(visitor(from)).expect("a place"));
        }
        let has_used_share = |from: &str| places.has_used_share(visitor(from).counted_for);
        for from in ["192.0.2.1", "::ffff:192.0.2.1", "2001:db8::3", "127.0.0.2", "::ffff:127.0.0.1"] {
            assert!(has_used_share(from), "{from}");
        }
        assert!(!has_used_share("192.0.2.2") && !has_used_share("2001:db8:0:1::1"));
        held.remove(0);
        assert!(!has_used_share("192.0.2.1"), "one has left");
        drop(held);
        assert!(places.lock_open().by_address.is_empty());
        assert!(places.lock_open().connections.is_empty());
    }

    #[tokio::test]
    async fn s10_an_address_over_its_share_uses_free_permits_and_is_first_to_give_them_up() {
        let places = places(4, 1);
        let other = idle(places.try_acquire(visitor("192.0.2.2")).expect("free"));
        let mut flood: Vec<_> = (0..3).map(|_| busy(places.try_acquire(visitor("192.0.2.1")).expect("free"))).collect();
        let refused = places.acquire_by_eviction(visitor("192.0.2.1")).await.expect("in the reserve");
        assert!(refused.is_provisional() && !other.close_token().is_cancelled(), "all of the same address are in use");
        let last = idle(flood.pop().expect("three"));
        let closed = closes_when_evicted(last);
        assert!(!places.acquire_by_eviction(visitor("192.0.2.1")).await.expect("evicted its own").is_provisional());
        closed.await.expect("no panic");
        assert!(!other.close_token().is_cancelled());
        let taken = places.try_acquire(visitor("192.0.2.1")).expect("free again");
        let _busy = busy(taken);
        let closed: Vec<_> = std::iter::once(other).chain(flood).map(closes_when_evicted).collect();
        // The idle connection goes before one with a request in progress.
        for from in ["192.0.2.3", "192.0.2.4"] {
            let newcomer = places.acquire_by_eviction(visitor(from)).await.expect("a place");
            assert!(!newcomer.is_provisional());
            std::mem::forget(busy(newcomer));
        }
        assert_eq!(closed.iter().filter(|closed| closed.is_finished()).count(), 2);
    }

    #[tokio::test]
    async fn s10_authenticated_callers_give_way_to_each_other_alone() {
        let places = places(1, 0);
        let identity: Arc<str> = "token:a".into();
        let first = idle(places.try_acquire(visitor("192.0.2.1")).expect("free"));
        first.meet(&identity);
        assert!(places.acquire_by_eviction(visitor("192.0.2.2")).await.expect("in the reserve").is_provisional());
        assert!(!first.close_token().is_cancelled());
        let other = busy(places.acquire_by_eviction(visitor("192.0.2.2")).await.expect("in the reserve"));
        assert!(!other.settle(false).await);
        let closed = closes_when_evicted(first);
        assert!(other.settle(true).await && !other.is_provisional());
        closed.await.expect("no panic");
        let other = idle(other);
        other.meet(&identity);
        other.forget_identity();
        let closed = closes_when_evicted(other);
        assert!(!places.acquire_by_eviction(visitor("192.0.2.2")).await.expect("a wrong token since").is_provisional());
        closed.await.expect("no panic");
    }

    #[tokio::test]
    async fn s10_authenticated_callers_and_those_that_are_not_counted_use_no_share() {
        let places = places(10, 1);
        let first = places.try_acquire(visitor("192.0.2.1")).expect("a place");
        assert!(places.has_used_share(visitor("192.0.2.1").counted_for));
        let identity: Arc<str> = "token:a".into();
        assert!(!first.knows(&identity));
        first.meet(&identity);
        assert!(first.knows(&identity) && !first.knows(&"token:b".into()));
        assert!(!places.has_used_share(visitor("192.0.2.1").counted_for));
        let _uncounted =
            places.try_acquire(IncomingConnection { counted_for: None, ..visitor("127.0.0.1") }).expect("a place");
        assert!(places.lock_open().by_address.is_empty());
    }

    #[tokio::test]
    async fn s10_no_bound_for_an_address_is_none() {
        let places = places(3, 0);
        let held = [places.try_acquire(visitor("192.0.2.1")), places.try_acquire(visitor("192.0.2.1"))];
        assert!(held.iter().all(Result::is_ok));
    }

    #[tokio::test]
    async fn s10_the_oldest_silent_connection_makes_room() {
        let places = places(2, 0);
        let silent =
            [visitor("192.0.2.1"), visitor("192.0.2.2")].map(|visitor| places.try_acquire(visitor).expect("free"));
        let [oldest, other] = silent.map(|place| (place.close_token().clone(), place));
        let leaving = tokio::spawn(async move {
            oldest.0.cancelled().await;
            drop(oldest.1);
        });
        let newcomer = places.acquire_by_eviction(visitor("192.0.2.3")).await.expect("room");
        assert!(newcomer.is_provisional(), "the others may have sent something");
        newcomer.phase().start_request();
        assert!(newcomer.settle(false).await && !newcomer.is_provisional());
        assert!(!other.0.is_cancelled());
        leaving.await.expect("no panic");
    }

    #[tokio::test]
    async fn s10_the_reserve_serves_authenticated_callers_and_leaves_half_to_probes() {
        let places = places(1, 0);
        let regular = busy(places.try_acquire(visitor("192.0.2.1")).expect("free"));
        let mut reserve = Vec::new();
        for _ in 0..MIN_RESERVE {
            let place = busy(places.acquire_by_eviction(visitor("192.0.2.2")).await.expect("in the reserve"));
            assert!(place.is_provisional() && !place.settle(false).await);
            reserve.push(place);
        }
        let mut served = 0;
        for place in &reserve {
            served += usize::from(place.settle(true).await);
        }
        assert_eq!(served, MIN_RESERVE / 2);
        assert!(places.acquire_by_eviction(visitor("192.0.2.3")).await.is_none(), "bounded");
        drop(regular);
        let last = reserve.last().expect("one");
        assert!(last.settle(false).await && !last.is_provisional(), "a regular permit is free");
    }

    #[tokio::test]
    async fn s10_a_proxy_counts_for_its_clients() {
        let places = places(2, 1);
        let proxy = || IncomingConnection { counted_for: None, ..visitor("127.0.0.1") };
        let client: IpAddr = "203.0.113.7".parse().expect("an address");
        let first = places.try_acquire(proxy()).expect("a place");
        assert!(first.count_client(client) && first.count_client(client), "one after the other");
        let second = places.try_acquire(proxy()).expect("a place");
        assert!(!second.count_client(client), "no permit is free");
        assert!(second.count_client("203.0.113.8".parse().expect("an address")));
        first.release_client();
        assert!(second.count_client(client));
    }
}
