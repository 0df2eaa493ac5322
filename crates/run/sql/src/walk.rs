//! Checks every part of a statement, and writes names of functions so that only those
//! of the server can be meant.
//!
//! Anything unknown is refused: an expression, an operator, a type, a kind of
//! table. So a form that a later parser understands is closed until somebody decides.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Ident, ObjectName, OrderByExpr, OrderBySort, Query, Select, SelectFlavor, SetExpr,
    Statement, TableAlias, TableFactor, Value, ValueWithSpan, VisitorMut,
};

use super::dialect::Dialect;
use super::expr;
use super::functions::Functions;
use super::names::{Attribute, Names};
use super::refusal::Refusal;
use super::relations;

/// The result of a check.
pub(super) type CheckResult = Result<(), Refusal>;

/// Checks every part of a statement.
pub(super) struct QueryWalk<'a> {
    pub(super) dialect: Dialect,
    pub(super) functions: &'a Functions,
    pub(super) read_only: bool,
    /// It changes something.
    pub(super) writes: bool,
    /// Names that the server has to resolve.
    pub(super) names: Names,
    statements: usize,
    /// The next relation is a function, which was checked.
    table_function: bool,
    /// Names in FROM that are rows of tables and subqueries, and others.
    rows: BTreeSet<String>,
    values: BTreeSet<String>,
    /// Names behind a dot, and what is before it, if it is a name.
    dotted: Vec<(String, Option<String>, (u64, u64))>,
}

impl<'a> QueryWalk<'a> {
    pub(super) fn new(dialect: Dialect, functions: &'a Functions, read_only: bool) -> Self {
        Self {
            dialect,
            functions,
            read_only,
            writes: false,
            names: Names::default(),
            statements: 0,
            table_function: false,
            rows: BTreeSet::new(),
            values: BTreeSet::new(),
            dotted: Vec::new(),
        }
    }

    /// Returns the names that the server has to resolve, once all parts were seen.
    pub(super) fn into_names(mut self) -> Names {
        for (name, before, position) in std::mem::take(&mut self.dotted) {
            let of_row = before.is_some_and(|before| {
                self.rows.contains(&before) && !self.values.contains(&before)
            });
            let listed = self.functions.allow(None, &name).is_some();
            let entry = self.names.attributes.entry(name).or_insert(Attribute {
                position,
                listed,
                of_row,
            });
            // A single use on something else than a row is enough to ask the server.
            entry.of_row &= of_row;
        }
        self.names
    }

    /// A name behind a dot. Where the server finds no such column, it calls a function
    /// of this name.
    pub(super) fn dotted(&mut self, name: &Ident, before: Option<&Ident>) {
        let before = before.map(|before| self.dialect.folded(before));
        let position = position(name);
        self.dotted
            .push((self.dialect.folded(name), before, position));
    }

    /// A name in FROM, by which its columns are named: an alias, else the last part of its own.
    fn binds(&mut self, alias: Option<&TableAlias>, name: Option<&ObjectName>, row: bool) {
        let bare = || name?.0.last()?.as_ident();
        if let Some(name) = alias.map(|alias| &alias.name).or_else(bare) {
            let name = self.dialect.folded(name);
            if row {
                self.rows.insert(name);
            } else {
                self.values.insert(name);
            }
        }
    }

    fn inner(&mut self, name: &str) -> CheckResult {
        self.writes = true;
        if self.read_only {
            return Err(Refusal::operation(name, true));
        }
        Ok(())
    }

    fn statement(&mut self, statement: &Statement) -> CheckResult {
        self.statements += 1;
        match statement {
            Statement::Query(_) => Ok(()),
            // The outermost one was checked by `may_write`.
            _ if self.statements == 1 => {
                self.writes = true;
                Ok(())
            }
            Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Merge(_) => self.inner(&name_of(statement)),
            other => Err(Refusal::operation(&name_of(other), self.read_only)),
        }
    }

