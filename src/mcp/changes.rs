//! Changes of skills, announced to whoever listens.
//!
//! One task a process follows the event log and hands events to all listeners. A
//! listener gathers what comes within a moment: a bulk publish is one notice that
//! the lists changed, not thousands. One that falls behind is told that
//! everything changed.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, RoleServer, SubscriptionContext};
use tokio::sync::broadcast;
use tokio::task::AbortHandle;

use super::error::resource;
use super::handler::Handler;
use crate::contract::v1;
use crate::contract::v1::registry_client::RegistryClient;
use crate::gateway::{Refusal, Transport};
use model::{Reference, SkillUri};

/// Events that a listener may lag behind.
const QUEUE: usize = 1024;
/// How long a listener gathers.
const MOMENT: Duration = Duration::from_millis(50);
/// How long to wait before the log is asked again, at first and at most.
const RETRY: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));
/// Addresses that a session, or a stream, may subscribe to.
const MAX_SUBSCRIPTIONS: usize = 1000;
/// Bytes of an address, and of all addresses of a session or a stream.
const MAX_ADDRESS_BYTES: usize = 1024;
const MAX_ADDRESSES_BYTES: usize = 64 * 1024;

/// Leaves out the addresses that are too many, or too long.
pub(super) fn within_limits(uris: &mut Vec<String>) {
    let (mut count, mut bytes) = (0, 0);
    uris.retain(|uri| {
        let fits = uri.len() <= MAX_ADDRESS_BYTES
            && count < MAX_SUBSCRIPTIONS
            && bytes + uri.len() <= MAX_ADDRESSES_BYTES;
        if fits {
            (count, bytes) = (count + 1, bytes + uri.len());
        }
        fits
    });
    uris.shrink_to_fit();
}

/// The changes of the skills behind a transport.
#[derive(Debug, Clone)]
pub(super) struct Changes {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    transport: Transport,
    events: broadcast::Sender<Arc<str>>,
    task: OnceLock<AbortHandle>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }
}

/// What changed, gathered.
#[derive(Debug)]
struct Debounced {
    /// Ids of the skills. None: any of them.
    skills: Option<BTreeSet<Arc<str>>>,
}

impl Debounced {
    /// A resource may have changed.
    fn touches(&self, uri: &str) -> bool {
        let (Some(skills), Ok(uri)) = (&self.skills, uri.parse::<SkillUri>()) else {
            return true;
        };
        skills.iter().any(|id| match &uri.skill {
            Reference::Id(wanted) => wanted.as_str().eq_ignore_ascii_case(id),
            // A short name leads to a skill by its slug or by what its front matter says,
            // before the change or after it: to any that changed.
            Reference::Name(_) => true,
        })
    }
}

impl Changes {
    pub(super) fn new(transport: Transport) -> Self {
        Self {
            shared: Arc::new(Shared {
                transport,
                events: broadcast::channel(QUEUE).0,
                task: OnceLock::new(),
            }),
        }
    }

    /// Begins to follow the log, where that has not begun.
    fn follow(&self) {
        self.shared.task.get_or_init(|| {
            let (transport, events) = (self.shared.transport.clone(), self.shared.events.clone());
            tokio::spawn(follow(transport, events)).abort_handle()
        });
    }

    /// Listens from now on.
    fn listen(&self) -> broadcast::Receiver<Arc<str>> {
        let receiver = self.shared.events.subscribe();
        self.follow();
        receiver
    }
}

/// Follows the event log for as long as the process runs.
async fn follow(transport: Transport, events: broadcast::Sender<Arc<str>>) {
    let mut resume = String::new();
    let mut wait = RETRY.0;
    loop {
        match watch(&transport, &events, &mut resume, &mut wait).await {
            Ok(()) => {}
            // The log no longer reaches back.
            Err(refusal) if refusal.is_expired() => resume.clear(),
            Err(refusal) => tracing::debug!(%refusal, "changes are not followed for now"),
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(RETRY.1);
    }
}

async fn watch(
    transport: &Transport,
    events: &broadcast::Sender<Arc<str>>,
    resume: &mut String,
    wait: &mut Duration,
) -> Result<(), Refusal> {
    let request = v1::WatchRequest {
        resume_token: resume.clone(),
        ..Default::default()
    };
    let mut registry = RegistryClient::new(transport.clone());
    let mut answers = registry.watch(request).await?.into_inner();
    let mut anew = resume.is_empty();
    while let Some(answer) = answers.message().await? {
        if std::mem::take(&mut anew) {
            // Nobody saw what happened until now: to whoever listens already, anything
            // may have changed.
            let _nobody_listens = events.send(Arc::from(""));
        }
        *wait = RETRY.0;
        *resume = answer.resume_token;
        if let Some(event) = answer.event {
            let _nobody_listens = events.send(Arc::from(event.skill_id));
        }
    }
    Ok(())
}

/// Waits for a change, and gathers what comes with it. None: there will be none.
async fn debounce(events: &mut broadcast::Receiver<Arc<str>>) -> Option<Debounced> {
    use broadcast::error::RecvError;
    let mut skills = Some(BTreeSet::new());
    let mut take = |received: Result<Arc<str>, RecvError>| match received {
        Ok(id) if id.is_empty() => {
            skills = None;
            true
        }
        Ok(id) => {
            if let Some(skills) = &mut skills {
                skills.insert(id);
            }
            true
        }
        Err(RecvError::Lagged(_)) => {
            skills = None;
            true
        }
        Err(RecvError::Closed) => false,
    };
    if !take(events.recv().await) {
        return None;
    }
    let end = tokio::time::Instant::now() + MOMENT;
    while let Ok(received) = tokio::time::timeout_at(end, events.recv()).await {
        if !take(received) {
            break;
        }
    }
    Some(Debounced { skills })
}

/// What one session listens to.
#[derive(Debug)]
pub(super) struct Listener {
    changes: Changes,
    /// Addresses that the session subscribed to.
    uris: Arc<Mutex<HashSet<String>>>,
    task: OnceLock<AbortHandle>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }
}

