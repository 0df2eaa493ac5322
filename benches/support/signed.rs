//! Servers where callers sign in.

use std::path::Path;

use contract::v1;
use contract::v1::access_client::AccessClient;
use tonic::transport::Channel;

use super::process::Server;

#[path = "../../tests/support/issuer.rs"]
pub mod issuer;

/// A server with this config file, and a connection to it as who administers it.
pub async fn server(folder: &Path, config: &str) -> (Server, Channel) {
    let (data, file) = (folder.join("data"), folder.join("config.yaml"));
    std::fs::write(&file, config).expect("a file");
    let server = Server::repertoire_with(&data, &["--config".as_ref(), file.as_os_str()]);
    let local = server::connect_local(&data).await;
    (server, local.expect("the socket"))
}

/// A new token that allows some actions.
pub async fn token(local: Channel, name: &str, actions: &[v1::Action]) -> String {
    let request = v1::CreateTokenRequest {
        name: name.to_owned(),
        actions: actions.iter().map(|action| i32::from(*action)).collect(),
        ..Default::default()
    };
    let made = AccessClient::new(local).create_token(request).await;
    made.expect("a token").into_inner().token
}
