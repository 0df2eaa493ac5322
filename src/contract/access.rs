//! What the contract says of who may call: the action of each rpc, and the skill that a
//! request names.
//!
//! Whether a caller may do an action at all is decided where its call comes in; whether to
//! this skill, where the request is decoded ([`CheckedCodec`](super::CheckedCodec)), before
//! any handler sees it. Both tables are written by the build, which fails for an rpc without
//! an action.

use std::future::Future;
use std::sync::Arc;

use access::Authorize;
use model::Failure;

/// The action of each rpc, by its path; none: everybody may call it.
pub fn actions() -> impl Iterator<Item = (&'static str, Option<access::Action>)> {
    const ACTIONS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/access.rs"));
    ACTIONS.iter().map(|(path, name)| (*path, action(name)))
}

#[expect(
    clippy::expect_used,
    reason = "the build wrote the names of the contract's enum, which a test compares"
)]
fn action(name: &str) -> Option<access::Action> {
    (name != "anything").then(|| name.parse().expect("an action of the contract"))
}

tokio::task_local! {
    static AUTHORIZER: Arc<dyn Authorize>;
}

/// Has what is decoded while a future is polled, and by decoders that are made meanwhile,
/// decided on.
pub async fn with_authorizer<F: Future>(authorizer: Arc<dyn Authorize>, future: F) -> F::Output {
    AUTHORIZER.scope(authorizer, future).await
}

/// Who decides on the call in work. None: its caller may do its action to every skill, or the
/// call is the server's own.
pub(super) fn authorizer() -> Option<Arc<dyn Authorize>> {
    AUTHORIZER.try_with(Arc::clone).ok()
}

/// Asks whether a request may do its action to the skill that it names.
pub(super) fn allowed(authorizer: &dyn Authorize, name: &str, skill: &str) -> Result<(), Failure> {
    action(name).map_or(Ok(()), |action| authorizer.allow(action, skill))
}
