//! The rpcs of sources.

use tonic::{Request, Response};

use super::convert::time;
use super::enums::same_variants;
use super::{given, missing, wrong};
use ::sync::{
    Engine, GITHUB_API, Health, HealthStatus, Listed, Overall, RepositoryFacts, Skip, Source,
    SourceKind, is_web_address,
};
use contract::handlers::Answer;
use contract::{NamedResource, access_of, v1};
use model::{Code, Failure};
use secret::{CredentialRef, NamedBy};

/// The sources of skills, with what a caller may use of them.
#[derive(Debug, Clone)]
pub(super) struct Sources {
    engine: Engine,
    /// A source names skills by where they come from, so a caller that does not see all skills sees
    /// no source.
    are_shown: bool,
}

impl Sources {
    pub(super) fn new(engine: Engine) -> Self {
        Self {
            engine,
            are_shown: true,
        }
    }

    /// Returns the same for a caller that does not see all skills.
    pub(super) fn hidden(&self) -> Self {
        Self {
            engine: self.engine.clone(),
            are_shown: false,
        }
    }

    /// Returns the engine to change and sync sources.
    pub(super) fn engine(&self) -> &Engine {
        // Not filtered by what the caller sees: these rpcs need the right `sync`, which is granted
        // by itself.
        &self.engine
    }

    /// Returns the engine to read sources and the results of syncs.
    ///
    /// # Errors
    /// The caller does not see sources.
    pub(super) fn shown(&self) -> Result<&Engine, Failure> {
        if self.are_shown {
            return Ok(&self.engine);
        }
        let failure = Failure::new(
            Code::PermissionDenied,
            "Only callers that see every skill of this server see its sources and syncs",
        );
        Err(failure
            .suggest("`get_sync_status` without an id counts the skills that you see")
            .suggest("Or ask the operator for a token that allows `sync`"))
    }
}

fn kind(kind: v1::SourceKind) -> Option<SourceKind> {
    let mut all = SourceKind::ALL.iter().copied();
    all.find(|known| kind_on_wire(*known) == kind)
}

/// Converts a kind by its name, which both sides spell alike; a test compares them.
fn kind_on_wire(kind: SourceKind) -> v1::SourceKind {
    let name = format!("SOURCE_KIND_{}", kind.name().to_ascii_uppercase());
    v1::SourceKind::from_str_name(&name).unwrap_or_default()
}

fn credential(
    secret: Option<v1::SecretReference>,
    field: &str,
) -> Result<Option<CredentialRef>, Failure> {
    let Some(v1::SecretReference { env, file }) = secret else {
        return Ok(None);
    };
    // Where the secret is, never the secret itself: answers repeat this.
    match (env.is_empty(), file.is_empty()) {
        (false, true) => Ok(Some(CredentialRef::Env(env))),
        (true, false) => Ok(Some(CredentialRef::File(file.into()))),
        _ => Err(wrong(field, "name one of `env` and `file`")),
    }
}

fn credential_on_wire(credential: CredentialRef) -> v1::SecretReference {
    let (env, file) = match credential {
        CredentialRef::Env(name) => (name, String::new()),
        CredentialRef::File(path) => (String::new(), path.display().to_string()),
    };
    v1::SecretReference { env, file }
}

/// The setting by which the addresses of sources are permitted.
const ADDRESSES: &str = "sync.allow_networks";

