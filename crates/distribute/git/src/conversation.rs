//! One conversation with a remote: a list of refs, or a pack.

use std::sync::Arc;

use gix::credentials::helper::Action;
use gix::credentials::protocol::Outcome;
use gix::progress::Discard;
use gix::protocol::handshake::Ref;
use gix::protocol::transport::Protocol;
use gix::protocol::transport::client::blocking_io::{Transport, http};
use gix::remote::Direction;
use gix::remote::fetch::{Shallow, Tags};
use secrecy::ExposeSecret as _;

use super::address::Address;
use super::guard::Guard;
use super::http::Client;
use super::remote::Credential;
use super::{Error, Remote, process};

/// The user where the credential is only a token: hosts take any name with one.
const TOKEN_USER: &str = "x-access-token";
/// Bytes of a list of refs. Servers with protocol 2 send those that are asked for, older ones all
/// that they have.
const MAX_LIST: u64 = 32 << 20;
/// Characters of gix's error in ours.
const MAX_ERROR_CHARS: usize = 300;

pub(super) enum Ask {
    /// Which of these refs exist.
    Refs(Vec<String>),
    /// The commit of a ref, stored under another name here.
    Pack {
        /// A whole ref of the remote.
        from: String,
        /// A whole ref of the repository.
        to: &'static str,
        /// How much of its history.
        shallow: Shallow,
    },
}

#[derive(Debug, Clone)]
pub(super) struct RemoteRef {
    /// Its whole name; where it stands for another, that one's.
    pub(super) name: String,
    /// The name that was asked for.
    pub(super) asked: String,
    /// The object that it points to, behind tags; none: nothing was committed there yet.
    pub(super) target: Option<gix::ObjectId>,
}

pub(super) struct Answer {
    pub(super) refs: Vec<RemoteRef>,
    pub(super) hash: gix::hash::Kind,
}

/// Asks the remote.
///
/// # Errors
/// The reason that the guard has, else the error: [`Error::Damaged`] where the repository here
/// may be the cause, or the question.
pub(super) fn ask(
    repository: &gix::Repository,
    remote: &Remote,
    guard: &Arc<Guard>,
    question: Ask,
) -> Result<Answer, Error> {
    let (answer, complaint) = match &remote.address {
        Address::Http(address) => {
            let address = gix::url::parse(address.as_str()).map_err(|error| {
                Error::Invalid(model::shown(&error.to_string(), MAX_ERROR_CHARS))
            })?;
            let client = Client::new(Arc::clone(guard), remote.options.egress.clone())?;
            let transport = http::Transport::new_http(client, address, Protocol::V2, false);
            (
                converse(repository, remote, transport, guard, question),
                None,
            )
        }
        Address::Ssh {
            user,
            host,
            port,
            path,
        } => {
            let at = (user.as_deref(), host.as_str(), *port, path.as_str());
            let (transport, complaint) = process::ssh(guard, remote, at)?;
            let answer = converse(repository, remote, transport, guard, question);
            (answer, Some(complaint))
        }
        Address::File(folder) => {
            let (transport, complaint) = process::local(guard, remote, folder)?;
            let answer = converse(repository, remote, transport, guard, question);
            (answer, Some(complaint))
        }
    };
    guard.end_child();
    // Taken after a success too: a bound that was passed when all was here already must not end
    // the next conversation.
    let cause = guard.take_cause();
    let error = match answer {
        Ok(answer) => return Ok(answer),
        Err(error) => error,
    };
    if let Some(cause) = cause {
        return Err(cause);
    }
    let complaint = complaint.and_then(process::Complaint::into_error);
    Err(match complaint.unwrap_or_else(|| of_gix(&error, remote)) {
        // What came may be broken, or what is here, which the next step may replace.
        Error::Unavailable(words) => Error::Damaged(words),
        error => error,
    })
}

/// The error for the caller, where replacing the repository here did not help.
pub(super) fn final_error(error: Error) -> Error {
    match error {
        Error::Damaged(words) => Error::Unavailable(words),
        error => error,
    }
}

