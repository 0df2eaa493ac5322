//! Types that a value may be cast to: built-in ones, since a cast to a domain runs what
//! its `CHECK` calls.

use model::listed;
use sqlparser::ast::{ArrayElemTypeDef, DataType, ObjectName};

use super::dialect::Dialect;

/// Types of `PostgreSQL` by their names in `pg_catalog`. Some are words of the grammar,
/// too.
const POSTGRES: &str = include_str!("allowed/postgresql-types.txt");

/// The kind of a type, as far as its name alone says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The server's own.
    BuiltIn,
    /// Another: the server has to be asked.
    Named(Vec<String>),
    /// None that a value may be cast to.
    Refused,
}

/// Returns the kind of a type.
pub(super) fn kind(dialect: Dialect, data_type: &DataType) -> Kind {
    match dialect {
        Dialect::Postgres => postgres(data_type),
        // There are no types but those of the server.
        Dialect::MySql if !matches!(data_type, DataType::Custom(..)) => Kind::BuiltIn,
        Dialect::MySql => Kind::Refused,
        // A name that decides on a conversion, and nothing else.
        Dialect::Sqlite => Kind::BuiltIn,
    }
}

fn postgres(data_type: &DataType) -> Kind {
    match data_type {
        DataType::Character(_)
        | DataType::Char(_)
        | DataType::CharacterVarying(_)
        | DataType::CharVarying(_)
        | DataType::Varchar(_)
        | DataType::Uuid
        | DataType::Numeric(_)
        | DataType::Decimal(_)
        | DataType::Dec(_)
        | DataType::Float(_)
        | DataType::Int2(_)
        | DataType::SmallInt(_)
        | DataType::Int(_)
        | DataType::Int4(_)
        | DataType::Int8(_)
        | DataType::Integer(_)
        | DataType::BigInt(_)
        | DataType::Float4
        | DataType::Real
        | DataType::Float8
        | DataType::DoublePrecision
        | DataType::Bool
        | DataType::Boolean
        | DataType::Date
        | DataType::Time(..)
        | DataType::Timestamp(..)
        | DataType::Interval { .. }
        | DataType::JSON
        | DataType::JSONB
        | DataType::Regclass
        | DataType::Text
        | DataType::Bytea
        | DataType::Bit(_)
        | DataType::BitVarying(_)
        | DataType::VarBit(_)
        | DataType::GeometricType(_)
        | DataType::TsVector
        | DataType::TsQuery => Kind::BuiltIn,
        DataType::Array(ArrayElemTypeDef::SquareBracket(inner, _)) => postgres(inner),
        DataType::Custom(name, _) => custom(name),
        _ => Kind::Refused,
    }
}

fn custom(name: &ObjectName) -> Kind {
    let Some(parts) = Dialect::Postgres.folded_parts(name) else {
        return Kind::Refused;
    };
    let known = |name: &str| listed(POSTGRES).any(|known| known == name);
    match parts.as_slice() {
        [name] if known(name) => Kind::BuiltIn,
        [schema, name] if schema == "pg_catalog" && known(name) => Kind::BuiltIn,
        [_] | [_, _] => Kind::Named(parts),
        _ => Kind::Refused,
    }
}