    fn body(&mut self, body: &SetExpr) -> CheckResult {
        match body {
            // Their parts are visited one by one.
            SetExpr::Select(_)
            | SetExpr::Query(_)
            | SetExpr::Values(_)
            | SetExpr::SetOperation { .. } => Ok(()),
            // The parser holds its name as a text, not as a relation, so nothing would check it.
            SetExpr::Table(_) => Err(Refusal::denied(
                "TABLE is not supported here.",
                "Write SELECT * FROM and the table's name",
            )),
            SetExpr::Insert(_) => self.inner("INSERT"),
            SetExpr::Update(_) => self.inner("UPDATE"),
            SetExpr::Delete(_) => self.inner("DELETE"),
            SetExpr::Merge(_) => self.inner("MERGE"),
        }
    }

    fn query(&mut self, query: &Query) -> CheckResult {
        // Row locks would make the database's other users wait for the agent.
        if !query.locks.is_empty() {
            return Err(Refusal::operation("SELECT FOR UPDATE", self.read_only));
        }
        if query.for_clause.is_some() || query.settings.is_some() || query.format_clause.is_some() {
            return unknown("A clause behind the query");
        }
        if !query.pipe_operators.is_empty() {
            return unknown("`|>`");
        }
        if let Some(with) = &query.with {
            for table in &with.cte_tables {
                self.binds(Some(&table.alias), None, true);
                self.column_types(Some(&table.alias))?;
            }
        }
        self.body(&query.body)
    }

    fn select(&mut self, select: &Select) -> CheckResult {
        if select.into.is_some() {
            return Err(Refusal::operation("SELECT INTO", self.read_only));
        }
        let foreign = select.top.is_some()
            || select.exclude.is_some()
            || !select.lateral_views.is_empty()
            || select.prewhere.is_some()
            || !select.connect_by.is_empty()
            || !select.cluster_by.is_empty()
            || !select.distribute_by.is_empty()
            || !select.sort_by.is_empty()
            || select.qualify.is_some()
            || select.value_table_mode.is_some()
            || !select.optimizer_hints.is_empty()
            || select.flavor != SelectFlavor::Standard;
        if foreign {
            return unknown("A clause of this SELECT");
        }
        Ok(())
    }

    fn table(&mut self, factor: &mut TableFactor) -> CheckResult {
        if self.dialect == Dialect::Postgres {
            expr::unnest(factor);
        }
        match factor {
            TableFactor::Table {
                name,
                alias,
                args,
                with_hints,
                version,
                json_path,
                sample,
                ..
            } => {
                if !with_hints.is_empty() || json_path.is_some() {
                    return unknown("This kind of table");
                }
                // Only MariaDB has versions of tables (`FOR SYSTEM_TIME`).
                if version.is_some() && self.dialect != Dialect::MySql {
                    return unknown("A version of a table");
                }
                if sample.is_some() && self.dialect != Dialect::Postgres {
                    return unknown("TABLESAMPLE");
                }
                match args {
                    Some(args) if args.settings.is_none() && self.dialect != Dialect::MySql => {
                        self.table_function = true;
                        self.binds(alias.as_ref(), Some(&*name), false);
                        self.call(name)?;
                    }
                    Some(_) => return unknown("A function as a table"),
                    None => self.binds(alias.as_ref(), Some(&*name), true),
                }
                self.column_types(alias.as_ref())
            }
            TableFactor::Function { name, alias, .. } if self.dialect == Dialect::Postgres => {
                self.binds(alias.as_ref(), Some(&*name), false);
                self.call(name)?;
                self.column_types(alias.as_ref())
            }
            TableFactor::Derived { alias, sample, .. } => {
                if sample.is_some() {
                    return unknown("TABLESAMPLE");
                }
                self.binds(alias.as_ref(), None, true);
                self.column_types(alias.as_ref())
            }
            TableFactor::NestedJoin { alias, .. } => {
                self.binds(alias.as_ref(), None, true);
                Ok(())
            }
            // Several arrays: PostgreSQL means its own function then.
            TableFactor::UNNEST { alias, .. } if self.dialect == Dialect::Postgres => {
                self.binds(alias.as_ref(), None, false);
                Ok(())
            }
            TableFactor::JsonTable { .. } if self.dialect == Dialect::MySql => Ok(()),
            _ => unknown("This kind of table"),
        }
    }

