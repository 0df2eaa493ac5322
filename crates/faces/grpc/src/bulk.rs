//! Publishing many skills over one stream.
//!
//! A task of its own publishes, so that it goes on whether or not the client reads: an
//! item begins only when there is a permit for its answer, and from there on it waits for
//! nothing that the client does. So no client can hold the lock of a skill.

use std::sync::Arc;

use futures_util::{Stream, StreamExt as _, stream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tonic::{Status, Streaming};

use super::publish;
use contract::handlers::ItemAuthorizer;
use contract::refusal;
use contract::v1;
use contract::v1::publish_skills_response::Result as Published;
use executor::Kind;
use model::{Failure, Principal};
use registry::{Registry, Submitted};

/// Items of one stream in work at once.
const ITEM_CONCURRENCY: usize = 64;
/// Answers of one stream that its client has not read; at as many, it is read no further.
const MAX_UNREAD_ANSWERS: usize = 256;
/// Bytes of all streams in work at once, in KiB.
const MAX_IN_WORK_KIB: u32 = 64 * 1024;

/// State that all bulk streams share.
#[derive(Debug, Clone)]
pub(super) struct Bulk {
    registry: Registry,
    memory: Arc<Semaphore>,
}

type ItemAnswer = Result<v1::PublishSkillsResponse, Status>;

impl Bulk {
    pub(super) fn new(registry: &Registry) -> Self {
        Self {
            registry: registry.clone(),
            memory: Arc::new(Semaphore::new(MAX_IN_WORK_KIB as usize)),
        }
    }

    /// Returns the same over the registry that a caller sees; the memory stays shared.
    pub(super) fn with_registry(&self, registry: Registry) -> Self {
        Self {
            registry,
            ..self.clone()
        }
    }

    /// Publishes the items of a stream; their answers come in their order. Where the
    /// client leaves, what has begun is finished, and no more is begun.
    pub(super) fn publish(
        &self,
        items: Streaming<v1::PublishSkillsRequest>,
        by: Principal,
        authorizer: ItemAuthorizer,
    ) -> impl Stream<Item = ItemAnswer> + Send + use<> {
        let (send, answers) = mpsc::channel(MAX_UNREAD_ANSWERS);
        tokio::spawn(self.clone().run(items, (by, authorizer), send));
        tokio_stream::wrappers::ReceiverStream::new(answers)
    }

    async fn run(
        self,
        items: Streaming<v1::PublishSkillsRequest>,
        caller: (Principal, ItemAuthorizer),
        send: mpsc::Sender<ItemAnswer>,
    ) {
        let state = (items, send, self.clone());
        let items = stream::unfold(state, |(mut items, send, bulk)| async move {
            // In this order: an item is read only once there is a permit for its answer, and the
            // next one only once there is memory for this one. A client that does not read its
            // answers is thus no longer read.
            let answer = send.clone().reserve_owned().await.ok()?;
            let item = tokio::select! {
                item = items.next() => item?,
                // The client dropped its answers, though its own side may stay open.
                () = send.closed() => return None,
            };
            let memory = match &item {
                Ok(item) => bulk.reserve(item).await,
                Err(_) => None,
            };
            Some(((item, answer, memory), (items, send, bulk)))
        });
        // Items are read concurrently, but `buffered` keeps their order, so publishing begins in
        // the order of the stream: the versions of one skill get their numbers in that order.
        let bulk = self.clone();
        let read = items.map(move |(item, answer, memory)| {
            let (bulk, caller) = (bulk.clone(), caller.clone());
            async move {
                let read = match item {
                    Ok(item) => Ok(bulk.read(item, caller).await),
                    Err(broken) => Err(broken),
                };
                (read, answer, memory)
            }
        });
        let read = read.buffered(ITEM_CONCURRENCY).enumerate();
        let published = read.map(move |(index, (read, answer, memory))| {
            let bulk = self.clone();
            async move {
                let published = match read {
                    Ok(read) => Ok(bulk.publish_one(index, read).await),
                    Err(broken) => Err(broken),
                };
                // Stored or refused by now: the answer may wait for its reader, but not hold
                // memory.
                drop(memory);
                (published, answer)
            }
        });
        let mut published = std::pin::pin!(published.buffered(ITEM_CONCURRENCY));
        while let Some((published, answer)) = published.next().await {
            let broken = published.is_err();
            answer.send(published);
            // The transport yields nothing after an error, so no item is lost here.
            if broken {
                return;
            }
        }
    }

    async fn reserve(&self, item: &v1::PublishSkillsRequest) -> Option<OwnedSemaphorePermit> {
        let bytes = prost::Message::encoded_len(item);
        // Capped: a semaphore never grants more permits than it has, so a huge item would wait for
        // ever. It gets all of the memory instead.
        let kib = u32::try_from(bytes / 1024 + 1)
            .unwrap_or(MAX_IN_WORK_KIB)
            .min(MAX_IN_WORK_KIB);
        // Never fails: the semaphore is not closed.
        Arc::clone(&self.memory).acquire_many_owned(kib).await.ok()
    }

    async fn read(
        &self,
        item: v1::PublishSkillsRequest,
        (by, authorizer): (Principal, ItemAuthorizer),
    ) -> Result<Submitted, Failure> {
        let request = publish::item(item)?;
        // Here and not in the codec, whose refusal would end the stream: one item that the
        // caller may not publish must not stop the others.
        authorizer.check(&request)?;
        let submission = publish::submission(request, by);
        // As `Import`, work waits for a permit while the stream is not read; `Publish` would
        // refuse.
        Ok(self.registry.read(Kind::Import, submission).await?)
    }

    async fn publish_one(
        &self,
        index: usize,
        read: Result<Submitted, Failure>,
    ) -> v1::PublishSkillsResponse {
        let published = async { Ok::<_, Failure>(self.registry.submit(read?).await?) };
        let result = match published.await {
            Ok(published) => Published::Published(publish::answer(published)),
            Err(failure) => Published::Refused(refusal(failure)),
        };
        v1::PublishSkillsResponse {
            index: index as u64,
            result: Some(result),
        }
    }
}
