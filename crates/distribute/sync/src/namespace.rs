//! Ids of the skills of a source.

use model::{HOSTS, SkillId, SkillIdError};

use super::{Source, SourceKind};
use sources::Item;

/// A word as a segment of an id: what no id may have becomes `-`.
fn segment(word: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "._-".contains(c) {
            c
        } else {
            '-'
        }
    };
    let text: String = word.chars().map(plain).take(128).collect();
    text.trim_start_matches(|c: char| !c.is_ascii_alphanumeric())
        .to_owned()
}

/// Host and owner of a repository's address: of `https://HOST/OWNER/…`, `ssh://…` and
/// `USER@HOST:OWNER/…`.
fn host_and_owner(address: &str) -> Option<(String, String)> {
    let (host, path) = if let Ok(url) = url::Url::parse(address) {
        (url.host_str()?.to_owned(), url.path().to_owned())
    } else {
        // No URL: `git@example.com:acme/skills.git`, as `git` writes it.
        let (host, path) = address.split_once(':')?;
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        (host.to_owned(), path.to_owned())
    };
    let owner = path.trim_start_matches('/').split('/').next()?.to_owned();
    let known = HOSTS.iter().find(|(known, _)| *known == host);
    let host = known.map_or(host, |(_, name)| (*name).to_owned());
    Some((segment(&host), segment(owner.trim_end_matches(".git"))))
}

/// The id of a skill that a source has, by its slug.
///
/// # Errors
/// The name that the place gives it makes no id.
pub(crate) fn id(source: &Source, item: &Item, slug: &str) -> Result<SkillId, SkillIdError> {
    if let Some(namespace) = &source.namespace {
        let author = namespace.author.as_deref().or(item.author.as_deref());
        return SkillId::new(&namespace.source, author.unwrap_or(&source.id), slug);
    }
    let local = || (SkillId::LOCAL.to_owned(), source.id.clone());
    let (first, author) = match source.kind {
        // Skills of another server keep their ids, so that what requires them finds them here.
        SourceKind::Repertoire => return item.path.parse(),
        SourceKind::Directory => local(),
        SourceKind::Git => host_and_owner(&source.location)
            .filter(|(host, owner)| !host.is_empty() && !owner.is_empty())
            .unwrap_or_else(local),
        SourceKind::Github => ("github".to_owned(), source.id.clone()),
        SourceKind::Clawhub => ("clawhub".to_owned(), source.id.clone()),
        SourceKind::WellKnown => host_and_owner(&source.location)
            .filter(|(host, _)| !host.is_empty())
            .map_or_else(local, |(host, _)| (host, source.id.clone())),
    };
    let author = item.author.as_deref().map_or(author, segment);
    SkillId::new(&first, &author, slug)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(kind: SourceKind, location: &str) -> Source {
        Source {
            id: "acme".to_owned(),
            name: String::new(),
            kind,
            location: location.to_owned(),
            reference: String::new(),
            path: String::new(),
            select: Vec::new(),
            namespace: None,
            interval_seconds: None,
            credential: None,
            webhook_secret: None,
            named_by: secret::NamedBy::Operator,
        }
    }

    #[test]
    fn an_id_says_where_the_skill_comes_from() {
        use SourceKind::{Clawhub, Directory, Git, Github, Repertoire, WellKnown};
        let of = |kind, location: &str, author: Option<&str>| {
            let item = Item {
                path: "gitlab/x/refunds".to_owned(),
                author: author.map(str::to_owned),
                ..Item::default()
            };
            let id = id(&source(kind, location), &item, "refunds");
            id.map_err(|error| error.to_string())
                .expect("an id")
                .to_string()
        };
        let found = [
            of(Git, "https://github.com/acme/skills.git", None),
            of(Git, "git@gitlab.com:team/skills.git", None),
            of(Git, "ssh://git@git.example.com:22/~me/skills", None),
            of(Git, "file:///srv/skills.git", None),
            of(Directory, "/srv/skills", None),
            of(Github, "", Some("acme")),
            of(Clawhub, "https://clawhub.ai", Some("jane doe")),
            of(WellKnown, "https://skills.example.com", None),
            of(Repertoire, "https://skills.example.com", Some("x")),
        ];
        assert_eq!(
            found,
            [
                "github/acme/refunds",
                "gitlab/team/refunds",
                "git.example.com/me/refunds",
                "local/acme/refunds",
                "local/acme/refunds",
                "github/acme/refunds",
                "clawhub/jane-doe/refunds",
                "skills.example.com/acme/refunds",
                "gitlab/x/refunds",
            ]
        );
    }

    #[test]
    fn a_namespace_of_the_operator_goes_before_what_a_place_says() {
        let mut source = source(SourceKind::Git, "https://github.com/acme/skills.git");
        let item = Item {
            author: Some("jane".to_owned()),
            ..Item::default()
        };
        source.namespace = Some("team/ops".parse().expect("a namespace"));
        assert_eq!(
            id(&source, &item, "x").expect("an id").as_str(),
            "team/ops/x"
        );
        source.namespace = Some("team".parse().expect("a namespace"));
        assert_eq!(
            id(&source, &item, "x").expect("an id").as_str(),
            "team/jane/x"
        );
        for wrong in ["", "a/b/c", "Builtin/x", "-/x", "a/"] {
            assert!(wrong.parse::<super::super::Namespace>().is_err(), "{wrong}");
        }
    }
}
