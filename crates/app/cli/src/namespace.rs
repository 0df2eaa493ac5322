//! Commands on namespaces: their owners, and who sees the skills in them.

use clap::{Args, Subcommand, ValueEnum};

use super::connect::{Client, pages};
use super::output::{Done, FAINT, GOOD, List, Output, counted, time};
use contract::v1;

/// Namespaces of one request.
const NAMESPACES_PER_PAGE: i32 = 1000;

const NAMESPACE_EXAMPLES: &str = "\
Examples:
  repertoire namespace                                       those of which something was said
  repertoire namespace set github/acme --visibility private  only its owners see its skills
  repertoire namespace set github/acme --add-owner token:ada --add-owner oidc:acme/1234
  repertoire namespace set github/acme --visibility default  what the config file says
  repertoire namespace give refunds --from github/acme/refunds --to github/acme-2/refunds

Who sees the skills of a namespace; to everybody else they do not exist:
  public    every caller that may read
  internal  every authenticated caller
  private   owners, who may change them, and whose token sees them
            (`repertoire token create NAME --role agent --sees 'github/acme/*'`)
Where a namespace has owners, only they and administrators publish in it. Owners are named
as `repertoire whoami` names them. docs/access.md says more.";

#[derive(Debug, Args)]
#[command(after_help = NAMESPACE_EXAMPLES)]
pub(super) struct Namespace {
    #[command(subcommand)]
    pub(super) action: Option<Action>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// List the namespaces of which something was said: who sees them, and whose they are.
    List,
    /// Set who sees the skills of a namespace, and who owns it.
    Set(Set),
    /// Give a short name that a skill of a namespace holds to another skill, or up.
    Give(Give),
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Visibility {
    Public,
    Internal,
    Private,
    Default,
}

#[derive(Debug, Args)]
pub(super) struct Set {
    /// `SOURCE/AUTHOR`, the first two parts of the ids of its skills.
    namespace: String,
    /// Who sees its skills; `default`: what the config file says.
    #[arg(
        long,
        value_enum,
        required_unless_present_any = ["add_owners", "remove_owners"]
    )]
    visibility: Option<Visibility>,
    /// Owner to add, such as `token:ada`. Can be given more than once.
    #[arg(long = "add-owner", value_name = "CALLER")]
    add_owners: Vec<String>,
    /// Owner to remove. Can be given more than once.
    #[arg(long = "remove-owner", value_name = "CALLER")]
    remove_owners: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct Give {
    /// The short name, such as `refunds`.
    name: String,
    /// The full id of the skill that holds it.
    #[arg(long, value_name = "ID")]
    from: String,
    /// The full id of the skill that gets it. [default: it leads to the next skill of the name]
    #[arg(long, value_name = "ID")]
    to: Option<String>,
}

const NAMESPACES: List<v1::NamespaceInfo> = List::new(&[
    ("namespace", |it| it.namespace.clone()),
    ("seen by", |it| visibility(it).to_owned()),
    ("owners", owners),
    ("since", |it| time(it.updated_at)),
    ("by", |it| it.updated_by.clone()),
]);

fn visibility(namespace: &v1::NamespaceInfo) -> &'static str {
    match namespace.visibility() {
        v1::Visibility::Public => "public",
        v1::Visibility::Internal => "internal",
        v1::Visibility::Private => "private",
        v1::Visibility::Unspecified | v1::Visibility::Default => "unknown",
    }
}

fn owners(namespace: &v1::NamespaceInfo) -> String {
    match namespace.owners.as_slice() {
        [] => "nobody".to_owned(),
        some => some.join(" "),
    }
}

pub(super) async fn namespace(client: &Client, options: Namespace, output: &Output) -> Done {
    match options.action {
        None | Some(Action::List) => list(client, output).await,
        Some(Action::Set(options)) => set(client, options, output).await,
        Some(Action::Give(options)) => give(client, options, output).await,
    }
}

async fn list(client: &Client, output: &Output) -> Done {
    let mut all = v1::ListNamespacesResponse::default();
    pages(async |page_token| {
        let request = v1::ListNamespacesRequest {
            page_size: NAMESPACES_PER_PAGE,
            page_token,
        };
        let page = client.access().list_namespaces(request).await?.into_inner();
        all.namespaces.extend(page.namespaces);
        Ok(page.next_page_token)
    })
    .await?;
    output.message(&all)?;
    output.list(&NAMESPACES, &all.namespaces)?;
    output.line(&counted(all.namespaces.len(), "namespace"))
}

async fn set(client: &Client, options: Set, output: &Output) -> Done {
    let visible = match options.visibility {
        None => v1::Visibility::Unspecified,
        Some(Visibility::Public) => v1::Visibility::Public,
        Some(Visibility::Internal) => v1::Visibility::Internal,
        Some(Visibility::Private) => v1::Visibility::Private,
        Some(Visibility::Default) => v1::Visibility::Default,
    };
    let request = v1::SetNamespaceRequest {
        namespace: options.namespace,
        visibility: visible.into(),
        add_owners: options.add_owners,
        remove_owners: options.remove_owners,
    };
    let answer = output.answer(client.access().set_namespace(request).await?)?;
    let info = answer.info.unwrap_or_default();
    let whence = if info.is_default {
        " by the config file"
    } else {
        ""
    };
    output.line(&format!(
        "{GOOD}set{GOOD:#} {}: {}{whence} {FAINT}(owners: {}){FAINT:#}",
        info.namespace,
        visibility(&info),
        owners(&info),
    ))
}

async fn give(client: &Client, options: Give, output: &Output) -> Done {
    let request = v1::SetShortNameRequest {
        short_name: options.name,
        holder_id: options.from,
        skill_id: options.to.unwrap_or_default(),
        idempotency_key: String::new(),
    };
    let answer = output.answer(client.registry().set_short_name(request).await?)?;
    let (name, from, to) = (
        &answer.short_name,
        &answer.previous_holder_id,
        &answer.holder_id,
    );
    let outcome = match to.as_str() {
        "" => format!("{from} gave {name} up"),
        to => format!("{name} leads to {to} now {FAINT}(before: {from}){FAINT:#}"),
    };
    output.line(&format!("{GOOD}moved{GOOD:#} {outcome}"))
}
