//! Connection limits: in total, per address and per identity, with a reserve for health probes and authenticated callers.
//!
//! An address or identity may use more than its share as long as permits are free. When all are taken, a new connection
//! takes the permit of another one (see `eviction.rs`): of any that is not in use, or, if its share is used up, of one of
//! the same address or identity. Connections of authenticated callers give way only to those of other authenticated
//! callers. An identity over its share also loses connections in use: event streams, unfinished bodies, WebSockets.
//!
//! If none can be evicted, the connection goes into the reserve. There it has a few seconds to send a head; silent
//! connections and incomplete heads make room for newer ones, oldest first. Health probes are answered from the reserve;
//! other requests need a regular permit by then, or a valid token. WebSockets and event streams, which have no end, always
//! need a regular permit.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::auth::TokenHolder;
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
    max_reserve_requests: usize,
    /// Permits for requests in the reserve that wait for a regular one. The rest of it is not blocked by them.
    reserve_waits: Semaphore,
    max_per_address: usize,
    max_per_identity: usize,
    open: Mutex<OpenConnections>,
    /// Permits for rejection replies.
    pub(super) rejection_permits: Semaphore,
}

/// A connection's permit, carried by its requests: a WebSocket keeps it after the upgrade.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionPermit(Arc<Inner>);

/// Address or identity that a connection is counted for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum ShareOwner {
    Address(IpAddr),
    Identity(Arc<str>),
}

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
    /// Its part of the share of its address, or of its identity if the caller is authenticated.
    share: Option<Share>,
    /// The same for the client that a proxy forwards a request of.
    client: Option<Share>,
}

/// Counts a connection of an address or identity until dropped.
#[derive(Debug)]
struct Share {
    /// `None` for addresses that are not counted, and for the operator.
    owner: Option<ShareOwner>,
    places: Arc<ConnectionLimiter>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    next_number: u64,
    connections: HashMap<u64, OpenConnection>,
    by_owner: HashMap<ShareOwner, usize>,
}

#[derive(Debug)]
struct OpenConnection {
    phase: ConnectionPhase,
    close: CancellationToken,
    /// The address or identity it is counted for, or those of the client whose request a proxy forwards over it.
    counted_for: Option<ShareOwner>,
    provisional: bool,
    /// Its request is served from the reserve.
    uses_reserve: bool,
    /// Its last caller had a valid token.
    is_authenticated: bool,
}

/// A connection that needs a regular permit.
#[derive(Debug)]
struct Newcomer {
    counted_for: Option<ShareOwner>,
    is_over_share: bool,
    is_authenticated: bool,
}

