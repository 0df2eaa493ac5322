//! The services of the contract as routes.
//!
//! They were called past axum's router for a while, each found by its name in the path. That
//! bought 1.02 instead of 0.96 times the constant of `GetSkill` (the bar is 0.8), and cost a
//! list of services in seven places.

use axum::Router;
use tonic::codec::CompressionEncoding::Gzip;
use tonic::service::Routes;

use super::{Domain, MAX_MESSAGE_BYTES};
use crate::contract::v1::admin_server;
use crate::contract::v1::composition_server::CompositionServer;
use crate::contract::v1::lookup_server::LookupServer;
use crate::contract::v1::registry_server::RegistryServer;
use crate::contract::v1::tool_host_server::ToolHostServer;
use crate::contract::{self, FILE_DESCRIPTOR_SET};
use crate::grpc::{CompositionService, LookupService, RegistryService, ToolHostService};

/// The services that every listener offers: `Admin` is for the local socket alone.
pub(super) fn offered() -> Vec<String> {
    let services = contract::services(FILE_DESCRIPTOR_SET).into_iter();
    let names = services.map(|service| service.name);
    names
        .filter(|name| name != admin_server::SERVICE_NAME)
        .collect()
}

/// The same as routes over a domain, without an answer for what is none of them.
pub(super) fn routes(domain: &Domain) -> Router {
    let registry = RegistryServer::new(RegistryService::new(domain.registry.clone()))
        .max_decoding_message_size(MAX_MESSAGE_BYTES);
    let lookup = LookupServer::new(LookupService::new(
        domain.registry.clone(),
        domain.tools.clone(),
        domain.search.clone(),
        domain.advisor.clone(),
    ));
    let composition = CompositionServer::new(CompositionService::new(
        domain.composition.clone(),
        domain.tools.clone(),
    ));
    let host = ToolHostServer::new(ToolHostService::new(domain.host.clone()))
        .max_decoding_message_size(domain.host.max_message_bytes());
    Routes::new(registry.accept_compressed(Gzip).send_compressed(Gzip))
        .add_service(lookup.accept_compressed(Gzip).send_compressed(Gzip))
        .add_service(composition.accept_compressed(Gzip).send_compressed(Gzip))
        .add_service(host.accept_compressed(Gzip).send_compressed(Gzip))
        .into_axum_router()
        .reset_fallback()
}
