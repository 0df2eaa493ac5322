//! Who makes a call, and what it may do.

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::{Action, Actions, Rights};
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
    /// The scopes of its token, where these bound what it may do.
    pub scope: Option<Scope>,
}

/// The scopes of a token (RFC 6749, 3.3), which bound what may be done with it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    /// Those that mean something here: names of actions and roles.
    pub granted: Vec<String>,
    /// What its caller may do, and not with this token.
    pub withheld: Actions,
}

impl Scope {
    /// The scopes to ask for to do an action too.
    #[must_use]
    pub fn with(&self, action: Action) -> String {
        let names = self.granted.iter().map(String::as_str);
        let all: Vec<_> = names.chain([action.name()]).collect();
        all.join(" ")
    }
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
            scope: None,
        }
    }

    /// It showed nothing that says who it is.
    #[must_use]
    pub fn is_anonymous(&self) -> bool {
        self.principal == Principal::anonymous()
    }
}
