//! The services as traits of this project, which the build writes.
//!
//! A handler is a method of what its caller may see: [`Handlers`] makes the [`View`] of each
//! call before it calls the handler, and the service cannot be reached otherwise, so no handler
//! can forget to filter. The right that a value of a request needs (`(repertoire.v1.needs)`) is
//! checked there as well, and what a caller on the network names of the server's resources
//! (`(repertoire.v1.field).permitted_by`). Fields of an answer that need more than its rpc
//! (`(repertoire.v1.field).needs`) are cleared there for callers without it, and a handler of a
//! stream whose items are refused one by one gets the [`ItemAuthorizer`] of its call.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::Stream;
use http::Extensions;
use tonic::{Request, Response, Status, Streaming};

use super::access::{access_of, action, codec_hooks};
use super::resources::NamedResource;
use super::{Checked, status, v1};
use ::access::Authorize;
use model::Failure;

/// The answer of a handler; its failure becomes a status in one place.
pub type Answer<T> = Result<Response<T>, Failure>;

/// The messages that a stream of answers sends.
pub type Messages<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// A service that shows each caller what it may see.
pub trait View: Clone + Send + Sync + 'static {
    /// Returns the same service for one call, by the extensions of the call; borrowed where its
    /// caller sees all of it. There is no default, so that no service shows everything because
    /// somebody forgot.
    fn view<'a>(&'a self, call: &Extensions) -> impl Future<Output = Cow<'a, Self>> + Send;

    /// Returns whether the setting of a resource permits callers on the network to name it.
    /// `all`: what the request names. By default no setting permits anything.
    fn permits(&self, _named: &NamedResource<'_>, _all: &[NamedResource<'_>]) -> bool {
        false
    }
}

/// Serves the handlers of a service.
#[derive(Debug, Clone)]
pub struct Handlers<S>(S);

impl<S: View> Handlers<S> {
    /// Creates the handlers of a service that sees everything.
    #[must_use]
    pub fn new(service: S) -> Self {
        Self(service)
    }

    async fn view<T>(&self, request: &Request<T>) -> Cow<'_, S> {
        self.0.view(request.extensions()).await
    }
}

/// Decides which items of a stream its caller may send. Only the call layer makes one, from the
/// action that the contract states, so a handler cannot use another.
#[derive(Clone)]
pub struct ItemAuthorizer(Option<Arc<dyn Authorize>>);

impl ItemAuthorizer {
    fn of_call() -> Self {
        Self(codec_hooks().authorizer)
    }

    /// Checks the action of the call for the skill that an item names.
    ///
    /// # Errors
    /// The caller may not do it.
    pub fn check(&self, item: &impl Checked) -> Result<(), Failure> {
        self.0.as_deref().map_or(Ok(()), |by| item.authorize(by))
    }
}

/// Checks the action that a value of a request needs, for the skill that the request names; `of`
/// has the values that need one.
fn needs<T>(
    request: &Request<T>,
    value: i32,
    skill: &str,
    of: &[(i32, &str)],
) -> Result<(), Failure> {
    let of = of.iter().find(|(known, _)| *known == value);
    match of.and_then(|(_, name)| action(name)) {
        Some(action) => access_of(request.extensions()).allow(action, skill),
        None => Ok(()),
    }
}

/// Returns those of the actions that fields of an answer need which its caller does not have.
fn lacked_by<T>(request: &Request<T>, needed: &[&'static str]) -> Vec<&'static str> {
    let access = access_of(request.extensions());
    let rights = &access.caller.rights;
    // The fields are of any skill, so a right to some skills is not enough.
    let lacks = |name: &&str| action(name).is_some_and(|it| !rights.allow_to_all(it));
    needed.iter().copied().filter(lacks).collect()
}

/// Clears the fields of an answer that need more than its caller has.
fn withhold<T: Checked>(mut answer: Response<T>, lacked: &[&str]) -> Response<T> {
    if !lacked.is_empty() {
        answer.get_mut().withhold(lacked);
    }
    answer
}

/// Checks what a caller on the network names of the server's resources.
pub(super) fn permit_resources<S: View>(
    service: &S,
    request: &Request<impl Checked>,
) -> Result<(), Failure> {
    let mut all = Vec::new();
    request.get_ref().resources(&mut all);
    // Most requests name none: the caller is looked up for the others alone.
    if all.is_empty() || access_of(request.extensions()).is_local() {
        return Ok(());
    }
    match all.iter().find(|named| !service.permits(named, &all)) {
        Some(named) => Err(named.refusal()),
        None => Ok(()),
    }
}

include!(concat!(env!("OUT_DIR"), "/handlers.rs"));
