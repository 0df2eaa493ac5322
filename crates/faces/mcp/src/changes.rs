//! Changes of skills, announced to listeners.
//!
//! One task a process follows the event log and hands events to all listeners. A
//! listener debounces them: a bulk publish is one notice that the lists changed, not
//! thousands. One that falls behind is notified that everything changed.

use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use prost::Message as _;
use rmcp::ErrorData;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, RoleServer, SubscriptionContext};
use tokio::sync::broadcast;
use tokio::task::AbortHandle;

use super::error::resource;
use super::handler::Handler;
use super::tools::catalog_request;
use contract::v1;
use contract::v1::lookup_client::LookupClient;
use contract::v1::registry_client::RegistryClient;
use gateway::{MAX_MESSAGE_BYTES, Refusal, Transport};
use model::{Reference, SkillUri};
use registry::Sees;

/// Events that a listener may lag behind.
const EVENT_QUEUE_CAPACITY: usize = 1024;
/// How long a listener waits for further events.
const DEBOUNCE_DELAY: Duration = Duration::from_millis(50);
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
    shared: Arc<LogFollower>,
}

#[derive(Debug)]
struct LogFollower {
    transport: Transport,
    events: broadcast::Sender<Arc<str>>,
    /// What tools are listed as, and the number of events when that was read.
    listed: tokio::sync::Mutex<(u64, Listed)>,
    seen: AtomicU64,
    task: OnceLock<AbortHandle>,
}

/// Digests of what lists of tools show of skills.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Listed {
    /// The list of skills in a description.
    catalog: u64,
    /// The tools that handlers serve.
    served: u64,
}

fn digest(listed: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    listed.hash(&mut hasher);
    hasher.finish()
}

/// The parts of a list of tools that depend on skills.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Shows {
    /// A description goes on with the list of skills.
    pub(super) catalog: bool,
    /// The tools that skills unlock are tools of their own.
    pub(super) unlocked: bool,
}

impl Drop for LogFollower {
    fn drop(&mut self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }
}

/// The changes of one debounce.
#[derive(Debug)]
struct Debounced {
    /// Ids of the skills. None: any of them.
    skills: Option<BTreeSet<Arc<str>>>,
}

impl Debounced {
    /// Returns the changes of skills that a caller sees; none: there are none.
    fn seen_by(mut self, sees: Option<&Arc<dyn Sees>>) -> Option<Self> {
        let (Some(skills), Some(sees)) = (&mut self.skills, sees) else {
            // "Anything may have changed" names no skill, so it needs no filter.
            return Some(self);
        };
        skills.retain(|id| id.parse().is_ok_and(|id| sees.sees(&id)));
        (!skills.is_empty()).then_some(self)
    }

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
            shared: Arc::new(LogFollower {
                transport,
                events: broadcast::channel(EVENT_QUEUE_CAPACITY).0,
                listed: tokio::sync::Mutex::default(),
                // Above the 0 of `listed`, so that the first question is not answered from it.
                seen: AtomicU64::new(1),
                task: OnceLock::new(),
            }),
        }
    }

    /// Begins to follow the log, where that has not begun.
    fn follow(&self) {
        self.shared.task.get_or_init(|| {
            let (transport, events) = (self.shared.transport.clone(), self.shared.events.clone());
            // Weak: the task must not keep alive the face whose end aborts it.
            let shared = Arc::downgrade(&self.shared);
            let send = move |id: Arc<str>| {
                if let Some(shared) = shared.upgrade() {
                    shared.seen.fetch_add(1, Ordering::Relaxed);
                }
                let _nobody_listens = events.send(id);
            };
            tokio::spawn(follow(transport, send)).abort_handle()
        });
    }

    /// Returns what tools are listed as now, read once after an event for all listeners.
    async fn listed(&self) -> Option<Listed> {
        let mut known = self.shared.listed.lock().await;
        // Before the reads: an event that comes meanwhile has the next listener read again.
        let seen = self.shared.seen.load(Ordering::Relaxed);
        if known.0 < seen {
            let mut lookup = LookupClient::new(self.shared.transport.clone())
                .max_decoding_message_size(MAX_MESSAGE_BYTES);
            let prompt = lookup.render_prompt(catalog_request());
            let prompt = prompt.await.ok()?.into_inner();
            let tools = lookup.list_tools(v1::ListToolsRequest::default());
            let tools = tools.await.ok()?.into_inner();
            let listed = Listed {
                catalog: digest(&prompt.text),
                served: digest(&tools.encode_to_vec()),
            };
            *known = (seen, listed);
        }
        Some(known.1)
    }

    /// Listens from now on.
    fn listen(&self) -> broadcast::Receiver<Arc<str>> {
        // Before the log is followed, so that its first event is not missed.
        let receiver = self.shared.events.subscribe();
        self.follow();
        receiver
    }
}

/// Follows the event log for as long as the process runs.
async fn follow(transport: Transport, send: impl Fn(Arc<str>)) {
    let mut resume = String::new();
    let mut wait = RETRY.0;
    loop {
        match watch(&transport, &send, &mut resume, &mut wait).await {
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
    send: &impl Fn(Arc<str>),
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
            // Events before this point were not seen: for listeners, anything may have changed.
            send(Arc::from(""));
        }
        // Only an answer resets the delay: a server that accepts and breaks off is left alone
        // longer.
        *wait = RETRY.0;
        *resume = answer.resume_token;
        if let Some(event) = answer.event {
            send(Arc::from(event.skill_id));
        }
    }
    Ok(())
}

