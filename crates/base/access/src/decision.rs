//! Decides whether a caller may do something, and explains a refusal.

use std::net::IpAddr;
use std::sync::Arc;

use crate::{Action, Actions, Caller, Rights};
use model::{Code, Failure, Principal, SkillId};

/// The skill of a call that is done to all of them.
pub const EVERY_SKILL: &str = "*";

/// Decides whether the caller of a call may do an action to a skill, or to [`EVERY_SKILL`].
pub trait Authorize: Send + Sync {
    /// # Errors
    /// It may not.
    fn allow(&self, action: Action, skill: &str) -> Result<(), Failure>;
}

/// The caller of a call, and the facts that a refusal explains. The server attaches it to each
/// call.
#[derive(Debug, Clone)]
pub struct Access {
    /// The caller.
    pub caller: Arc<Caller>,
    /// The server asks callers to sign in.
    pub signs_in: bool,
    /// Why a caller may do less than others, where nobody signs in.
    pub limit: Option<Limit>,
    /// The origin of the call.
    pub origin: Origin,
}

/// Why a caller may do less than others, where nobody signs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Its connection is of another user of this machine, or of one that the system does not
    /// give: it may do nothing.
    OtherUser(Option<u32>),
    /// It is a page of another origin, which the operator does not list: it may read.
    OtherPage,
}

impl Limit {
    fn actions(self) -> Actions {
        match self {
            Self::OtherUser(_) => Actions::default(),
            Self::OtherPage => [Action::Read, Action::Load].into_iter().collect(),
        }
    }

    fn refusal(self, what: &str) -> Failure {
        match self {
            Self::OtherUser(user) => {
                let user = user.map_or_else(
                    || "a user that the system does not give".to_owned(),
                    |user| format!("user {user}"),
                );
                Failure::new(
                    Code::PermissionDenied,
                    format!("Without sign-in, only the user who runs the server (and root) may {what} over loopback; this connection is of {user}"),
                )
                .suggest("Connect as the user who runs the server")
                .suggest("Or ask the operator for a token (`access.sign_in: tokens`), or for `access.loopback: anyone`")
            }
            Self::OtherPage => Failure::new(
                Code::OriginRefused,
                format!("Pages of other origins may see and load skills here, but not {what}"),
            )
            .suggest("Ask the operator to list the origin under web.allowed_origins"),
        }
    }
}

/// The origin of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The face that it came through, as the access log names it; `socket` for the one in the
    /// data directory, `process` for a command that has the directory open itself.
    pub face: &'static str,
    /// The other end of its connection, where that is on a network.
    pub address: Option<IpAddr>,
    /// The client, as the proxy in front of the server reports it; none where no proxy is trusted.
    pub forwarded: Option<IpAddr>,
}

impl Origin {
    /// Of this process.
    pub const PROCESS: Self = Self::local("process");

    /// Of this machine, over no network.
    #[must_use]
    pub const fn local(face: &'static str) -> Self {
        Self {
            face,
            address: None,
            forwarded: None,
        }
    }

    /// Tells whether the caller is on this machine, and came over no network.
    #[must_use]
    pub const fn is_local(&self) -> bool {
        self.address.is_none()
    }
}

impl Access {
    /// The access of a caller that needs no token, with these actions on everything, where
    /// nobody is asked to sign in.
    #[must_use]
    pub fn without_sign_in(principal: Principal, actions: Actions) -> Self {
        Self {
            caller: Arc::new(Caller::new(principal, Rights::to_all(actions))),
            signs_in: false,
            limit: None,
            origin: Origin::PROCESS,
        }
    }

    /// The same access, limited.
    #[must_use]
    pub fn limited(self, limit: Limit) -> Self {
        let principal = self.caller.principal.clone();
        let rights = Rights::to_all(limit.actions());
        Self {
            caller: Arc::new(Caller::new(principal, rights)),
            limit: Some(limit),
            ..self
        }
    }

    /// The same access of a call from this origin.
    #[must_use]
    pub fn from(self, origin: Origin) -> Self {
        Self { origin, ..self }
    }

    /// The access of a caller that may open the data directory: everything.
    #[must_use]
    pub fn local() -> Self {
        Self::without_sign_in(Principal::local(), Actions::all())
    }

    /// Returns whether the call comes from this machine by a way that the owner of the data
    /// directory alone has. A port of a loopback address is open to everybody on the machine.
    #[must_use]
    pub fn is_local(&self) -> bool {
        // Both: whoever forgets to set one of them makes a call from the network of it.
        self.caller.principal == Principal::local() && self.origin.address.is_none()
    }

    /// # Errors
    /// The caller may do the action to nothing.
    pub fn require(&self, action: Action) -> Result<(), Failure> {
        if self.caller.rights.allow(action) {
            return Ok(());
        }
        Err(self.refusal(action))
    }

