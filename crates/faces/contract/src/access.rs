//! What the contract says of who may call: the action of each rpc, and the skill that a
//! request names.
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

/// Of each rpc by its path: the action, and whether the audit trail has its calls.
const RPCS: &[(&str, &str, bool)] = include!(concat!(env!("OUT_DIR"), "/access.rs"));

/// The action of each rpc, by its path; none: everybody may call it.
pub fn actions() -> impl Iterator<Item = (&'static str, Option<access::Action>)> {
    RPCS.iter().map(|(path, name, _)| (*path, action(name)))
}

/// The audit trail has an event of each call of an rpc, by its path. One that there is none of
/// would be recorded.
#[must_use]
pub fn is_recorded(path: &str) -> bool {
    let unrecorded = RPCS
        .iter()
        .any(|(known, _, recorded)| *known == path && !recorded);
    !unrecorded
}

#[expect(
    clippy::expect_used,
    reason = "the build wrote the names of the contract's enum, which a test compares"
)]
pub(super) fn action(name: &str) -> Option<access::Action> {
    (name != "anything").then(|| name.parse().expect("an action of the contract"))
}

/// Who makes a call and what it may do, as the server's layers found out and put into it.
#[must_use]
pub fn access_of(call: &http::Extensions) -> Access {
    let found = call.get().cloned();
    found.unwrap_or_else(|| Access::without_sign_in(Principal::anonymous(), Actions::default()))
}

/// An action as the contract has it.
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

/// An action of the contract; none: everybody may do it, or it is none.
#[must_use]
pub fn action_from_wire(action: v1::Action) -> Option<access::Action> {
    let mut all = access::Action::ALL.iter().copied();
    all.find(|known| action_on_wire(*known) == action)
}

/// What is asked and told where the messages of a call are decoded and encoded.
#[derive(Clone, Default)]
pub struct Looks {
    /// Who decides. None: its caller may do its action to every skill, or the call is the
    /// server's own.
    pub authorizer: Option<Arc<dyn Authorize>>,
    /// Who notes what the call is done to. None: its calls are not recorded.
    pub noted: Option<audit::Noted>,
}

tokio::task_local! {
    static LOOKS: Looks;
}

/// Has codecs that are made while a future is polled look at their messages so.
pub async fn looked_at<F: Future>(looks: Looks, future: F) -> F::Output {
    LOOKS.scope(looks, future).await
}

/// How codecs that are made now look at their messages.
pub(super) fn looks() -> Looks {
    LOOKS.try_with(Clone::clone).unwrap_or_default()
}

/// Asks whether a request may do its action to the skill that it names.
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
}
