//! Eviction order: which connection gives up its permit for a new one when all permits are taken.
//!
//! Connections that only linger go first, then silent ones and incomplete heads, then idle keep-alive connections, oldest
//! first. A client has [`FRESH`] to send the first head of its connection. Later heads earn no such time: otherwise a
//! client that always has the next one begun could not be evicted.
//!
//! WebSockets are evicted only if their address or identity has more connections than its share: those without a request
//! in progress like idle connections, then the others.

use std::time::Duration;

use super::connection_phase::{ConnectionPhase, NOT_WAITED, Phase, milliseconds};

/// Eviction rank of a connection: by kind, then since when in milliseconds. Smaller ones are evicted first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EvictionRank {
    /// The reply is sent; input is discarded.
    Lingering(u64),
    /// Without a first byte.
    Silent(u64),
    /// With an incomplete head.
    StalledHead(u64),
    /// Between requests, of an address with more connections than its share.
    IdleOverShare(u64),
    /// Between requests.
    Idle(u64),
    /// With a request in progress, of an address with more connections than its share. It is aborted.
    BusyOverShare,
    /// Of an identity with more connections than its share, between requests. Only other authenticated callers are worth
    /// it.
    AuthenticatedOverShare(u64),
    /// Of an authenticated caller, between requests.
    Authenticated(u64),
    /// Of an identity with more connections than its share, with a request in progress. It is aborted.
    AuthenticatedBusyOverShare,
}

/// How far a connection is protected from eviction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protection {
    /// In the reserve: an incomplete head gains nothing over silence, and the order is that of arrival.
    Reserve,
    /// Its address has more connections than its share.
    OverShare,
    WithinShare,
    Authenticated,
    /// Its identity has more connections than its share.
    AuthenticatedOverShare,
}

/// Time in which a new client usually sends its first head. Nearly all heads arrive in one packet.
pub(super) const FRESH: Duration = Duration::from_millis(200);

impl ConnectionPhase {
    /// How early this connection is evicted; `None` while it is in use or [fresh](ConnectionPhase::is_fresh).
    pub(super) fn eviction_rank(&self, protection: Protection, now: u64) -> Option<EvictionRank> {
        use EvictionRank::{
            Authenticated, AuthenticatedBusyOverShare, AuthenticatedOverShare, BusyOverShare, Idle, IdleOverShare,
            Lingering, Silent, StalledHead,
        };
        match (self.phase(), protection) {
            // Bytes of the head were read just now.
            ((Phase::Head, NOT_WAITED), _) => None,
            ((Phase::Upgraded, since), Protection::OverShare) if !self.has_running() => Some(IdleOverShare(since)),
            ((Phase::Upgraded, since), Protection::AuthenticatedOverShare) if !self.has_running() => {
                Some(AuthenticatedOverShare(since))
            }
            ((Phase::Server | Phase::Flush | Phase::Upgraded, _), protection) => match protection {
                Protection::OverShare => Some(BusyOverShare),
                Protection::AuthenticatedOverShare => Some(AuthenticatedBusyOverShare),
                _ => None,
            },
            ((Phase::Linger, since), _) => Some(Lingering(since)),
            ((Phase::Silent | Phase::Head, _), Protection::Reserve) => Some(Silent(0)),
            (_, _) if self.is_fresh(now) => None,
            ((_, since), Protection::Authenticated) => Some(Authenticated(since)),
            ((_, since), Protection::AuthenticatedOverShare) => Some(AuthenticatedOverShare(since)),
            ((Phase::Silent, since), _) => Some(Silent(since)),
            ((Phase::Head, since), _) if !is_recent(since, now) => Some(StalledHead(since)),
            ((_, since), Protection::OverShare) => Some(IdleOverShare(since)),
            ((_, since), _) => Some(Idle(since)),
        }
    }

    /// Whether the client has connected or begun its first head just now, and may have sent bytes that are not read yet.
    pub(super) fn is_fresh(&self, now: u64) -> bool {
        let (phase, since) = self.phase();
        let is_first = phase == Phase::Silent || phase == Phase::Head && self.requests() == 0;
        is_first && is_recent(since, now)
    }

