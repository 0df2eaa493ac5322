//! The rpcs of namespaces.

use jiff::Timestamp;

use super::convert::time;
use super::enums::same_variants;
use super::{DEFAULT_NAMESPACES, page_size};
use ::access::{Access, Caller};
use contract::v1;
use model::{Code, Failure, open_token, seal_token};
use namespaces::{Change, Namespace, Namespaces, NewVisibility, Visibility};
use registry::Registry;

// Sealed into page tokens, so that no token of another list is taken for one of this.
const PAGE: &str = "namespaces";

same_variants!(fn visibility_on_wire(Visibility) -> Visibility { Public, Internal, Private });

fn visibility(asked: v1::Visibility) -> NewVisibility {
    match asked {
        v1::Visibility::Unspecified => NewVisibility::Unchanged,
        v1::Visibility::Public => NewVisibility::Set(Visibility::Public),
        v1::Visibility::Internal => NewVisibility::Set(Visibility::Internal),
        v1::Visibility::Private => NewVisibility::Set(Visibility::Private),
        v1::Visibility::Default => NewVisibility::BySettings,
    }
}

fn info(namespaces: &Namespaces, namespace: &Namespace) -> v1::NamespaceInfo {
    let visibility = namespace.visibility;
    let visibility = visibility.unwrap_or_else(|| namespaces.visibility(&namespace.name));
    v1::NamespaceInfo {
        namespace: namespace.name.clone(),
        visibility: visibility_on_wire(visibility).into(),
        is_default: namespace.visibility.is_none(),
        owners: namespace.owners.iter().map(ToString::to_string).collect(),
        updated_at: Some(time(namespace.updated_at)),
        updated_by: namespace.updated_by.to_string(),
    }
}

pub(super) fn list(
    namespaces: &Namespaces,
    caller: &Caller,
    request: &v1::ListNamespacesRequest,
) -> Result<v1::ListNamespacesResponse, Failure> {
    let after = match request.page_token.as_str() {
        "" => String::new(),
        token => open_token(PAGE, "", token).ok_or_else(|| {
            let message = "The page token is none that ListNamespaces gave";
            Failure::new(Code::PageTokenInvalid, message).field("page_token", message)
        })?,
    };
    let size = page_size(request.page_size, DEFAULT_NAMESPACES);
    // One more than the page holds tells whether another page follows.
    let mut listed = namespaces.list(caller, &after, size + 1);
    let more = listed.len() > size;
    listed.truncate(size);
    let next = listed.last().filter(|_| more);
    let next = next.map(|last| seal_token(PAGE, "", &last.name));
    Ok(v1::ListNamespacesResponse {
        namespaces: listed.iter().map(|it| info(namespaces, it)).collect(),
        next_page_token: next.unwrap_or_default(),
    })
}

pub(super) async fn set(
    (namespaces, registry): (&Namespaces, &Registry),
    access: &Access,
    request: v1::SetNamespaceRequest,
    now: Timestamp,
) -> Result<v1::SetNamespaceResponse, Failure> {
    let asked = request.visibility();
    let v1::SetNamespaceRequest {
        namespace,
        visibility: _,
        add_owners,
        remove_owners,
    } = request;
    let change = Change {
        visibility: visibility(asked),
        add_owners,
        remove_owners,
    };
    // Before more callers see the skills, so that no name leads to one of them for a moment.
    if namespaces.widens(&namespace, &change, access)? {
        let by = registry::Caller::new(access.caller.principal.clone());
        registry.claim_again(&namespace, &by).await?;
    }
    let changed = namespaces.change(&namespace, change, access, now).await;
    Ok(v1::SetNamespaceResponse {
        info: Some(info(namespaces, &changed?)),
    })
}