/// Returns whether a caller on the network may name an address or a secret for a source.
pub(super) fn permits(
    engine: &Engine,
    named: &NamedResource<'_>,
    all: &[NamedResource<'_>],
) -> bool {
    let reference = match (named.setting, named.field.rsplit('.').next()) {
        // What its host leads to is checked whenever it is called.
        (ADDRESSES, _) => return is_web_address(named.value),
        ("sync.secrets", Some("env")) => CredentialRef::Env(named.value.to_owned()),
        ("sync.secrets", Some("file")) => CredentialRef::File(named.value.into()),
        _ => return false,
    };
    // A source without an address is GitHub's, or is refused.
    let address = all.iter().find(|it| it.setting == ADDRESSES);
    let address = address.map_or(GITHUB_API, |it| it.value);
    engine.secret(&reference, NamedBy::Network, address).is_ok()
}

fn source(source: v1::Source, named_by: NamedBy) -> Result<Source, Failure> {
    let of = kind(source.kind()).ok_or_else(|| wrong("kind", "Required"))?;
    let v1::Source {
        source_id,
        name,
        kind: _,
        location,
        r#ref,
        path,
        select,
        namespace,
        interval_seconds,
        credential: secret,
        webhook_secret,
    } = source;
    let namespace = given(namespace).map(|text| text.parse()).transpose();
    let namespace = namespace.map_err(|error: String| wrong("namespace", error))?;
    Ok(Source {
        id: source_id,
        name,
        kind: of,
        location,
        reference: r#ref,
        path,
        select,
        namespace,
        interval_seconds,
        credential: credential(secret, "credential")?,
        webhook_secret: credential(webhook_secret, "webhook_secret")?,
        named_by,
    })
}

pub(super) fn skips(skips: Vec<Skip>) -> Vec<v1::SkippedSkill> {
    let skips = skips.into_iter();
    skips
        .map(|Skip { path, reason }| v1::SkippedSkill { path, reason })
        .collect()
}

fn listed(listed: Listed) -> v1::SourceInfo {
    let source = listed.source;
    v1::SourceInfo {
        source: Some(v1::Source {
            source_id: source.id,
            name: source.name,
            kind: kind_on_wire(source.kind).into(),
            location: source.location,
            r#ref: source.reference,
            path: source.path,
            select: source.select,
            namespace: source.namespace.map(|n| n.to_string()).unwrap_or_default(),
            interval_seconds: source.interval_seconds,
            credential: source.credential.map(credential_on_wire),
            webhook_secret: source.webhook_secret.map(credential_on_wire),
        }),
        is_configured: listed.is_configured,
        skills_contributed: listed.skills,
        revision: listed.revision,
        last_successful_sync: listed.last_success.map(time),
        skipped: skips(listed.skips),
        skipped_left_out: listed.skips_left_out,
    }
}

pub(super) async fn add(
    engine: &Engine,
    request: Request<v1::AddSourceRequest>,
) -> Answer<v1::AddSourceResponse> {
    let named_by = if access_of(request.extensions()).is_local() {
        NamedBy::Operator
    } else {
        NamedBy::Network
    };
    let given = request.into_inner().source;
    let source = source(given.ok_or_else(|| missing("source"))?, named_by)?;
    let added = engine.add(source).await?;
    Ok(Response::new(v1::AddSourceResponse {
        source: Some(listed(added)),
    }))
}

pub(super) async fn remove(
    engine: &Engine,
    request: v1::RemoveSourceRequest,
) -> Answer<v1::RemoveSourceResponse> {
    let v1::RemoveSourceRequest {
        source_id,
        withdraw_skills,
    } = request;
    let removed = engine.remove(&source_id, withdraw_skills);
    let removed = removed.await?;
    Ok(Response::new(v1::RemoveSourceResponse {
        source_id: removed.id,
        skills_withdrawn: removed.withdrawn,
        skills_kept: removed.kept,
    }))
}

pub(super) fn list(engine: &Engine) -> Answer<v1::ListSourcesResponse> {
    let sources = engine.list()?;
    Ok(Response::new(v1::ListSourcesResponse {
        sources: sources.into_iter().map(listed).collect(),
    }))
}

same_variants!(fn overall_health(Overall) -> SourcesHealth { Healthy, Degraded, Critical });

same_variants!(fn source_status(HealthStatus) -> SourceStatus {
    Healthy, Degraded, Unavailable, RateLimited
});

pub(super) fn health(
    engine: &Engine,
    request: &v1::GetSourceHealthRequest,
) -> Answer<v1::GetSourceHealthResponse> {
    let id = given(request.source_id.as_str());
    let sources = engine.health(id)?;
    let overall = overall_health(Overall::of(&sources));
    Ok(Response::new(v1::GetSourceHealthResponse {
        sources: sources.into_iter().map(of_source).collect(),
        overall_health: overall.into(),
    }))
}

fn of_source(health: Health) -> v1::SourceHealth {
    v1::SourceHealth {
        name: health.source.title().to_owned(),
        source_id: health.source.id,
        status: source_status(health.standing).into(),
        last_successful_sync: health.last_success.map(time),
        last_check: health.last_check.map(time),
        response_time_ms: health.response_ms,
        rate_limit: health.rate_limit.map(|limit| v1::RateLimit {
            remaining: limit.remaining,
            limit: limit.limit,
            resets_at: Some(time(limit.resets_at)),
        }),
        error_count_24h: health.errors,
        last_error: health.last_error,
        skills_contributed: health.skills,
    }
}

/// Fills in what the repository of a skill shows. What its author states goes first.
pub(super) fn show(facts: RepositoryFacts, skill: &mut v1::SkillDetail) {
    let count = |count: u64| Some(i64::try_from(count).unwrap_or(i64::MAX));
    skill.github_stars = count(facts.stars);
    skill.github_forks = count(facts.forks);
    skill.github_open_issues = count(facts.open_issues);
    // Tests may lie in the skill itself, or elsewhere in its repository.
    skill.has_tests |= facts.has_tests;
    skill.has_examples |= facts.has_examples;
    let stated = [
        (&mut skill.github_license, facts.license),
        (&mut skill.repo_url, facts.url),
    ];
    for (field, fact) in stated {
        if field.is_empty() {
            *field = fact;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_author_states_goes_before_what_the_repository_shows() {
        let facts = RepositoryFacts {
            url: "https://github.com/acme/skills".to_owned(),
            stars: 7,
            forks: 2,
            open_issues: 1,
            license: "MIT".to_owned(),
            has_tests: true,
            ..RepositoryFacts::default()
        };
        let shown = |license: &str| {
            let mut skill = v1::SkillDetail {
                github_license: license.to_owned(),
                ..Default::default()
            };
            show(facts.clone(), &mut skill);
            skill
        };
        let expected = v1::SkillDetail {
            github_stars: Some(7),
            github_forks: Some(2),
            github_open_issues: Some(1),
            github_license: "Apache-2.0".to_owned(),
            repo_url: facts.url.clone(),
            has_tests: true,
            ..Default::default()
        };
        assert_eq!(shown("Apache-2.0"), expected);
        assert_eq!(shown("").github_license, "MIT");
    }

    #[test]
    fn the_contract_and_the_engine_name_the_same_kinds_of_sources() {
        for known in SourceKind::ALL {
            assert_eq!(kind(kind_on_wire(known)), Some(known));
        }
        let numbers = (0..).map_while(|number| v1::SourceKind::try_from(number).ok());
        let unknown: Vec<_> = numbers.filter(|it| kind(*it).is_none()).collect();
        assert_eq!(unknown, [v1::SourceKind::Unspecified]);
    }
}
