//! URLs of repositories, checked once.

use std::path::PathBuf;

use url::Url;

use super::Error;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    /// `http` or `https`, without credentials, query and fragment.
    Http(Url),
    /// A program at the other end of ssh.
    Ssh {
        /// The user there; none: the user of this process.
        user: Option<String>,
        /// Name or address, without brackets.
        host: String,
        /// Its port.
        port: u16,
        /// The path of the repository.
        path: String,
    },
    /// A folder of this machine, absolute.
    File(PathBuf),
}

fn invalid(url: &str, why: &str) -> Error {
    Error::Invalid(format!(
        "`{}` cannot be fetched: {why}",
        model::shown(url, 200)
    ))
}

/// A URL without the credentials in front of its host.
fn without_credentials(url: &str) -> String {
    // By hand and not by `Url`: it is for messages about what no parser takes.
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let end = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
    let host = authority.rsplit('@').next().unwrap_or(authority);
    if scheme.is_empty() {
        format!("{host}{path}")
    } else {
        format!("{scheme}://{host}{path}")
    }
}

impl Address {
    /// Reads a URL: `https`, `http`, `ssh`, `user@host:path`, and `file` where that is
    /// permitted.
    ///
    /// # Errors
    /// It is of another kind, has credentials, or something in it would be an option of a
    /// program.
    pub(super) fn parse(text: &str, permits_files: bool) -> Result<Self, Error> {
        let text = text.trim();
        let safe = without_credentials(text);
        if text.is_empty() {
            return Err(Error::Invalid(
                "the URL of the repository is empty".to_owned(),
            ));
        }
        if text.starts_with('-') {
            return Err(invalid(&safe, "a URL does not begin with `-`"));
        }
        if text.chars().any(char::is_control) {
            return Err(invalid(&safe, "it has a character that no URL has"));
        }
        let Some((scheme, _)) = text.split_once("://") else {
            return Self::scp(text, &safe);
        };
        match scheme.to_ascii_lowercase().as_str() {
            "http" | "https" => Self::http(text, &safe),
            "ssh" => Self::ssh(text, &safe),
            "file" if permits_files => Self::file(text, &safe),
            "file" => Err(invalid(&safe, "folders of this machine are not permitted")),
            "git" => Err(invalid(
                &safe,
                "`git://` proves nothing of what it sends; take https or ssh",
            )),
            _ => Err(invalid(&safe, "only https, http and ssh are fetched")),
        }
    }

    fn http(text: &str, safe: &str) -> Result<Self, Error> {
        let mut url = Url::parse(text).map_err(|error| invalid(safe, &error.to_string()))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(invalid(
                safe,
                "it has credentials in it; take them out, and name a credential instead",
            ));
        }
        let host = url.host_str().unwrap_or_default();
        if host.is_empty() || host.starts_with('-') || url.path().starts_with("/-") {
            return Err(invalid(safe, "neither host nor path begins with `-`"));
        }
        if url.query().is_some() {
            return Err(invalid(safe, "the URL of a repository has no `?`"));
        }
        url.set_fragment(None);
        Ok(Self::Http(url))
    }

    fn ssh(text: &str, safe: &str) -> Result<Self, Error> {
        let url = Url::parse(text).map_err(|error| invalid(safe, &error.to_string()))?;
        if url.password().is_some() {
            return Err(invalid(
                safe,
                "it has a password in it; ssh takes the file of a key",
            ));
        }
        let decoded = |text: &str| {
            percent_encoding::percent_decode_str(text)
                .decode_utf8()
                .map(std::borrow::Cow::into_owned)
                .map_err(|_| invalid(safe, "it is not UTF-8"))
        };
        let user = decoded(url.username())?;
        let host = decoded(url.host_str().unwrap_or_default())?;
        let path = decoded(url.path())?;
        // `/~name/x` is in the home of a user; Git's server side wants it without the slash.
        let path = path
            .strip_prefix("/~")
            .map_or(path.clone(), |home| format!("~{home}"));
        Self::of_ssh(user, &host, url.port().unwrap_or(22), path, safe)
    }

    /// `user@host:path`.
    fn scp(text: &str, safe: &str) -> Result<Self, Error> {
        let why = "only https, http and ssh are fetched";
        let (authority, path) = match text.find("]:") {
            Some(at) => (text.get(..=at), text.get(at + 2..)),
            None => match text.split_once(':') {
                Some((authority, path)) => (Some(authority), Some(path)),
                None => (None, None),
            },
        };
        let (Some(authority), Some(path)) = (authority, path) else {
            return Err(invalid(safe, why));
        };
        // To Git, `ext::program` is a program to run, `C:\x` a folder, and `a/b:c` as well.
        if path.starts_with(':') || authority.contains(['/', '\\']) {
            return Err(invalid(safe, why));
        }
        let Some((user, host)) = authority.split_once('@') else {
            return Err(invalid(safe, why));
        };
        if user.contains(':') {
            return Err(invalid(
                safe,
                "it has a password in it; ssh takes the file of a key",
            ));
        }
        Self::of_ssh(user.to_owned(), host, 22, path.to_owned(), safe)
    }

    fn of_ssh(
        user: String,
        host: &str,
        port: u16,
        path: String,
        safe: &str,
    ) -> Result<Self, Error> {
        // All of these become arguments of `ssh`, or of the shell on its other side: a host, user
        // or path that begins with `-` would be an option, as in CVE-2017-1000117.
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let plain = |c: char| c.is_alphanumeric() || ".-_:".contains(c);
        if host.is_empty() || host.starts_with('-') || !host.chars().all(plain) {
            return Err(invalid(safe, "it names no host"));
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || ".-_+".contains(c);
        if user.starts_with('-') || !user.chars().all(plain) {
            return Err(invalid(safe, "it names no user"));
        }
        let is_bare = path.trim_matches('/').is_empty();
        if is_bare || path.trim_start_matches('/').starts_with('-') {
            return Err(invalid(safe, "its path is empty, or begins with `-`"));
        }
        if path.chars().any(char::is_control) {
            return Err(invalid(safe, "it has a character that no URL has"));
        }
        Ok(Self::Ssh {
            user: Some(user).filter(|user| !user.is_empty()),
            host: host.to_owned(),
            port,
            path,
        })
    }

    fn file(text: &str, safe: &str) -> Result<Self, Error> {
        let url = Url::parse(text).map_err(|error| invalid(safe, &error.to_string()))?;
        let path = url
            .to_file_path()
            .map_err(|()| invalid(safe, "it names no folder of this machine"))?;
        Ok(Self::File(path))
    }

    /// For people, without a secret.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Http(url) => url.to_string(),
            Self::Ssh {
                user,
                host,
                port,
                path,
            } => {
                let user = user
                    .as_ref()
                    .map_or_else(String::new, |user| format!("{user}@"));
                let path = path.trim_start_matches('/');
                format!("ssh://{user}{host}:{port}/{path}")
            }
            Self::File(path) => format!("file://{}", path.display()),
        }
    }
}
