//! The services of the contract as routes.
//!
//! They were called past axum's router for a while, each found by its name in the path. That
//! bought 1.02 instead of 0.96 times the constant of `GetSkill` (the bar is 0.8), and cost a
//! list of services in seven places.

use axum::Router;
use tonic::codec::CompressionEncoding::Gzip;
use tonic::service::Routes;

use super::{Domain, MAX_MESSAGE_BYTES, learning};
use contract::handlers::Handlers;
use contract::v1;

/// The services that every listener offers: `Admin` is for the local socket alone.
pub(super) fn offered() -> Vec<String> {
    let names = contract::own_services().iter().map(|it| it.name.clone());
    names
        .filter(|name| name != v1::admin_server::SERVICE_NAME)
        .collect()
}

/// Returns the services over a domain as routes, without a fallback: each listener has its own.
pub(super) fn routes(domain: &Domain) -> Router {
    let mut routes = Routes::builder();
    // A macro, as the generated servers have these methods but no trait.
    macro_rules! add {
        ($server:expr) => {
            routes.add_service($server.accept_compressed(Gzip).send_compressed(Gzip))
        };
    }
    let viewer = domain.viewer();
    let registry = grpc::registry::RegistryService::new(
        domain.registry.clone(),
        domain.feed.clone(),
        domain.installer.clone(),
        domain.engine.clone(),
        domain.search.clone(),
    )
    .with_viewer(viewer.clone());
    add!(
        v1::registry_server::RegistryServer::new(Handlers::new(registry))
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
    );
    let (registry, tools) = (domain.registry.clone(), domain.tools.clone());
    let (search, advisor) = (domain.search.clone(), domain.advisor.clone());
    let lookup = grpc::lookup::LookupService::new(registry, tools, search, advisor)
        .with_viewer(viewer.clone())
        .with_sources(domain.engine.clone())
        .with_installer(domain.installer.clone());
    add!(v1::lookup_server::LookupServer::new(Handlers::new(lookup)));
    let (composition, tools) = (domain.composition.clone(), domain.tools.clone());
    let (installer, checks) = (domain.installer.clone(), domain.checks.clone());
    let composition =
        grpc::composition::CompositionService::new(composition, tools, installer, checks)
            .with_viewer(viewer);
    add!(v1::composition_server::CompositionServer::new(
        Handlers::new(composition)
    ));
    learning::add(&mut routes, &domain.learning);
    add!(v1::access_server::AccessServer::new(Handlers::new(
        domain.access.clone()
    )));
    let audit = grpc::AuditService(domain.audit.clone());
    add!(v1::audit_server::AuditServer::new(Handlers::new(audit)));
    let bytes = domain.host.max_message_bytes();
    let host = grpc::tool_host::ToolHostService(domain.host.clone());
    add!(
        v1::tool_host_server::ToolHostServer::new(Handlers::new(host))
            .max_decoding_message_size(bytes)
    );
    routes.routes().into_axum_router().reset_fallback()
}