    /// Whether the connection, once evicted, can be dropped at once: it has no request to answer, and hyper would wait for
    /// its client.
    pub(super) fn is_stalled(&self, is_provisional: bool) -> bool {
        match self.phase() {
            _ if self.is_aborted() => true,
            (Phase::Linger, _) => true,
            (Phase::Head, NOT_WAITED) => false,
            (Phase::Head, _) => is_provisional || !self.is_fresh(milliseconds()),
            _ => false,
        }
    }
}

fn is_recent(since: u64, now: u64) -> bool {
    Duration::from_millis(now.saturating_sub(since)) < FRESH
}

#[cfg(test)]
mod tests {
    use tokio_util::task::TaskTracker;

    use super::*;

    const LATER: u64 = 60_000;

    fn turn(phase: Phase, since: u64) -> ConnectionPhase {
        let turn = ConnectionPhase::new();
        turn.enter(phase, since);
        turn
    }

    #[test]
    fn s10_silent_connections_go_first_then_stalled_heads_then_idle_ones() {
        let phases = [Phase::Linger, Phase::Silent, Phase::Head, Phase::Idle];
        let rank = |phase, protection| turn(phase, 0).eviction_rank(protection, LATER).expect("evictable");
        let ranks = phases.map(|phase| rank(phase, Protection::WithinShare));
        assert!(ranks.is_sorted(), "{ranks:?}");
        let idle = [
            Protection::OverShare,
            Protection::WithinShare,
            Protection::AuthenticatedOverShare,
            Protection::Authenticated,
        ];
        let ranks = idle.map(|protection| rank(Phase::Idle, protection));
        assert!(ranks.is_sorted(), "{ranks:?}");
        let arrivals = [Phase::Silent, Phase::Head].map(|phase| rank(phase, Protection::Reserve));
        assert_eq!(arrivals[0], arrivals[1], "in the order of arrival");
    }

    #[test]
    fn s10_a_connection_in_use_is_evicted_only_from_an_address_or_identity_over_its_share() {
        let begun = turn(Phase::Head, NOT_WAITED);
        let (busy, idle_socket, busy_socket) =
            (turn(Phase::Server, 0), turn(Phase::Upgraded, 7), turn(Phase::Upgraded, 0));
        let requests = TaskTracker::new();
        let _request = requests.token();
        busy_socket.set_running(requests);
        let all = [&begun, &idle_socket, &busy_socket, &busy];
        for protection in [Protection::Reserve, Protection::WithinShare, Protection::Authenticated] {
            for turn in all {
                assert_eq!(turn.eviction_rank(protection, LATER), None);
            }
        }
        for (protection, idle, busy) in [
            (Protection::OverShare, EvictionRank::IdleOverShare(7), EvictionRank::BusyOverShare),
            (
                Protection::AuthenticatedOverShare,
                EvictionRank::AuthenticatedOverShare(7),
                EvictionRank::AuthenticatedBusyOverShare,
            ),
        ] {
            let ranks = all.map(|turn| turn.eviction_rank(protection, LATER));
            assert_eq!(ranks, [None, Some(idle), Some(busy), Some(busy)]);
        }
    }

    #[test]
    fn s10_a_first_head_is_fresh_for_as_long_as_a_new_connection_and_later_ones_are_not() {
        let (begun, idle) = (turn(Phase::Head, 1000), turn(Phase::Idle, 1000));
        assert!(begun.is_fresh(1199) && !begun.is_fresh(1200) && !idle.is_fresh(1000));
        assert_eq!(begun.eviction_rank(Protection::WithinShare, 1199), None);
        begun.enter(Phase::Head, NOT_WAITED);
        assert!(begun.is_fresh(5000) && !begun.is_stalled(false) && !begun.is_stalled(true));
        begun.enter(Phase::Head, milliseconds());
        assert!(
            begun.is_stalled(true) && !begun.is_stalled(false) && !idle.is_stalled(true),
            "no grace in the reserve"
        );
        begun.start_request();
        begun.enter(Phase::Head, 1000);
        assert!(!begun.is_fresh(1000) && begun.is_stalled(false));
        assert_eq!(begun.eviction_rank(Protection::WithinShare, 1100), Some(EvictionRank::Idle(1000)));
        assert_eq!(begun.eviction_rank(Protection::WithinShare, 1200), Some(EvictionRank::StalledHead(1000)));
    }
}
