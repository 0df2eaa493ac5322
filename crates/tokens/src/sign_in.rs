//! Who calls, by the token that a request shows; and what nobody in particular may do.
//!
//! * Without sign-in everybody may do all but look after the server, as whoever reaches a
//!   loopback port is on this machine. With it, who shows no token may do what the operator
//!   says.
//! * A token that is shown is accepted or refused, whatever the call: nobody takes an expired
//!   token for none.
//! * Workers show tokens of the config file, which `tools` knows: that is their sign-in.
//! * The socket in the data directory needs none: who may open the directory may do everything.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use serde::{Deserialize, Deserializer};

use crate::{Secret, Tokens, Unrecognized};
use access::{Access, Action, Actions, Caller, Origin, Rights, Role};
use model::{Clock, Code, Failure, Principal};

/// What only who is on the server's machine may do where nobody signs in.
const OPERATORS: [Action; 3] = [Action::Review, Action::Operate, Action::Administer];

/// How callers say who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// They do not.
    #[default]
    None,
    /// They show a token of this server.
    Tokens,
}

/// Who may do what.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SignInConfig {
    /// How callers say who they are.
    pub sign_in: Mode,
    /// What who shows no token may do, where callers sign in: actions, and roles.
    #[serde(deserialize_with = "actions")]
    pub anonymous: Actions,
    /// A proxy in front of the server has TLS, so that tokens do not go over a network in
    /// clear.
    pub behind_proxy: bool,
}

fn actions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Actions, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    let mut all = Vec::new();
    for name in names {
        match name.parse::<Role>() {
            Ok(role) => all.extend(role.actions().iter()),
            Err(_) => all.push(name.parse::<Action>().map_err(serde::de::Error::custom)?),
        }
    }
    Ok(all.into_iter().collect())
}

impl SignInConfig {
    /// Callers are known by what they show alone, since all come from the address of a proxy.
    #[must_use]
    pub fn names_callers(&self) -> bool {
        self.sign_in != Mode::None && self.behind_proxy
    }

    /// Why a server with callers on other machines does not start with these; none: it does.
    #[must_use]
    pub fn why_unsafe(&self) -> Option<&'static str> {
        match (self.sign_in, self.behind_proxy) {
            (Mode::None, _) => Some(
                "whoever reaches it could do everything. Set `access.sign_in: tokens`, with what everybody may do in `access.anonymous`, such as [reader]; or listen on 127.0.0.1",
            ),
            (Mode::Tokens, false) => Some(
                "tokens would go over the network in clear. Put a proxy with TLS in front (docs/proxies.md) and set `access.behind_proxy: true`; or listen on 127.0.0.1",
            ),
            (Mode::Tokens, true) => None,
        }
    }
}

/// Finds out who calls. Cheap to clone.
#[derive(Clone)]
pub struct SignIn {
    /// None: nobody signs in.
    tokens: Option<Tokens>,
    anonymous: Access,
    behind_proxy: bool,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for SignIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignIn")
            .field("tokens", &self.tokens)
            .field("anonymous", &self.anonymous)
            .finish_non_exhaustive()
    }
}

/// What ends with a token, as a failure that says why.
pub type Ended = Pin<Box<dyn Future<Output = Failure> + Send>>;

impl SignIn {
    /// Of a server with these settings.
    #[must_use]
    pub fn new(config: &SignInConfig, tokens: Tokens, clock: Arc<dyn Clock>) -> Self {
        let signs_in = config.sign_in == Mode::Tokens;
        let actions = if signs_in {
            config.anonymous
        } else {
            Actions::all().without(&OPERATORS)
        };
        let rights = Rights::to_all(actions);
        Self {
            tokens: signs_in.then_some(tokens),
            anonymous: Access {
                caller: Arc::new(Caller::new(Principal::anonymous(), rights)),
                signs_in,
                origin: Origin::PROCESS,
            },
            behind_proxy: config.behind_proxy,
            clock,
        }
    }

    /// Who shows nothing.
    #[must_use]
    pub fn anonymous(&self) -> Access {
        self.anonymous.clone()
    }

    /// Where a request comes from, by its connection, and by its proxy where there is one.
    #[must_use]
    pub fn origin(&self, headers: &HeaderMap, face: &'static str, address: IpAddr) -> Origin {
        Origin {
            face,
            address: Some(address.to_canonical()),
            forwarded: self.behind_proxy.then(|| forwarded(headers)).flatten(),
        }
    }

