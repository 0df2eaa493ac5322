//! Writes the traits that services implement, and how tonic's traits call them.

use std::error::Error;
use std::fmt::Write as _;

use prost_reflect::{DescriptorPool, MethodDescriptor, ServiceDescriptor};

use super::PACKAGE;
use super::access::snake;

/// A trait for each service, and tonic's for whatever wraps an implementation of it.
pub(super) fn generate(pool: &DescriptorPool) -> Result<String, Box<dyn Error>> {
    let mut code = String::new();
    for service in pool.services().filter(|s| s.package_name() == PACKAGE) {
        service_of(&service, &mut code)?;
    }
    Ok(code)
}

fn service_of(service: &ServiceDescriptor, code: &mut String) -> Result<(), Box<dyn Error>> {
    let (name, module) = (service.name(), snake(service.name()));
    let (mut calls, mut streams, mut wrapped) = (String::new(), String::new(), String::new());
    for method in service.methods() {
        let (rpc, call) = (method.name(), snake(method.name()));
        let (request, response) = types(&method);
        let answer = if method.is_server_streaming() {
            writeln!(streams, "type {rpc}Stream = Messages<{response}>;")?;
            format!("Messages<{response}>")
        } else {
            response
        };
        writeln!(
            calls,
            "/// `{rpc}`.\nfn {call}(&self, request: Request<{request}>) -> impl Future<Output = Answer<{answer}>> + Send;"
        )?;
        writeln!(
            wrapped,
            "async fn {call}(&self, request: Request<{request}>) -> Result<Response<{answer}>, Status> {{\n\
             self.view(&request).await.{call}(request).await.map_err(status)\n}}"
        )?;
    }
    write!(
        code,
        "/// What `{name}` does, for the caller whose view `self` is.\n\
         pub trait {name}: View {{\n{calls}}}\n\
         #[tonic::async_trait]\n\
         impl<S: {name}> v1::{module}_server::{name} for Handlers<S> {{\n{streams}{wrapped}}}\n"
    )?;
    Ok(())
}

/// Of the request and of the answer, each of them one message.
fn types(method: &MethodDescriptor) -> (String, String) {
    let (request, response) = (method.input(), method.output());
    let request = format!("v1::{}", request.name());
    let request = if method.is_client_streaming() {
        format!("Streaming<{request}>")
    } else {
        request
    };
    (request, format!("v1::{}", response.name()))
}
