//! The rpcs of the contract, as the call layer knows them.

use std::collections::HashMap;
use std::sync::Arc;

use http::HeaderMap;
use tracing::{Span, field};

use super::metrics::{Meter, Metrics};
use access::Action;
use admission::Resource;
use audit::Rpc;
use contract::v1::tool_host_server;

/// An rpc of the contract, as the build described it.
pub(super) struct RpcMethod {
    pub(super) service: String,
    pub(super) name: String,
    /// The client sends a stream of messages.
    pub(super) streams_in: bool,
    /// Either side sends a stream of messages.
    pub(super) streams: bool,
    /// It is a worker's: it ends by itself when the server stops, and may be silent.
    pub(super) worker: bool,
    /// The action that its caller must have; none: everybody may call it.
    pub(super) action: Option<Action>,
    /// As the audit trail names it.
    pub(super) audited: Arc<Rpc>,
    pub(super) meter: Arc<Meter>,
}

impl RpcMethod {
    /// The resource that a call of it takes a permit of.
    pub(super) const fn resource(&self) -> Resource {
        match (self.worker, self.streams) {
            (true, _) => Resource::Workers,
            (false, true) => Resource::Streams,
            (false, false) => Resource::Calls,
        }
    }
}

/// The rpcs of the contract, by path.
pub(super) fn methods(metrics: &Metrics) -> HashMap<String, Arc<RpcMethod>> {
    let actions: HashMap<_, _> = contract::actions().collect();
    let mut methods = HashMap::new();
    for service in contract::own_services() {
        for method in &service.methods {
            let streams = method.client_streaming() || method.server_streaming();
            let meter = metrics.meter(&service.name, method.name(), streams);
            let path = format!("/{}/{}", service.name, method.name());
            // The build writes one for each rpc. Should it miss one, administrators alone may
            // call it: open by accident would be worse.
            let action = actions
                .get(path.as_str())
                .copied()
                .unwrap_or(Some(Action::Administer));
            let short = service.name.rsplit('.').next().unwrap_or_default();
            let name = format!("{short}.{}", method.name());
            methods.insert(
                path.clone(),
                Arc::new(RpcMethod {
                    action,
                    audited: Arc::new(Rpc {
                        name,
                        action,
                        is_recorded: contract::is_recorded(&path),
                    }),
                    service: service.name.clone(),
                    name: method.name().to_owned(),
                    streams_in: method.client_streaming(),
                    streams,
                    worker: service.name == tool_host_server::SERVICE_NAME,
                    meter: Arc::new(meter),
                }),
            );
        }
    }
    methods
}

/// The span of a call: where spans leave the process, with the names of the
/// OpenTelemetry conventions for rpc; else with what the log needs, since it
/// writes every field of every span.
pub(super) fn span(method: &RpcMethod, headers: &HeaderMap, exports: bool) -> Span {
    if !exports {
        // By `Display`: the log would scan a string for what to escape, with each line.
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
    telemetry::set_parent(&span, headers);
    span
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_call_layer_knows_what_each_rpc_takes() {
        let methods = methods(&Metrics::default());
        let takes = |path: &str| methods.get(path).map(|method| method.resource());
        for (path, resource) in [
            ("/repertoire.v1.Lookup/GetSkill", Some(Resource::Calls)),
            ("/repertoire.v1.Registry/Watch", Some(Resource::Streams)),
            (
                "/repertoire.v1.Registry/PublishSkills",
                Some(Resource::Streams),
            ),
            ("/repertoire.v1.Admin/Backup", Some(Resource::Streams)),
            ("/repertoire.v1.ToolHost/Attach", Some(Resource::Workers)),
            ("/repertoire.v1.Lookup/Forget", None),
        ] {
            assert_eq!(takes(path), resource, "{path}");
        }
    }
}