    /// Who makes a request. `is_worker`: it is for the service of workers, which looks at
    /// tokens of its own.
    ///
    /// # Errors
    /// It shows what is not accepted.
    pub fn recognize(&self, headers: &HeaderMap, is_worker: bool) -> Result<Access, Failure> {
        let (Some(tokens), Some(shown)) = (&self.tokens, headers.get(AUTHORIZATION)) else {
            return Ok(self.anonymous());
        };
        let secret = bearer(shown).and_then(Secret::parse);
        let Some(secret) = secret else {
            if is_worker {
                let rights = Rights::to_all([Action::Serve].into_iter().collect());
                return Ok(Access {
                    caller: Arc::new(Caller::new(Principal::anonymous(), rights)),
                    signs_in: true,
                    origin: Origin::PROCESS,
                });
            }
            return Err(refused("What the call shows is no token of this server"));
        };
        match tokens.recognize(&secret, self.clock.now()) {
            Ok(caller) => Ok(Access {
                caller,
                signs_in: true,
                origin: Origin::PROCESS,
            }),
            // The same for what never was one and for what was revoked.
            Err(Unrecognized::Unknown) => {
                Err(refused("What the call shows is no token of this server"))
            }
            Err(Unrecognized::Expired(at)) => Err(refused(&format!("The token expired at {at}"))),
        }
    }

    /// When what a caller began ends, before it is done. None: its caller has no token.
    #[must_use]
    pub fn ended(&self, access: &Access) -> Option<Ended> {
        let caller = &access.caller;
        if !access.signs_in || caller.is_anonymous() {
            return None;
        }
        let revoked = caller.ended.clone().cancelled_owned();
        let left = caller.expires_at.map(|at| {
            let left = at.duration_since(self.clock.now());
            Duration::try_from(left).unwrap_or(Duration::ZERO)
        });
        Some(Box::pin(async move {
            let expired = async {
                match left {
                    Some(left) => tokio::time::sleep(left).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = revoked => refused("The token was revoked"),
                () = expired => refused("The token has expired"),
            }
        }))
    }
}

fn refused(message: &str) -> Failure {
    Failure::new(Code::TokenRefused, message)
        .suggest("Show a token that whoever runs the server made with `repertoire token create`, as `authorization: Bearer TOKEN`")
        .suggest("Leave `authorization` away to be nobody in particular")
}

/// The client of the nearest proxy, which adds it at the end; what stands before it is what
/// the client wrote itself.
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
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use jiff::Timestamp;
    use model::SystemClock;
    use store::{Options, Store};

    async fn sign_in(config: &str) -> (SignIn, Secret) {
        let config: SignInConfig = serde_yaml::from_str(config).expect("a config");
        let tokens = Tokens::open(Store::in_memory(&Options::default())).expect("tokens");
        let secret = Secret::new([7; 32]);
        let new = crate::NewToken {
            name: "ci".to_owned(),
            rights: Rights::to_all(Role::Reader.actions()),
            expires_at: None,
        };
        let by = Principal::local();
        let made = tokens.create(new, &secret, &by, Timestamp::UNIX_EPOCH);
        made.await.expect("made");
        (SignIn::new(&config, tokens, Arc::new(SystemClock)), secret)
    }

