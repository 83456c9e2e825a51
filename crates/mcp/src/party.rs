//! Caller on a long-lived connection. Its trust is re-evaluated for every request, because the operator may change it.

use std::sync::Arc;

use crate::grant::Grant;
use crate::standing::Standing;
use crate::transport::Holder;
use crate::trust::{Caller, TrustLevel, Via};

/// The peer of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Party {
    pub(crate) via: Via,
    pub(crate) identity: Arc<str>,
    grant: Option<Arc<Grant>>,
    /// Trust state of its token, if it has one.
    own: Option<Standing>,
    /// Trust state of all callers on this transport.
    others: Standing,
}

impl Party {
    /// A caller without a token.
    pub(crate) fn new(via: Via, identity: Arc<str>, others: Standing) -> Party {
        Party { via, identity, grant: None, own: None, others }
    }

    pub(crate) fn holding(via: Via, holder: &Holder, others: Standing) -> Party {
        Party {
            via,
            identity: holder.identity.clone(),
            grant: holder.grant.clone(),
            own: Some(holder.standing.clone()),
            others,
        }
    }

    /// The caller with its current trust; `None` once its token is no longer valid.
    pub(crate) fn caller(&self) -> Option<Caller> {
        let others = self.others.now(TrustLevel::Untrusted)?;
        let trust = match &self.own {
            None => others,
            Some(own) => own.now(others)?,
        };
        Some(Caller { via: self.via, identity: self.identity.clone(), trust, grant: self.grant.clone() })
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.caller().is_none()
    }
}
