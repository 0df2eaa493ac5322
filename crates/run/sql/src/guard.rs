//! Decides by its text whether a statement may be sent to a database at all.
//!
//! An allow-list: a statement passes because it was understood whole and every part
//! of it is one that reads. Whatever the parser does not know is refused, with the
//! parser's error.
//!
//! Only what was understood is sent: the tree, written out again with each function
//! by the name of the server's own, and only if reading that gives the same tree.
//! Comments, white space and spellings that the database might take otherwise than the
//! parser are not in it. `SQLite` gets the text itself, also where the parser does not
//! know it, since its engine asks about everything that it finds there.

use std::ops::ControlFlow;
use std::sync::Arc;

use sqlparser::ast::{Statement, VisitMut as _};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, Whitespace, Word};
use tokio::sync::Semaphore;

use super::budget::Budget;
use super::dialect::Dialect;
use super::functions::Functions;
use super::names::Names;
pub(super) use super::refusal::Refusal;
use super::walk::{QueryWalk, name_of};
use handler::ToolError;

/// Bytes that a statement may have.
const MAX_BYTES: usize = 100_000;

/// Stack for the parser's recursion: chains of operators are as deep as they are long,
/// in the tree and where it is dropped.
const STACK_BYTES: usize = 256 << 20;

/// Statements that are checked at once.
const CHECK_CONCURRENCY: usize = 8;

/// A statement that may be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CheckedStatement {
    /// Its text, without a semicolon at its end.
    pub(super) sql: String,
    /// It changes something.
    pub(super) writes: bool,
    /// Names that only the server can resolve.
    pub(super) names: Names,
}

/// Checks statements of one database.
pub(super) struct Guard {
    pub(super) dialect: Dialect,
    pub(super) read_only: bool,
    functions: Arc<Functions>,
    permits: Arc<Semaphore>,
}

impl Guard {
    pub(super) fn new(dialect: Dialect, functions: Arc<Functions>, read_only: bool) -> Self {
        Self {
            dialect,
            read_only,
            functions,
            permits: Arc::new(Semaphore::new(CHECK_CONCURRENCY)),
        }
    }

    /// Checks a statement.
    pub(super) async fn check(&self, sql: &str) -> Result<CheckedStatement, ToolError> {
        self.checked(sql).await?.map_err(Into::into)
    }

    /// The same, with a refusal to inspect. Runs on a stack that is deep enough for any
    /// statement, in a thread that keeps its permit until it ends.
    pub(super) async fn checked(
        &self,
        sql: &str,
    ) -> Result<Result<CheckedStatement, Refusal>, ToolError> {
        let busy = || {
            ToolError::unavailable("The query could not be checked.")
                .suggest("Try again in a moment")
        };
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.map_err(|_| busy())?;
        let (answer, answered) = tokio::sync::oneshot::channel();
        let (dialect, read_only) = (self.dialect, self.read_only);
        let functions = Arc::clone(&self.functions);
        let sql = sql.to_owned();
        // A thread of the runtime has too small a stack, and an overflow would abort the server.
        // Eight threads reserve 2 GiB of addresses, but use memory only as they need it.
        let thread = std::thread::Builder::new()
            .name("sql-guard".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                let verdict = judge(dialect, &functions, &sql, read_only);
                drop(permit);
                // Nobody may wait any more.
                drop(answer.send(verdict));
            });
        thread.map_err(|_| busy())?;
        answered.await.map_err(|_| busy())
    }
}

/// Checks a statement, and returns what to send.
pub(super) fn judge(
    dialect: Dialect,
    functions: &Functions,
    sql: &str,
    read_only: bool,
) -> Result<CheckedStatement, Refusal> {
    if sql.len() > MAX_BYTES {
        return Err(Refusal::syntax(format!(
            "The query has {} bytes; at most {MAX_BYTES} are taken.",
            sql.len()
        )));
    }
    // On the text itself: the tokens have no trace of what a database would run out of a
    // comment.
    look_alikes(dialect, sql)?;
    let (text, tokens) = one_statement(sql, tokens(dialect, sql)?)?;
    let Some(first) = tokens.first() else {
        return Err(Refusal::syntax("The query is empty."));
    };
    let first = match &first.token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.clone()),
        _ => None,
    };
    // This also covers statements that the parser does not know. Reported as bad syntax, they
    // would invite an agent to try another spelling.
    if read_only && let Some(word) = first.as_ref().filter(|word| is_other(word)) {
        return Err(Refusal::operation(&word.value, true));
    }
    words(dialect, &tokens, read_only)?;
    let mut statement = match parse(dialect, tokens) {
        // The engine knows more of its language than the parser, and asks about all of it:
        // one statement, which reads, and names tables and functions that may be named.
        Err(refusal)
            if dialect == Dialect::Sqlite
                && read_only
                && refusal.syntax
                && begins_query(first.as_ref()) =>
        {
            return Ok(CheckedStatement {
                sql: text.to_owned(),
                writes: false,
                names: Names::default(),
            });
        }
        other => other?,
    };
    let writes = !matches!(statement, Statement::Query(_));
    if writes && (read_only || !may_write(&statement)) {
        let name = first.map_or_else(|| name_of(&statement), |word| word.value);
        return Err(Refusal::operation(&name, read_only));
    }
    let mut walk = QueryWalk::new(dialect, functions, read_only);
    if let ControlFlow::Break(refusal) = statement.visit(&mut walk) {
        return Err(*refusal);
    }
    // `SQLite` is asked by its authorizer what a statement really does. The servers get what
    // was understood, in place of what was written.
    let sql = match dialect {
        Dialect::Sqlite => text.to_owned(),
        Dialect::Postgres | Dialect::MySql => written(dialect, &statement)?,
    };
    Ok(CheckedStatement {
        sql,
        writes: walk.writes,
        names: walk.into_names(),
    })
}