fn of_gix(error: &gix::Error, remote: &Remote) -> Error {
    let words = chain(error);
    let shown = model::shown(&words.replace('\n', " "), MAX_ERROR_CHARS);
    // By its text, as gix has no kind for it. `hostile.rs` fails when the text changes.
    if words.contains("in clear text over http") {
        return Error::Refused(
            "the server asks for credentials, which are not sent over http; take https".to_owned(),
        );
    }
    if error.is_unauthenticated() {
        return Error::Refused(match remote.options.credential {
            Some(_) => "the server does not take the credential".to_owned(),
            None => "the server wants to know who asks; name a credential".to_owned(),
        });
    }
    if error.is_resource_exhausted() {
        return Error::TooLarge(format!(
            "the repository has an object of more than {}: {shown}",
            super::guard::size(super::repository::MAX_OBJECT)
        ));
    }
    Error::Unavailable(format!("what the server sent cannot be used: {shown}"))
}

/// The messages of an error and its causes.
pub(super) fn chain(error: &gix::Error) -> String {
    let mut words = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        let message = next.to_string();
        // Some errors of gix have the message of their cause in their own.
        if !words.contains(&message) {
            words = format!("{words}: {message}");
        }
        cause = next.source();
    }
    words
}

fn converse<T: Transport>(
    repository: &gix::Repository,
    remote: &Remote,
    transport: T,
    guard: &Arc<Guard>,
    question: Ask,
) -> gix::Result<Answer> {
    let specs = match &question {
        Ask::Refs(names) => names.clone(),
        Ask::Pack { from, to, .. } => vec![format!("+{from}:{to}")],
    };
    let here = repository
        .remote_at_without_url_rewrite(remote.url().as_str())?
        .with_refspecs(specs.iter().map(String::as_str), Direction::Fetch)?
        .with_fetch_tags(Tags::None);
    let mut connection = here.to_connection_with_transport(transport);
    // Also without a credential: gix would else run the credential helpers of the machine.
    connection.set_credentials(|action| Ok(identity(remote, guard, action)));
    connection.set_transport_options(Box::new(()));
    let map = match question {
        Ask::Refs(_) => {
            let listed = guard.within(MAX_LIST, || connection.ref_map(Discard, Default::default()));
            listed?.0
        }
        Ask::Pack { shallow, .. } => {
            let prepared = guard.within(MAX_LIST, || {
                connection.prepare_fetch(Discard, Default::default())
            });
            let received = prepared?
                .with_shallow(shallow)
                .receive(Discard, &guard.interrupt)?;
            received.ref_map
        }
    };
    let refs = map.remote_refs.iter().map(remote_ref).collect();
    Ok(Answer {
        refs,
        hash: map.object_hash,
    })
}

/// The credential is for the server of the URL, and for none that it redirects to.
fn is_for(remote: &Remote, asking: &str) -> bool {
    let Address::Http(url) = &remote.address else {
        return false;
    };
    let Ok(asking) = url::Url::parse(asking) else {
        return false;
    };
    // To the same host, and safer than what the operator asked for.
    let is_upgrade = url.scheme() == "http"
        && asking.scheme() == "https"
        && url.host() == asking.host()
        && url.port().is_none()
        && asking.port().is_none();
    is_upgrade || url.origin() == asking.origin()
}

fn identity(remote: &Remote, guard: &Guard, action: Action) -> Option<Outcome> {
    // The others store or erase a credential in a helper.
    let Action::Get(context) = action else {
        return None;
    };
    let credential = remote.options.credential.as_ref()?;
    let asking = context.url.as_ref().map(ToString::to_string);
    if !is_for(remote, &asking.unwrap_or_default()) {
        let words = "the server redirects to another one that asks for credentials, which are not \
                     sent there; take the URL where the repository is";
        guard.fail(Error::Refused(words.to_owned()));
        return None;
    }
    let (username, password) = match credential {
        Credential::Token(token) => (TOKEN_USER.to_owned(), token.expose_secret().to_owned()),
        Credential::Login { user, password } => (user.clone(), password.expose_secret().to_owned()),
    };
    Some(Outcome {
        identity: gix::sec::identity::Account {
            username,
            password,
            oauth_refresh_token: None,
        },
        next: context.into(),
    })
}

fn remote_ref(found: &Ref) -> RemoteRef {
    let (asked, name, target) = match found {
        Ref::Peeled {
            full_ref_name,
            object,
            ..
        }
        | Ref::Direct {
            full_ref_name,
            object,
        } => (full_ref_name, full_ref_name, Some(*object)),
        Ref::Symbolic {
            full_ref_name,
            target,
            object,
            ..
        } => (full_ref_name, target, Some(*object)),
        Ref::Unborn {
            full_ref_name,
            target,
        } => (full_ref_name, target, None),
    };
    RemoteRef {
        name: name.to_string(),
        asked: asked.to_string(),
        target,
    }
}
