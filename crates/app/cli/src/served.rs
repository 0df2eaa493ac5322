//! A server as the source of skills that are installed from it.

use super::connect::Client;
use super::output::Failed;
use contract::{status, v1};
use model::{Code, Failure, SkillId, VersionNumber};
use provision::{Archive, Pin, PublishedVersion, Source};

/// The largest archive that is accepted.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// The server of a client.
pub(super) struct Served<'a>(pub(super) &'a Client);

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        status(failure).into()
    }
}

/// The failure of an answer that no server should give.
fn odd(what: impl std::fmt::Display) -> Failed {
    Failed::new(
        Code::ServerUnreachable,
        format!("the server answers with {what}"),
    )
}

fn set(skills: Vec<String>, resolve: bool) -> v1::ComposeSkillsRequest {
    v1::ComposeSkillsRequest {
        skills,
        resolve,
        ..Default::default()
    }
}

impl Source for Served<'_> {
    type Error = Failed;

    fn name(&self) -> String {
        self.0.url.clone().unwrap_or_else(|| "local".to_owned())
    }

    fn has_code(error: &Failed, code: Code) -> bool {
        error.is(code)
    }

    async fn resolve(&self, skills: Vec<String>) -> Result<Vec<Pin>, Failed> {
        let request = v1::ValidateSkillSetRequest {
            skills: skills.clone(),
            resolve: true,
            ..Default::default()
        };
        let answer = self.0.composition().validate_skill_set(request).await?;
        let answer = answer.into_inner();
        if !answer.valid {
            // One call for each, as its error is clearer where a skill is missing by itself; else
            // the set's own error lists everything.
            for skill in &skills {
                let id = skill.split('@').next().unwrap_or(skill).to_owned();
                self.latest_of(id).await?;
            }
            let set = set(skills, true);
            self.0.composition().compose_skills(set).await?;
            return Err(odd("a set that is neither valid nor wrong"));
        }
        let mut entries = answer.lock.unwrap_or_default().entries;
        entries.sort_by_key(|entry| entry.position);
        // The server puts the skills that were asked for first, then those that they require.
        let asked = entries.len().saturating_sub(answer.added_skills.len());
        let pins = entries.into_iter().enumerate().map(|(at, entry)| {
            let number = VersionNumber::new(entry.version_number);
            Ok(Pin {
                id: entry.skill_id.parse().map_err(odd)?,
                number: number.ok_or_else(|| odd("a version without a number"))?,
                digest: entry.digest.parse().map_err(odd)?,
                requested: at < asked,
            })
        });
        pins.collect()
    }

    async fn permit_set(&self, skills: Vec<String>) -> Result<(), Failed> {
        let set = set(skills, false);
        let composed = self.0.composition().compose_skills(set).await;
        let refused = |error| Failed::from(error).hint("with --force it is installed despite them");
        composed.map(|_| ()).map_err(refused)
    }

    async fn archive(&self, id: &SkillId, number: VersionNumber) -> Result<Archive, Failed> {
        let request = v1::ExportSkillRequest {
            skill_id: id.to_string(),
            version_number: number.get(),
            format: v1::ArchiveFormat::TarGz.into(),
            ..Default::default()
        };
        let mut chunks = self.0.registry().export_skill(request).await?.into_inner();
        let (mut bytes, mut info) = (Vec::new(), None);
        while let Some(message) = chunks.message().await? {
            info = info.or(message.info);
            bytes.extend_from_slice(&message.chunk);
            // A server may send for ever, and the size that it announced is no promise.
            if bytes.len() > MAX_BYTES {
                return Err(odd(format!("more than {MAX_BYTES} bytes for '{id}'")));
            }
        }
        let version = info.and_then(|info| info.version).unwrap_or_default();
        let semantic = version.semantic_version.parse().map_err(odd)?;
        Ok(Archive { semantic, bytes })
    }

    async fn known(&self, id: &SkillId, number: VersionNumber) -> Result<PublishedVersion, Failed> {
        let request = v1::GetVersionRequest {
            skill_id: id.to_string(),
            version_number: number.get(),
            ..Default::default()
        };
        let answer = self.0.registry().get_version(request).await?.into_inner();
        let info = answer.version.and_then(|version| version.info);
        let info = info.unwrap_or_default();
        Ok(PublishedVersion {
            digest: info.digest.parse().map_err(odd)?,
            yanked: info.yanked.then_some(info.yank_reason),
        })
    }

    async fn latest(&self, id: &SkillId) -> Result<semver::Version, Failed> {
        self.latest_of(id.to_string()).await
    }
}

impl Served<'_> {
    async fn latest_of(&self, skill_id: String) -> Result<semver::Version, Failed> {
        let request = v1::GetSkillRequest {
            skill_id,
            include_readme: Some(false),
            ..Default::default()
        };
        let answer = self.0.lookup().get_skill(request).await?.into_inner();
        let skill = answer.skill.unwrap_or_default();
        skill.current_version.parse().map_err(odd)
    }
}
