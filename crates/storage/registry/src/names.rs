//! The names that a caller may give to skills and tools.
//!
//! A caller that takes a name which others rely on could impersonate its owner. So on a server:
//!
//! * no other source may look like `builtin`;
//! * the names of bundled skills, of their tools and of the contract's belong to the server. A
//!   local caller, which has the data directory, may use them all the same: for a person's own
//!   skills, which hide those of the server, and for an imported collection. Names are compared
//!   by their skeletons, so what only looks like such a name is taken as well;
//! * `local/project/…` and `local/user/…` are on one person's machine, and only local callers
//!   can write to them.
//!
//! A registry that is used as a library reserves nothing.

use std::collections::BTreeMap;

use super::{Error, Registry};
use model::{Location, Principal, Skill, SkillId, is_device, skeleton, slugify};

/// Names that are reserved for the server.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// Slugs of the bundled skills, by their skeletons.
    slugs: BTreeMap<String, String>,
    /// Names of tools, in the same way.
    tools: BTreeMap<String, String>,
    is_served: bool,
    is_shared: bool,
}

impl Names {
    /// Reserves the names of a server's bundled skills, and of its tools.
    ///
    /// `is_shared`: it serves more than one machine, so that its own skills come
    /// before those of `local/project` and `local/user`.
    #[must_use]
    pub fn reserved<'a>(
        slugs: impl IntoIterator<Item = &'a str>,
        tools: impl IntoIterator<Item = String>,
        is_shared: bool,
    ) -> Self {
        let slugs = slugs
            .into_iter()
            .map(|slug| (skeleton(slug), slug.to_owned()));
        let tools = tools.into_iter().map(|tool| (skeleton(&tool), tool));
        Self {
            slugs: slugs.collect(),
            tools: tools.collect(),
            is_served: true,
            is_shared,
        }
    }

    /// Returns whether the server's own skills win every short name.
    pub(super) fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Returns whether the name of a tool passes for one of the server's without being it. None
    /// is published any more, but older versions may declare some.
    pub(super) fn is_imitated_by(&self, tool: &str) -> bool {
        let own = self.tools.get(&skeleton(tool));
        own.is_some_and(|own| own != tool)
    }

    /// Checks that the caller may write the skill of this id at all.
    pub(super) fn permit(&self, id: &SkillId, caller: &Principal) -> Result<(), Error> {
        if *caller == Principal::system() {
            return Ok(());
        }
        if id.is_builtin() {
            return Err(Error::ReadOnly { id: id.clone() });
        }
        let is_personal = id.location() != Location::Global;
        if self.is_served && is_personal && *caller != Principal::local() {
            return Err(Error::NotLocal { id: id.clone() });
        }
        Ok(())
    }

    /// Checks that the caller may publish this skill under this id.
    pub(super) fn permit_version(
        &self,
        id: &SkillId,
        skill: &Skill,
        caller: &Principal,
    ) -> Result<(), Error> {
        self.permit(id, caller)?;
        if !self.is_served || *caller == Principal::system() {
            return Ok(());
        }
        let reserved = |name: &str, whose: &str, step: String| Error::NameReserved {
            id: id.clone(),
            name: name.to_owned(),
            whose: whose.to_owned(),
            step,
        };
        if resembles(id.source(), SkillId::BUILTIN) {
            let whose = "looks like `builtin`, the source of the skills that come with the server";
            let step = "Choose another source, such as the host of its repository";
            return Err(reserved(id.source(), whose, step.to_owned()));
        }
        let mut segments = [id.source(), id.author(), id.slug()].into_iter();
        if let Some(device) = segments.find(|segment| is_device(segment)) {
            let step = "Choose another name: no folder can have this one on Windows";
            return Err(reserved(device, "is a device on Windows", step.to_owned()));
        }
        if *caller == Principal::local() {
            return Ok(());
        }
        for name in [id.slug(), &skill.name] {
            if let Some(slug) = self.slugs.get(&skeleton(name)) {
                let whose = format!("is, or looks like, the bundled skill `{slug}`");
                let author = slugify(id.author()).unwrap_or_default();
                let step = format!(
                    "Publish it under a name of its own, such as `{author}-{}`",
                    slug.replace('_', "-")
                );
                return Err(reserved(name, &whose, step));
            }
        }
        let tools = skill.tool_configs.iter().map(|tool| tool.name.as_str());
        let taken = tools.filter_map(|tool| Some((tool, self.tools.get(&skeleton(tool))?)));
        let taken: Vec<_> = taken.collect();
        if let Some((first, own)) = taken.first() {
            let names: Vec<_> = taken.iter().map(|(tool, _)| *tool).collect();
            let step = format!(
                "Rename in `tool_configs`: {}; for instance `{}_{own}`",
                names.join(", "),
                id.slug().replace(['-', '.'], "_")
            );
            let whose = if first == own {
                "is a tool of the server".to_owned()
            } else {
                format!("looks like `{own}`, a tool of the server")
            };
            return Err(reserved(first, &whose, step));
        }
        Ok(())
    }
}

impl Registry {
    /// Returns whether the name of a tool passes for one of the server's without being it: no
    /// call that is meant for the server's own may reach the other.
    #[must_use]
    pub fn is_imitation(&self, tool: &str) -> bool {
        self.inner.policy.names.is_imitated_by(tool)
    }
}

