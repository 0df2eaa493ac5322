//! What may be sent to a database at all, by its text.
//!
//! An allow-list: a statement passes because it was understood whole and every
//! part of it is one that reads. What the parser does not know is refused, with
//! the parser's words. The text that was looked at is the text that is sent.
//!
//! The parser and the database may read a text differently, and each place where
//! they might is closed here: comments that are code to the database, names that
//! are written with escapes, a NUL that ends the text for one of them.

use sqlparser::ast::{Query, Select, SetExpr, Statement, TableFactor, Visit as _, Visitor};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, Word};
use std::ops::ControlFlow;

use super::dialect::Dialect;
use super::functions;
use crate::tools::{ToolError, ToolErrorKind};

/// Bytes that a statement may have.
const MAX_BYTES: usize = 100_000;

/// Room for the parser's recursion: chains of operators are as deep as they are
/// long, in the tree and where it is dropped.
const STACK: usize = 256 << 20;

/// A statement that may be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Checked {
    /// Its text, without a semicolon at its end.
    pub(super) sql: String,
    /// It changes something.
    pub(super) writes: bool,
}

/// Why a statement is not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    /// It could not be read, so that it may be mended.
    pub(super) syntax: bool,
    /// What is wrong.
    pub(super) message: String,
    /// What to do instead.
    pub(super) step: &'static str,
}

impl Refusal {
    fn syntax(message: impl Into<String>) -> Self {
        Self {
            syntax: true,
            message: message.into(),
            step: "Mend the query; sql_validate_query checks it without running it",
        }
    }

    fn denied(message: impl Into<String>, step: &'static str) -> Self {
        Self {
            syntax: false,
            message: message.into(),
            step,
        }
    }

    fn operation(name: &str, read_only: bool) -> Self {
        let name = name.to_uppercase();
        let step = match name.as_str() {
            "EXPLAIN" | "ANALYZE" => "Give the bare query to sql_explain_query",
            "SHOW" | "DESCRIBE" | "DESC" | "PRAGMA" => {
                "Call sql_list_tables or sql_describe_table for the schema"
            }
            _ => "Write the statement down for the user to run; do not look for another spelling",
        };
        let message = if read_only {
            format!("{name} operations not allowed in read-only mode.")
        } else {
            format!("{name} operations are not allowed here.")
        };
        Self::denied(message, step)
    }
}

impl From<Refusal> for ToolError {
    fn from(refusal: Refusal) -> Self {
        let kind = if refusal.syntax {
            ToolErrorKind::Invalid
        } else {
            ToolErrorKind::Denied
        };
        Self::new(kind, refusal.message)
            .field("query")
            .suggest(refusal.step)
    }
}

/// Looks at a statement, on a stack that is deep enough for any.
pub(super) async fn check(
    dialect: Dialect,
    sql: &str,
    read_only: bool,
) -> Result<Checked, ToolError> {
    checked(dialect, sql, read_only).await?.map_err(Into::into)
}

/// The same, with a refusal to look at.
pub(super) async fn checked(
    dialect: Dialect,
    sql: &str,
    read_only: bool,
) -> Result<Result<Checked, Refusal>, ToolError> {
    let (tell, told) = tokio::sync::oneshot::channel();
    let sql = sql.to_owned();
    let thread = std::thread::Builder::new()
        .name("sql-guard".to_owned())
        .stack_size(STACK)
        .spawn(move || {
            // Nobody may wait any more.
            drop(tell.send(judge(dialect, &sql, read_only)));
        });
    let busy = || {
        ToolError::new(
            ToolErrorKind::Unavailable,
            "The query could not be checked.",
        )
    };
    thread.map_err(|_| busy())?;
    told.await.map_err(|_| busy())
}

/// Looks at a statement.
pub(super) fn judge(dialect: Dialect, sql: &str, read_only: bool) -> Result<Checked, Refusal> {
    if sql.len() > MAX_BYTES {
        return Err(Refusal::syntax(format!(
            "The query has {} bytes; at most {MAX_BYTES} are taken.",
            sql.len()
        )));
    }
    look_alikes(dialect, sql)?;
    let tokens = Tokenizer::new(dialect.grammar(), sql)
        .tokenize_with_location()
        .map_err(|error| Refusal::syntax(error.to_string()))?;
    let (text, tokens) = one_statement(sql, tokens)?;
    let Some(first) = tokens.first() else {
        return Err(Refusal::syntax("The query is empty."));
    };
    let first = match &first.token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.clone()),
        _ => None,
    };
    if read_only && let Some(word) = first.as_ref().filter(|word| is_other(word)) {
        return Err(Refusal::operation(&word.value, true));
    }
    words(dialect, &tokens, read_only)?;
    let mut statements = Parser::new(dialect.grammar())
        .with_tokens_with_locations(tokens)
        .parse_statements()
        .map_err(|error| Refusal::syntax(error.to_string()))?;
    let (Some(statement), true) = (statements.pop(), statements.is_empty()) else {
        return Err(one_at_a_time());
    };
    let writes = !matches!(statement, Statement::Query(_));
    if writes && (read_only || !may_write(&statement)) {
        let name = first.map_or_else(|| name_of(&statement), |word| word.value);
        return Err(Refusal::operation(&name, read_only));
    }
    let mut walk = Walk {
        read_only,
        writes,
        statements: 0,
    };
    match statement.visit(&mut walk) {
        ControlFlow::Break(refusal) => Err(*refusal),
        ControlFlow::Continue(()) => Ok(Checked {
            sql: text.to_owned(),
            writes: walk.writes,
        }),
    }
}

