//! Submissions: the files of a skill, fields that its SKILL.md is written from, or a part of
//! either for a skill that exists.
//!
//! Reading and publishing are two steps, so that a stream of submissions is read concurrently
//! and published in its order.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::merge::{Part, is_whole};
use super::{ATTEMPTS, Bundle, Caller, Candidate, Error, Prepared, Published, Registry};
use executor::Kind;
use model::{Code, Digest, Failure, FilePath, Principal, Problem, SkillId, bundle_digest};
use skill_md::Draft;

/// The files of a skill as they were sent.
#[derive(Debug, Clone, Default)]
pub struct Upload {
    /// The id of the skill, or the short name of one that exists; empty: `local/global/` and its
    /// name.
    pub skill: String,
    /// Paths and contents.
    pub files: Vec<(String, Bytes)>,
    /// Name of the folder they come from; empty: not known.
    pub folder: String,
    /// Whether to refuse what the standard does not allow.
    pub strict: bool,
}

/// A skill as it was sent to be published.
#[derive(Debug, Clone)]
pub struct Submission {
    /// Its files; none: it is made of fields.
    pub upload: Upload,
    /// Its fields, where it has no files.
    pub draft: Draft,
    /// The changes, in the publisher's words.
    pub change_summary: String,
    /// Whether the skill's name is to resolve to it.
    pub activate: bool,
    /// The publisher.
    pub principal: Principal,
    /// The publisher's name for this write; empty: none.
    pub idempotency_key: String,
    /// Nothing is stored: the answer is that of publishing it. A name has no effect.
    pub dry_run: bool,
}

impl Submission {
    /// The default of `activate`.
    pub const ACTIVATE: bool = true;

    /// Returns the publisher of these files, with the name of the write.
    fn caller(&self, files: Digest) -> Caller {
        let principal = self.principal.clone();
        if self.dry_run {
            Caller::dry_run(principal)
        } else {
            Caller::named(principal, &self.idempotency_key, || self.request(files))
        }
    }

    /// Returns the digest that distinguishes requests of the same name. The files are
    /// represented by their digest; the rest is as it was sent.
    fn request(&self, files: Digest) -> Digest {
        let Upload { skill, folder, .. } = &self.upload;
        let (change_summary, activate) = (&self.change_summary, self.activate);
        let mut request = format!("PublishSkill\0{skill}\0{files}\0{change_summary}\0{activate}");
        // Only where there is one: answers that were remembered before folders existed must
        // still match.
        if !folder.is_empty() {
            request.push('\0');
            request.push_str(folder);
        }
        Digest::of(request.as_bytes())
    }

    /// Returns whether it has neither files nor fields.
    fn is_empty(&self) -> bool {
        self.upload.files.is_empty() && self.draft == Draft::default()
    }
}

impl Part {
    /// Returns the digest of what was sent: of the files, and of the fields as the file that
    /// they make.
    fn digest(&self) -> Digest {
        let files = self.files.iter();
        let mut sent: BTreeMap<_, _> = files
            .map(|(path, content)| (path.clone(), Digest::of(content)))
            .collect();
        if self.draft != Draft::default() {
            let fields = Digest::of(skill_md::render(&self.draft).as_bytes());
            sent.insert(FilePath::skill_md(), fields);
        }
        bundle_digest(sent.iter().map(|(path, digest)| (path, *digest)))
    }
}

/// A submission that was read.
#[derive(Debug)]
pub struct Submitted(Step);

#[derive(Debug)]
enum Step {
    Publish {
        prepared: Box<Prepared>,
        change_summary: String,
        activate: bool,
        caller: Caller,
        /// The original submission, to be merged again where another version became active.
        part: Option<Box<Submission>>,
    },
    /// It was done before under its name; the reference to the skill leads nowhere by now.
    Answered(Box<Published>),
}

