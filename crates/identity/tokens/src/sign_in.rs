//! Finds the caller by the token of a request, of this server or of an issuer (`oidc`), or by
//! the certificate of its connection; and the rights of anonymous callers.
//!
//! * Without sign-in the server listens to this machine alone, and the user who runs it, and
//!   root, may do all but operate it: a loopback port is open to every user, and every page of
//!   a browser. Others may do nothing, pages of other origins may read. With sign-in, a caller
//!   without a token may do what the operator allows.
//! * A presented token is accepted or refused, whatever the call: an expired token never counts
//!   as no token.
//! * A certificate signs in a caller without a token, where a rule of the operator names it.
//!   Without a rule it is ignored.
//! * Workers present tokens of the config file, which `tools` knows: that is their sign-in.
//! * The socket in the data directory needs none: its callers can open the directory anyway.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::certificates::rule_for;
use crate::{CertificateRule, Loopback, Mode, Secret, SignInConfig, Tokens, Unrecognized};
use access::{Access, Action, Actions, Caller, CertificateNames, Limit, Origin, Rights};
use model::{Clock, Code, Failure, Principal};
use oidc::{Issuers, Jwt, ProtectedResource, Waiting};

/// The access of callers without credentials, by the settings.
fn anonymous(config: &SignInConfig) -> Access {
    let signs_in = config.sign_in == Mode::Tokens;
    let actions = if signs_in {
        config.anonymous
    } else {
        // The socket in the data directory is for the rest, and workers have tokens of their
        // own.
        let all = Actions::all().iter();
        let others = |action: &Action| !action.is_operators() && *action != Action::Serve;
        all.filter(others).collect()
    };
    let rights = Rights::to_all(actions);
    Access {
        caller: Arc::new(Caller::new(Principal::anonymous(), rights)),
        signs_in,
        limit: None,
        origin: Origin::PROCESS,
    }
}

/// Finds the caller of a request. Cheap to clone.
#[derive(Clone)]
pub struct SignIn {
    /// None: nobody signs in.
    tokens: Option<Tokens>,
    issuers: Issuers,
    rules: Arc<[CertificateRule]>,
    /// Callers without credentials.
    anonymous: Arc<ArcSwap<Access>>,
    /// The owner of the connection's certificate, which calls where a request has no token.
    certificate: Option<Access>,
    /// Why its other end may do less than others where nobody signs in.
    limit: Option<Limit>,
    loopback: Loopback,
    behind_proxy: bool,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for SignIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignIn")
            .field("tokens", &self.tokens)
            .field("issuers", &self.issuers)
            .field("anonymous", &self.anonymous)
            .finish_non_exhaustive()
    }
}

/// The credential of a request, read once for all that is asked of it.
pub struct PresentedCredential(Credential);

enum Credential {
    /// Nothing.
    None,
    /// A text that may be a token of an issuer.
    Jwt(Jwt),
    /// Anything else; without a secret it is no token of this server.
    Other(Option<Secret>),
}

impl std::fmt::Debug for PresentedCredential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PresentedCredential")
            .finish_non_exhaustive()
    }
}

/// Resolves when a credential ends, to a failure that says why.
pub type TokenExpiry = Pin<Box<dyn Future<Output = Failure> + Send>>;

