//! A record that is appended to the chain with the first write of a call: it is durable with
//! that write, or absent with it, and costs no write of its own.

use std::sync::Arc;

use model::Event;

/// A record that goes with the first batch that is written for a call.
pub trait Attached: Send + Sync {
    /// Returns the body of the record, if it was not written yet. `event` is the event of the
    /// batch.
    fn take(&self, event: Option<&Event>) -> Option<Vec<u8>>;

    /// Notes whether the batch was written; if not, the record goes with the next one.
    fn ended(&self, written: bool);
}

tokio::task_local! {
    static ATTACHED: Arc<dyn Attached>;
}

/// Attaches a record to the first batch that is committed while a future is polled. Tasks that
/// the future spawns carry no record.
pub async fn with_attached<F: Future>(attached: Arc<dyn Attached>, future: F) -> F::Output {
    ATTACHED.scope(attached, future).await
}

/// Runs work to its end, also where its caller drops the future: for state that is both stored
/// and held in memory, and must stay consistent. The attached record goes along.
pub async fn to_the_end<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    // A spawned task does not inherit the task-local, so it is set there again.
    let attached = attached();
    let work = async move {
        match attached {
            Some(attached) => with_attached(attached, work).await,
            None => work.await,
        }
    };
    match tokio::spawn(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime shuts down, and its callers with it.
            Err(_) => std::future::pending().await,
        },
    }
}

pub(super) fn attached() -> Option<Arc<dyn Attached>> {
    ATTACHED.try_with(Arc::clone).ok()
}