/// One identity's share is this fraction of the connection limit.
const IDENTITY_FRACTION: usize = 4;

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
            max_reserve_requests: reserve / 2,
            reserve_waits: Semaphore::new(reserve / 4),
            max_per_address: limits.max_connections_per_address,
            max_per_identity: (limits.max_connections / IDENTITY_FRACTION).max(1),
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
        if let Some(permit) = self.wait_for_regular(&visitor, None).await {
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
        let counted_for = visitor.counted_for.map(ShareOwner::Address);
        let share = (!provisional).then(|| self.share(counted_for.clone()));
        let leave = visitor.close.clone();
        let mut taken = self.lock_open();
        let number = taken.next_number;
        taken.next_number += 1;
        let seat = OpenConnection {
            phase: turn.clone(),
            close: leave,
            counted_for,
            provisional,
            uses_reserve: false,
            is_authenticated: false,
        };
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
        caller: Option<&TokenHolder>,
    ) -> Option<OwnedSemaphorePermit> {
        let (counted_for, is_over_share) = match caller {
            // Its connection counts already.
            Some(caller) => {
                let owner = ShareOwner::of(caller);
                let is_over_share = owner.as_ref().is_some_and(|owner| self.lock_open().is_over_share(owner, self));
                (owner, is_over_share)
            }
            None => {
                let owner = visitor.counted_for.map(ShareOwner::Address);
                let has_used_share = self.has_used_share(owner.as_ref());
                (owner, has_used_share)
            }
        };
        let newcomer = Newcomer { counted_for, is_over_share, is_authenticated: caller.is_some() };
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

    /// Counts a connection of an address or identity.
    fn share(self: &Arc<ConnectionLimiter>, owner: Option<ShareOwner>) -> Share {
        let owner = owner.filter(|owner| self.max_share(owner) > 0);
        if let Some(owner) = &owner {
            *self.lock_open().by_owner.entry(owner.clone()).or_default() += 1;
        }
        Share { owner, places: self.clone() }
    }

    /// The share of an address or identity; 0 if it is not limited.
    fn max_share(&self, owner: &ShareOwner) -> usize {
        match owner {
            ShareOwner::Address(_) => self.max_per_address,
            ShareOwner::Identity(_) => self.max_per_identity,
        }
    }

    /// Whether a further connection is more than the share.
    fn has_used_share(&self, owner: Option<&ShareOwner>) -> bool {
        owner.is_some_and(|owner| {
            let most = self.max_share(owner);
            most > 0 && self.lock_open().connections(owner) >= most
        })
    }

    /// Closes the connection with the lowest eviction rank; `None` if all matching ones are in use.
    fn evict(&self, server: &Server, fits: impl Fn(&OpenConnection, EvictionRank) -> bool) -> Option<()> {
        let (taken, now) = (self.lock_open(), milliseconds());
        let candidates = taken.connections.iter().filter(|(_, seat)| !seat.close.is_cancelled());
        let candidates = candidates.filter_map(|(number, seat)| {
            let rank = seat.phase.eviction_rank(taken.protection(seat, self), now)?;
            fits(seat, rank).then_some((rank, number, seat))
        });
        let (rank, _, seat) = candidates.min_by_key(|(rank, number, _)| (*rank, **number))?;
        if matches!(rank, EvictionRank::BusyOverShare | EvictionRank::AuthenticatedBusyOverShare) {
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
    pub(super) async fn settle(&self, caller: Option<&TokenHolder>) -> bool {
        let (held, places) = (&self.0, &self.0.places);
        let (wait, deadline) = (places.reserve_waits.try_acquire(), Instant::now() + EVICTION_TIMEOUT);
        while !held.promote(caller).await {
            // New connections may turn out to be silent, and begun heads may stay incomplete.
            if wait.is_ok() && places.has_fresh() && Instant::now() < deadline {
                sleep(FRESH / 4).await;
                continue;
            }
            return caller.is_some_and(|caller| held.use_reserve(caller));
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

    /// The caller is authenticated: the connection counts for its identity instead of its address, and is protected from
    /// eviction for unauthenticated callers.
    pub(super) fn meet(&self, caller: &TokenHolder) {
        self.0.known_identity.store(address_of(&caller.identity), Ordering::Relaxed);
        let owner = ShareOwner::of(caller);
        let share = self.0.places.share(owner.clone());
        self.count_for(owner, true);
        let previous = self.0.permits().share.replace(share);
        drop(previous);
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
        let (places, client) = (&self.0.places, ShareOwner::Address(network(client)));
        if places.has_used_share(Some(&client)) && places.free.available_permits() == 0 {
            return false;
        }
        self.0.permits().client = Some(places.share(Some(client.clone())));
        self.count_for(Some(client), false);
        true
    }

    /// The same for an authenticated client, which counts for its identity.
    pub(super) fn count_caller(&self, caller: &TokenHolder) {
        self.release_client();
        let owner = ShareOwner::of(caller);
        self.0.permits().client = Some(self.0.places.share(owner.clone()));
        self.count_for(owner, true);
    }

    pub(super) fn release_client(&self) {
        let share = self.0.permits().client.take();
        if share.is_some() {
            self.count_for(None, false);
        }
    }

    fn count_for(&self, owner: Option<ShareOwner>, is_authenticated: bool) {
        if let Some(seat) = self.0.places.lock_open().connections.get_mut(&self.0.number) {
            seat.counted_for = owner;
            seat.is_authenticated = is_authenticated;
        }
    }
}

impl ShareOwner {
    /// The identity of a caller; `None` for the operator, whose connections are not counted.
    fn of(caller: &TokenHolder) -> Option<ShareOwner> {
        (!caller.is_operator).then(|| ShareOwner::Identity(caller.identity.clone()))
    }
}

/// Identities are compared by address: a token's identity is allocated once.
fn address_of(identity: &Arc<str>) -> usize {
    Arc::as_ptr(identity).cast::<u8>() as usize
}

impl Newcomer {
    /// Whether a connection with a regular permit has less claim to it.
    fn may_evict(&self, seat: &OpenConnection, rank: EvictionRank) -> bool {
        if seat.provisional {
            return false;
        }
        let is_own = seat.counted_for == self.counted_for;
        match rank {
            // A WebSocket takes time to close, and the request of the same identity would occupy the reserve meanwhile.
            EvictionRank::Authenticated(_) | EvictionRank::AuthenticatedOverShare(_) => {
                self.is_authenticated && (!self.is_over_share || is_own && !seat.phase.is_upgraded())
            }
            // An identity or address gains nothing from its own requests being aborted.
            EvictionRank::AuthenticatedBusyOverShare => self.is_authenticated && !self.is_over_share,
            EvictionRank::BusyOverShare => self.is_authenticated || !self.is_over_share,
            _ => self.is_authenticated || !self.is_over_share || is_own,
        }
    }
}

impl OpenConnections {
    fn connections(&self, owner: &ShareOwner) -> usize {
        self.by_owner.get(owner).copied().unwrap_or_default()
    }

    fn is_over_share(&self, owner: &ShareOwner, places: &ConnectionLimiter) -> bool {
        let most = places.max_share(owner);
        most > 0 && self.connections(owner) > most
    }

    fn protection(&self, seat: &OpenConnection, places: &ConnectionLimiter) -> Protection {
        let is_over_share = || seat.counted_for.as_ref().is_some_and(|owner| self.is_over_share(owner, places));
        match (seat.provisional, seat.is_authenticated) {
            (true, _) => Protection::Reserve,
            (false, true) if is_over_share() => Protection::AuthenticatedOverShare,
            (false, true) => Protection::Authenticated,
            (false, false) if is_over_share() => Protection::OverShare,
            (false, false) => Protection::WithinShare,
        }
    }
}

impl Inner {
    /// Exchanges the permit of the reserve for a regular one.
    async fn promote(&self, caller: Option<&TokenHolder>) -> bool {
        let places = &self.places;
        let Some(permit) = places.wait_for_regular(&self.connection, caller).await else { return false };
        // Connections of authenticated callers count already.
        let share = caller.is_none().then(|| places.share(self.connection.counted_for.map(ShareOwner::Address)));
        let mut permits = self.permits();
        let (share, client) = (share.or_else(|| permits.share.take()), permits.client.take());
        *permits = Permits { _connection: permit, _reserve_request: None, share, client };
        drop(permits);
        self.provisional.store(false, Ordering::Relaxed);
        if let Some(seat) = places.lock_open().connections.get_mut(&self.number) {
            seat.provisional = false;
            seat.uses_reserve = false;
        }
        true
    }

    /// Serves one request of an authenticated caller from the reserve. One identity has half of its permits, and the
    /// operator the last quarter.
    fn use_reserve(&self, caller: &TokenHolder) -> bool {
        let (places, most) = (&self.places, self.places.max_reserve_requests);
        let permit = {
            let mut taken = places.lock_open();
            let is_own = |seat: &&OpenConnection| match &seat.counted_for {
                Some(ShareOwner::Identity(identity)) => seat.uses_reserve && *identity == caller.identity,
                _ => false,
            };
            let has_room = caller.is_operator
                || places.reserve_requests.available_permits() > most / 4
                    && taken.connections.values().filter(is_own).count() < most / 2;
            let permit = places.reserve_requests.clone().try_acquire_owned().ok().filter(|_| has_room);
            if let Some(seat) = taken.connections.get_mut(&self.number) {
                seat.uses_reserve = permit.is_some();
            }
            permit
        };
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
        let Some(owner) = &self.owner else { return };
        let mut taken = self.places.lock_open();
        if let Some(count) = taken.by_owner.get_mut(owner) {
            *count -= 1;
            if *count == 0 {
                taken.by_owner.remove(owner);
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
    use crate::trust_state::TrustState;

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

    fn address(from: &str) -> ShareOwner {
        ShareOwner::Address(network(from.parse().expect("an address")))
    }

    fn caller(identity: &str) -> TokenHolder {
        TokenHolder {
            identity: identity.into(),
            trust: TrustState::new(None),
            permissions: None,
            rate_limit: None,
            is_operator: identity == "token:operator",
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
        let has_used_share = |from: &str| places.has_used_share(Some(&address(from)));
        for from in ["192.0.2.1", "::ffff:192.0.2.1", "2001:db8::3", "127.0.0.2", "::ffff:127.0.0.1"] {
            assert!(has_used_share(from), "{from}");
        }
        assert!(!has_used_share("192.0.2.2") && !has_used_share("2001:db8:0:1::1"));
        held.remove(0);
        assert!(!has_used_share("192.0.2.1"), "one has left");
        drop(held);
        assert!(places.lock_open().by_owner.is_empty());
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
        let a = caller("token:a");
        let first = idle(places.try_acquire(visitor("192.0.2.1")).expect("free"));
        first.meet(&a);
        assert!(places.acquire_by_eviction(visitor("192.0.2.2")).await.expect("in the reserve").is_provisional());
        assert!(!first.close_token().is_cancelled());
        let other = busy(places.acquire_by_eviction(visitor("192.0.2.2")).await.expect("in the reserve"));
        assert!(!other.settle(None).await);
        let closed = closes_when_evicted(first);
        assert!(other.settle(Some(&caller("token:b"))).await && !other.is_provisional());
        closed.await.expect("no panic");
        let other = idle(other);
        other.meet(&a);
        other.forget_identity();
        let closed = closes_when_evicted(other);
        assert!(!places.acquire_by_eviction(visitor("192.0.2.2")).await.expect("a wrong token since").is_provisional());
        closed.await.expect("no panic");
    }

    #[tokio::test]
    async fn s10_authenticated_callers_use_no_share_of_their_address() {
        let places = places(10, 1);
        let first = places.try_acquire(visitor("192.0.2.1")).expect("a place");
        assert!(places.has_used_share(Some(&address("192.0.2.1"))));
        let a = caller("token:a");
        assert!(!first.knows(&a.identity));
        first.meet(&a);
        assert!(first.knows(&a.identity) && !first.knows(&"token:b".into()));
        assert!(!places.has_used_share(Some(&address("192.0.2.1"))));
        let _uncounted =
            places.try_acquire(IncomingConnection { counted_for: None, ..visitor("127.0.0.1") }).expect("a place");
        assert_eq!(places.lock_open().by_owner.keys().collect::<Vec<_>>(), [&ShareOwner::of(&a).expect("counted")]);
        first.meet(&caller("token:operator"));
        assert!(places.lock_open().by_owner.is_empty(), "the operator is not counted");
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
        assert!(newcomer.settle(None).await && !newcomer.is_provisional());
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
            assert!(place.is_provisional() && !place.settle(None).await);
            reserve.push(place);
        }
        let (a, b, operator) = (caller("token:a"), caller("token:b"), caller("token:operator"));
        let callers =
            [(&a, true), (&a, true), (&a, false), (&b, true), (&b, false), (&operator, true), (&operator, false)];
        for (place, (caller, is_served)) in reserve.iter().zip(callers) {
            place.meet(caller);
            assert_eq!(place.settle(Some(caller)).await, is_served, "{}", caller.identity);
        }
        assert!(places.acquire_by_eviction(visitor("192.0.2.3")).await.is_none(), "bounded");
        drop(regular);
        let last = reserve.last().expect("one");
        assert!(last.settle(None).await && !last.is_provisional(), "a regular permit is free");
    }

    #[tokio::test]
    async fn s10_an_identity_over_its_share_loses_connections_in_use_to_other_identities_alone() {
        let places = places(4, 0);
        let (a, b) = (caller("token:a"), caller("token:b"));
        let mut held: Vec<_> = (0..4).map(|_| busy(places.try_acquire(visitor("192.0.2.1")).expect("free"))).collect();
        held.iter().for_each(|place| place.meet(&a));
        held[3].phase().record_message();
        let token = held[0].close_token().clone();
        let closed = closes_when_evicted(held.pop().expect("four"));
        let newcomer = async |caller: &TokenHolder| {
            let place = busy(places.acquire_by_eviction(visitor("192.0.2.2")).await.expect("in the reserve"));
            place.meet(caller);
            let served = place.settle(Some(caller)).await;
            (place, served)
        };
        let (own, served) = newcomer(&a).await;
        assert!(served && own.is_provisional(), "an identity gains nothing from its own");
        let (first, served) = newcomer(&b).await;
        assert!(served && !first.is_provisional());
        closed.await.expect("no panic");
        assert!(!token.is_cancelled(), "the idle WebSocket is first");
        let (second, served) = newcomer(&b).await;
        assert!(served && second.is_provisional() && !token.is_cancelled(), "this identity has its share");
        let closed = closes_when_evicted(held.remove(0));
        let (third, served) = newcomer(&caller("token:operator")).await;
        assert!(served && !third.is_provisional());
        closed.await.expect("no panic");
        assert!(!first.close_token().is_cancelled());
    }

    #[tokio::test]
    async fn s10_a_proxy_counts_for_its_authenticated_clients() {
        let places = places(4, 0);
        let proxy = || IncomingConnection { counted_for: None, ..visitor("127.0.0.1") };
        let a = caller("token:a");
        let held: Vec<_> = (0..3).map(|_| busy(places.try_acquire(proxy()).expect("a place"))).collect();
        held.iter().for_each(|place| place.count_caller(&a));
        assert_eq!(places.lock_open().connections(&ShareOwner::of(&a).expect("counted")), 3);
        let protection = |place: &ConnectionPermit| {
            let taken = places.lock_open();
            taken.protection(&taken.connections[&place.0.number], &places)
        };
        assert_eq!(protection(&held[0]), Protection::AuthenticatedOverShare);
        held[1..].iter().for_each(ConnectionPermit::release_client);
        assert_eq!(protection(&held[0]), Protection::Authenticated);
        assert_eq!(protection(&held[1]), Protection::WithinShare);
        held[0].release_client();
        assert!(places.lock_open().by_owner.is_empty());
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
