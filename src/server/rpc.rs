//! The rpcs of the contract, as the call layer knows them.

use std::collections::HashMap;
use std::sync::Arc;

use http::HeaderMap;
use opentelemetry::propagation::Extractor;
use prost::Message as _;
use tracing::{Span, field};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use super::metrics::{Meter, Metrics};
use crate::contract::FILE_DESCRIPTOR_SET;
use admission::Resource;

/// What is known of an rpc before it is called.
pub(super) struct Method {
    pub(super) service: String,
    pub(super) name: String,
    /// The client sends a stream of messages.
    pub(super) streams_in: bool,
    /// Either side sends a stream of messages.
    pub(super) streams: bool,
    /// It is a worker's: it ends by itself when the server stops, and may be silent.
    pub(super) worker: bool,
    pub(super) meter: Arc<Meter>,
}

impl Method {
    /// What a call of it takes.
    pub(super) const fn resource(&self) -> Resource {
        match (self.worker, self.streams) {
            (true, _) => Resource::Workers,
            (false, true) => Resource::Streams,
            (false, false) => Resource::Calls,
        }
    }
}

/// The rpcs of the contract, by path.
pub(super) fn methods(metrics: &Metrics) -> HashMap<String, Arc<Method>> {
    let set = prost_types::FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap_or_default();
    let mut methods = HashMap::new();
    for file in set.file {
        for service in &file.service {
            let service_name = format!("{}.{}", file.package(), service.name());
            for method in &service.method {
                let streams = method.client_streaming() || method.server_streaming();
                let meter = metrics.meter(&service_name, method.name(), streams);
                methods.insert(
                    format!("/{service_name}/{}", method.name()),
                    Arc::new(Method {
                        service: service_name.clone(),
                        name: method.name().to_owned(),
                        streams_in: method.client_streaming(),
                        streams,
                        worker: service.name() == "ToolHost",
                        meter: Arc::new(meter),
                    }),
                );
            }
        }
    }
    methods
}

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(http::HeaderName::as_str).collect()
    }
}

/// The span of a call: where spans leave the process, with the names of the
/// OpenTelemetry conventions for rpc; else with what the log needs, since it
/// writes every field of every span.
pub(super) fn span(method: &Method, headers: &HeaderMap, exports: bool) -> Span {
    if !exports {
        // As it is displayed: a text would be searched for what to escape.
        return tracing::info_span!("rpc", method = %method.name);
    }
    let span = tracing::info_span!(
        "rpc",
        otel.name = %format_args!("{}/{}", method.service, method.name),
        otel.kind = "server",
        rpc.system = "grpc",
        rpc.service = method.service,
        rpc.method = method.name,
        rpc.grpc.status_code = field::Empty,
    );
    let parent = opentelemetry::global::get_text_map_propagator(|p| p.extract(&Headers(headers)));
    // An error means that the span is not recorded: then it needs no parent.
    let _unrecorded = span.set_parent(parent);
    span
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_door_knows_which_rpcs_stream() {
        let methods = methods(&Metrics::default());
        let streaming: Vec<_> = {
            let mut names: Vec<_> = methods
                .values()
                .filter(|m| m.streams)
                .map(|m| m.name.clone())
                .collect();
            names.sort();
            names
        };
        assert_eq!(
            streaming,
            [
                "Attach",
                "Backup",
                "Compact",
                "ExportSkill",
                "PublishSkills",
                "StreamToolCall",
                "Watch"
            ]
        );
        assert!(methods.contains_key("/repertoire.v1.Lookup/GetSkill"));
    }
}
