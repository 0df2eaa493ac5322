//! What is appended to the chain with the first write of a call: it is durable with that
//! write, or absent with it, and costs no write of its own.

use std::sync::Arc;

use model::Event;

/// A record that goes with the first batch that is written for a call.
pub trait Attached: Send + Sync {
    /// The body of the record, where it has not gone yet. `event`: what the batch says happened.
    fn take(&self, event: Option<&Event>) -> Option<Vec<u8>>;

    /// The batch was written, or not; then the record goes with the next one.
    fn ended(&self, written: bool);
}

tokio::task_local! {
    static ATTACHED: Arc<dyn Attached>;
}

/// Has a record go with the first batch that is committed while a future is polled. What the
/// future hands to other tasks takes no record along.
pub async fn with_attached<F: Future>(attached: Arc<dyn Attached>, future: F) -> F::Output {
    ATTACHED.scope(attached, future).await
}

/// Does work to its end, also where whoever waits for it leaves: for what is written and is
/// kept in memory as well, which must not fall apart. What was attached goes along.
pub async fn to_the_end<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
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
            // The runtime ends, and whoever waits with it.
            Err(_) => std::future::pending().await,
        },
    }
}

pub(super) fn attached() -> Option<Arc<dyn Attached>> {
    ATTACHED.try_with(Arc::clone).ok()
}
