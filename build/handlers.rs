//! Writes the traits that services implement, and how tonic's traits call them.

use std::error::Error;
use std::fmt::Write as _;

use prost_reflect::{
    DescriptorPool, ExtensionDescriptor, Kind, MessageDescriptor, MethodDescriptor,
    ServiceDescriptor,
};

use super::PACKAGE;
use super::access::{action_name, item_of, snake};

/// A trait for each service, and tonic's for whatever wraps an implementation of it.
pub(super) fn generate(pool: &DescriptorPool) -> Result<String, Box<dyn Error>> {
    let needs = pool
        .get_extension_by_name("repertoire.v1.needs")
        .ok_or("no extension repertoire.v1.needs")?;
    let mut code = String::new();
    for service in pool.services().filter(|s| s.package_name() == PACKAGE) {
        service_of(&service, &needs, &mut code)?;
    }
    Ok(code)
}

fn service_of(
    service: &ServiceDescriptor,
    needs: &ExtensionDescriptor,
    code: &mut String,
) -> Result<(), Box<dyn Error>> {
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
        // A stream whose items are refused one by one, since its answers can hold a refusal.
        let has_items = method.is_client_streaming() && item_of(&method.output()).is_some();
        let (items, asked) = if has_items {
            (", items: ItemAuthorizer", ", ItemAuthorizer::of_call()")
        } else {
            ("", "")
        };
        writeln!(
            calls,
            "/// `{rpc}`.\nfn {call}(&self, request: Request<{request}>{items}) -> impl Future<Output = Answer<{answer}>> + Send;"
        )?;
        let rights = rights(&method, needs)?;
        // The build refuses a stream of requests that name resources.
        let resources = if method.is_client_streaming() {
            ""
        } else {
            "permit_resources(&self.0, &request).map_err(status)?;\n"
        };
        writeln!(
            wrapped,
            "async fn {call}(&self, request: Request<{request}>) -> Result<Response<{answer}>, Status> {{\n\
             {rights}{resources}self.view(&request).await.{call}(request{asked}).await.map_err(status)\n}}"
        )?;
    }
    write!(
        code,
        "/// The handlers of `{name}`, for the caller whose view `self` is.\n\
         pub trait {name}: View {{\n{calls}}}\n\
         #[tonic::async_trait]\n\
         impl<S: {name}> v1::{module}_server::{name} for Handlers<S> {{\n{streams}{wrapped}}}\n"
    )?;
    Ok(())
}

/// Writes the checks of rights that values of a request need. Such a value must be in a field of
/// the request itself.
fn rights(
    method: &MethodDescriptor,
    needs: &ExtensionDescriptor,
) -> Result<String, Box<dyn Error>> {
    let mut code = String::new();
    for (field, values) in valued(&method.input(), needs) {
        // The generated check sees the request before the handler, so not the messages of a stream.
        if method.is_client_streaming() || field.contains('.') {
            let name = method.full_name();
            return Err(format!("{name}: `needs` is known for plain fields of one request").into());
        }
        writeln!(
            code,
            "needs(&request, request.get_ref().{field}, &[{values}]).map_err(status)?;"
        )?;
    }
    Ok(code)
}

/// Fields of a message whose values need a right, each with its values and their actions.
fn valued(message: &MessageDescriptor, needs: &ExtensionDescriptor) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for field in message.fields() {
        match field.kind() {
            Kind::Enum(kind) => {
                let values = kind.values().filter_map(|value| {
                    let options = value.options();
                    let number = options.get_extension(needs).as_enum_number()?;
                    let action = needs.kind().as_enum()?.get_value(number)?;
                    let action = action_name(action.name());
                    (number != 0).then(|| format!("({}, {action:?}),", value.number()))
                });
                let values: String = values.collect();
                if !values.is_empty() {
                    let list = if field.is_list() { ".list" } else { "" };
                    found.push((format!("{}{list}", field.name()), values));
                }
            }
            Kind::Message(inner) if inner.package_name() == PACKAGE && inner != *message => {
                let inner = valued(&inner, needs).into_iter();
                found.extend(
                    inner.map(|(name, values)| (format!("{}.{name}", field.name()), values)),
                );
            }
            _ => {}
        }
    }
    found
}

/// Returns the Rust types of one request and one answer.
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
