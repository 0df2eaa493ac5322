//! The command that exports a version as an archive.

use std::io::Write as _;
use std::path::{Component, Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tonic::Streaming;

use super::connect::Client;
use super::mirror::Tree;
use super::output::{Done, Failed, GOOD, Output, bytes, json_of};
use super::skill_args::version;
use contract::v1;
use model::{Code, Digest};
use store::AtomicFile;

const EXAMPLES: &str = "\
Examples:
  repertoire export refunds                            refunds-1.2.0.tar.gz, here
  repertoire export github/acme/refunds --at 3 --held  a version that waits for review
  repertoire export --all ./skills                     every skill, as a tree of files
  repertoire export --all ./mirror --namespace github/acme --git --push git@example.com:acme/skills.git

The same skills make the same tree, and the same commit where the folder is fresh.";

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Archive {
    /// A gzip-compressed tar.
    TarGz,
    /// A zip.
    Zip,
}

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Export {
    /// The skill: its id or its short name.
    #[arg(required_unless_present = "all")]
    skill: Option<String>,
    /// A version: its number, or its semantic version. [default: the active one]
    #[arg(long, value_name = "VERSION", conflicts_with = "all")]
    at: Option<String>,
    /// A version that is held, or of a blocked skill. Only those who may review it get it, and the
    /// audit trail records it.
    #[arg(long, conflicts_with = "all")]
    held: bool,
    /// File to write. [default: the name and version of the skill, here]
    #[arg(long, short, value_name = "FILE", conflicts_with = "all")]
    output: Option<PathBuf>,
    /// What the archive is.
    #[arg(long, value_enum, default_value = "tar-gz")]
    archive: Archive,
    /// Overwrite the file where there is one.
    #[arg(long)]
    force: bool,
    /// Write the active versions of all skills into a folder instead, each below
    /// `source/author/slug`. Skills that are no longer there go from it.
    #[arg(long, value_name = "DIR", conflicts_with = "skill")]
    all: Option<PathBuf>,
    #[command(flatten)]
    tree: Tree,
}

/// Accepts the name that a server gives a file or a folder, where it is a plain name.
pub(super) fn plain(name: &str) -> Option<PathBuf> {
    let path = Path::new(name);
    let mut segments = path.components();
    // The last comparison refuses `a/` and `./a`, which have one component as well.
    let is_plain = matches!(
        (segments.next(), segments.next()),
        (Some(Component::Normal(only)), None) if only == path.as_os_str()
    );
    let is_plain = is_plain && !name.starts_with('.') && !name.chars().any(char::is_control);
    is_plain.then(|| path.to_owned())
}

pub(super) async fn export(client: &Client, options: Export, output: &Output) -> Done {
    if let Some(folder) = options.all {
        return super::mirror::all(client, folder, options.tree, output).await;
    }
    let (version_number, semantic_version) = version(options.at);
    let format = match options.archive {
        Archive::TarGz => v1::ArchiveFormat::TarGz,
        Archive::Zip => v1::ArchiveFormat::Zip,
    };
    let (skill_id, format) = (options.skill.unwrap_or_default(), format.into());
    let (file, force) = (options.output, options.force);
    if options.held {
        let request = v1::ExportForReviewRequest {
            skill_id,
            version_number,
            semantic_version,
            format,
        };
        let chunks = client.registry().export_for_review(request).await?;
        let part = |it: v1::ExportForReviewResponse| (it.info, it.chunk);
        return save(chunks.into_inner(), part, file, force, output).await;
    }
    let request = v1::ExportSkillRequest {
        skill_id,
        version_number,
        semantic_version,
        format,
        info_only: false,
    };
    let chunks = client.registry().export_skill(request).await?;
    let part = |it: v1::ExportSkillResponse| (it.info, it.chunk);
    save(chunks.into_inner(), part, file, force, output).await
}

/// Writes the archive that a server streams into a file.
async fn save<T, B: AsRef<[u8]>>(
    mut chunks: Streaming<T>,
    part: impl Fn(T) -> (Option<v1::ArchiveInfo>, B),
    file: Option<PathBuf>,
    force: bool,
    output: &Output,
) -> Done {
    let first = chunks.message().await?.map(&part);
    let (info, first) = first.ok_or_else(|| Failed::fault("the server sent nothing"))?;
    let info = info.unwrap_or_default();
    let path = match file {
        Some(file) => file,
        // The server chose the name: a path in it could write anywhere.
        None => plain(&info.file_name).ok_or_else(|| {
            let name = &info.file_name;
            let refused = format!("the server names the archive {name:?}, which is no plain name");
            Failed::file(refused).hint("name a file yourself with --output")
        })?,
    };
    super::data::free(&path, force)?;
    let named =
        |error: std::io::Error| Failed::file(format!("cannot write {}: {error}", path.display()));
    let archive = AtomicFile::new(&path).map_err(named)?;
    let mut written = 0_u64;
    let mut digest = Sha256::new();
    let mut next = Some(first);
    while let Some(chunk) = next {
        archive.file().write_all(chunk.as_ref()).map_err(named)?;
        digest.update(chunk.as_ref());
        written += chunk.as_ref().len() as u64;
        next = chunks.message().await?.map(|message| part(message).1);
    }
    let digest = Digest::from(<[u8; 32]>::from(digest.finalize())).to_string();
    // Before the file gets its name: an archive that was cut short is never found under it.
    if digest != info.digest {
        return Err(Failed::new(
            Code::DataDamaged,
            format!(
                "{} is not what the server made: its digest is {digest}, not {}",
                path.display(),
                info.digest
            ),
        ));
    }
    archive.persist(force).map_err(named)?;
    if output.is_json() {
        let archive = json_of(&info)?;
        output.value(
            &json!({"path": path.display().to_string(), "bytes": written, "archive": archive}),
        )?;
    }
    let size = bytes(written);
    output.line(&format!("{GOOD}wrote{GOOD:#} {} ({size})", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_names_a_file_in_this_folder_and_no_other() {
        assert_eq!(
            plain("refunds-1.1.0.zip"),
            Some(PathBuf::from("refunds-1.1.0.zip"))
        );
        for name in [
            "", ".", "..", "/etc/x", "../x", "a/../b", "a/b", "a/", "./a", ".bashrc", "a\nb",
            "a\0b",
        ] {
            assert_eq!(plain(name), None, "{name:?}");
        }
    }
}
