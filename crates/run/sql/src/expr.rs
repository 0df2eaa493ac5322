//! Expressions: which of them a statement may hold, and which function a call means.

use sqlparser::ast::{
    AccessExpr, BinaryOperator, CastKind, CeilFloorKind, Expr, ExtractSyntax, Function,
    FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArgumentList, FunctionArguments,
    Ident, ObjectName, TableAlias, TableFactor, TableFunctionArgs, UnaryOperator,
};

use super::dialect::Dialect;
use super::functions::Allowed;
use super::refusal::Refusal;
use super::types::{self, Kind};
use super::walk::{CheckResult, QueryWalk, position, unknown};

/// Grammar of `PostgreSQL` that looks like a function: it takes no schema.
const POSTGRES_GRAMMAR: &[&str] = &["coalesce", "greatest", "grouping", "least", "nullif", "row"];

/// Values without brackets.
pub(super) const POSTGRES_VALUES: &[&str] = &[
    "current_date",
    "current_time",
    "current_timestamp",
    "localtime",
    "localtimestamp",
];

/// Words without brackets that are values of the session. The parser takes some for
/// columns.
pub(super) const SESSION: &[&str] = &[
    "current_catalog",
    "current_role",
    "current_schema",
    "current_user",
    "session_user",
    "system_user",
    "user",
];

/// Character sets that a string of `MySQL` may be given by: none in which a byte of
/// its text could be a part of the one before.
const CHARACTER_SETS: &[&str] = &[
    "_ascii", "_binary", "_latin1", "_utf8", "_utf8mb3", "_utf8mb4",
];

