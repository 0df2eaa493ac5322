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

/// What all bulk streams share.
#[derive(Debug, Clone)]
pub(super) struct Bulk {
    registry: Registry,
    memory: Arc<Semaphore>,
}

type ItemAnswer = Result<v1::PublishSkillsResponse, Status>;

/// An item before it is read.
struct Item {
    request: Result<v1::PublishSkillsRequest, Status>,
    /// The permit of its answer.
    answer: mpsc::OwnedPermit<ItemAnswer>,
    /// Room for its bytes.
    memory: Option<OwnedSemaphorePermit>,
}

impl Bulk {
    pub(super) fn new(registry: &Registry) -> Self {
        Self {
            registry: registry.clone(),
            memory: Arc::new(Semaphore::new(MAX_IN_WORK_KIB as usize)),
        }
    }

    /// The same for who sees the skills of another registry.
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
            // In this order: an item that is read has a permit for its answer, and memory
            // for its bytes is taken before the next one is read.
            let answer = send.clone().reserve_owned().await.ok()?;
            let item = tokio::select! {
                item = items.next() => item?,
                () = send.closed() => return None,
            };
            let memory = match &item {
                Ok(item) => bulk.reserve(item).await,
                Err(_) => None,
            };
            let item = Item {
                request: item,
                answer,
                memory,
            };
            Some((item, (items, send, bulk)))
        });
        // Reading goes on side by side; publishing begins in the order of the items,
        // which keeps versions of one skill in order.
        let bulk = self.clone();
        let read = items.map(move |item| {
            let caller = caller.clone();
            let Item {
                request,
                answer,
                memory,
            } = item;
            let bulk = bulk.clone();
            async move {
                let read = match request {
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
                drop(memory);
                (published, answer)
            }
        });
        let mut published = std::pin::pin!(published.buffered(ITEM_CONCURRENCY));
        while let Some((published, answer)) = published.next().await {
            let broken = published.is_err();
            answer.send(published);
            if broken {
                return;
            }
        }
    }

    async fn reserve(&self, item: &v1::PublishSkillsRequest) -> Option<OwnedSemaphorePermit> {
        let bytes = prost::Message::encoded_len(item);
        let kib = u32::try_from(bytes / 1024 + 1)
            .unwrap_or(MAX_IN_WORK_KIB)
            .min(MAX_IN_WORK_KIB);
        // Never none: nobody closes it.
        Arc::clone(&self.memory).acquire_many_owned(kib).await.ok()
    }

    async fn read(
        &self,
        item: v1::PublishSkillsRequest,
        (by, authorizer): (Principal, ItemAuthorizer),
    ) -> Result<Submitted, Failure> {
        let request = publish::item(item)?;
        // One that the caller may not publish is refused alone, and does not end the stream.
        authorizer.check(&request)?;
        let submission = publish::submission(request, by);
        Ok(self.registry.read(Kind::Import, submission).await?)
    }

    async fn publish_one(
        &self,
        index: usize,
        read: Result<Submitted, Failure>,
    ) -> v1::PublishSkillsResponse {
        let published = match read {
            Ok(submitted) => self.registry.submit(submitted).await.map_err(Failure::from),
            Err(failure) => Err(failure),
        };
        let result = match published {
            Ok(published) => Published::Published(publish::answer(published)),
            Err(failure) => Published::Refused(refusal(failure)),
        };
        v1::PublishSkillsResponse {
            index: index as u64,
            result: Some(result),
        }
    }
}
