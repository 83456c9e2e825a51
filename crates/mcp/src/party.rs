//! A caller on a connection that stays open. The operator may change how it stands, so it is looked at anew for every
//! request.

use std::sync::Arc;

use crate::grant::Grant;
use crate::standing::Standing;
use crate::transport::Holder;
use crate::trust::{Caller, TrustLevel, Via};

/// Who is at the other end.
#[derive(Debug, Clone)]
pub(crate) struct Party {
    pub(crate) via: Via,
    pub(crate) identity: Arc<str>,
    grant: Option<Arc<Grant>>,
    /// Of the token it came with, if it came with one.
    own: Option<Standing>,
    /// Of everybody who comes this way.
    others: Standing,
}

impl Party {
    /// Somebody without a token.
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

    /// The caller at this moment; none when its token is not valid any more.
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