    fn value(&mut self, value: &mut ValueWithSpan) -> CheckResult {
        let digits = |text: &str| text.chars().all(|letter| letter.is_ascii_hexdigit());
        let postgres = self.dialect == Dialect::Postgres;
        // One spelling for strings, which the database ends where the parser does.
        let plain = |text: &str| Value::SingleQuotedString(text.replace('\'', "''"));
        match &mut value.value {
            Value::Number(..) | Value::SingleQuotedString(_) | Value::Boolean(_) | Value::Null => {}
            Value::HexStringLiteral(text) | Value::SingleQuotedByteStringLiteral(text)
                if digits(text) => {}
            // In MySQL this is a string, by the mode that each session gets; in SQLite it is one
            // if no column has that name.
            Value::DoubleQuotedString(_) if self.dialect != Dialect::Postgres => {}
            Value::NationalStringLiteral(_) if self.dialect == Dialect::MySql => {}
            Value::DollarQuotedString(text) if postgres => value.value = plain(&text.value),
            Value::EscapedStringLiteral(text) | Value::UnicodeStringLiteral(text) if postgres => {
                if text.contains('\0') {
                    return Err(Refusal::syntax("The query holds a NUL."));
                }
                value.value = plain(text);
            }
            _ => return unknown("This kind of literal"),
        }
        Ok(())
    }

    fn ident(&self, ident: &Ident) -> CheckResult {
        match self.dialect {
            // The truncated name may be that of another object than the one that was checked.
            Dialect::Postgres if ident.value.len() > 63 => Err(Refusal::syntax(
                "A name has more than 63 bytes, which PostgreSQL would cut.",
            )),
            // `x 'y'` would be a type and a value to the server.
            Dialect::Postgres if ident.quote_style.is_some_and(|quote| quote != '"') => {
                unknown("A name in these quotes")
            }
            Dialect::MySql if ident.value.starts_with('@') => Err(Refusal::denied(
                format!("The variable {} is not allowed.", ident.value),
                "Write the value into the query",
            )),
            _ => Ok(()),
        }
    }
}

/// The position of a name: a line and a column, from 1.
pub(super) fn position(ident: &Ident) -> (u64, u64) {
    (ident.span.start.line, ident.span.start.column)
}

/// The word that a statement begins with.
pub(super) fn name_of(statement: &Statement) -> String {
    let text = statement.to_string();
    text.split_whitespace().next().unwrap_or("?").to_owned()
}

pub(super) fn unknown(what: &str) -> CheckResult {
    Err(Refusal::syntax(format!("{what} is not supported here.")))
}

fn flow(found: CheckResult) -> ControlFlow<Box<Refusal>> {
    match found {
        Ok(()) => ControlFlow::Continue(()),
        Err(refusal) => ControlFlow::Break(Box::new(refusal)),
    }
}

impl VisitorMut for QueryWalk<'_> {
    type Break = Box<Refusal>;

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<Self::Break> {
        flow(self.statement(statement))
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        flow(self.query(query))
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        flow(self.select(select))
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        flow(self.table(factor))
    }

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<Self::Break> {
        if std::mem::take(&mut self.table_function) {
            return ControlFlow::Continue(());
        }
        flow(relations::check(self.dialect, relation))
    }

    fn pre_visit_order_by_expr(&mut self, by: &mut OrderByExpr) -> ControlFlow<Self::Break> {
        if matches!(by.options.sort, Some(OrderBySort::Using(_))) || by.with_fill.is_some() {
            return flow(unknown("This kind of ORDER BY"));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        flow(self.expr(expr))
    }

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<Self::Break> {
        flow(self.value(value))
    }

    fn pre_visit_ident(&mut self, ident: &mut Ident) -> ControlFlow<Self::Break> {
        flow(self.ident(ident))
    }
}
