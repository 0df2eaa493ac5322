//! Why a command failed, and the code of that.

use tonic_types::StatusExt as _;

use super::connect::in_use;
use model::Code;
use server::NotStarted;
use store::{CommitError, OpenError, StoreError};

/// Why a command failed: what a person reads, and what a program reads.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) code: String,
    pub(super) message: String,
    /// The fields that it is about, each with what is wrong.
    pub(super) places: Vec<String>,
    pub(super) hints: Vec<String>,
}

impl Failed {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code: code.name().to_owned(),
            message: message.into(),
            places: Vec::new(),
            hints: Vec::new(),
        }
    }

    /// A file of this machine is to blame.
    pub(super) fn file(what: impl std::fmt::Display) -> Self {
        Self::new(Code::LocalFileFailed, what.to_string())
    }

    /// What is not the caller's.
    pub(super) fn fault(error: impl std::fmt::Display) -> Self {
        Self::new(Code::InternalError, error.to_string())
    }

    /// It has this code.
    pub(super) fn is(&self, code: Code) -> bool {
        self.code == code.name()
    }

    /// It has one of these codes.
    pub(super) fn is_any(&self, codes: &[Code]) -> bool {
        codes.iter().any(|code| self.is(*code))
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// What a refusal calls a field of the request, in the words of the command line.
    pub(super) fn reword(mut self, field: &str, flag: &str) -> Self {
        for hint in &mut self.hints {
            *hint = hint.replace(field, flag);
        }
        self
    }
}

impl From<NotStarted> for Failed {
    fn from(error: NotStarted) -> Self {
        Self {
            code: error.code,
            message: error.message,
            places: Vec::new(),
            hints: error.next,
        }
    }
}

impl From<Failed> for NotStarted {
    fn from(failed: Failed) -> Self {
        Self {
            code: failed.code,
            message: failed.message,
            next: failed.hints,
        }
    }
}

impl From<tonic::Status> for Failed {
    fn from(status: tonic::Status) -> Self {
        let details = status.get_error_details();
        let code = details.error_info().map(|info| info.reason.clone());
        let violations = details
            .bad_request()
            .map(|bad| bad.field_violations.clone())
            .unwrap_or_default();
        let help = details
            .help()
            .map(|help| help.links.clone())
            .unwrap_or_default();
        let mut failed = Self {
            code: code.unwrap_or_else(|| format!("{:?}", status.code())),
            message: status.message().to_owned(),
            places: violations
                .into_iter()
                .map(|v| format!("{}: {}", v.field, v.description))
                .collect(),
            hints: help.into_iter().map(|link| link.description).collect(),
        };
        if failed.message.is_empty() {
            failed.message = format!("{:?}", status.code());
        }
        failed
    }
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        let failed = Self::new(store_code(&error), error.to_string());
        match &error {
            StoreError::Directory(error) => match error.as_ref() {
                error @ OpenError::InUse { path, .. } => in_use(failed, error, path),
                _ => failed,
            },
            _ => failed,
        }
    }
}

impl From<registry::Error> for Failed {
    fn from(error: registry::Error) -> Self {
        Self::new(registry_code(&error), error.to_string())
    }
}

fn store_code(error: &StoreError) -> Code {
    match error {
        StoreError::Damaged { .. } | StoreError::NewerFormat { .. } => Code::DataDamaged,
        StoreError::Engine(_)
        | StoreError::Reopening
        | StoreError::Outrun { .. }
        | StoreError::NotDurable { .. } => Code::StoreUnavailable,
        StoreError::Busy | StoreError::Compacting | StoreError::Stopped => Code::Overloaded,
        StoreError::Directory(error) => open_code(error),
        StoreError::InMemory => Code::DataUnusable,
        StoreError::Io { .. } | StoreError::NotABackup { .. } => Code::LocalFileFailed,
    }
}

/// The code of a directory that cannot be opened.
pub(super) fn open_code(error: &OpenError) -> Code {
    match error {
        OpenError::InUse { .. } => Code::DataInUse,
        OpenError::Damaged { .. } => Code::DataDamaged,
        _ => Code::DataUnusable,
    }
}

/// The code of what a registry says that is opened or looked through.
pub(super) fn registry_code(error: &registry::Error) -> Code {
    match error {
        registry::Error::Store(error) | registry::Error::Commit(CommitError::Store(error)) => {
            store_code(error)
        }
        registry::Error::Commit(_) => Code::StoreUnavailable,
        registry::Error::Unfit { .. } => Code::DataDamaged,
        _ => Code::InternalError,
    }
}

impl From<std::io::Error> for Failed {
    fn from(error: std::io::Error) -> Self {
        Self::file(error)
    }
}