/// Checks each path; none may occur twice. Every wrong path is reported.
fn files(sent: Vec<(String, Bytes)>) -> Result<BTreeMap<FilePath, Bytes>, Error> {
    let mut found = BTreeMap::new();
    let mut wrong = Vec::new();
    for (at, (path, content)) in sent.into_iter().enumerate() {
        let message = match path.parse::<FilePath>() {
            Err(error) => error.to_string(),
            Ok(path) if found.contains_key(&path) => format!("'{path}' is there twice"),
            Ok(path) => {
                found.insert(path, content);
                continue;
            }
        };
        wrong.push((format!("files[{at}].path"), message));
    }
    let Some((_, first)) = wrong.first() else {
        return Ok(found);
    };
    let message = match wrong.len() {
        1 => first.clone(),
        more => format!("{first} (and {} more)", more - 1),
    };
    let failure = Failure::new(Code::InvalidParameter, message);
    let failure = wrong.iter().fold(failure, |failure, (field, message)| {
        failure.field(field, message)
    });
    Err(Error::Request(Box::new(failure)))
}

/// Returns the files of a skill that is made of files or of fields.
fn contents(sent: Vec<(String, Bytes)>, draft: &Draft) -> Result<BTreeMap<FilePath, Bytes>, Error> {
    if !sent.is_empty() {
        if *draft != Draft::default() {
            return Err(Error::Parameter {
                field: "files",
                message: "a skill is made of its files or of its fields, not of both".to_owned(),
            });
        }
        return files(sent);
    }
    if draft.name.is_empty() {
        let failure = Failure::new(
            Code::MissingParameter,
            "A skill needs its files, or a name and a description",
        );
        let step =
            "Send `files` with a SKILL.md among them, or `name`, `description` and `core_content`";
        let failure = failure.field("files", "Required").suggest(step);
        return Err(Error::Request(Box::new(failure)));
    }
    let skill_md = Bytes::from(skill_md::render(draft));
    Ok(BTreeMap::from([(FilePath::skill_md(), skill_md)]))
}

impl Registry {
    /// Returns the id of a skill to be published, from an id or the short name of a skill that
    /// exists.
    fn id_of(&self, skill: &str) -> Result<Option<SkillId>, Error> {
        if skill.is_empty() {
            return Ok(None);
        }
        skill.parse().map(Some).or_else(|error| {
            let catalog = self.catalog();
            let head = catalog.holder(skill).filter(|head| !head.deleted);
            head.map(|head| Some(head.id.clone()))
                .ok_or(Error::Id(error))
        })
    }

    /// Reads an upload, and returns all its problems; stores nothing.
    ///
    /// # Errors
    /// A path is invalid, or the reference to the skill leads nowhere. An upload that would be
    /// refused for its content is an answer.
    pub async fn validate_upload(
        &self,
        upload: Upload,
        caller: &Principal,
    ) -> Result<Candidate, Error> {
        self.validate(self.bundle(upload)?, caller).await
    }

    /// Returns the bundle of an upload.
    pub(super) fn bundle(&self, upload: Upload) -> Result<Bundle, Error> {
        Ok(Bundle {
            id: self.id_of(&upload.skill)?,
            files: files(upload.files)?,
            folder: upload.folder,
            strict: upload.strict,
        })
    }

    /// Reads and packs what a submission publishes, as work of a kind.
    ///
    /// # Errors
    /// It makes no skill, or the reference to the skill leads nowhere.
    pub async fn read(&self, kind: Kind, mut submission: Submission) -> Result<Submitted, Error> {
        if !is_whole(&submission.upload.files)
            && !submission.is_empty()
            && let Ok(Some(id)) = self.id_of(&submission.upload.skill)
            && self.base(&id)?.is_some()
        {
            return self.read_part(kind, id, submission).await;
        }
        let files = std::mem::take(&mut submission.upload.files);
        let bundle = Bundle {
            id: None,
            files: contents(files, &submission.draft)?,
            folder: submission.upload.folder.clone(),
            strict: submission.upload.strict,
        };
        // A dry run is never remembered.
        let has_name = !submission.idempotency_key.is_empty() && !submission.dry_run;
        let id = match self.id_of(&submission.upload.skill) {
            Ok(id) => id,
            // The reference leads nowhere, but it may have led somewhere when this was sent the
            // first time: its remembered answer is searched before it is refused.
            Err(refused) if !has_name => return Err(refused),
            Err(refused) => {
                let digest = self.validate(bundle, &submission.principal).await?.digest;
                let answer = self.answered(&submission.caller(digest))?;
                let answer = answer.ok_or(refused)?;
                return Ok(Submitted(Step::Answered(Box::new(answer))));
            }
        };
        let prepared = self.prepare_as(kind, Bundle { id, ..bundle }).await?;
        Ok(Submitted(Step::Publish {
            caller: submission.caller(prepared.digest()),
            prepared: Box::new(prepared),
            change_summary: submission.change_summary,
            activate: submission.activate,
            part: None,
        }))
    }

