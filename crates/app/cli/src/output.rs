//! What a person or a program gets to see.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::OnceLock;

use clap::ValueEnum;
use prost::Message;
use serde_json::{Value, json};
use tonic_types::StatusExt as _;

use super::connect::in_use;
use gateway::Contract;
use model::Code;
use server::NotStarted;
use store::{CommitError, OpenError, StoreError};
pub(super) use terminal::{BAD, FAINT, GOOD, HINT, Style, Table, WARN};
use terminal::{ERROR, json_line, painted, painted_line};

/// Why a command failed: what a person reads, and what a program reads.
#[derive(Debug)]
pub(super) struct Failed {
    code: String,
    message: String,
    places: Vec<String>,
    hints: Vec<String>,
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

    /// The fields that it is about, each with what is wrong.
    pub(super) fn places(&self) -> &[String] {
        &self.places
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

/// How a command ends.
pub(super) type Exit = Result<ExitCode, Failed>;

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
        Self::new(Code::LocalFileFailed, error.to_string())
    }
}

/// The form of what a command prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For a terminal: in colour, each row a line that fits.
    Table,
    /// The same text without colour, and nothing cut: what a pipe gets.
    Plain,
    /// A line for each row, with tabs between its texts, and nothing else.
    Tsv,
    /// What the server answered, as JSON.
    Json,
    /// A line for each row: what is first in it.
    Ids,
}

/// Where a command writes, and in which form.
#[derive(Debug)]
pub(super) struct Output {
    format: Format,
}

impl Output {
    /// In this form; else for whoever reads.
    pub(super) fn new(format: Option<Format>) -> Self {
        let default = if std::io::stdout().is_terminal() {
            Format::Table
        } else {
            Format::Plain
        };
        Self {
            format: format.unwrap_or(default),
        }
    }

    /// It is JSON, which only programs read.
    pub(super) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// It is rows alone, without a sentence beside them.
    pub(super) fn is_rows(&self) -> bool {
        matches!(self.format, Format::Tsv | Format::Ids)
    }

    /// Writes a line to stdout. What it repeats of others stays on it.
    pub(super) fn line(&self, line: &str) -> Result<(), Failed> {
        self.sentence(&painted_line(line))
    }

    /// Writes a text of several lines: what a skill or a tool has to say.
    pub(super) fn lines(&self, text: &str) -> Result<(), Failed> {
        self.sentence(&painted(text))
    }

    fn sentence(&self, text: &str) -> Result<(), Failed> {
        if self.is_rows() {
            return Ok(());
        }
        self.print(text)
    }

    /// Writes a table.
    pub(super) fn table(&self, table: &Table) -> Result<(), Failed> {
        let text = match self.format {
            Format::Table => {
                // Some terminals do not say how wide they are.
                let width = terminal_size::terminal_size_of(std::io::stdout());
                let width = width.map(|(width, _)| usize::from(width.0));
                table.render(width.filter(|width| *width > 0), true)
            }
            Format::Plain | Format::Json => table.render(None, false),
            Format::Tsv | Format::Ids if table.is_empty() => return Ok(()),
            Format::Tsv => table.tsv(),
            Format::Ids => table.ids(),
        };
        self.print(&painted(&text))
    }

    fn print(&self, text: &str) -> Result<(), Failed> {
        if self.format == Format::Table {
            print(&format!("{text}\n"))
        } else {
            let mut stdout = anstream::AutoStream::never(std::io::stdout());
            quietly(writeln!(stdout, "{text}"))
        }
    }

    pub(super) fn value(&self, value: &Value) -> Result<(), Failed> {
        let text = serde_json::to_string_pretty(value).map_err(Failed::fault)?;
        self.json(&text)
    }

    /// Writes JSON, of one or several lines.
    #[expect(clippy::unused_self, reason = "read as a part of what writes")]
    pub(super) fn json(&self, text: &str) -> Result<(), Failed> {
        if std::io::stdout().is_terminal() {
            print(&format!("{}\n", json_line(text)))
        } else {
            print(&format!("{text}\n"))
        }
    }

    /// Writes a file: its bytes, and to a terminal its text, unless `raw` is true.
    #[expect(clippy::unused_self, reason = "read as a part of what writes")]
    pub(super) fn file(&self, content: &[u8], raw: bool) -> Result<(), Failed> {
        let mut stdout = std::io::stdout();
        let text =
            (!raw && stdout.is_terminal()).then(|| painted(&String::from_utf8_lossy(content)));
        let bytes = text.as_deref().map_or(content, str::as_bytes);
        quietly(stdout.write_all(bytes).and_then(|()| stdout.flush()))
    }

