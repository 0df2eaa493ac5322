//! Metrics to a collector: the page of `/metrics`, read at each interval and once at the end.
//!
//! A task reads, for as long as there is something to read; another sends. Counters are sums
//! since the start, so the next reading makes up for one that was lost.

use std::sync::Arc;
use std::time::Duration;
use std::{env, fmt};

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_client::MetricsServiceClient;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::metrics::v1::{ResourceMetrics, ScopeMetrics};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use percent_encoding::percent_decode_str;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;
use tonic::metadata::{MetadataKey, MetadataMap};
use tonic::transport::Channel;
use tonic::{Request, Status};

use super::openmetrics::{self, Span};
use super::reporting_exporter::LossState;
use crate::Signal;
use model::{Clock as _, SystemClock};

/// How long the last reading may take.
const LAST_READING_TIMEOUT: Duration = Duration::from_secs(1);

/// A page of metrics, and when it was read.
type Reading = (u64, String);

/// Now, in nanoseconds since 1970.
fn now() -> u64 {
    u64::try_from(SystemClock.now().as_nanosecond()).unwrap_or_default()
}

/// Sends metrics.
#[derive(Debug)]
pub(super) struct Metrics {
    readings: mpsc::Sender<Reading>,
    interval: Duration,
    sending: JoinHandle<()>,
    runtime: Handle,
}

impl Metrics {
    /// Within a runtime.
    pub(super) fn new(
        channel: Channel,
        resource: &opentelemetry_sdk::Resource,
        interval: Duration,
    ) -> Self {
        // One waits, and not more: the next contains all that it has.
        let (readings, read) = mpsc::channel(1);
        let resource = ResourceAttributesWithSchema::from(resource);
        let sender = Sender {
            client: MetricsServiceClient::new(channel),
            headers: headers(),
            resource,
            start: now(),
        };
        Self {
            readings,
            interval,
            sending: tokio::spawn(sender.send(read)),
            runtime: Handle::current(),
        }
    }

    /// Reads at each interval. `read` blocks.
    pub(super) fn measure<R>(&self, read: R) -> Reader
    where
        R: Fn() -> Result<String, fmt::Error> + Send + Sync + 'static,
    {
        let (end, ended) = oneshot::channel();
        let (interval, readings) = (self.interval, self.readings.clone());
        let reading = tokio::spawn(self::read(Arc::new(read), interval, readings, ended));
        Reader { end, reading }
    }

    /// Sends the reading that waits. Blocks.
    pub(super) fn stop(self, limit: Duration) -> OTelSdkResult {
        // The sender ends once the channel is closed and empty, so what waits is sent.
        drop(self.readings);
        let mut sending = self.sending;
        let sent = async { timeout(limit, &mut sending).await };
        match self.runtime.block_on(sent) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(OTelSdkError::InternalFailure(error.to_string())),
            Err(_) => {
                sending.abort();
                Err(OTelSdkError::Timeout(limit))
            }
        }
    }
}

/// Reads metrics, for as long as there is something to read.
#[derive(Debug)]
pub(crate) struct Reader {
    end: oneshot::Sender<()>,
    reading: JoinHandle<()>,
}

impl Reader {
    /// Reads once more, and drops the source of the metrics.
    pub(crate) async fn end(self) {
        drop(self.end);
        let _late = timeout(LAST_READING_TIMEOUT, self.reading).await;
    }
}

async fn read<R>(
    read: Arc<R>,
    interval: Duration,
    readings: mpsc::Sender<Reading>,
    mut ended: oneshot::Receiver<()>,
) where
    R: Fn() -> Result<String, fmt::Error> + Send + Sync + 'static,
{
    let mut is_last = false;
    while !is_last {
        // Dropping the other half ends this as well, so a lost `Reader` leaves no task.
        is_last = timeout(interval, &mut ended).await.is_ok();
        let read = Arc::clone(&read);
        // The time is taken on the thread that reads, which may have been waited for.
        let page = spawn_blocking(move || (now(), read()));
        match page.await {
            Ok((at, Ok(page))) => {
                let _no_room = readings.try_send((at, page));
            }
            Ok((_, Err(error))) => tracing::warn!(%error, "metrics cannot be rendered"),
            Err(error) => tracing::warn!(%error, "metrics cannot be read"),
        }
    }
}

struct Sender {
    client: MetricsServiceClient<Channel>,
    headers: MetadataMap,
    resource: ResourceAttributesWithSchema,
    start: u64,
}