    /// Reads a part of a skill, merged into its active version.
    async fn read_part(
        &self,
        kind: Kind,
        id: SkillId,
        mut submission: Submission,
    ) -> Result<Submitted, Error> {
        // Cloned as it was sent, since a merge with another version starts from there.
        let again = Box::new(submission.clone());
        let part = Part {
            files: files(std::mem::take(&mut submission.upload.files))?,
            draft: std::mem::take(&mut submission.draft),
        };
        // The digest of what was sent, as for a skill that does not exist yet: the first of two
        // such calls may have made it.
        let caller = submission.caller(part.digest());
        if let Some(answer) = self.answered(&caller)? {
            return Ok(Submitted(Step::Answered(Box::new(answer))));
        }
        let base = self.base(&id)?.ok_or(Error::Contention)?;
        let number = base.number;
        let files = self.merge(kind, &id, base, part, &caller.principal);
        let bundle = Bundle {
            files: files.await?,
            id: Some(id),
            folder: submission.upload.folder,
            strict: submission.upload.strict,
        };
        let mut prepared = self.prepare_as(kind, bundle).await?;
        // `publish` checks whether this version is still the active one, and the part is merged
        // again where it is not.
        prepared.merged_with = Some(number);
        Ok(Submitted(Step::Publish {
            prepared: Box::new(prepared),
            change_summary: submission.change_summary,
            activate: submission.activate,
            caller,
            part: Some(again),
        }))
    }

    /// Reads and publishes a submission; returns the version with its problems.
    ///
    /// # Errors
    /// As [`Registry::read`] and [`Registry::publish`].
    pub async fn publish_submission(
        &self,
        submission: Submission,
    ) -> Result<(Published, Vec<Problem>), Error> {
        let submitted = self.read(Kind::Publish, submission).await?;
        self.submit(submitted).await
    }

    /// Publishes what was read; returns the version with its problems. A part is read again
    /// where another version became active since.
    ///
    /// # Errors
    /// As [`Registry::publish`].
    pub async fn submit(&self, submitted: Submitted) -> Result<(Published, Vec<Problem>), Error> {
        let mut step = submitted.0;
        for _ in 0..ATTEMPTS {
            match step {
                Step::Answered(published) => {
                    // Read again: they are part of the version, which never changes; one that
                    // was deleted since has none any more.
                    let mut problems = self.problems(&published.id, published.version.number)?;
                    problems.extend(self.shadowed(&published.id, published.id.slug()));
                    return Ok((*published, problems));
                }
                Step::Publish {
                    prepared,
                    change_summary,
                    activate,
                    caller,
                    part,
                } => {
                    // Nothing is read once it is written: a disk that fails then would make a
                    // failure of what was done.
                    let mut problems = prepared.problems().to_vec();
                    let name = prepared.skill.name.clone();
                    let published = self.publish(*prepared, &change_summary, activate, &caller);
                    step = match (published.await, part) {
                        (Err(Error::Contention), Some(part)) => {
                            self.read(Kind::Publish, *part).await?.0
                        }
                        (published, _) => {
                            let published = published?;
                            problems.extend(self.shadowed(&published.id, &name));
                            return Ok((published, problems));
                        }
                    };
                }
            }
        }
        Err(Error::Contention)
    }
}