/// The tokens of a text. Strings keep their escapes: so they are written as they were.
pub(super) fn tokens(dialect: Dialect, sql: &str) -> Result<Vec<TokenWithSpan>, Refusal> {
    Tokenizer::new(dialect.grammar(), sql)
        .with_unescape(false)
        .tokenize_with_location()
        .map_err(|error| Refusal::syntax(error.to_string()))
}

/// The one statement of some tokens.
pub(super) fn parse(dialect: Dialect, tokens: Vec<TokenWithSpan>) -> Result<Statement, Refusal> {
    let budget = Budget::new(dialect.grammar(), &tokens);
    let statements = Parser::new(&budget)
        .with_tokens_with_locations(tokens)
        .parse_statements();
    // Before the parser's error, which would be reported as a mistake in the text.
    if budget.is_spent() {
        return Err(Refusal::syntax(
            "The query is nested too deeply to be read. Write it with fewer levels, as with WITH.",
        ));
    }
    let mut statements = statements.map_err(|error| Refusal::syntax(error.to_string()))?;
    match (statements.pop(), statements.is_empty()) {
        (Some(statement), true) => Ok(statement),
        _ => Err(one_at_a_time()),
    }
}

/// A statement as it is sent. Read again, it is the same: nothing was lost, and nothing
/// became a comment or the end of a string.
fn written(dialect: Dialect, statement: &Statement) -> Result<String, Refusal> {
    let unclear = || {
        Refusal::syntax(
            "The query could not be written back as it was understood. Write it in a simpler form.",
        )
    };
    let sql = statement.to_string();
    let again = tokens(dialect, &sql).map_err(|_| unclear())?;
    let comment = |token: &TokenWithSpan| {
        matches!(
            token.token,
            Token::Whitespace(
                Whitespace::SingleLineComment { .. } | Whitespace::MultiLineComment(_)
            )
        )
    };
    // A comment in it would be one that the statement did not have: something was written that
    // reads as its beginning.
    if again.iter().any(comment) {
        return Err(unclear());
    }
    let again = parse(dialect, again).map_err(|_| unclear())?;
    if again == *statement {
        Ok(sql)
    } else {
        Err(unclear())
    }
}

fn one_at_a_time() -> Refusal {
    Refusal::denied(
        "Only one statement is run per call.",
        "Give one statement, without a semicolon in between",
    )
}

/// Refuses text that a database may read otherwise than the parser.
fn look_alikes(dialect: Dialect, sql: &str) -> Result<(), Refusal> {
    if sql.contains('\0') {
        return Err(Refusal::syntax("The query holds a NUL."));
    }
    let hints: &[&str] = match dialect {
        Dialect::Sqlite => &[],
        // Hints of pg_hint_plan can change settings, as `SET_VAR` of MySQL can.
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
    // `U&"d\0061ta"` is the table `data`, and the guard would look up the name as it is written.
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
    let mut significant: Vec<TokenWithSpan> = tokens
        .into_iter()
        .filter(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF))
        .collect();
    let end = significant
        .iter()
        .position(|token| token.token == Token::SemiColon);
    let Some(end) = end else {
        return Ok((sql, significant));
    };
    let rest = significant.split_off(end);
    let alone = rest.iter().all(|token| token.token == Token::SemiColon);
    let start = rest.first().map(|token| token.span.start);
    let text = start
        .and_then(|start| offset(sql, start.line, start.column))
        .and_then(|offset| sql.get(..offset));
    match text {
        Some(text) if alone => Ok((text, significant)),
        _ => Err(one_at_a_time()),
    }
}

/// Returns the offset of the semicolon at a line and a column; none where there is none.
fn offset(sql: &str, line: u64, column: u64) -> Option<usize> {
    let mut at = (1, 1);
    for (offset, letter) in sql.char_indices() {
        if at == (line, column) {
            // If the tokenizer counted differently, the text would be cut at another place than
            // was checked.
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

/// Words that a query may begin with.
const READS: &[Keyword] = &[
    Keyword::SELECT,
    Keyword::WITH,
    Keyword::VALUES,
    Keyword::TABLE,
];

fn begins_query(first: Option<&Word>) -> bool {
    first.is_some_and(|word| READS.contains(&word.keyword))
}

/// A statement that begins with this word is one that the parser may know, and
/// no query.
fn is_other(word: &Word) -> bool {
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
    (word.keyword != Keyword::NoKeyword && !READS.contains(&word.keyword))
        || others.contains(&word.value.to_uppercase().as_str())
}

/// Checks each word by itself, whatever the parser makes of it.
fn words(dialect: Dialect, tokens: &[TokenWithSpan], read_only: bool) -> Result<(), Refusal> {
    // `INTO` writes a file (MySQL) or creates a table, and the parsers accept it in several
    // clauses, so the tokens are searched for it.
    for token in tokens {
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
    }
    Ok(())
}

/// Statements that may be run where writing is allowed.
fn may_write(statement: &Statement) -> bool {
    matches!(
        statement,
        // Left out on purpose, among others: COPY and LOAD DATA, which read files; CALL and DO,
        // which run whatever a routine does; GRANT.
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
