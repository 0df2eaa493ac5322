//! Writes the traits that services implement, and how tonic's traits call them.

use std::error::Error;
use std::fmt::Write as _;

use prost_reflect::{DescriptorPool, ExtensionDescriptor, MethodDescriptor, ServiceDescriptor};

use super::PACKAGE;
use super::access::{Access, action_name, item_of, snake, valued};
use super::withheld::Withheld;

/// A trait for each service, and tonic's for whatever wraps an implementation of it.
pub(super) fn generate(
    pool: &DescriptorPool,
    access: &Access,
    withheld: &Withheld,
) -> Result<String, Box<dyn Error>> {
    let needs = pool
        .get_extension_by_name("repertoire.v1.needs")
        .ok_or("no extension repertoire.v1.needs")?;
    let mut code = String::new();
    for service in pool.services().filter(|s| s.package_name() == PACKAGE) {
        service_of(&service, (access, &needs, withheld), &mut code)?;
    }
    Ok(code)
}

fn service_of(
    service: &ServiceDescriptor,
    (access, needs, withheld): (&Access, &ExtensionDescriptor, &Withheld),
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
        let rights = rights(&method, access, needs)?;
        let (before, after) = withheld.around(&method)?;
        // The build refuses a stream of requests that name resources.
        let resources = if method.is_client_streaming() {
            ""
        } else {
            "permit_resources(&self.0, &request).map_err(status)?;\n"
        };
        writeln!(
            wrapped,
            "async fn {call}(&self, request: Request<{request}>) -> Result<Response<{answer}>, Status> {{\n\
             {rights}{resources}{before}self.view(&request).await.{call}(request{asked}).await{after}.map_err(status)\n}}"
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

/// Writes the checks of rights that values of a request need, for the skill that the request
/// names. Such a value must be in a field of the request itself.
fn rights(
    method: &MethodDescriptor,
    access: &Access,
    needs: &ExtensionDescriptor,
) -> Result<String, Box<dyn Error>> {
    let mut code = String::new();
    let actions = needs
        .kind()
        .as_enum()
        .cloned()
        .ok_or("`needs` is an action")?;
    let skill = access.skill_of(method.input().name());
    for (field, values) in valued(&method.input(), needs) {
        let mut of = String::new();
        for (number, action) in values {
            let action = action.as_enum_number().and_then(|it| actions.get_value(it));
            let action = action_name(action.ok_or("`needs` names an action")?.name());
            // Owners of namespaces decide on these, which is not asked here.
            let is_owned = ["publish", "activate", "delete"].contains(&action.as_str());
            // The check sees the request before the handler, so not the messages of a stream.
            let is_plain = |path: &str| !path.contains('.');
            if is_owned
                || method.is_client_streaming()
                || !is_plain(&field)
                || !skill.as_deref().is_none_or(is_plain)
            {
                let name = method.full_name();
                return Err(format!(
                    "{name}: `needs` is known for plain fields of one request, and actions without owners"
                )
                .into());
            }
            write!(of, "({number}, {action:?}),")?;
        }
        let skill = skill.as_ref().map_or_else(
            || "\"\"".to_owned(),
            |skill| format!("&request.get_ref().{skill}"),
        );
        writeln!(
            code,
            "needs(&request, request.get_ref().{field}, {skill}, &[{of}]).map_err(status)?;"
        )?;
    }
    Ok(code)
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
