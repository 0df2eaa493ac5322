//! `repertoire.v1.Access`.

use std::borrow::Cow;
use std::sync::Arc;

use http::Extensions;
use jiff::{SignedDuration, Timestamp};
use tonic::{Request, Response};

use super::convert::time;
use super::{access, namespace, principal, wrong};
use ::access::{Access, Action, Actions, Rights};
use ::tokens::{NewToken, Secret, Token, Tokens};
use contract::handlers::{self, Answer, View};
use contract::{action_from_wire, action_on_wire, v1};
use model::{Clock, Failure, SkillPattern};
use namespaces::Namespaces;
use registry::Registry;

fn actions_on_wire(actions: Actions) -> Vec<i32> {
    actions
        .iter()
        .map(|action| action_on_wire(action).into())
        .collect()
}

fn patterns_on_wire(patterns: &[SkillPattern]) -> Vec<String> {
    patterns.iter().map(ToString::to_string).collect()
}

fn info(token: Token) -> v1::TokenInfo {
    v1::TokenInfo {
        actions: actions_on_wire(token.rights.actions),
        skills: patterns_on_wire(&token.rights.skills),
        sees: patterns_on_wire(&token.rights.sees),
        created_at: Some(time(token.created_at)),
        created_by: token.created_by.to_string(),
        expires_at: token.expires_at.map(time),
        last_used_at: token.last_used_at.map(time),
        name: token.name,
    }
}

fn patterns(field: &str, texts: &[String]) -> Result<Vec<SkillPattern>, Failure> {
    let patterns = texts.iter().enumerate().map(|(at, text)| {
        let field = format!("{field}[{at}]");
        text.parse()
            .map_err(|error: model::PatternError| wrong(&field, error))
    });
    patterns.collect()
}

fn rights(actions: &[i32], skills: &[String], sees: &[String]) -> Result<Rights, Failure> {
    let mut allowed = Vec::new();
    for (at, action) in actions.iter().enumerate() {
        let known = v1::Action::try_from(*action)
            .ok()
            .and_then(action_from_wire);
        // `ACTION_ANYTHING` marks rpcs that need no right, so a token cannot be given it: refused
        // like a number that the enum does not have.
        let known = known.ok_or_else(|| {
            let names: Vec<_> = Action::ALL.iter().map(|action| action.name()).collect();
            wrong(
                &format!("actions[{at}]"),
                format!("a token allows {}", names.join(", ")),
            )
        })?;
        allowed.push(known);
    }
    Ok(Rights {
        actions: allowed.into_iter().collect(),
        skills: patterns("skills", skills)?,
        sees: patterns("sees", sees)?,
    })
}

/// The `Access` service.
#[derive(Clone)]
pub struct AccessService {
    tokens: Tokens,
    namespaces: Namespaces,
    registry: Registry,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for AccessService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccessService").finish_non_exhaustive()
    }
}

impl AccessService {
    /// Creates the service over the tokens and namespaces of a server.
    #[must_use]
    pub fn new(
        tokens: Tokens,
        namespaces: Namespaces,
        registry: Registry,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            tokens,
            namespaces,
            registry,
            clock,
        }
    }
}

impl View for AccessService {
    async fn view<'a>(&'a self, _: &Extensions) -> Cow<'a, Self> {
        // Nothing here is a skill. `ListNamespaces` filters by caller itself.
        Cow::Borrowed(self)
    }
}

impl handlers::Access for AccessService {
    async fn get_caller(
        &self,
        request: Request<v1::GetCallerRequest>,
    ) -> Answer<v1::GetCallerResponse> {
        let Access { caller, .. } = access(&request);
        Ok(Response::new(v1::GetCallerResponse {
            caller: caller.principal.to_string(),
            actions: actions_on_wire(caller.rights.actions),
            skills: patterns_on_wire(&caller.rights.skills),
            sees: patterns_on_wire(&caller.rights.sees),
            expires_at: caller.expires_at.map(time),
        }))
    }

    async fn create_token(
        &self,
        request: Request<v1::CreateTokenRequest>,
    ) -> Answer<v1::CreateTokenResponse> {
        let by = principal(&request);
        let v1::CreateTokenRequest {
            name,
            actions,
            skills,
            sees,
            expires_in_days,
        } = request.into_inner();
        let now = self.clock.now();
        let new = NewToken {
            rights: rights(&actions, &skills, &sees)?,
            expires_at: expiry(now, expires_in_days)?,
            name,
        };
        let secret = random_secret()?;
        let token = self.tokens.create(new, &secret, &by, now).await;
        Ok(Response::new(v1::CreateTokenResponse {
            token: secret.reveal(),
            info: Some(info(token?)),
        }))
    }

    async fn rotate_token(
        &self,
        request: Request<v1::RotateTokenRequest>,
    ) -> Answer<v1::RotateTokenResponse> {
        let v1::RotateTokenRequest {
            name,
            expires_in_days,
        } = request.into_inner();
        let now = self.clock.now();
        let expires_at = expiry(now, expires_in_days)?;
        let secret = random_secret()?;
        let token = self.tokens.rotate(&name, &secret, expires_at, now).await;
        Ok(Response::new(v1::RotateTokenResponse {
            token: secret.reveal(),
            info: Some(info(token?)),
        }))
    }

    async fn list_tokens(
        &self,
        _: Request<v1::ListTokensRequest>,
    ) -> Answer<v1::ListTokensResponse> {
        Ok(Response::new(v1::ListTokensResponse {
            tokens: self.tokens.list().into_iter().map(info).collect(),
        }))
    }

    async fn revoke_token(
        &self,
        request: Request<v1::RevokeTokenRequest>,
    ) -> Answer<v1::RevokeTokenResponse> {
        let revoked = self.tokens.revoke(&request.get_ref().name).await;
        Ok(Response::new(v1::RevokeTokenResponse {
            info: Some(info(revoked?)),
        }))
    }

    async fn list_namespaces(
        &self,
        request: Request<v1::ListNamespacesRequest>,
    ) -> Answer<v1::ListNamespacesResponse> {
        let caller = access(&request).caller;
        let listed = namespace::list(&self.namespaces, &caller, request.get_ref())?;
        Ok(Response::new(listed))
    }

    async fn set_namespace(
        &self,
        request: Request<v1::SetNamespaceRequest>,
    ) -> Answer<v1::SetNamespaceResponse> {
        let (access, now) = (access(&request), self.clock.now());
        let of = (&self.namespaces, &self.registry);
        let set = namespace::set(of, &access, request.into_inner(), now);
        Ok(Response::new(set.await?))
    }
}

/// Makes the secret of a token. The store has its digest alone: the answer to the call is the only
/// one with its text.
fn random_secret() -> Result<Secret, Failure> {
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|error| Failure::fault(error.to_string()))?;
    Ok(Secret::new(random))
}

fn expiry(now: Timestamp, days: u32) -> Result<Option<Timestamp>, Failure> {
    if days == 0 {
        return Ok(None);
    }
    let after = now.checked_add(SignedDuration::from_hours(24 * i64::from(days)));
    Ok(Some(
        after.map_err(|error| Failure::fault(error.to_string()))?,
    ))
}
