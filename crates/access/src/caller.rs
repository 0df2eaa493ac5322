//! Who makes a call, and what it may do.

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::Rights;
use model::Principal;

/// Who makes a call.
#[derive(Debug, Clone)]
pub struct Caller {
    /// What it is called, in each record of what it does.
    pub principal: Principal,
    /// What it may do.
    pub rights: Rights,
    /// When its token expires; none where it has no token, or one for good.
    pub expires_at: Option<Timestamp>,
    /// Cancelled when its token is revoked.
    pub ended: CancellationToken,
}

impl Caller {
    /// A caller that needs no token.
    #[must_use]
    pub fn new(principal: Principal, rights: Rights) -> Self {
        Self {
            principal,
            rights,
            expires_at: None,
            ended: CancellationToken::new(),
        }
    }

    /// It showed nothing that says who it is.
    #[must_use]
    pub fn is_anonymous(&self) -> bool {
        self.principal == Principal::anonymous()
    }
}