impl QueryWalk<'_> {
    /// Checks an expression; what is inside of it is visited after it.
    pub(super) fn expr(&mut self, expr: &mut Expr) -> CheckResult {
        self.rewrite(expr);
        let dialect = self.dialect;
        match expr {
            Expr::Identifier(ident) => self.bare(ident),
            Expr::CompoundIdentifier(parts) => {
                if let [.., before, name] = parts.as_slice() {
                    self.dotted(name, Some(before));
                }
                Ok(())
            }
            Expr::CompoundFieldAccess { access_chain, .. } if dialect == Dialect::Postgres => {
                for access in access_chain {
                    match access {
                        AccessExpr::Dot(Expr::Identifier(name)) => self.dotted(name, None),
                        AccessExpr::Dot(_) => return unknown("The part after a dot"),
                        AccessExpr::Subscript(_) => {}
                    }
                }
                Ok(())
            }
            Expr::Function(function) => self.function(function),
            Expr::Cast {
                kind,
                data_type,
                format,
                ..
            } => {
                if format.is_some() || !matches!(kind, CastKind::Cast | CastKind::DoubleColon) {
                    return unknown("This kind of cast");
                }
                self.data_type(data_type)
            }
            Expr::TypedString(string) if !string.uses_odbc_syntax => {
                self.data_type(&string.data_type)
            }
            Expr::Convert {
                is_try: false,
                data_type,
                styles,
                ..
            } if dialect == Dialect::MySql && styles.is_empty() => data_type
                .as_ref()
                .map_or(Ok(()), |data_type| self.data_type(data_type)),
            Expr::BinaryOp { op, .. } => self.operator(op),
            Expr::AnyOp { compare_op, .. } | Expr::AllOp { compare_op, .. } => {
                self.operator(compare_op)
            }
            Expr::UnaryOp { op, .. } => match op {
                UnaryOperator::Plus
                | UnaryOperator::Minus
                | UnaryOperator::Not
                | UnaryOperator::BitwiseNot
                | UnaryOperator::BangNot => Ok(()),
                UnaryOperator::PGAbs | UnaryOperator::PGCubeRoot | UnaryOperator::PGSquareRoot
                    if dialect == Dialect::Postgres =>
                {
                    Ok(())
                }
                _ => unknown("This operator"),
            },
            Expr::Prefixed { prefix, .. } => {
                if dialect == Dialect::MySql
                    && CHARACTER_SETS.contains(&prefix.value.to_lowercase().as_str())
                {
                    return Ok(());
                }
                unknown("This kind of literal")
            }
            Expr::Ceil { .. } | Expr::Floor { .. } if dialect != Dialect::Postgres => Ok(()),
            Expr::MatchAgainst { .. } | Expr::MemberOf(_) if dialect == Dialect::MySql => Ok(()),
            other if is_plain(other) => Ok(()),
            _ => unknown("This kind of expression"),
        }
    }

    /// Checks a name without a dot.
    fn bare(&self, ident: &Ident) -> CheckResult {
        let name = self.dialect.folded(ident);
        let is_session = self.dialect != Dialect::Sqlite
            && ident.quote_style.is_none()
            && SESSION.contains(&name.as_str());
        if is_session && self.functions.allow(None, &name).is_none() {
            return Err(Refusal::function(self.functions, &name, position(ident)));
        }
        Ok(())
    }

    fn operator(&mut self, operator: &BinaryOperator) -> CheckResult {
        match operator {
            BinaryOperator::Custom(_)
            | BinaryOperator::PGCustomBinaryOperator(_)
            | BinaryOperator::DuckIntegerDivide
            | BinaryOperator::Assignment => unknown("This operator"),
            _ => {
                if self.dialect == Dialect::Postgres {
                    self.names.operators.insert(operator.to_string());
                }
                Ok(())
            }
        }
    }

    /// A type that a value is cast to.
    pub(super) fn data_type(&mut self, data_type: &sqlparser::ast::DataType) -> CheckResult {
        match types::kind(self.dialect, data_type) {
            Kind::BuiltIn => Ok(()),
            Kind::Named(parts) => {
                self.names.types.insert(parts.join("."));
                Ok(())
            }
            Kind::Refused => Err(Refusal::denied(
                format!("Values cannot be cast to {data_type} here."),
                "Cast to a built-in type",
            )),
        }
    }

    /// The types of columns that an alias gives.
    pub(super) fn column_types(&mut self, alias: Option<&TableAlias>) -> CheckResult {
        for column in alias.into_iter().flat_map(|alias| &alias.columns) {
            if let Some(data_type) = &column.data_type {
                self.data_type(data_type)?;
            }
        }
        Ok(())
    }

    fn function(&mut self, function: &mut Function) -> CheckResult {
        let other = function.uses_odbc_syntax
            || function.parameters != FunctionArguments::None
            || matches!(&function.args, FunctionArguments::Subquery(_));
        if other {
            // `ARRAY(SELECT …)` is grammar, not a call.
            let array = self.dialect == Dialect::Postgres
                && function.name.to_string().eq_ignore_ascii_case("array")
                && !function.uses_odbc_syntax
                && function.parameters == FunctionArguments::None;
            return if array {
                Ok(())
            } else {
                unknown("This kind of call")
            };
        }
        if let FunctionArguments::List(list) = &function.args {
            for clause in &list.clauses {
                if !matches!(
                    clause,
                    FunctionArgumentClause::OrderBy(_)
                        | FunctionArgumentClause::Separator(_)
                        | FunctionArgumentClause::Limit(_)
                        | FunctionArgumentClause::IgnoreOrRespectNulls(_)
                ) {
                    return unknown("A clause of a call");
                }
            }
        }
        if self.dialect == Dialect::Postgres && function.args == FunctionArguments::None {
            let name = function.name.to_string().to_lowercase();
            if POSTGRES_VALUES.contains(&name.as_str()) {
                return Ok(());
            }
            return self.refuse(&function.name);
        }
        self.call(&mut function.name)
    }

    fn refuse(&self, name: &ObjectName) -> CheckResult {
        let ident = name.0.last().and_then(|part| part.as_ident());
        let at = ident.map_or((0, 0), position);
        let parts: Vec<String> = name
            .0
            .iter()
            .map(|part| {
                part.as_ident()
                    .map_or_else(|| part.to_string(), |ident| self.dialect.folded(ident))
            })
            .collect();
        Err(Refusal::function(self.functions, &parts.join("."), at))
    }

    /// Resolves a call: to a listed function of the server, which is then written so
    /// that no other can be meant, or one that the operator allows.
    pub(super) fn call(&mut self, name: &mut ObjectName) -> CheckResult {
        let parts: Option<Vec<&Ident>> = name.0.iter().map(|part| part.as_ident()).collect();
        let Some(parts) = parts else {
            return unknown("This kind of call");
        };
        let dialect = self.dialect;
        let (schema, ident) = match parts.as_slice() {
            [ident] => (None, *ident),
            [schema, ident] => (Some(dialect.folded(schema)), *ident),
            _ => return self.refuse(name),
        };
        let folded = dialect.folded(ident);
        let own_schema = dialect == Dialect::Postgres && schema.as_deref() == Some("pg_catalog");
        if dialect == Dialect::Postgres
            && schema.is_none()
            && ident.quote_style.is_none()
            && POSTGRES_GRAMMAR.contains(&folded.as_str())
        {
            return Ok(());
        }
        // In some collations of MySQL `ſleep` is `sleep`.
        if dialect == Dialect::MySql && !folded.is_ascii() {
            return self.refuse(name);
        }
        let asked = if own_schema { None } else { schema.as_deref() };
        match self.functions.allow(asked, &folded) {
            // Without the schema, anybody who may create functions could put one of this name
            // earlier in the search path.
            Some(Allowed::Listed) if dialect == Dialect::Postgres => {
                // In quotes, since behind a dot the parser takes some for grammar.
                let ident = Ident::with_quote_and_span('"', ident.span, folded);
                *name = ObjectName::from(vec![Ident::new("pg_catalog"), ident]);
                Ok(())
            }
            Some(_) => Ok(()),
            None => self.refuse(name),
        }
    }

    /// Forms that `PostgreSQL` looks up like any function, written as such, and signs
    /// that would make a comment where they meet.
    fn rewrite(&self, expr: &mut Expr) {
        if let Expr::UnaryOp { expr: inner, .. } = expr
            && matches!(**inner, Expr::UnaryOp { .. })
        {
            // Written back without brackets, `- -1` would become the comment `--1`. The empty
            // tuple is only a placeholder that needs no allocation.
            let taken = std::mem::replace(&mut **inner, Expr::Tuple(Vec::new()));
            **inner = Expr::Nested(Box::new(taken));
        }
        if self.dialect != Dialect::Postgres {
            return;
        }
        let called = match expr {
            Expr::Ceil {
                expr,
                field: CeilFloorKind::DateTimeField(field),
            } if is_none(field) => Some(("ceil", vec![taken(expr)])),
            Expr::Floor {
                expr,
                field: CeilFloorKind::DateTimeField(field),
            } if is_none(field) => Some(("floor", vec![taken(expr)])),
            Expr::Substring {
                expr,
                substring_from,
                substring_for,
                special,
                shorthand,
            } if *special || *shorthand => {
                let name = if *shorthand { "substr" } else { "substring" };
                let rest = [substring_from, substring_for]
                    .into_iter()
                    .flatten()
                    .map(taken);
                Some((name, std::iter::once(taken(expr)).chain(rest).collect()))
            }
            _ => None,
        };
        if let Some((name, args)) = called {
            *expr = Expr::Function(plain_call(name, args));
        }
    }
}

