//! Commands on tokens, and `whoami`.

use std::collections::BTreeSet;

use clap::{Args, Subcommand};

use super::connect::Client;
use super::output::{Done, FAINT, GOOD, List, Output, counted, time};
use access::{Action as Allowed, Role};
use contract::{action_from_wire, action_on_wire, v1};

const TOKEN_EXAMPLES: &str = "\
Examples:
  repertoire token create laptop-of-ada --role publisher --expires 90
  repertoire token create ci --role publisher --skills 'github/acme/*' --expires 30
  repertoire token create bot --role agent --sees 'github/acme/*'   private skills, too
  repertoire token create scraper --action operate      for /metrics
  repertoire token                                      what there is, and when it was last used
  repertoire token rotate ci                            a new text for the same caller
  repertoire token revoke ci                            at once: what it began ends, too

A name is given once: what belongs to a caller belongs to its name.

A server wants tokens where its config file says `access: {sign_in: tokens}`. Roles:
  reader         read, load
  agent          and call tools, learn
  publisher      and publish, activate, delete
  reviewer       read, load, learn, grade, block, review, audit
  operator       read, load, block, sync, review, audit, operate
  administrator  everything
docs/access.md says which call needs which action.";

#[derive(Debug, Args)]
#[command(after_help = TOKEN_EXAMPLES)]
pub(super) struct Token {
    #[command(subcommand)]
    pub(super) action: Option<Action>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// List the tokens: what each allows, and when it was last used.
    List,
    /// Create a token and print its text, which is not shown again.
    Create(Create),
    /// Replace the text of a token and print the new one, which is not shown again.
    Rotate {
        /// Its name.
        name: String,
        /// Days until it expires. [default: as before]
        #[arg(long, value_name = "DAYS", default_value_t = 0, hide_default_value = true, value_parser = clap::value_parser!(u32).range(0..=3650))]
        expires: u32,
    },
    /// Revoke a token. It is refused from now on, and streams that it opened end.
    Revoke {
        /// Its name.
        name: String,
    },
}

#[derive(Debug, Args)]
pub(super) struct Create {
    /// Its name, after who uses it: letters, digits, `.`, `_` and `-`.
    name: String,
    /// What it allows, as a role. Can be given more than once.
    #[arg(long = "role", value_name = "ROLE", value_parser = str::parse::<Role>)]
    roles: Vec<Role>,
    /// What it allows, as an action. Can be given more than once.
    #[arg(long = "action", value_name = "ACTION", value_parser = str::parse::<Allowed>, required_unless_present = "roles")]
    actions: Vec<Allowed>,
    /// Skills that it may publish, activate, delete and review: `SOURCE/*`,
    /// `SOURCE/AUTHOR/*` or an id, with commas between them. [default: all]
    #[arg(long, value_name = "PATTERNS", value_delimiter = ',')]
    skills: Vec<String>,
    /// Skills of private namespaces that it sees, in addition to those that it may change, written in the
    /// same way. [default: none]
    #[arg(long, value_name = "PATTERNS", value_delimiter = ',')]
    sees: Vec<String>,
    /// Days until it expires. [default: it does not]
    #[arg(long, value_name = "DAYS", default_value_t = 0, hide_default_value = true, value_parser = clap::value_parser!(u32).range(0..=3650))]
    expires: u32,
}

const TOKENS: List<v1::TokenInfo> = List::new(&[
    ("name", |token| token.name.clone()),
    ("actions", |token| names(&token.actions)),
    ("skills", |token| skills(&token.skills)),
    ("expires", |token| or_never(token.expires_at)),
    ("last used", |token| or_never(token.last_used_at)),
]);

fn or_never(at: Option<prost_types::Timestamp>) -> String {
    at.map_or_else(|| "never".to_owned(), |at| time(Some(at)))
}

fn names(actions: &[i32]) -> String {
    let actions = actions.iter();
    let known = actions.filter_map(|action| action_from_wire(v1::Action::try_from(*action).ok()?));
    known.map(Allowed::name).collect::<Vec<_>>().join(" ")
}

fn skills(skills: &[String]) -> String {
    match skills {
        [] => "all".to_owned(),
        some => some.join(" "),
    }
}

pub(super) async fn token(client: &Client, options: Token, output: &Output) -> Done {
    match options.action {
        None | Some(Action::List) => list(client, output).await,
        Some(Action::Create(options)) => create(client, options, output).await,
        Some(Action::Rotate { name, expires }) => rotate(client, name, expires, output).await,
        Some(Action::Revoke { name }) => revoke(client, name, output).await,
    }
}

async fn list(client: &Client, output: &Output) -> Done {
    let request = v1::ListTokensRequest {};
    let answer = output.answer(client.access().list_tokens(request).await?)?;
    output.list(&TOKENS, &answer.tokens)?;
    output.line(&counted(answer.tokens.len(), "token"))
}

async fn create(client: &Client, options: Create, output: &Output) -> Done {
    let allowed = options.roles.iter().flat_map(|role| role.actions().iter());
    let allowed: BTreeSet<_> = allowed.chain(options.actions).collect();
    let request = v1::CreateTokenRequest {
        name: options.name,
        actions: allowed
            .into_iter()
            .map(|action| action_on_wire(action).into())
            .collect(),
        skills: options.skills,
        sees: options.sees,
        expires_in_days: options.expires,
    };
    let answer = output.answer(client.access().create_token(request).await?)?;
    made(
        "made",
        &answer.info.unwrap_or_default(),
        &answer.token,
        output,
    )
}

async fn rotate(client: &Client, name: String, expires: u32, output: &Output) -> Done {
    let request = v1::RotateTokenRequest {
        name,
        expires_in_days: expires,
    };
    let answer = output.answer(client.access().rotate_token(request).await?)?;
    made(
        "rotated",
        &answer.info.unwrap_or_default(),
        &answer.token,
        output,
    )
}

/// Prints the text of a token.
fn made(what: &str, info: &v1::TokenInfo, token: &str, output: &Output) -> Done {
    // The token alone goes to standard output, for `TOKEN=$(repertoire token create …)`.
    output.note(&format!(
        "{GOOD}{what}{GOOD:#} {}: {} {FAINT}({} skills){FAINT:#}",
        info.name,
        names(&info.actions),
        skills(&info.skills),
    ));
    output
        .hint("copy the token now, it is not shown again; commands take it from REPERTOIRE_TOKEN");
    output.line(token)
}

async fn revoke(client: &Client, name: String, output: &Output) -> Done {
    let request = v1::RevokeTokenRequest { name };
    let answer = output.answer(client.access().revoke_token(request).await?)?;
    let info = answer.info.unwrap_or_default();
    output.line(&format!("{GOOD}revoked{GOOD:#} {}", info.name))
}

pub(super) async fn whoami(client: &Client, output: &Output) -> Done {
    let request = v1::GetCallerRequest {};
    let answer = output.answer(client.access().get_caller(request).await?)?;
    output.line(&format!("{GOOD}{}{GOOD:#}", answer.caller))?;
    output.line(&format!("may: {}", names(&answer.actions)))?;
    if !answer.skills.is_empty() {
        output.line(&format!("for: {}", answer.skills.join(" ")))?;
    }
    if !answer.sees.is_empty() {
        output.line(&format!("sees: {}", answer.sees.join(" ")))?;
    }
    if let Some(expires) = answer.expires_at {
        output.line(&format!("until: {}", time(Some(expires))))?;
    }
    Ok(())
}
