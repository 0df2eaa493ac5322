//! Access rules of the contract: the action of each rpc, and the skill that a request names.
//!
//! Whether a caller may do an action at all is decided where its call comes in; whether to
//! this skill, where the request is decoded ([`CheckedCodec`](super::CheckedCodec)), before
//! any handler sees it. Both tables are written by the build, which fails for an rpc without
//! an action.

use std::future::Future;
use std::sync::Arc;

use super::v1;
use access::{Access, Actions, Authorize};
use model::{Failure, Principal};

/// Path, action, whether the audit trail records calls, and whether the request says to which
/// skill the action is done, of each rpc.
const RPCS: &[(&str, &str, bool, bool)] = include!(concat!(env!("OUT_DIR"), "/access.rs"));

/// Returns the action of each rpc, by its path; none: everybody may call it.
pub fn actions() -> impl Iterator<Item = (&'static str, Option<access::Action>)> {
    RPCS.iter().map(|(path, name, ..)| (*path, action(name)))
}

/// Returns whether the audit trail records the calls of an rpc, by its path.
#[must_use]
pub fn is_recorded(path: &str) -> bool {
    let unrecorded = RPCS
        .iter()
        .any(|(known, _, recorded, _)| *known == path && !recorded);
    // An unknown path is recorded: better one event too many than a change without one.
    !unrecorded
}

#[expect(
    clippy::expect_used,
    reason = "the build wrote the names of the contract's enum, which a test compares"
)]
pub(super) fn action(name: &str) -> Option<access::Action> {
    (name != "anything").then(|| name.parse().expect("an action of the contract"))
}

/// Returns the caller of a call and its rights, which the layers of the server put into it.
#[must_use]
pub fn access_of(call: &http::Extensions) -> Access {
    let found = call.get().cloned();
    // No rights where a layer forgot to put them in.
    found.unwrap_or_else(|| Access::without_sign_in(Principal::anonymous(), Actions::default()))
}

/// Converts an action to that of the contract.
///
/// # Panics
///
/// Never: a test compares the names of both.
#[must_use]
#[expect(clippy::expect_used, reason = "a test compares all names")]
pub fn action_on_wire(action: access::Action) -> v1::Action {
    let name = format!("ACTION_{}", action.name().to_ascii_uppercase());
    v1::Action::from_str_name(&name).expect("an action of the contract")
}

/// Converts an action of the contract; none where everybody may do it, or it is unknown.
#[must_use]
pub fn action_from_wire(action: v1::Action) -> Option<access::Action> {
    let mut all = access::Action::ALL.iter().copied();
    all.find(|known| action_on_wire(*known) == action)
}

/// What a codec does with the messages of a call besides decoding and encoding them.
#[derive(Clone, Default)]
pub struct CodecHooks {
    /// Decides about the skill that a request names. None: the caller may do its action to every
    /// skill, or the call is the server's own.
    pub authorizer: Option<Arc<dyn Authorize>>,
    /// Records what the call is done to. None: its calls are not recorded.
    pub noted: Option<audit::Noted>,
}

// tonic makes a codec by `Default`, without a way to hand it anything of the call.
tokio::task_local! {
    static HOOKS: CodecHooks;
}

/// Gives hooks to the codecs that are made while a future is polled.
pub async fn with_codec_hooks<F: Future>(hooks: CodecHooks, future: F) -> F::Output {
    HOOKS.scope(hooks, future).await
}

/// Returns the hooks for a codec that is made now.
pub(super) fn codec_hooks() -> CodecHooks {
    HOOKS.try_with(Clone::clone).unwrap_or_default()
}

/// Checks whether a request may do its action to the skill that it names.
pub(super) fn allowed(authorizer: &dyn Authorize, name: &str, skill: &str) -> Result<(), Failure> {
    action(name).map_or(Ok(()), |action| authorizer.allow(action, skill))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::access::Action;

    #[test]
    fn the_contract_and_the_product_name_the_same_actions() {
        for action in Action::ALL {
            assert_eq!(action_from_wire(action_on_wire(*action)), Some(*action));
        }
        let known = (0..).map_while(|number| v1::Action::try_from(number).ok());
        let unknown: Vec<_> = known
            .filter(|action| action_from_wire(*action).is_none())
            .collect();
        assert_eq!(unknown, [v1::Action::Unspecified, v1::Action::Anything]);
        // Reads the whole table, which panics where the build wrote another name.
        assert!(actions().count() > 70);
    }

    #[test]
    fn every_action_on_a_skill_is_bound_to_the_skills_of_its_caller() {
        let unbound = RPCS.iter().filter(|(_, name, _, bound)| {
            let is_by_skill = action(name).is_some_and(Action::is_by_skill);
            is_by_skill && !bound
        });
        let unbound: Vec<_> = unbound.map(|(path, ..)| *path).collect();
        assert_eq!(
            unbound,
            [
                // Each of its items is checked (`ItemAuthorizer`).
                "/repertoire.v1.Registry/PublishSkills",
                // It is about no skill: owners of the namespace decide.
                "/repertoire.v1.Access/SetNamespace",
            ]
        );
    }
}