impl Sender {
    async fn send(mut self, mut readings: mpsc::Receiver<Reading>) {
        let state = LossState::new(Signal::Metrics);
        while let Some((at, page)) = readings.recv().await {
            let request = self.request(at, &page);
            let sent = match self.client.export(request).await {
                Ok(answer) => match answer.into_inner().partial_success {
                    Some(partial) if partial.rejected_data_points > 0 => {
                        let rejected = partial.rejected_data_points;
                        Err(format!("rejected {rejected} data points"))
                    }
                    _ => Ok(()),
                },
                Err(status) => Err(why(&status)),
            };
            state.note(sent);
        }
    }

    fn request(&self, at: u64, page: &str) -> Request<ExportMetricsServiceRequest> {
        let span = Span {
            start: self.start,
            end: at,
        };
        let scope = InstrumentationScope {
            name: "repertoire".to_owned(),
            ..Default::default()
        };
        let metrics = ScopeMetrics {
            scope: Some(scope),
            metrics: openmetrics::metrics(page, span),
            schema_url: String::new(),
        };
        let resource = Resource {
            attributes: self.resource.attributes.0.clone(),
            ..Default::default()
        };
        let resource_metrics = vec![ResourceMetrics {
            resource: Some(resource),
            scope_metrics: vec![metrics],
            schema_url: self.resource.schema_url.clone().unwrap_or_default(),
        }];
        let mut request = Request::new(ExportMetricsServiceRequest { resource_metrics });
        *request.metadata_mut() = self.headers.clone();
        request
    }
}

/// The reason why metrics were not accepted: the code, and the cause on this side. The message of
/// a collector may contain the token that it was sent.
fn why(status: &Status) -> String {
    let cause = std::error::Error::source(status).map(|cause| format!(": {cause}"));
    format!(
        "gRPC code: {:?}{}",
        status.code(),
        cause.unwrap_or_default()
    )
}

/// Headers for a collector, by the variables that the exporters of spans and logs read
/// themselves.
fn headers() -> MetadataMap {
    let named = [
        "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
        "OTEL_EXPORTER_OTLP_HEADERS",
    ];
    let mut named = named.into_iter().filter_map(|name| env::var(name).ok());
    listed(&named.next().unwrap_or_default())
}

/// Parses headers such as `api-key=abc,other=a%20b`. Others are left out.
fn listed(text: &str) -> MetadataMap {
    let mut headers = MetadataMap::new();
    for header in text.split(',') {
        let Some((name, value)) = header.split_once('=') else {
            continue;
        };
        let name = name.trim().to_ascii_lowercase();
        let value = percent_decode_str(value.trim()).decode_utf8();
        let value = value.ok().and_then(|value| value.parse().ok());
        if let (Ok(name), Some(value)) = (MetadataKey::from_bytes(name.as_bytes()), value) {
            headers.insert(name, value);
        }
    }
    headers
}

#[cfg(test)]
mod tests {
    use std::future::{pending, poll_fn};
    use std::pin::pin;
    use std::sync::mpsc as threads;
    use std::task::Poll;

    use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsPartialSuccess;
    use opentelemetry_proto::tonic::metrics::v1::metric::Data;
    use tokio::runtime::Runtime;
    use tokio::time::{Instant, advance};

    use super::super::tests::{Collector, Logged};
    use super::*;

    /// Longer than anything here takes.
    const TEST_TIMEOUT: Duration = Duration::from_secs(600);
    const INTERVAL: Duration = Duration::from_secs(60);

    /// Metrics of which a test gets what was read.
    fn metrics(room: usize) -> (Metrics, mpsc::Receiver<Reading>) {
        let (readings, read) = mpsc::channel(room);
        let metrics = Metrics {
            readings,
            interval: INTERVAL,
            sending: tokio::spawn(async {}),
            runtime: Handle::current(),
        };
        (metrics, read)
    }

    fn sender(channel: Channel) -> Sender {
        let resource = opentelemetry_sdk::Resource::builder_empty()
            .with_service_name("a server")
            .build();
        Sender {
            client: MetricsServiceClient::new(channel),
            headers: listed("api-key=abc"),
            resource: ResourceAttributesWithSchema::from(&resource),
            start: 1,
        }
    }

    fn nowhere() -> Channel {
        tonic::transport::Endpoint::from_static("http://127.0.0.1:1").connect_lazy()
    }

    #[tokio::test(start_paused = true)]
    async fn metrics_are_read_at_each_interval_and_once_at_the_end() {
        let (metrics, mut read) = metrics(8);
        let begun = Instant::now();
        let reader = metrics.measure(|| Ok("a page".to_owned()));
        let mut times = Vec::new();
        for _ in 0..2 {
            let reading = timeout(TEST_TIMEOUT, read.recv()).await.expect("a reading");
            assert_eq!(reading.expect("a reading").1, "a page");
            times.push(begun.elapsed().as_secs());
        }
        assert_eq!(times, [60, 120]);
        reader.end().await;
        assert!(read.try_recv().is_ok(), "once more");
        assert_eq!(begun.elapsed().as_secs(), 120, "and at once");
        drop(metrics);
        let none = timeout(TEST_TIMEOUT, read.recv()).await.expect("an end");
        assert_eq!(none, None, "and nothing more");
    }