fn one_at_a_time() -> Refusal {
    Refusal::denied(
        "Only one statement is run per call.",
        "Give one statement, without a semicolon in between",
    )
}

/// What a database may read otherwise than the parser.
fn look_alikes(dialect: Dialect, sql: &str) -> Result<(), Refusal> {
    if sql.contains('\0') {
        return Err(Refusal::syntax("The query holds a NUL."));
    }
    let hints: &[&str] = match dialect {
        Dialect::Sqlite => &[],
        Dialect::Postgres => &["/*+"],
        // MariaDB has its own spelling, in either case.
        Dialect::MySql => &["/*!", "/*m!", "/*+"],
    };
    let lower = sql.to_ascii_lowercase();
    if let Some(hint) = hints.iter().find(|hint| lower.contains(**hint)) {
        return Err(Refusal::denied(
            format!("Comments that the database executes (`{hint}`) are not allowed."),
            "Leave the comment out",
        ));
    }
    // To the parser any white space makes this a comment, to MySQL only that of ASCII.
    let comment = |(at, _)| {
        let next = sql.get(at + 2..).and_then(|rest| rest.chars().next());
        next.is_some_and(|letter| !letter.is_ascii())
    };
    if dialect == Dialect::MySql && sql.match_indices("--").any(comment) {
        return Err(Refusal::syntax("Put a space between `--` and the comment."));
    }
    if dialect == Dialect::Postgres && lower.contains("u&\"") {
        return Err(Refusal::denied(
            "Names written with Unicode escapes (`U&\"…\"`) are not allowed.",
            "Write the name as it is",
        ));
    }
    Ok(())
}

/// The text of the one statement that there is, and its tokens without white
/// space and comments.
fn one_statement(
    sql: &str,
    tokens: Vec<TokenWithSpan>,
) -> Result<(&str, Vec<TokenWithSpan>), Refusal> {
    let mut said: Vec<TokenWithSpan> = tokens
        .into_iter()
        .filter(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF))
        .collect();
    let end = said
        .iter()
        .position(|token| token.token == Token::SemiColon);
    let Some(end) = end else {
        return Ok((sql, said));
    };
    let rest = said.split_off(end);
    let alone = rest.iter().all(|token| token.token == Token::SemiColon);
    let place = rest.first().map(|token| token.span.start);
    let text = place
        .and_then(|place| offset(sql, place.line, place.column))
        .and_then(|offset| sql.get(..offset));
    match text {
        Some(text) if alone => Ok((text, said)),
        _ => Err(one_at_a_time()),
    }
}

/// Where the semicolon at a line and a column is; none where there is none.
fn offset(sql: &str, line: u64, column: u64) -> Option<usize> {
    let mut at = (1, 1);
    for (offset, letter) in sql.char_indices() {
        if at == (line, column) {
            return (letter == ';').then_some(offset);
        }
        at = if letter == '\n' {
            (at.0 + 1, 1)
        } else {
            (at.0, at.1 + 1)
        };
    }
    None
}

/// A statement that begins with this word is one that the parser may know, and
/// no query.
fn is_other(word: &Word) -> bool {
    let reads = [
        Keyword::SELECT,
        Keyword::WITH,
        Keyword::VALUES,
        Keyword::TABLE,
    ];
    let others = [
        "ATTACH",
        "DETACH",
        "DO",
        "HANDLER",
        "IMPORT",
        "REINDEX",
        "SHUTDOWN",
        "SECURITY",
        "SIGNAL",
        "CHECKPOINT",
        "CLUSTER",
        "REASSIGN",
        "XA",
    ];
    (word.keyword != Keyword::NoKeyword && !reads.contains(&word.keyword))
        || others.contains(&word.value.to_uppercase().as_str())
}

