//! A collector in this process: the services of OpenTelemetry's own contract.

#![allow(unreachable_pub, reason = "a module of a test")]

use std::net::SocketAddr;

use opentelemetry_proto::tonic::collector::logs::v1::logs_service_server::{
    LogsService, LogsServiceServer,
};
use opentelemetry_proto::tonic::collector::logs::v1::{
    ExportLogsServiceRequest, ExportLogsServiceResponse,
};
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

/// What came, as it came.
#[derive(Debug)]
pub enum Export {
    Spans(Vec<Span>),
    Metrics(Vec<Metric>),
    /// Each with the target that it was logged under.
    Records(Vec<(String, LogRecord)>),
}

/// Takes what it is sent; or of spans only, as one whose only pipeline is of traces.
pub struct Collector {
    pub url: String,
    exports: mpsc::UnboundedReceiver<Export>,
}

#[derive(Clone)]
struct Receiver {
    exports: mpsc::UnboundedSender<Export>,
    spans_only: bool,
}

impl Collector {
    pub async fn start() -> Self {
        Self::with(false).await
    }

    pub async fn of_spans() -> Self {
        Self::with(true).await
    }

    async fn with(spans_only: bool) -> Self {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = TcpListener::bind(any).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (sender, exports) = mpsc::unbounded_channel();
        let receiver = Receiver {
            exports: sender,
            spans_only,
        };
        let serving = tonic::transport::Server::builder()
            .add_service(TraceServiceServer::new(receiver.clone()))
            .add_service(MetricsServiceServer::new(receiver.clone()))
            .add_service(LogsServiceServer::new(receiver))
            .serve_with_incoming(TcpListenerStream::new(listener));
        tokio::spawn(serving);
        Self {
            url: format!("http://{address}"),
            exports,
        }
    }

    /// The next that comes.
    pub async fn next(&mut self) -> Export {
        self.exports.recv().await.expect("a collector")
    }

    /// All that came.
    pub fn received(mut self) -> Received {
        let mut received = Received::default();
        while let Ok(export) = self.exports.try_recv() {
            received.add(export);
        }
        received
    }
}

/// What came in all, and metrics as they were last.
#[derive(Debug, Default)]
pub struct Received {
    pub spans: Vec<Span>,
    pub metrics: Vec<Metric>,
    pub records: Vec<(String, LogRecord)>,
}

impl Received {
    fn add(&mut self, export: Export) {
        match export {
            Export::Spans(spans) => self.spans.extend(spans),
            Export::Metrics(metrics) => self.metrics = metrics,
            Export::Records(records) => self.records.extend(records),
        }
    }
}

impl Receiver {
    fn keep(&self, resource: Option<Resource>, export: Export) -> Result<(), Status> {
        let resource = resource.expect("who sent it");
        let name = text(&resource.attributes, "service.name");
        assert_eq!(name.as_deref(), Some("repertoire"));
        let is_taken = !self.spans_only || matches!(export, Export::Spans(_));
        // Nobody listens where a test is done.
        let _kept = self.exports.send(export);
        if is_taken {
            return Ok(());
        }
        Err(Status::unimplemented("unknown service"))
    }
}

/// A text among attributes.
pub fn text(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|it| it.key == key)?;
    Some(said(found.value.as_ref()))
}

/// A value as text.
pub fn said(value: Option<&AnyValue>) -> String {
    match value.and_then(|value| value.value.as_ref()) {
        Some(any_value::Value::StringValue(text)) => text.clone(),
        Some(any_value::Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    }
}

#[tonic::async_trait]
impl TraceService for Receiver {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        for sent in request.into_inner().resource_spans {
            let spans = sent.scope_spans.into_iter().flat_map(|scope| scope.spans);
            self.keep(sent.resource, Export::Spans(spans.collect()))?;
        }
        Ok(Response::new(Default::default()))
    }
}

#[tonic::async_trait]
impl MetricsService for Receiver {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        for sent in request.into_inner().resource_metrics {
            let scopes = sent.scope_metrics.into_iter();
            let metrics = scopes.flat_map(|scope| scope.metrics);
            self.keep(sent.resource, Export::Metrics(metrics.collect()))?;
        }
        Ok(Response::new(Default::default()))
    }
}

#[tonic::async_trait]
impl LogsService for Receiver {
    async fn export(
        &self,
        request: Request<ExportLogsServiceRequest>,
    ) -> Result<Response<ExportLogsServiceResponse>, Status> {
        for sent in request.into_inner().resource_logs {
            let records = sent.scope_logs.into_iter().flat_map(|scope| {
                let target = scope.scope.map(|it| it.name).unwrap_or_default();
                let records = scope.log_records.into_iter();
                records.map(move |record| (target.clone(), record))
            });
            self.keep(sent.resource, Export::Records(records.collect()))?;
        }
        Ok(Response::new(Default::default()))
    }
}