impl SignIn {
    /// Signs in the callers of a server with these settings.
    ///
    /// # Errors
    /// Its issuers cannot be used together; the message says why.
    pub fn new(
        config: &SignInConfig,
        tokens: Tokens,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, String> {
        config.check()?;
        let issuers = Issuers::new(&config.issuers, config.public_url.as_ref());
        let issuers = issuers.map_err(|error| error.to_string())?;
        let signs_in = config.sign_in == Mode::Tokens;
        Ok(Self {
            tokens: signs_in.then_some(tokens),
            issuers,
            rules: config.certificates.as_slice().into(),
            anonymous: Arc::new(ArcSwap::from_pointee(anonymous(config))),
            certificate: None,
            limit: None,
            loopback: config.loopback,
            behind_proxy: config.behind_proxy,
            clock,
        })
    }

    /// Gives anonymous callers the rights of these settings from now on. Streams that are open
    /// go on.
    pub fn set_anonymous(&self, config: &SignInConfig) {
        self.anonymous.store(Arc::new(anonymous(config)));
    }

    /// Accepts tokens of the issuers of these settings from now on. What was begun with a token of
    /// one that is gone, or has other settings, ends.
    ///
    /// # Errors
    /// They cannot be used together, or with what else the server was started with; those that
    /// were there stay.
    pub fn set_issuers(&self, config: &SignInConfig) -> Result<(), String> {
        if self.tokens.is_none() && !config.issuers.is_empty() {
            return Err("no caller can sign in until the next start".to_owned());
        }
        let set = self.issuers.set(&config.issuers);
        set.map_err(|error| error.to_string())
    }

    /// Keeps the keys of issuers up to date, until it is stopped.
    pub async fn keep(&self, stop: CancellationToken) {
        self.issuers.keep(stop).await;
    }

    /// The metadata of the server for OAuth clients.
    #[must_use]
    pub fn resource(&self) -> Arc<ProtectedResource> {
        self.issuers.resource()
    }

    /// The issuers whose tokens are accepted.
    #[must_use]
    pub fn issuers(&self) -> Issuers {
        self.issuers.clone()
    }

    /// Reads the credential of a request.
    #[must_use]
    pub fn shown(&self, headers: &HeaderMap) -> PresentedCredential {
        let Some(value) = headers.get(AUTHORIZATION) else {
            return PresentedCredential(Credential::None);
        };
        let token = bearer(value);
        // A JWT begins with `ey`, a token of this server with `rpt_`: none can be both.
        let credential = match token.and_then(|token| self.issuers.jwt(token)) {
            Some(jwt) => Credential::Jwt(jwt),
            None => Credential::Other(token.and_then(Secret::parse)),
        };
        PresentedCredential(credential)
    }

    /// What to wait for before the caller can be known: keys of the issuer of its token, for
    /// some seconds. `None`: it can be known now.
    #[must_use]
    pub fn waiting(&self, shown: &PresentedCredential) -> Option<Waiting> {
        match &shown.0 {
            Credential::Jwt(jwt) => self.issuers.waiting(jwt),
            Credential::None | Credential::Other(_) => None,
        }
    }

    /// The access of a caller without a token.
    #[must_use]
    pub fn anonymous(&self) -> Access {
        if let Some(certificate) = self.certificate.clone() {
            return certificate;
        }
        let access = Access::clone(&self.anonymous.load());
        match self.limit {
            Some(limit) => access.limited(limit),
            None => access,
        }
    }

    /// Whether the user of a connection matters: nobody signs in, and not every user may call.
    #[must_use]
    pub fn asks_user(&self) -> bool {
        // Other systems do not give it.
        cfg!(target_os = "linux") && self.tokens.is_none() && self.loopback == Loopback::Owner
    }

    /// The same for a connection of a user of this machine, as the system gives it. `owner` runs
    /// the server.
    #[must_use]
    pub fn of_user(&self, user: Option<u32>, owner: u32) -> Self {
        let mut sign_in = self.clone();
        let is_other = user.is_none_or(|user| user != owner && user != 0);
        sign_in.limit = (is_other && self.asks_user()).then_some(Limit::OtherUser(user));
        sign_in
    }

    /// The origin of a request, by its connection, and by its proxy where there is one.
    #[must_use]
    pub fn origin(&self, headers: &HeaderMap, face: &'static str, address: IpAddr) -> Origin {
        Origin {
            face,
            // A listener for both families sees IPv4 clients as `::ffff:192.0.2.1`. Shares, quotas
            // and the audit trail should know one client by one address.
            address: Some(address.to_canonical()),
            forwarded: self.behind_proxy.then(|| forwarded(headers)).flatten(),
        }
    }

    /// The same for a connection whose client has presented a certificate, which an authority of
    /// the operator has signed: its owner signs in by it, where there is a rule. `not_after`:
    /// when it ends. `ended` is cancelled when it holds no longer.
    #[must_use]
    pub fn of_certificate(
        &self,
        names: &CertificateNames,
        not_after: Timestamp,
        ended: CancellationToken,
    ) -> Self {
        let mut sign_in = self.clone();
        let Some(rule) = rule_for(&self.rules, names).filter(|_| self.tokens.is_some()) else {
            return sign_in;
        };
        let caller = Caller {
            principal: Principal::certificate(&rule.name),
            rights: rule.rights.clone(),
            expires_at: Some(not_after),
            ended,
            scope: None,
        };
        sign_in.certificate = Some(signed_in(Arc::new(caller)));
        sign_in
    }

    /// The access of a caller without a token, if its certificate is still valid.
    fn without_token(&self) -> Result<Access, Failure> {
        let access = self.anonymous();
        let caller = &access.caller;
        let has_ended = caller.expires_at.is_some_and(|at| at <= self.clock.now());
        if has_ended || caller.ended.is_cancelled() {
            return Err(lapsed());
        }
        Ok(access)
    }

    /// The access of a worker before `tools` checks its token, in the call itself: nothing else.
    fn worker(&self) -> Access {
        let rights = Rights::to_all([Action::Serve].into_iter().collect());
        Access {
            signs_in: self.tokens.is_some(),
            ..signed_in(Arc::new(Caller::new(Principal::anonymous(), rights)))
        }
    }

    /// Returns the caller of a request. `is_worker`: it is for the service of workers, which checks
    /// tokens of its own.
    ///
    /// # Errors
    /// Its credential is not accepted.
    pub fn recognize(
        &self,
        shown: &PresentedCredential,
        is_worker: bool,
    ) -> Result<Access, Failure> {
        // Without sign-in a token is not even read: a client may send one that it has for another
        // server.
        let Some(tokens) = &self.tokens else {
            return if is_worker {
                Ok(self.worker())
            } else {
                self.without_token()
            };
        };
        let secret = match &shown.0 {
            Credential::None => return self.without_token(),
            Credential::Jwt(jwt) => match self.issuers.recognize(jwt, self.clock.now()) {
                Ok(caller) => return Ok(signed_in(caller)),
                // Tokens of workers are free text of the config file, so one may look like a JWT.
                // It may be a token of the service of workers.
                Err(_) if is_worker => None,
                Err(refused) => return Err(refused.into()),
            },
            Credential::Other(secret) => secret.as_ref(),
        };
        let Some(secret) = secret else {
            if is_worker {
                return Ok(self.worker());
            }
            return Err(refused(UNKNOWN));
        };
        match tokens.recognize(secret, self.clock.now()) {
            Ok(caller) => Ok(signed_in(caller)),
            // The same for a revoked token and for one that never existed: otherwise a finder of
            // an old token would learn that it was real.
            Err(Unrecognized::Unknown) => Err(refused(UNKNOWN)),
            Err(Unrecognized::Expired(at)) => Err(refused(&format!("The token expired at {at}"))),
        }
    }

    /// When what a caller began has to end early. `None`: its caller has neither token nor
    /// certificate.
    #[must_use]
    pub fn ended(&self, access: &Access) -> Option<TokenExpiry> {
        let caller = &access.caller;
        if !access.signs_in || caller.is_anonymous() {
            return None;
        }
        let revoked = caller.ended.clone().cancelled_owned();
        // Once, when the stream begins: `sleep` runs on the monotonic clock, so a clock that
        // somebody sets back does not make a token last longer.
        let left = caller.expires_at.map(|at| {
            let left = at.duration_since(self.clock.now());
            Duration::try_from(left).unwrap_or(Duration::ZERO)
        });
        let is_certificate = caller.principal.is_certificate();
        let why = if caller.principal.is_of_issuer() {
            "The issuer of the token has withdrawn its key, or has other settings here"
        } else {
            "The token was revoked"
        };
        Some(Box::pin(async move {
            let expired = async {
                match left {
                    Some(left) => tokio::time::sleep(left).await,
                    None => std::future::pending().await,
                }
            };
            let failure = tokio::select! {
                () = revoked => refused(why),
                () = expired => refused("The token has expired"),
            };
            if is_certificate { lapsed() } else { failure }
        }))
    }
}

/// The refusal where the certificate of a connection is no longer valid.
fn lapsed() -> Failure {
    Failure::new(
        Code::CertificateRefused,
        "The certificate of the connection has ended, or its authority is trusted no more",
    )
    .suggest("Connect again with a valid certificate")
    .suggest("Or send a token, as `authorization: Bearer TOKEN`")
}

const UNKNOWN: &str = "Unknown token";

/// The access of a caller that has signed in. The protocol router sets its origin.
fn signed_in(caller: Arc<Caller>) -> Access {
    Access {
        caller,
        signs_in: true,
        limit: None,
        origin: Origin::PROCESS,
    }
}

fn refused(message: &str) -> Failure {
    Failure::new(Code::TokenRefused, message)
        .suggest("Send a token that the operator created with `repertoire token create`, or one of an issuer in `access.issuers`, as `authorization: Bearer TOKEN`")
        .suggest("To call anonymously, send no `authorization` header")
}

/// The client of the nearest proxy, which adds it at the end. Any entry before that is what the
/// client sent itself, and could be any address.
fn forwarded(headers: &HeaderMap) -> Option<IpAddr> {
    let mut lines = headers.get_all("x-forwarded-for").iter();
    let last = lines.next_back()?.to_str().ok()?.rsplit(',').next()?.trim();
    last.parse::<IpAddr>().ok().map(|it| it.to_canonical())
}

/// The token of an `authorization: Bearer TOKEN`, whose scheme is compared without case
/// (RFC 7235, 2.1).
fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then_some(token.trim())
}

#[cfg(test)]
mod tests;