    fn shows(value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, value.parse().expect("a value"));
        headers
    }

    #[tokio::test]
    async fn without_sign_in_everybody_may_do_all_but_look_after_the_server() {
        let (sign_in, secret) = sign_in("{}").await;
        let access = sign_in
            .recognize(&shows(&format!("Bearer {}", secret.reveal())), false)
            .expect("anonymous");
        assert!(access.caller.is_anonymous());
        let denied: Vec<_> = Action::ALL
            .iter()
            .filter(|action| !access.caller.rights.allow(**action))
            .collect();
        assert_eq!(
            denied,
            [&Action::Review, &Action::Operate, &Action::Administer]
        );
        assert!(
            Action::ALL
                .iter()
                .all(|a| Access::local().caller.rights.allow(*a))
        );
    }

    #[tokio::test]
    async fn with_tokens_nobody_in_particular_may_do_what_the_operator_says() {
        let (sign_in, secret) =
            sign_in("{sign_in: tokens, anonymous: [read, reader, learn]}").await;
        let anonymous = sign_in
            .recognize(&HeaderMap::new(), false)
            .expect("anonymous");
        let allowed: Vec<_> = anonymous.caller.rights.actions.iter().collect();
        assert_eq!(allowed, [Action::Read, Action::Load, Action::Learn]);
        let text = secret.reveal();
        for shown in [format!("Bearer {text}"), format!("bEARER  {text} ")] {
            let access = sign_in.recognize(&shows(&shown), false).expect("known");
            assert_eq!(access.caller.principal, Principal::token("ci"));
        }
        for shown in [
            "Bearer",
            "Basic dXNlcjpwYXNz",
            "Bearer ",
            "Bearer rpt_",
            &text,
            &format!("Bearer {text}x"),
            &format!("Bearer {}", Secret::new([8; 32]).reveal()),
        ] {
            let refused = sign_in
                .recognize(&shows(shown), false)
                .expect_err("refused");
            assert_eq!(
                refused.to_string(),
                "TOKEN_REFUSED: What the call shows is no token of this server",
                "{shown}"
            );
        }
        // A worker's own token is looked at where workers are let in.
        let worker = sign_in.recognize(&shows("Bearer 0123456789abcdef"), true);
        let rights = worker.expect("a worker").caller.rights.clone();
        assert_eq!(rights.actions.iter().collect::<Vec<_>>(), [Action::Serve]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_token_began_ends_with_it_and_says_why() {
        let tokens = Tokens::open(Store::in_memory(&Options::default())).expect("tokens");
        let config = SignInConfig {
            sign_in: Mode::Tokens,
            ..SignInConfig::default()
        };
        let sign_in = SignIn::new(&config, tokens.clone(), Arc::new(SystemClock));
        let (by, now) = (Principal::local(), SystemClock.now());
        let create = async |name: &str, secret: &Secret, expires_at| {
            let rights = Rights::to_all(Role::Reader.actions());
            let name = name.to_owned();
            let new = crate::NewToken {
                name,
                rights,
                expires_at,
            };
            tokens.create(new, secret, &by, now).await.expect("made");
            let shown = shows(&format!("Bearer {}", secret.reveal()));
            sign_in.recognize(&shown, false).expect("known")
        };
        // Time that stands still goes on where nothing else is to do.
        let hour = jiff::SignedDuration::from_hours(1);
        let expiring = create("a", &Secret::new([1; 32]), Some(now + hour)).await;
        let expired = sign_in.ended(&expiring).expect("an end");
        let begun = tokio::time::Instant::now();
        assert_eq!(
            expired.await.to_string(),
            "TOKEN_REFUSED: The token has expired"
        );
        assert!(
            begun.elapsed() > Duration::from_secs(3590),
            "{:?}",
            begun.elapsed()
        );
        let lasting = create("b", &Secret::new([2; 32]), None).await;
        let mut revoked = sign_in.ended(&lasting).expect("an end");
        assert!(revoked.as_mut().now_or_never().is_none());
        tokens.revoke("b").await.expect("revoked");
        assert_eq!(
            revoked.await.to_string(),
            "TOKEN_REFUSED: The token was revoked"
        );
        assert!(sign_in.ended(&sign_in.anonymous()).is_none());
        assert!(sign_in.ended(&Access::local()).is_none());
    }

    #[tokio::test]
    async fn a_proxy_is_asked_who_its_client_is_where_the_operator_has_one_alone() {
        let address: IpAddr = [10, 0, 0, 1].into();
        let mut headers = HeaderMap::new();
        for line in ["6.6.6.6", "7.7.7.7, ::ffff:192.0.2.9"] {
            headers.append("x-forwarded-for", line.parse().expect("a value"));
        }
        let origin = async |config: &str, headers: &HeaderMap| {
            let found = sign_in(config).await.0.origin(headers, "http", address);
            assert_eq!((found.face, found.address), ("http", Some(address)));
            found.forwarded.map(|it| it.to_string())
        };
        let behind = "{behind_proxy: true}";
        assert_eq!(origin("{}", &headers).await, None);
        assert_eq!(origin(behind, &headers).await.as_deref(), Some("192.0.2.9"));
        headers.insert("x-forwarded-for", "unknown".parse().expect("a value"));
        assert_eq!(origin(behind, &headers).await, None);
    }

    #[test]
    fn an_action_that_there_is_none_of_is_told_with_those_there_are() {
        let wrong = serde_yaml::from_str::<SignInConfig>("{anonymous: [write]}");
        let said = wrong.expect_err("refused").to_string();
        assert!(
            said.contains("`write` is no action; write read, load,"),
            "{said}"
        );
    }
}
