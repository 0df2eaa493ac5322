//! The failure of a command, with its code.

use tonic_types::StatusExt as _;

use super::connect::in_use;
use model::Code;
use server::NotStarted;
use store::{CommitError, OpenError, StoreError};

/// The failure of a command, for people and for programs.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) code: String,
    pub(super) message: String,
    /// The fields that are wrong, each with its error.
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

    /// A file of this machine cannot be used.
    pub(super) fn file(what: impl std::fmt::Display) -> Self {
        Self::new(Code::LocalFileFailed, what.to_string())
    }

    /// A fault of ours.
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

    /// Replaces the name of a field of the request in hints by that of a flag.
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
        // Of another server or a proxy, which sends no details and perhaps no message.
        let name = || format!("{:?}", status.code());
        let code = details.error_info().map(|info| info.reason.clone());
        let message = Some(status.message()).filter(|message| !message.is_empty());
        let bad = details.bad_request().into_iter();
        let violations = bad.flat_map(|bad| &bad.field_violations);
        let links = details.help().into_iter().flat_map(|help| &help.links);
        Self {
            code: code.unwrap_or_else(name),
            message: message.map_or_else(name, ToOwned::to_owned),
            places: violations
                .map(|v| format!("{}: {}", v.field, v.description))
                .collect(),
            hints: links.map(|link| link.description.clone()).collect(),
        }
    }
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        let failed = Self::new(store_code(&error), error.to_string());
        if let StoreError::Directory(error) = &error
            && let OpenError::InUse { path, .. } = error.as_ref()
        {
            return in_use(failed, error, path);
        }
        failed
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

/// Returns the code of a directory that cannot be opened.
pub(super) fn open_code(error: &OpenError) -> Code {
    match error {
        OpenError::InUse { .. } => Code::DataInUse,
        OpenError::Damaged { .. } => Code::DataDamaged,
        _ => Code::DataUnusable,
    }
}

/// Returns the code of an error of a registry that is opened or verified.
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
