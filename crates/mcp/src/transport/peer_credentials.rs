//! Peer credentials of Unix sockets (SO_PEERCRED).

use std::io;

use tokio::net::UnixStream;

/// Users that may connect to a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AllowedPeers {
    /// The user of this process, and root.
    OwnUser(u32),
    /// Any user that can open the file: its mode decides.
    AnyUser,
}

impl AllowedPeers {
    pub(super) fn own_user() -> io::Result<AllowedPeers> {
        // The uid as a peer would see it.
        Ok(AllowedPeers::OwnUser(UnixStream::pair()?.0.peer_cred()?.uid()))
    }

    pub(super) fn allows(self, stream: &UnixStream) -> bool {
        match self {
            AllowedPeers::OwnUser(own) => stream.peer_cred().is_ok_and(|peer| is_allowed_uid(own, peer.uid())),
            AllowedPeers::AnyUser => true,
        }
    }
}

fn is_allowed_uid(own_user: u32, peer: u32) -> bool {
    peer == own_user || peer == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_user_may_not_call() {
        assert!(is_allowed_uid(1000, 1000) && is_allowed_uid(1000, 0));
        assert!(!is_allowed_uid(1000, 1001) && !is_allowed_uid(0, 1000));
    }
}
