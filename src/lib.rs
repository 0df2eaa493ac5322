//! Repertoire keeps an organisation's agent skills and serves them to any agent.
pub mod contract;
pub mod grpc;
pub mod lookup;
pub mod model;
pub mod registry;
pub mod server;
pub mod skill_md;
pub mod store;
