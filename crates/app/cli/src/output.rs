//! The output of commands, for people and for programs.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::OnceLock;

use clap::ValueEnum;
use indicatif::ProgressBar;
use prost::Name;
use serde_json::{Value, json};
use tonic::Response;

pub(super) use super::failed::Failed;
use gateway::Contract;
pub(super) use terminal::{BAD, FAINT, GOOD, HINT, List, Style, Table, WARN};
use terminal::{ERROR, json_line, painted, painted_line};

/// The result of a command with exit codes of its own.
pub(super) type Exit = Result<ExitCode, Failed>;
/// The result of any other.
pub(super) type Done = Result<(), Failed>;

/// Exit code 0 where this is so, else the other one.
pub(super) fn exit(is_so: bool, otherwise: u8) -> ExitCode {
    ExitCode::from(if is_so { 0 } else { otherwise })
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
    /// Writes in this form; by default as the reader of stdout needs it.
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

    /// The format is JSON, which only programs read.
    pub(super) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// The format is rows alone, without sentences.
    pub(super) fn is_rows(&self) -> bool {
        matches!(self.format, Format::Tsv | Format::Ids)
    }

    /// Writes an answer as JSON, and returns it for the sentences that a person gets instead.
    pub(super) fn answer<M: Name>(&self, answer: Response<M>) -> Result<M, Failed> {
        let answer = answer.into_inner();
        self.message(&answer)?;
        Ok(answer)
    }

    /// Writes a message of the contract, as JSON alone.
    pub(super) fn message(&self, message: &impl Name) -> Done {
        if self.is_json() {
            self.value(&json_of(message)?)?;
        }
        Ok(())
    }

    /// Writes one message of many, each a line of JSON.
    pub(super) fn event(&self, message: &impl Name) -> Done {
        if self.is_json() {
            self.json(&json_of(message)?.to_string())?;
        }
        Ok(())
    }

    /// Writes the result of a command that is no message of the contract, as JSON alone.
    pub(super) fn value(&self, value: &Value) -> Done {
        if self.is_json() {
            self.json(&format!("{value:#}"))?;
        }
        Ok(())
    }

    /// Writes JSON of one or several lines, in any format.
    #[expect(clippy::unused_self, reason = "read as a part of what writes")]
    pub(super) fn json(&self, text: &str) -> Done {
        // A terminal acts on control characters, which JSON may have as they are.
        if std::io::stdout().is_terminal() {
            print(&format!("{}\n", json_line(text)))
        } else {
            print(&format!("{text}\n"))
        }
    }

    /// Writes a line to stdout: the names of others in it cannot begin another line.
    pub(super) fn line(&self, line: &str) -> Done {
        self.text(&painted_line(line))
    }

    /// Writes a text of several lines, such as the instructions of a skill.
    pub(super) fn lines(&self, text: &str) -> Done {
        self.text(&painted(text))
    }

    fn text(&self, text: &str) -> Done {
        match self.format {
            Format::Table | Format::Plain => self.print(text),
            Format::Tsv | Format::Ids | Format::Json => Ok(()),
        }
    }

    /// Writes a row for each of these things.
    pub(super) fn list<'a, T: 'a>(
        &self,
        list: &List<T>,
        things: impl IntoIterator<Item = &'a T>,
    ) -> Done {
        self.table(&list.table(things))
    }

    /// Writes the rows for scripts alone: a person gets sentences.
    pub(super) fn rows<'a, T: 'a>(
        &self,
        list: &List<T>,
        things: impl IntoIterator<Item = &'a T>,
    ) -> Done {
        if self.is_rows() {
            self.list(list, things)?;
        }
        Ok(())
    }

    /// Writes a table.
    pub(super) fn table(&self, table: &Table) -> Done {
        let text = match self.format {
            Format::Table => {
                // Some terminals report a width of 0.
                let width = terminal_size::terminal_size_of(std::io::stdout());
                let width = width.map(|(width, _)| usize::from(width.0));
                table.render(width.filter(|width| *width > 0), true)
            }
            Format::Plain => table.render(None, false),
            Format::Json => return Ok(()),
            // Else a script would read an empty line as a row.
            Format::Tsv | Format::Ids if table.is_empty() => return Ok(()),
            Format::Tsv => table.tsv(),
            Format::Ids => table.ids(),
        };
        self.print(&painted(&text))
    }

    fn print(&self, text: &str) -> Done {
        if self.format == Format::Table {
            print(&format!("{text}\n"))
        } else {
            // Without styles to a terminal as well: that is what `plain` is for.
            let mut stdout = anstream::AutoStream::never(std::io::stdout());
            quietly(writeln!(stdout, "{text}"))
        }
    }

    /// Writes a note to stderr, unless the format is JSON.
    pub(super) fn note(&self, text: &str) {
        if !self.is_json() {
            note(text);
        }
    }

    /// Writes a note that says what to do next.
    pub(super) fn hint(&self, text: &str) {
        self.note(&format!("{HINT}hint:{HINT:#} {text}"));
    }

    /// Writes a file: its bytes, and to a terminal its text, unless `raw` is true.
    #[expect(clippy::unused_self, reason = "read as a part of what writes")]
    pub(super) fn file(&self, content: &[u8], raw: bool) -> Done {
        // A skill's file may hold escape sequences: only --raw sends them to a terminal.
        let mut stdout = std::io::stdout();
        let text =
            (!raw && stdout.is_terminal()).then(|| painted(&String::from_utf8_lossy(content)));
        let bytes = text.as_deref().map_or(content, str::as_bytes);
        quietly(stdout.write_all(bytes).and_then(|()| stdout.flush()))
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
        // Not `note`, which writes one line: a refusal may have several.
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
pub(super) fn json_of<M: Name>(message: &M) -> Result<Value, Failed> {
    // Loading it takes milliseconds, and some commands write a message for each problem.
    static CONTRACT: OnceLock<Contract> = OnceLock::new();
    let contract = if let Some(contract) = CONTRACT.get() {
        contract
    } else {
        let loaded = contract::load().map_err(Failed::fault)?;
        CONTRACT.get_or_init(|| loaded)
    };
    contract.json(M::NAME, message).map_err(Failed::fault)
}

/// A time for a person.
pub(super) fn time(time: Option<prost_types::Timestamp>) -> String {
    time.and_then(|time| jiff::Timestamp::new(time.seconds, time.nanos).ok())
        .map(|time| time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
        .unwrap_or_default()
}

/// `1 version`, `2 versions`.
pub(super) fn counted(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

/// A value of an enum of the contract by its name: `SOURCE_STATUS_RATE_LIMITED` of
/// `SOURCE_STATUS_` is `rate-limited`, and `…_UNSPECIFIED` nothing.
pub(super) fn word(of: &str, name: &str) -> String {
    let name = name.strip_prefix(of).unwrap_or(name);
    if name == "UNSPECIFIED" {
        return String::new();
    }
    name.to_ascii_lowercase().replace('_', "-")
}

/// The name of an enum's value in small letters.
pub(super) fn lower(value: impl std::fmt::Debug) -> String {
    format!("{value:?}").to_lowercase()
}

/// One of two words, in green where it is good news and else in red.
pub(super) fn verdict(is_good: bool, good: &str, bad: &str) -> String {
    let (style, word) = if is_good { (GOOD, good) } else { (BAD, bad) };
    format!("{style}{word}{style:#}")
}

/// Bytes for a person.
pub(super) fn bytes(bytes: u64) -> String {
    indicatif::HumanBytes(bytes).to_string()
}

/// A bar on stderr for work of a known length; nothing without a terminal.
pub(super) fn bar(length: u64, what: &str) -> ProgressBar {
    let style = "{msg} {wide_bar:.cyan} {human_pos}/{human_len} {eta}";
    styled(ProgressBar::new(length), style, what)
}

/// A count on stderr for work of an unknown length; nothing without a terminal.
pub(super) fn counter(what: &str) -> ProgressBar {
    let style = "{spinner:.cyan} {msg} {human_pos}";
    styled(ProgressBar::new_spinner(), style, what)
}

fn styled(bar: ProgressBar, style: &str, what: &str) -> ProgressBar {
    if let Ok(style) = indicatif::ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    bar.with_message(what.to_owned())
}

/// Writes a note to a person, a line on stderr.
pub(super) fn note(text: &str) {
    written(&painted_line(text));
}

/// Stdout still has a reader.
pub(super) fn is_read() -> bool {
    store::has_reader(std::io::stdout())
}

/// Writes a line to the program that started this one, which is no terminal.
pub(super) fn report(line: &str) -> std::io::Result<()> {
    writeln!(std::io::stdout(), "{line}")
}

fn written(text: &str) {
    // Without a stderr there is nowhere to report that.
    let _unread = writeln!(anstream::stderr(), "{text}");
}

/// Writes text to stdout.
fn print(text: &str) -> Done {
    quietly(anstream::stdout().write_all(text.as_bytes()))
}

/// A reader that closed the pipe, such as `head`, is no failure.
fn quietly(written: std::io::Result<()>) -> Done {
    match written {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

#[cfg(test)]
mod tests {
    use contract::v1;

    use super::*;

    #[test]
    fn a_message_is_known_to_the_contract_by_the_name_of_its_type() {
        let json = json_of(&v1::DeleteSkillResponse::default()).expect("JSON");
        assert_eq!(json, json!({"skill_id": "", "versions_deleted": 0}));
    }

    #[test]
    fn a_value_of_an_enum_is_said_in_small_letters_with_hyphens() {
        let words = [
            word(
                "SOURCE_STATUS_",
                v1::SourceStatus::RateLimited.as_str_name(),
            ),
            word("SOURCE_KIND_", v1::SourceKind::Git.as_str_name()),
            word("SYNC_ENDING_", v1::SyncEnding::Unspecified.as_str_name()),
        ];
        assert_eq!(words, ["rate-limited", "git", ""]);
    }

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