/// Returns whether a person may take one name for the other.
fn resembles(name: &str, other: &str) -> bool {
    // In many typefaces `i`, `l` and `1` are one; `skeleton` knows of the last two.
    let shape = |name: &str| skeleton(name).replace('i', "l");
    shape(name) == shape(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Code, Failure, FilePath};

    fn names() -> Names {
        Names::reserved(
            ["write_sql", "xlsx"],
            ["sql_query".to_owned(), "list_skills".to_owned()],
            false,
        )
    }

    fn skill(name: &str, tools: &[&str]) -> Skill {
        let tools: Vec<_> = tools
            .iter()
            .map(|tool| format!("{{name: {tool}, method: m}}"))
            .collect();
        let tools = tools.join(", ");
        let front = format!("name: {name}\ndescription: For a test.\ntool_configs: [{tools}]\n");
        let text = format!("---\n{front}---\nDo it.\n");
        let files = BTreeMap::from([(FilePath::skill_md(), text.into())]);
        let options = skill_md::ReadOptions::default();
        skill_md::read(&files, &options).skill.expect("a skill")
    }

    fn published(
        id: &str,
        skill: &Skill,
        caller: &Principal,
    ) -> Result<(), (Code, String, String)> {
        let id: SkillId = id.parse().expect("an id");
        let permitted = names().permit_version(&id, skill, caller);
        permitted.map_err(|error| {
            let failure = Failure::from(error);
            (failure.code, failure.message, failure.suggestions.concat())
        })
    }

    #[test]
    fn what_looks_like_the_server_is_no_source_for_anybody() {
        for caller in [Principal::anonymous(), Principal::local()] {
            for source in [
                "built-in", "builtin.", "bui1tin", "BUI1TIN", "builtln", "bu_iltin", "buiItin",
            ] {
                let refused =
                    published(&format!("{source}/repertoire/x"), &skill("x", &[]), &caller);
                assert_eq!(
                    refused.map_err(|(code, ..)| code),
                    Err(Code::NameReserved),
                    "{source}"
                );
            }
            for source in ["github", "builder", "built", "local"] {
                assert_eq!(
                    published(&format!("{source}/global/x"), &skill("x", &[]), &caller),
                    Ok(())
                );
            }
        }
    }

    #[test]
    fn names_of_bundled_skills_and_of_the_servers_tools_are_for_local_callers_only() {
        for (id, skill) in [
            ("acme/x/write_sql", skill("write_sql", &[])),
            ("acme/x/write-sql", skill("write-sql", &[])),
            ("acme/x/XLSX", skill("other", &[])),
            ("acme/x/y", skill("wr\u{456}te_sql", &[])),
            ("acme/x/y", skill("y", &["fine", "sql_query"])),
            ("acme/x/y", skill("y", &["list_skills"])),
            ("acme/x/y", skill("y", &["sql-query"])),
            ("acme/x/y", skill("y", &["SQL_QUERY"])),
            ("acme/x/y", skill("y", &["sql query"])),
            ("acme/x/y", skill("y", &["sqlQuery"])),
            ("acme/x/y", skill("y", &["'sql_query '"])),
            ("acme/x/y", skill("y", &["sql_qu\u{435}ry"])),
        ] {
            let refused = published(id, &skill, &Principal::anonymous());
            assert_eq!(
                refused.map_err(|(code, ..)| code),
                Err(Code::NameReserved),
                "{id}"
            );
            assert_eq!(published(id, &skill, &Principal::local()), Ok(()), "{id}");
        }
        assert_eq!(
            published("acme/x/xlsx", &skill("xlsx", &[]), &Principal::anonymous()),
            Err((
                Code::NameReserved,
                "'xlsx' is, or looks like, the bundled skill `xlsx`".to_owned(),
                "Publish it under a name of its own, such as `x-xlsx`".to_owned(),
            ))
        );
        let imitation = skill("y", &["fine", "SQL-Query"]);
        assert_eq!(
            published("acme/x/y-z", &imitation, &Principal::anonymous()),
            Err((
                Code::NameReserved,
                "'SQL-Query' looks like `sql_query`, a tool of the server".to_owned(),
                "Rename in `tool_configs`: SQL-Query; for instance `y_z_sql_query`".to_owned(),
            ))
        );
        assert_eq!(
            published(
                "acme/x/y",
                &skill("y", &["sql_query_of_ours"]),
                &Principal::anonymous()
            ),
            Ok(())
        );
    }

    #[test]
    fn places_of_a_persons_machine_are_for_local_callers_only() {
        for id in ["local/project/x", "Local/USER/x"] {
            let refused = published(id, &skill("x", &[]), &Principal::anonymous());
            assert_eq!(
                refused.map_err(|(code, ..)| code),
                Err(Code::LocationNotLocal),
                "{id}"
            );
            assert_eq!(published(id, &skill("x", &[]), &Principal::local()), Ok(()));
        }
        assert_eq!(
            published("local/global/x", &skill("x", &[]), &Principal::anonymous()),
            Ok(())
        );
    }

    #[test]
    fn what_cannot_be_a_folder_everywhere_is_no_name() {
        for id in ["acme/x/con", "aux/x/y", "acme/com1.git/y"] {
            let refused = published(id, &skill("y", &[]), &Principal::local());
            assert_eq!(
                refused.map_err(|(code, ..)| code),
                Err(Code::NameReserved),
                "{id}"
            );
        }
    }
}
