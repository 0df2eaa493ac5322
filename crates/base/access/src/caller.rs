//! The caller of a call, and its rights.

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::{Action, Actions, Rights};
use model::Principal;

/// The caller of a call.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Its name in each record of its calls.
    pub principal: Principal,
    /// Its rights.
    pub rights: Rights,
    /// The time at which its token expires; none where it has no token, or a permanent one.
    pub expires_at: Option<Timestamp>,
    /// Cancelled when its token is revoked.
    pub ended: CancellationToken,
    /// The scopes of its token, where these bound what it may do.
    pub scope: Option<Scope>,
}

/// The scopes of a token (RFC 6749, 3.3), which bound what may be done with it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    /// Those that are known here: names of actions and roles.
    pub granted: Vec<String>,
    /// The actions that its caller has, but not with this token.
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

    /// It presented no credential.
    #[must_use]
    pub fn is_anonymous(&self) -> bool {
        self.principal == Principal::anonymous()
    }
}
