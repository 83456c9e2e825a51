//! Caller on a long-lived connection. Its trust is re-evaluated for every request, because the operator may change it.

use std::sync::Arc;

use crate::permissions::Permissions;
use crate::transport::TokenHolder;
use crate::trust::{Caller, Transport, TrustLevel};
use crate::trust_state::TrustState;

/// The peer of a connection.
#[derive(Debug, Clone)]
pub(crate) struct ConnectedCaller {
    pub(crate) transport: Transport,
    pub(crate) identity: Arc<str>,
    permissions: Option<Arc<Permissions>>,
    /// Trust state of its token, if it has one.
    token_trust: Option<TrustState>,
    /// Trust state of all callers on this transport.
    transport_trust: TrustState,
}

impl ConnectedCaller {
    /// A caller without a token.
    pub(crate) fn new(via: Transport, identity: Arc<str>, others: TrustState) -> ConnectedCaller {
        ConnectedCaller { transport: via, identity, permissions: None, token_trust: None, transport_trust: others }
    }

    pub(crate) fn with_token(via: Transport, holder: &TokenHolder, others: TrustState) -> ConnectedCaller {
        ConnectedCaller {
            transport: via,
            identity: holder.identity.clone(),
            permissions: holder.permissions.clone(),
            token_trust: Some(holder.trust.clone()),
            transport_trust: others,
        }
    }

    /// The caller with its current trust; `None` once its token is no longer valid.
    pub(crate) fn caller(&self) -> Option<Caller> {
        let others = self.transport_trust.current(TrustLevel::Untrusted)?;
        let trust = match &self.token_trust {
            None => others,
            Some(own) => own.current(others)?,
        };
        Some(Caller {
            transport: self.transport,
            identity: self.identity.clone(),
            trust,
            permissions: self.permissions.clone(),
        })
    }

    pub(crate) fn is_revoked(&self) -> bool {
        self.caller().is_none()
    }
}