    /// Decides for which skills the action is allowed. None: for all.
    #[must_use]
    pub fn authorizer(&self, action: Action) -> Option<Arc<dyn Authorize>> {
        let is_bound = !self.caller.rights.allow_to_all(action);
        is_bound.then(|| Arc::new(self.clone()) as Arc<dyn Authorize>)
    }

    fn refusal(&self, action: Action) -> Failure {
        let what = phrase(action);
        // Without sign-in no token would help, so none is asked for.
        if !self.signs_in {
            if let Some(limit) = self.limit.filter(|_| !action.is_operators()) {
                return limit.refusal(what);
            }
            return Failure::new(
                Code::OperatorOnly,
                format!("Only the operator may {what}"),
            )
            .suggest("Run the command without `--server`, or `repertoire mcp`, as the user who owns the data directory");
        }
        if self.caller.is_anonymous() {
            return Failure::new(
                Code::SignInRequired,
                format!("Sign in to {what}"),
            )
            .detail("action", action)
            .suggest("Send a token with the call, as `authorization: Bearer TOKEN`; the command line and the bridge take it from REPERTOIRE_TOKEN")
            .suggest("The operator creates tokens: `repertoire token create NAME --role ROLE`");
        }
        let caller = &self.caller.principal;
        let scope = self.caller.scope.as_ref();
        if let Some(scope) = scope.filter(|scope| scope.withheld.has(action)) {
            let failure = Failure::new(
                Code::PermissionDenied,
                format!("{caller} may {what}, but its token has no scope `{action}`"),
            );
            // Old and new, since a client asks for exactly the scopes that it reads here.
            return failure
                .detail("action", action)
                .detail("scope", scope.with(action))
                .suggest(format!("Sign in again, and ask for the scope `{action}`"));
        }
        Failure::new(Code::PermissionDenied, format!("{caller} may not {what}"))
            .detail("action", action)
            .suggest(format!(
                "Ask the operator for a {} that allows `{action}`",
                self.by()
            ))
    }

    /// The credential that the caller signed in with.
    fn by(&self) -> &'static str {
        if self.caller.principal.is_certificate() {
            "rule for the certificate"
        } else {
            "token"
        }
    }
}

impl Authorize for Access {
    fn allow(&self, action: Action, skill: &str) -> Result<(), Failure> {
        let rights = &self.caller.rights;
        self.require(action)?;
        // Bound to no skills, so it does not matter what a short name leads to.
        if rights.allow_to_all(action) {
            return Ok(());
        }
        let patterns: Vec<_> = rights.skills.iter().map(ToString::to_string).collect();
        let patterns = patterns.join(", ");
        if skill == EVERY_SKILL {
            return Err(Failure::new(
                Code::PermissionDenied,
                format!(
                    "{} may {} for {patterns} alone, not for all skills",
                    self.caller.principal,
                    phrase(action)
                ),
            )
            .detail("action", action)
            .suggest(format!(
                "Ask the operator for a {} that allows `{action}` for all skills",
                self.by()
            )));
        }
        // A short name may lead to another skill by the time at which the call is carried out.
        let Ok(id) = skill.parse::<SkillId>() else {
            return Err(Failure::new(
                Code::PermissionDenied,
                format!(
                    "{} may {} for {patterns} alone, so the skill has to be named by its id",
                    self.caller.principal,
                    phrase(action)
                ),
            )
            .detail("action", action)
            .suggest("Name the skill as `source/author/slug`"));
        };
        if rights.allow_to(action, &id) {
            return Ok(());
        }
        Err(Failure::new(
            Code::PermissionDenied,
            format!(
                "{} may {} for {patterns} alone, not for {id}",
                self.caller.principal,
                phrase(action)
            ),
        )
        .detail("action", action)
        .detail("skill_id", &id)
        .suggest(format!(
            "Ask the operator for a {} that allows `{action}` for this skill",
            self.by()
        )))
    }
}

/// An action as the end of a sentence.
const fn phrase(action: Action) -> &'static str {
    match action {
        Action::Read => "see skills",
        Action::Load => "load skills",
        Action::Call => "call tools",
        Action::Learn => "follow learning paths",
        Action::Grade => "review solutions",
        Action::Publish => "publish skills",
        Action::Activate => "choose the active version",
        Action::Delete => "delete skills",
        Action::Block => "block skills",
        Action::Sync => "sync sources",
        Action::Review => "review held versions and blocked skills",
        Action::Audit => "see who did what",
        Action::Serve => "serve tools",
        Action::Operate => "operate the server",
        Action::Administer => "manage tokens and namespaces",
    }
}