/// Waits for a change, and collects those that follow at once. None: there will be none.
async fn debounce(events: &mut broadcast::Receiver<Arc<str>>) -> Option<Debounced> {
    use broadcast::error::RecvError;
    let mut skills = Some(BTreeSet::new());
    let mut take = |received: Result<Arc<str>, RecvError>| match received {
        Ok(id) if !id.is_empty() => {
            if let Some(skills) = &mut skills {
                skills.insert(id);
            }
            true
        }
        // Events were lost, here or while the log was not followed: any skill may have changed.
        Ok(_) | Err(RecvError::Lagged(_)) => {
            skills = None;
            true
        }
        Err(RecvError::Closed) => false,
    };
    if !take(events.recv().await) {
        return None;
    }
    let end = tokio::time::Instant::now() + DEBOUNCE_DELAY;
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
    /// The list of tools as the session last received it.
    tools: Arc<ToolList>,
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
    pub(super) fn new(changes: Changes, shows: Shows) -> Self {
        // Before anybody listens, so that the first listener is notified without delay.
        changes.follow();
        Self {
            tools: Arc::new(ToolList::new(&changes, shows)),
            changes,
            uris: Arc::default(),
            task: OnceLock::new(),
        }
    }

    /// Announces changes to a session until it ends.
    /// `sees`: which skills its caller sees.
    pub(super) fn announce_to(&self, peer: Peer<RoleServer>, sees: Option<Arc<dyn Sees>>) {
        self.task.get_or_init(|| {
            let mut events = self.changes.listen();
            let (uris, tools) = (Arc::clone(&self.uris), Arc::clone(&self.tools));
            let task = async move {
                tools.begin().await;
                while let Some(gathered) = debounce(&mut events).await {
                    let Some(gathered) = gathered.seen_by(sees.as_ref()) else {
                        continue;
                    };
                    let tools = tools.has_changed().await;
                    if let Err(error) = announce(&peer, tools, &gathered, &uris).await {
                        tracing::debug!(%error, "a session that ended gets no more notices");
                        return;
                    }
                }
            };
            tokio::spawn(task).abort_handle()
        });
    }

    /// Announces changes on a subscription of the stateless era, as far as it asked
    /// for them, until it is cancelled.
    /// `sees`: which skills its caller sees.
    pub(super) async fn stream(
        &self,
        subscription: &SubscriptionContext,
        sees: Option<Arc<dyn Sees>>,
    ) {
        let mut events = self.changes.listen();
        // A list of its own: whether and when its caller last asked for tools is not known.
        let tools = ToolList::new(&self.changes, self.tools.shows);
        let accepted = subscription.accepted();
        let uris = accepted.resource_subscriptions.clone().unwrap_or_default();
        loop {
            let gathered = tokio::select! {
                gathered = debounce(&mut events) => gathered,
                () = subscription.cancelled() => return,
            };
            let Some(gathered) = gathered else { return };
            let Some(gathered) = gathered.seen_by(sees.as_ref()) else {
                continue;
            };
            let sink = subscription.sink();
            let tools = accepted.tools_list_changed == Some(true) && tools.has_changed().await;
            let notify = async {
                if tools {
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
            if let Err(error) = notify.await {
                tracing::debug!(%error, "a subscription that ended gets no more notices");
                return;
            }
        }
    }

    /// Notes that the session is about to receive the list of tools.
    pub(super) async fn lists_tools(&self) {
        self.tools.refresh().await;
    }

    fn uris(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.uris.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn unsubscribe(&self, uri: &str) {
        self.uris().remove(uri);
    }
}

/// The list of tools as one listener knows it.
#[derive(Debug)]
struct ToolList {
    changes: Changes,
    shows: Shows,
    /// None: it may have received any.
    known: Mutex<Option<Listed>>,
}

impl ToolList {
    fn new(changes: &Changes, shows: Shows) -> Self {
        Self {
            changes: changes.clone(),
            shows,
            known: Mutex::default(),
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Option<Listed>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the current list as known where none was sent yet. One that was sent stays, so that a
    /// change since then is noticed.
    async fn begin(&self) {
        if self.known().is_none() {
            self.refresh().await;
        }
    }

    /// Remembers the current list, before it is sent, so that no change falls between. Returns what
    /// was known before, and the current one. Reads nothing where nothing of the list can change.
    async fn refresh(&self) -> (Option<Listed>, Option<Listed>) {
        let Shows { catalog, unlocked } = self.shows;
        if !catalog && !unlocked {
            return (None, None);
        }
        let now = self.changes.listed().await;
        (std::mem::replace(&mut *self.known(), now), now)
    }

    /// Returns whether the list differs from the known one. Where that is unknown, it does.
    async fn has_changed(&self) -> bool {
        let Shows { catalog, unlocked } = self.shows;
        let (Some(before), Some(now)) = self.refresh().await else {
            return catalog || unlocked;
        };
        (catalog && before.catalog != now.catalog) || (unlocked && before.served != now.served)
    }
}

async fn announce(
    peer: &Peer<RoleServer>,
    tools: bool,
    gathered: &Debounced,
    uris: &Mutex<HashSet<String>>,
) -> Result<(), rmcp::ServiceError> {
    if tools {
        peer.notify_tool_list_changed().await?;
    }
    peer.notify_prompt_list_changed().await?;
    peer.notify_resource_list_changed().await?;
    // Copied out: the lock must not be held while a slow client is notified.
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
