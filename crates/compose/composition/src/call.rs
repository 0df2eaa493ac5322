//! A call of a tool, as far as patterns read it: the command line, the
//! address, the path.
//!
//! Hosts name these arguments differently. Where two of the names are there and
//! differ, nobody knows which one counts.

use std::cell::OnceCell;

use serde_json::{Map, Value};

use super::command_line::{self, Command};
use super::uncertainty::{Uncertainty, shown};

/// A call to check.
#[derive(Debug)]
pub struct Call<'a> {
    pub(super) tool: &'a str,
    /// The name in the form in which spellings are compared.
    pub(super) folded: String,
    arguments: &'a Map<String, Value>,
    // Every pattern on commands asks for them, and a set has hundreds: parsed once.
    commands: OnceCell<Result<Vec<Command>, Uncertainty>>,
}

/// An argument by all the names that hosts give it, the usual one first. They are
/// compared without case, `_` and `-`.
struct Named {
    names: &'static [&'static str],
    /// Arguments that change what it does.
    modifiers: &'static [&'static str],
}

const COMMAND: Named = Named {
    names: &[
        "command",
        "cmd",
        "commandline",
        "commands",
        "script",
        "shellcommand",
    ],
    // With `args` the text is not the whole command, and with `env` or `shell` another program
    // may read it.
    modifiers: &["args", "argv", "arguments", "env", "environment", "shell"],
};

const PATH: Named = Named {
    names: &[
        "file_path",
        "path",
        "notebook_path",
        "absolutepath",
        "file",
        "filename",
        "filepaths",
        "files",
        "paths",
        "targetfile",
    ],
    modifiers: &[],
};

/// Where a relative path begins, for tools that take that.
const FOLDER: &[&str] = &[
    "basedir",
    "basepath",
    "cwd",
    "directory",
    "root",
    "workdir",
    "workingdirectory",
];

const ADDRESS: Named = Named {
    // A `host` or `proxy` of its own sends the request elsewhere than the address says.
    names: &["url", "address", "href", "link", "uri", "urls"],
    modifiers: &["baseurl", "host", "proxy"],
};

fn is_one_of(names: &[&str], given: &str) -> bool {
    fn letters(text: &str) -> impl Iterator<Item = u8> {
        let all = text.bytes().filter(|b| !matches!(b, b'_' | b'-'));
        all.map(|b| b.to_ascii_lowercase())
    }
    names.iter().any(|name| letters(name).eq(letters(given)))
}

impl<'a> Call<'a> {
    /// A call of a tool with its arguments.
    #[must_use]
    pub fn new(tool: &'a str, arguments: &'a Map<String, Value>) -> Self {
        Self {
            tool,
            folded: model::fold_tool(tool),
            arguments,
            commands: OnceCell::new(),
        }
    }

    /// Arguments that are there and have one of these names.
    fn given(&self, names: &[&str]) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.arguments
            .iter()
            // Models write null for what they leave out.
            .filter(|(name, value)| !value.is_null() && is_one_of(names, name))
            .map(|(name, value)| (name.as_str(), value))
    }

    /// The one text that an argument has under all of its names.
    fn text(&self, named: &Named) -> Result<&'a str, Uncertainty> {
        let mut given = self.given(named.names);
        let usual = named.names.first().copied().unwrap_or_default();
        let (name, value) = given.next().ok_or(Uncertainty::NoArgument(usual))?;
        // An attacker would put a harmless text under the name that we read, and the real one
        // under the name that the host reads.
        if let Some((other, _)) = given.find(|(_, other)| *other != value) {
            return Err(Uncertainty::TwoArguments(shown(name), shown(other)));
        }
        if let Some((modifier, _)) = self.given(named.modifiers).next() {
            return Err(Uncertainty::Modifier(shown(modifier)));
        }
        value
            .as_str()
            .ok_or_else(|| Uncertainty::NotText(shown(name)))
    }

    /// The commands of its command line.
    pub(super) fn commands(&self) -> Result<&[Command], Uncertainty> {
        let commands = self.commands.get_or_init(|| {
            let line = self.text(&COMMAND)?;
            command_line::commands(line)
        });
        commands.as_deref().map_err(Clone::clone)
    }

    /// The path of the file that it is about.
    pub(super) fn path(&self) -> Result<&'a str, Uncertainty> {
        let path = self.text(&PATH)?;
        // An absolute path stays the same in whichever folder the tool starts.
        match self.given(FOLDER).next() {
            Some((folder, _)) if !path.starts_with('/') => {
                Err(Uncertainty::Modifier(shown(folder)))
            }
            _ => Ok(path),
        }
    }

    /// The address that it is about.
    pub(super) fn address(&self) -> Result<&'a str, Uncertainty> {
        self.text(&ADDRESS)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_argument_counts_where_all_of_its_names_agree() {
        fn texts(
            arguments: &Value,
        ) -> (
            Result<String, Uncertainty>,
            Result<String, Uncertainty>,
            bool,
        ) {
            let arguments = arguments.as_object().expect("an object");
            let call = Call::new("x", arguments);
            (
                call.path().map(str::to_owned),
                call.address().map(str::to_owned),
                call.commands().is_ok(),
            )
        }
        let ok = |text: &str| Ok(text.to_owned());
        let two = |a: &str, b: &str| Uncertainty::TwoArguments(a.into(), b.into());
        assert_eq!(
            texts(
                &json!({"file_path": "/a", "Path": "/a", "url": "u", "command": "ls", "cmd": null})
            ),
            (ok("/a"), ok("u"), true)
        );
        assert_eq!(
            texts(
                &json!({"file_path": "/a", "path": "/b", "url": "u", "uri": "v", "command": "ls", "cmd": "x"})
            ),
            (Err(two("file_path", "path")), Err(two("url", "uri")), false)
        );
        assert_eq!(
            texts(
                &json!({"filePath": "/a", "file-path": ["/a"], "URL": 3, "command": "git", "args": ["x"]})
            ),
            (
                Err(two("filePath", "file-path")),
                Err(Uncertainty::NotText("URL".into())),
                false
            )
        );
        assert_eq!(
            texts(
                &json!({"path": "a", "cwd": "/etc", "url": "u", "proxy": "p", "command": ["ls"]})
            ),
            (
                Err(Uncertainty::Modifier("cwd".into())),
                Err(Uncertainty::Modifier("proxy".into())),
                false
            )
        );
        assert_eq!(
            texts(&json!({})),
            (
                Err(Uncertainty::NoArgument("file_path")),
                Err(Uncertainty::NoArgument("url")),
                false
            )
        );
    }
}