    /// A message of the contract as JSON.
    pub(super) fn message(&self, name: &str, message: &impl Message) -> Result<(), Failed> {
        self.value(&json_of(name, message)?)
    }

    pub(super) fn failed(&self, failed: &Failed) -> ExitCode {
        let Failed {
            code,
            message,
            places,
            hints,
        } = failed;
        if self.is_json() {
            let error = json!({"error": {"code": code, "message": message, "details": places, "recovery_suggestions": hints}});
            written(&json_line(&error.to_string()));
            return ExitCode::FAILURE;
        }
        let code = if code.is_empty() {
            String::new()
        } else {
            format!(" {FAINT}[{code}]{FAINT:#}")
        };
        // Of several lines where a refusal says what to do next.
        written(&painted(&format!("{ERROR}error:{ERROR:#} {message}{code}")));
        for place in places {
            note(&format!("  {place}"));
        }
        for hint in hints {
            note(&format!("{HINT}hint:{HINT:#} {hint}"));
        }
        ExitCode::FAILURE
    }
}

/// A message of the contract as JSON.
pub(super) fn json_of(name: &str, message: &impl Message) -> Result<Value, Failed> {
    // Reading it takes milliseconds, and some commands write a message for each problem.
    static CONTRACT: OnceLock<Contract> = OnceLock::new();
    let contract = if let Some(contract) = CONTRACT.get() {
        contract
    } else {
        let loaded = contract::load().map_err(Failed::fault)?;
        CONTRACT.get_or_init(|| loaded)
    };
    contract.json(name, message).map_err(Failed::fault)
}

/// A time as a person reads it.
pub(super) fn time(time: Option<prost_types::Timestamp>) -> String {
    time.and_then(|time| jiff::Timestamp::new(time.seconds, time.nanos).ok())
        .map(|time| time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
        .unwrap_or_default()
}

/// `1 version`, `2 versions`.
pub(super) fn counted(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

/// Bytes as a person reads them.
pub(super) fn bytes(bytes: i64) -> String {
    indicatif::HumanBytes(bytes.unsigned_abs()).to_string()
}

/// A bar on stderr for work of a known length; nothing without a terminal.
pub(super) fn bar(length: u64, what: &str) -> indicatif::ProgressBar {
    let bar = indicatif::ProgressBar::new(length);
    let style = "{msg} {wide_bar:.cyan} {human_pos}/{human_len} {eta}";
    bar.set_style(
        indicatif::ProgressStyle::with_template(style)
            .unwrap_or_else(|_| indicatif::ProgressStyle::default_bar()),
    );
    bar.set_message(what.to_owned());
    bar
}

/// A count on stderr for work of an unknown length; nothing without a terminal.
pub(super) fn counter(what: &str) -> indicatif::ProgressBar {
    let bar = indicatif::ProgressBar::new_spinner();
    let style = "{spinner:.cyan} {msg} {human_pos}";
    bar.set_style(
        indicatif::ProgressStyle::with_template(style)
            .unwrap_or_else(|_| indicatif::ProgressStyle::default_spinner()),
    );
    bar.set_message(what.to_owned());
    bar
}

/// A note to a person, a line on stderr.
pub(super) fn note(text: &str) {
    written(&painted_line(text));
}

/// A line to the program that started this one, which is no terminal.
pub(super) fn report(line: &str) -> std::io::Result<()> {
    writeln!(std::io::stdout(), "{line}")
}

fn written(text: &str) {
    // Nobody is left to tell where stderr is gone.
    let _unread = writeln!(anstream::stderr(), "{text}");
}

/// Writes text to stdout.
fn print(text: &str) -> Result<(), Failed> {
    quietly(anstream::stdout().write_all(text.as_bytes()))
}

/// A reader that went away ends the program in peace.
fn quietly(written: std::io::Result<()>) -> Result<(), Failed> {
    match written {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

#[cfg(test)]
mod tests {
    /// Whatever else writes would go past them.
    #[test]
    fn nothing_else_of_the_command_line_writes_to_a_terminal() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        for entry in std::fs::read_dir(folder).expect("the room") {
            let path = entry.expect("an entry").path();
            let text = std::fs::read_to_string(&path).expect("a file");
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            if matches!(name, "output.rs") {
                continue;
            }
            // The address of a server that starts; the transport of MCP is no terminal's.
            let text = text.replace(
                "writeln!(std::io::stderr(), \"{}\", listening(url, format))",
                "",
            );
            for word in [
                "println!",
                "print!(",
                "io::stdout()",
                "io::stderr()",
                "anstyle",
                "anstream",
            ] {
                assert!(!text.contains(word), "{name} has {word}");
            }
        }
    }
}
