//! Which workers are let in, and what each may serve.

use std::sync::Arc;

use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};

use super::{Hello, Served};
use model::{Code, Failure, Principal, SkillId, SkillPattern};

/// Bundled skills that the server's own handlers run.
pub const BUILT_IN: [&str; 2] = ["builtin/repertoire/write_sql", "builtin/repertoire/jira"];

/// A worker that may dial in, or several of one kind.
#[derive(Debug, Clone)]
pub struct Admitted {
    /// Its name in the log.
    pub name: String,
    /// Token that it shows when it dials in.
    pub token: SecretString,
    /// Skills that it may serve.
    pub skills: Vec<SkillPattern>,
}

/// Workers that may dial in. Only digests of their tokens are held.
pub(super) struct WorkerRegistry(Vec<KnownWorker>);

struct KnownWorker {
    digest: [u8; 32],
    identity: Arc<WorkerIdentity>,
}

/// A worker that is let in.
#[derive(Debug)]
pub(super) struct WorkerIdentity {
    pub(super) name: String,
    /// Skills that it may serve; none: all.
    skills: Option<Vec<SkillPattern>>,
    /// The setting or rights that list the skills it may serve.
    allowed_by: String,
}

impl WorkerRegistry {
    pub(super) fn new(workers: Vec<Admitted>) -> Self {
        let entry = |admitted: Admitted| KnownWorker {
            digest: Sha256::digest(admitted.token.expose_secret()).into(),
            identity: Arc::new(WorkerIdentity {
                allowed_by: format!("the worker `{}` in `tools.workers`", admitted.name),
                name: admitted.name,
                skills: Some(admitted.skills),
            }),
        };
        Self(workers.into_iter().map(entry).collect())
    }

    /// Finds the worker of a token.
    ///
    /// Every entry is compared, and all of each digest, so that the time
    /// reveals neither which one is near nor how near.
    pub(super) fn admit(&self, token: Option<&str>) -> Result<Arc<WorkerIdentity>, Failure> {
        let shown: [u8; 32] = Sha256::digest(token.unwrap_or_default()).into();
        let mut found = None;
        for entry in &self.0 {
            let pairs = entry.digest.iter().zip(&shown);
            let different = pairs.fold(0, |all, (a, b)| all | (a ^ b));
            if std::hint::black_box(different) == 0 {
                found = Some(&entry.identity);
            }
        }
        // A missing token hashes like an empty one, which an entry may have by mistake.
        found.filter(|_| token.is_some()).map(Arc::clone).ok_or_else(|| {
            Failure::new(Code::WorkerRefused, "The worker is not admitted")
                .suggest("Send the token of an entry of `tools.workers` of the server's config file, as `authorization: Bearer TOKEN`")
                .suggest("docs/tool-workers.md explains how an operator admits workers")
        })
    }
}

impl WorkerIdentity {
    /// Of a caller that signed in and may serve these skills; empty: all.
    pub(super) fn signed_in(caller: &Principal, skills: Vec<SkillPattern>) -> Self {
        Self {
            name: caller.to_string(),
            skills: (!skills.is_empty()).then_some(skills),
            allowed_by: format!("the rights of {caller}"),
        }
    }

    fn may_serve(&self, skill: &SkillId) -> bool {
        let covers = |skills: &Vec<SkillPattern>| skills.iter().any(|it| it.covers(skill));
        self.skills.as_ref().is_none_or(covers)
    }

    /// Refuses a worker that names skills which it may not serve, and lists them.
    pub(super) fn check(&self, hello: &Hello) -> Result<(), Failure> {
        let mut failure = Failure::new(Code::WorkerRefused, "");
        let mut refused = Vec::new();
        for (at, Served { skill, methods: _ }) in hello.skills.iter().enumerate() {
            let why = if BUILT_IN
                .iter()
                .any(|id| skill.as_str().eq_ignore_ascii_case(id))
            {
                "the server's own handler runs this skill"
            } else if self.may_serve(skill) {
                continue;
            } else {
                "the operator does not allow this worker the skill"
            };
            failure = failure.field(&format!("hello.skills[{at}].skill_id"), why);
            refused.push(skill.as_str());
        }
        if refused.is_empty() {
            return Ok(());
        }
        failure.message = format!("The worker may not serve {}", refused.join(", "));
        Err(failure.suggest(format!(
            "Add the skill to `skills` of {}, or serve others",
            self.allowed_by
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wrong_token_gets_the_same_words() {
        let roll = |tokens: &[&str]| {
            let admitted = |token: &&str| Admitted {
                name: format!("of {token}"),
                token: (*token).to_owned().into(),
                skills: Vec::new(),
            };
            WorkerRegistry::new(tokens.iter().map(admitted).collect())
        };
        let said = |roll: &WorkerRegistry, token: Option<&str>| match roll.admit(token) {
            Ok(identity) => identity.name.clone(),
            Err(failure) => format!("{failure} {:?} {:?}", failure.suggestions, failure.fields),
        };
        let two = roll(&["0123456789abcdef", "fedcba9876543210"]);
        assert_eq!(said(&two, Some("fedcba9876543210")), "of fedcba9876543210");
        let refusal = said(&two, None);
        assert!(
            refusal.starts_with("WORKER_REFUSED: The worker is not admitted"),
            "{refusal}"
        );
        for wrong in [
            "",
            "0123456789abcde",
            "0123456789abcdef ",
            "0123456789ABCDEF",
            "x",
        ] {
            assert_eq!(said(&two, Some(wrong)), refusal);
        }
        // Without any worker, and with an empty token that must never be one.
        assert_eq!(said(&roll(&[]), Some("0123456789abcdef")), refusal);
        assert_eq!(said(&roll(&[""]), None), refusal);
    }
}
