//! The services as traits of this project, which the build writes.
//!
//! A handler is a method of what its caller may see: [`Handlers`] makes the [`View`] of each
//! call before it calls the handler, and nobody else reaches the service, so a handler that
//! forgets whose call it is does not exist. A value that needs a right of its own
//! (`(repertoire.v1.needs)`) is asked about there as well.

use std::borrow::Cow;
use std::pin::Pin;

use futures_util::Stream;
use http::Extensions;
use tonic::{Request, Response, Status, Streaming};

use super::access::{access_of, action};
use super::{status, v1};
use model::Failure;

/// What a handler answers; its failure becomes a status in one place.
pub type Answer<T> = Result<Response<T>, Failure>;

/// What a stream of answers sends.
pub type Messages<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// A service that shows each caller what it may see.
pub trait View: Clone + Send + Sync + 'static {
    /// The same service for one call, found by what the call carries; borrowed where its
    /// caller sees all of it. Every service says this, so none shows all because somebody
    /// forgot.
    fn view<'a>(&'a self, call: &Extensions) -> impl Future<Output = Cow<'a, Self>> + Send;
}

/// Serves the handlers of a service.
#[derive(Debug, Clone)]
pub struct Handlers<S>(S);

impl<S: View> Handlers<S> {
    /// Those of a service that sees everything.
    #[must_use]
    pub fn new(service: S) -> Self {
        Self(service)
    }

    async fn view<T>(&self, request: &Request<T>) -> Cow<'_, S> {
        self.0.view(request.extensions()).await
    }
}

/// Asks for the action that a value of a request needs: `of` has those that need one.
fn needs<T>(request: &Request<T>, value: i32, of: &[(i32, &str)]) -> Result<(), Failure> {
    let of = of.iter().find(|(known, _)| *known == value);
    match of.and_then(|(_, name)| action(name)) {
        Some(action) => access_of(request.extensions()).require(action),
        None => Ok(()),
    }
}

include!(concat!(env!("OUT_DIR"), "/handlers.rs"));