/// Forms that are grammar to every database, and name nothing of their own.
fn is_plain(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Extract {
            syntax: ExtractSyntax::From,
            ..
        } | Expr::Position { .. }
            | Expr::Substring { .. }
            | Expr::Trim { .. }
            | Expr::Overlay { .. }
            | Expr::Collate { .. }
            | Expr::AtTimeZone { .. }
            | Expr::IsFalse(_)
            | Expr::IsNotFalse(_)
            | Expr::IsTrue(_)
            | Expr::IsNotTrue(_)
            | Expr::IsNull(_)
            | Expr::IsNotNull(_)
            | Expr::IsUnknown(_)
            | Expr::IsNotUnknown(_)
            | Expr::IsDistinctFrom(..)
            | Expr::IsNotDistinctFrom(..)
            | Expr::IsJson { .. }
            | Expr::IsNormalized { .. }
            | Expr::InList { .. }
            | Expr::InSubquery { .. }
            | Expr::Between { .. }
            | Expr::Like { any: false, .. }
            | Expr::ILike { any: false, .. }
            | Expr::SimilarTo { .. }
            | Expr::RLike { .. }
            | Expr::Nested(_)
            | Expr::Value(_)
            | Expr::Case { .. }
            | Expr::Exists { .. }
            | Expr::Subquery(_)
            | Expr::GroupingSets(_)
            | Expr::Cube(_)
            | Expr::Rollup(_)
            | Expr::Tuple(_)
            | Expr::Array(_)
            | Expr::Interval(_)
            | Expr::Wildcard(_)
            | Expr::QualifiedWildcard(..)
    )
}

fn is_none(field: &sqlparser::ast::DateTimeField) -> bool {
    matches!(field, sqlparser::ast::DateTimeField::NoDateTime)
}

fn taken(expr: &mut Box<Expr>) -> Expr {
    std::mem::replace(&mut **expr, Expr::Tuple(Vec::new()))
}

fn plain_call(name: &str, args: Vec<Expr>) -> Function {
    let args = args
        .into_iter()
        .map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)))
        .collect();
    Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args,
            clauses: Vec::new(),
        }),
        within_group: Vec::new(),
        filter: None,
        null_treatment: None,
        over: None,
    }
}

/// An array in FROM, as a call of the server's own function.
pub(super) fn unnest(factor: &mut TableFactor) {
    let TableFactor::UNNEST {
        alias,
        array_exprs,
        with_offset: false,
        with_ordinality,
        ..
    } = factor
    else {
        return;
    };
    // With several the server means its own, by this name alone.
    let [array] = array_exprs.as_mut_slice() else {
        return;
    };
    let array = std::mem::replace(array, Expr::Tuple(Vec::new()));
    *factor = TableFactor::Table {
        name: ObjectName::from(vec![Ident::new("unnest")]),
        alias: alias.take(),
        args: Some(TableFunctionArgs {
            args: vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(array))],
            settings: None,
        }),
        with_hints: Vec::new(),
        version: None,
        with_ordinality: *with_ordinality,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    };
}