impl Listener {
    pub(super) fn new(changes: Changes) -> Self {
        // Before anyone listens: the first to do so is told of changes at once.
        changes.follow();
        Self {
            changes,
            uris: Arc::default(),
            task: OnceLock::new(),
        }
    }

    /// Announces changes to a session until it ends.
    pub(super) fn announce_to(&self, peer: Peer<RoleServer>) {
        self.task.get_or_init(|| {
            let mut events = self.changes.listen();
            let uris = Arc::clone(&self.uris);
            let task = async move {
                while let Some(gathered) = debounce(&mut events).await {
                    if let Err(error) = announce(&peer, &gathered, &uris).await {
                        tracing::debug!(%error, "a session that ended is told nothing more");
                        return;
                    }
                }
            };
            tokio::spawn(task).abort_handle()
        });
    }

    /// Announces changes on a subscription of the stateless era, as far as it asked
    /// for them, until it is cancelled.
    pub(super) async fn stream(&self, subscription: &SubscriptionContext) {
        let mut events = self.changes.listen();
        let accepted = subscription.accepted();
        let uris = accepted.resource_subscriptions.clone().unwrap_or_default();
        loop {
            let gathered = tokio::select! {
                gathered = debounce(&mut events) => gathered,
                () = subscription.cancelled() => return,
            };
            let Some(gathered) = gathered else { return };
            let sink = subscription.sink();
            let told = async {
                if accepted.tools_list_changed == Some(true) {
                    sink.notify_tool_list_changed().await?;
                }
                if accepted.prompts_list_changed == Some(true) {
                    sink.notify_prompt_list_changed().await?;
                }
                if accepted.resources_list_changed == Some(true) {
                    sink.notify_resource_list_changed().await?;
                }
                for uri in uris.iter().filter(|uri| gathered.touches(uri)) {
                    sink.notify_resource_updated(uri.clone()).await?;
                }
                Ok::<_, rmcp::service::SubscriptionSendError>(())
            };
            if let Err(error) = told.await {
                tracing::debug!(%error, "a subscription that ended is told nothing more");
                return;
            }
        }
    }

    fn uris(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.uris.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn unsubscribe(&self, uri: &str) {
        self.uris().remove(uri);
    }
}

async fn announce(
    peer: &Peer<RoleServer>,
    gathered: &Debounced,
    uris: &Mutex<HashSet<String>>,
) -> Result<(), rmcp::ServiceError> {
    peer.notify_tool_list_changed().await?;
    peer.notify_prompt_list_changed().await?;
    peer.notify_resource_list_changed().await?;
    let touched: Vec<_> = {
        let uris = uris.lock().unwrap_or_else(PoisonError::into_inner);
        let touched = uris.iter().filter(|uri| gathered.touches(uri));
        touched.cloned().collect()
    };
    for uri in touched {
        let notice = ResourceUpdatedNotificationParam::new(uri);
        peer.notify_resource_updated(notice).await?;
    }
    Ok(())
}

impl Handler {
    /// Announces changes of a resource to this session.
    pub(super) async fn subscribe_to(&self, uri: String) -> Result<(), ErrorData> {
        if uri.len() > MAX_ADDRESS_BYTES {
            let sentence =
                format!("The address of a resource has {MAX_ADDRESS_BYTES} bytes at most");
            return Err(ErrorData::invalid_params(sentence, None));
        }
        let request = v1::ReadSkillRequest {
            uri: uri.clone(),
            ..Default::default()
        };
        if let Err(status) = self.lookup().read_skill(request).await {
            let refusal = Refusal::from(status);
            if refusal.code != model::Code::FileNotText.name() {
                return Err(resource(&refusal, &uri));
            }
        }
        let mut uris = self.listener.uris();
        let bytes: usize = uris.iter().map(String::len).sum();
        let full = uris.len() >= MAX_SUBSCRIPTIONS || bytes + uri.len() > MAX_ADDRESSES_BYTES;
        if full && !uris.contains(&uri) {
            return Err(ErrorData::invalid_request(
                format!(
                    "A session subscribes to {MAX_SUBSCRIPTIONS} resources at most, whose \
                     addresses have {} KiB together",
                    MAX_ADDRESSES_BYTES >> 10
                ),
                None,
            ));
        }
        uris.insert(uri);
        Ok(())
    }
}