    #[tokio::test(start_paused = true)]
    async fn a_last_reading_that_does_not_end_is_waited_for_for_a_second() {
        let (metrics, _read) = metrics(1);
        let (end, ended) = threads::channel::<()>();
        let ended = std::sync::Mutex::new(ended);
        let reader = metrics.measure(move || {
            let _gone = ended.lock().expect("a channel").recv();
            Ok(String::new())
        });
        let mut last = pin!(reader.end());
        let mut is_over =
            async || poll_fn(|context| Poll::Ready(last.as_mut().poll(context).is_ready())).await;
        assert!(!is_over().await);
        advance(LAST_READING_TIMEOUT / 2).await;
        assert!(!is_over().await);
        advance(LAST_READING_TIMEOUT / 2 + Duration::from_millis(10)).await;
        let was_over = is_over().await;
        // Else the runtime would wait for what reads.
        drop(end);
        assert!(was_over);
    }

    #[tokio::test]
    async fn one_reading_waits_and_the_next_finds_no_room() {
        let resource = opentelemetry_sdk::Resource::builder_empty().build();
        let metrics = Metrics::new(nowhere(), &resource, INTERVAL);
        let reads = [1, 2, 3].map(|at| metrics.readings.try_send((at, String::new())).is_ok());
        assert_eq!(reads, [true, false, false]);
    }

    #[test]
    fn whoever_stops_waits_no_longer_than_it_has_patience() {
        let runtime = Runtime::new().expect("a runtime");
        let _within = runtime.enter();
        let (mut metrics, _read) = metrics(1);
        let (held, is_gone) = threads::channel::<()>();
        metrics.sending = tokio::spawn(async move {
            let _held = held;
            pending::<()>().await;
        });
        let (tell, told) = threads::channel();
        std::thread::spawn(move || tell.send(metrics.stop(Duration::ZERO)));
        // What waits for ever fails here.
        let bound = Duration::from_secs(20);
        let stopped = told.recv_timeout(bound).expect("it stops");
        assert!(
            matches!(stopped, Err(OTelSdkError::Timeout(Duration::ZERO))),
            "{stopped:?}"
        );
        let gone = is_gone.recv_timeout(bound).expect_err("nothing is sent");
        let expected = threads::RecvTimeoutError::Disconnected;
        assert_eq!(gone, expected, "what sends ended, too");
    }

    #[tokio::test]
    async fn a_request_says_of_whom_it_is_since_when_and_has_the_headers() {
        let page = "# TYPE work counter\nwork_total 7\n";
        let request = sender(nowhere()).request(9, page);
        let header = request.metadata().get("api-key");
        assert_eq!(header.and_then(|it| it.to_str().ok()), Some("abc"));
        let of = request.into_inner().resource_metrics.remove(0);
        let attributes = of.resource.expect("a resource").attributes;
        assert_eq!(attributes[0].key, "service.name");
        let Some(Data::Sum(sum)) = &of.scope_metrics[0].metrics[0].data else {
            panic!("{:?}", of.scope_metrics)
        };
        let point = &sum.data_points[0];
        assert_eq!((point.start_time_unix_nano, point.time_unix_nano), (1, 9));
    }

    #[tokio::test]
    async fn a_collector_that_rejects_some_points_is_told_of_and_one_that_warns_is_not() {
        let logged = Logged::default();
        let _here = logged.here();
        let collector = Collector::within();
        for rejected_data_points in [0, 3] {
            collector.answers(ExportMetricsPartialSuccess {
                rejected_data_points,
                error_message: "they are old".to_owned(),
            });
        }
        let channel = super::super::channel(&collector.endpoint).expect("a channel");
        let (readings, read) = mpsc::channel(2);
        for at in [2, 3] {
            let reading = (at, "# TYPE x gauge\nx 1\n".to_owned());
            readings.try_send(reading).expect("room");
        }
        drop(readings);
        sender(channel).send(read).await;
        assert_eq!(logged.told(), ["WARN metrics rejected 3 data points"]);
    }

    #[test]
    fn headers_are_those_of_the_standard_variables() {
        let headers = listed("api-key=abc, X-Team = a%20b ,broken,bad name=x,=y");
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        assert_eq!(
            (headers.len(), header("api-key"), header("x-team")),
            (2, Some("abc"), Some("a b"))
        );
    }

    #[test]
    fn what_a_collector_says_is_not_logged() {
        let told = why(&Status::unauthenticated("no such token: s3cret"));
        assert_eq!(told, "gRPC code: Unauthenticated");
    }
}