/// Looks at each word where it stands, whatever the parser makes of it.
fn words(dialect: Dialect, tokens: &[TokenWithSpan], read_only: bool) -> Result<(), Refusal> {
    for (at, token) in tokens.iter().enumerate() {
        match &token.token {
            Token::Word(word)
                if read_only && word.quote_style.is_none() && word.keyword == Keyword::INTO =>
            {
                return Err(Refusal::operation("SELECT INTO", true));
            }
            // A variable of the session would outlive the call.
            Token::Assignment if dialect == Dialect::MySql => {
                return Err(Refusal::operation("SET", read_only));
            }
            Token::Placeholder(_) => {
                return Err(Refusal::syntax(
                    "Placeholders have no values here; write the values into the query.",
                ));
            }
            _ => {}
        }
        let next = tokens.get(at + 1).map(|next| &next.token);
        let (Token::Word(word), Some(Token::LParen)) = (&token.token, next) else {
            continue;
        };
        if functions::forbids(dialect, &word.value, read_only) {
            return Err(Refusal::denied(
                format!("The function {}() is not allowed.", word.value),
                "Leave the function out: it does more than compute a value",
            ));
        }
    }
    Ok(())
}

/// Statements that may be run where writing is allowed.
fn may_write(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Merge(_)
            | Statement::Truncate(_)
            | Statement::CreateTable(_)
            | Statement::CreateView(_)
            | Statement::CreateIndex(_)
            | Statement::CreateSchema { .. }
            | Statement::AlterTable(_)
            | Statement::AlterIndex { .. }
            | Statement::AlterView { .. }
            | Statement::Drop { .. }
            | Statement::RenameTable(_)
    )
}

fn name_of(statement: &Statement) -> String {
    let text = statement.to_string();
    text.split_whitespace().next().unwrap_or("?").to_owned()
}

/// Looks at every part of a statement.
struct Walk {
    read_only: bool,
    writes: bool,
    statements: usize,
}

impl Walk {
    fn inner(&mut self, name: &str) -> ControlFlow<Box<Refusal>> {
        self.writes = true;
        if self.read_only {
            return ControlFlow::Break(Box::new(Refusal::operation(name, true)));
        }
        ControlFlow::Continue(())
    }

    fn body(&mut self, body: &SetExpr) -> ControlFlow<Box<Refusal>> {
        match body {
            // What is inside of these is visited by itself.
            SetExpr::Select(_)
            | SetExpr::Query(_)
            | SetExpr::Values(_)
            | SetExpr::Table(_)
            | SetExpr::SetOperation { .. } => ControlFlow::Continue(()),
            SetExpr::Insert(_) => self.inner("INSERT"),
            SetExpr::Update(_) => self.inner("UPDATE"),
            SetExpr::Delete(_) => self.inner("DELETE"),
            SetExpr::Merge(_) => self.inner("MERGE"),
        }
    }
}

fn unknown(what: &str) -> ControlFlow<Box<Refusal>> {
    ControlFlow::Break(Box::new(Refusal::syntax(format!(
        "{what} is not supported here."
    ))))
}

impl Visitor for Walk {
    type Break = Box<Refusal>;

    fn pre_visit_statement(&mut self, statement: &Statement) -> ControlFlow<Self::Break> {
        self.statements += 1;
        match statement {
            Statement::Query(_) => ControlFlow::Continue(()),
            // The outermost one was looked at.
            _ if self.statements == 1 => ControlFlow::Continue(()),
            Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Merge(_) => self.inner(&name_of(statement)),
            other => ControlFlow::Break(Box::new(Refusal::operation(
                &name_of(other),
                self.read_only,
            ))),
        }
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Self::Break> {
        if !query.locks.is_empty() {
            return ControlFlow::Break(Box::new(Refusal::operation(
                "SELECT FOR UPDATE",
                self.read_only,
            )));
        }
        if query.for_clause.is_some() || query.settings.is_some() || query.format_clause.is_some() {
            return unknown("A clause behind the query");
        }
        if !query.pipe_operators.is_empty() {
            return unknown("`|>`");
        }
        self.body(&query.body)
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Self::Break> {
        if select.into.is_some() {
            return ControlFlow::Break(Box::new(Refusal::operation("SELECT INTO", self.read_only)));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Self::Break> {
        match factor {
            TableFactor::Table { .. }
            | TableFactor::Derived { .. }
            | TableFactor::Function { .. }
            | TableFactor::UNNEST { .. }
            | TableFactor::JsonTable { .. }
            | TableFactor::XmlTable { .. }
            | TableFactor::NestedJoin { .. } => ControlFlow::Continue(()),
            _ => unknown("This kind of table"),
        }
    }
}
