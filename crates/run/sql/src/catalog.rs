//! Queries of a database's catalog, and their answers.
//!
//! Each dialect is asked in its own way, with texts of this file and the names of
//! tables as a bound JSON array; all answer in the same columns.

use serde_json::{Map, Value, json};

use super::dialect::Dialect;
use super::rows::{Bounds, Rows};

/// Rows of an answer of the catalog.
const MAX_ROWS: usize = 20_000;

/// A table or view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TableName {
    /// Its key in the catalog.
    pub(super) key: String,
    /// Its name, with its schema where it needs one.
    pub(super) name: String,
    /// Its schema; empty: there is only one.
    pub(super) schema: String,
    /// Its name in the schema.
    pub(super) bare: String,
    /// It is a view.
    pub(super) view: bool,
}

impl TableName {
    /// Its name as a statement may contain it.
    pub(super) fn quoted(&self, dialect: Dialect) -> String {
        if self.schema.is_empty() {
            return dialect.quoted(&self.bare);
        }
        format!(
            "{}.{}",
            dialect.quoted(&self.schema),
            dialect.quoted(&self.bare)
        )
    }
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TableColumn {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) nullable: bool,
    pub(super) default: Option<String>,
}

/// Columns that point to another table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ForeignKey {
    pub(super) columns: Vec<String>,
    pub(super) table: String,
    pub(super) others: Vec<String>,
}

/// An index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Index {
    pub(super) name: String,
    pub(super) unique: bool,
    pub(super) columns: Vec<String>,
}

/// Details of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) name: TableName,
    pub(super) columns: Vec<TableColumn>,
    pub(super) primary_key: Vec<String>,
    pub(super) foreign_keys: Vec<ForeignKey>,
    pub(super) indexes: Vec<Index>,
    /// The statement that made it, where the database keeps it.
    pub(super) statement: Option<String>,
}

/// Answers of the catalog are not bounded by what a caller's result may have.
pub(super) fn bounds(bounds: Bounds) -> Bounds {
    Bounds {
        rows: MAX_ROWS,
        bytes: 16 << 20,
        ..bounds
    }
}

/// The question for the tables: key, name, `view`, schema, bare name.
pub(super) fn tables(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => {
            "SELECT name, name, type, '', name FROM pragma_table_list \
             WHERE schema = 'main' AND type IN ('table', 'view', 'virtual') \
             AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
        }
        Dialect::Postgres => {
            "SELECT c.oid::text, \
             CASE WHEN pg_table_is_visible(c.oid) THEN c.relname::text ELSE n.nspname || '.' || c.relname END, \
             CASE WHEN c.relkind IN ('v', 'm') THEN 'view' ELSE 'table' END, n.nspname::text, c.relname::text \
             FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             WHERE c.relkind IN ('r', 'v', 'm', 'f', 'p') AND NOT c.relispartition \
             AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_(toast|temp)' \
             AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT') \
             ORDER BY NOT pg_table_is_visible(c.oid), n.nspname, c.relname"
        }
        Dialect::MySql => {
            "SELECT table_name, table_name, IF(table_type LIKE '%VIEW', 'view', 'table'), '', table_name \
             FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY table_name"
        }
    }
}

/// The questions for the details of tables: their columns (key, name, type, nullable,
/// default), their keys (key, `p` or `f`, name, column, other table, other
/// column), their indexes (key, name, unique, column), and for `SQLite` their
/// statements (key, statement).
pub(super) fn details(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::Sqlite => &[
            // An INTEGER PRIMARY KEY is the row id, which is never null although the catalog does
            // not say so. Hidden columns of kind 1 are parameters of virtual tables; kinds 2 and 3
            // are generated.
            "SELECT j.value, t.name, t.type, CASE WHEN t.\"notnull\" OR (t.pk = 1 AND upper(t.type) = 'INTEGER') THEN 'false' ELSE 'true' END, t.dflt_value \
             FROM json_each(?1) j JOIN pragma_table_xinfo(j.value) t WHERE t.hidden <> 1 ORDER BY j.key, t.cid",
            "SELECT value, kind, name, mine, other, theirs FROM ( \
             SELECT j.key, j.value, 'p' AS kind, '' AS name, t.name AS mine, NULL AS other, NULL AS theirs, t.pk AS seq \
             FROM json_each(?1) j JOIN pragma_table_info(j.value) t WHERE t.pk > 0 UNION ALL \
             SELECT j.key, j.value, 'f', CAST(f.id AS TEXT), f.\"from\", f.\"table\", f.\"to\", f.seq \
             FROM json_each(?1) j JOIN pragma_foreign_key_list(j.value) f) ORDER BY key, kind, name, seq",
            "SELECT j.value, i.name, CASE WHEN i.\"unique\" THEN 'true' ELSE 'false' END, coalesce(c.name, '(expression)') \
             FROM json_each(?1) j JOIN pragma_index_list(j.value) i JOIN pragma_index_info(i.name) c \
             ORDER BY j.key, i.name, c.seqno",
            "SELECT s.name, s.sql FROM json_each(?1) j JOIN sqlite_schema s ON s.name = j.value \
             WHERE s.type IN ('table', 'view') AND s.sql IS NOT NULL",
        ],
        Dialect::Postgres => &[
            "SELECT a.attrelid::text, a.attname::text, format_type(a.atttypid, a.atttypmod), (NOT a.attnotnull)::text, \
             pg_get_expr(d.adbin, d.adrelid) FROM pg_catalog.pg_attribute a \
             LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
             WHERE a.attrelid = ANY (ARRAY(SELECT x::oid FROM json_array_elements_text($1::text::json) x)) \
             AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attrelid, a.attnum",
            "SELECT c.conrelid::text, c.contype::text, c.conname::text, a.attname::text, \
             CASE WHEN c.confrelid <> 0 THEN c.confrelid::regclass::text END, f.attname::text \
             FROM pg_catalog.pg_constraint c CROSS JOIN LATERAL unnest(c.conkey) WITH ORDINALITY AS k(attnum, seq) \
             JOIN pg_catalog.pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.attnum \
             LEFT JOIN pg_catalog.pg_attribute f ON f.attrelid = c.confrelid AND f.attnum = c.confkey[k.seq] \
             WHERE c.contype IN ('p', 'f') \
             AND c.conrelid = ANY (ARRAY(SELECT x::oid FROM json_array_elements_text($1::text::json) x)) \
             ORDER BY c.conrelid, c.contype, c.conname, k.seq",
            "SELECT i.indrelid::text, c.relname::text, i.indisunique::text, pg_get_indexdef(i.indexrelid, k::integer, true) \
             FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid \
             CROSS JOIN LATERAL generate_series(1, i.indnkeyatts) k \
             WHERE i.indrelid = ANY (ARRAY(SELECT x::oid FROM json_array_elements_text($1::text::json) x)) \
             ORDER BY i.indrelid, c.relname, k",
        ],
        Dialect::MySql => &[
            // MariaDB reports a missing default as the text NULL.
            "SELECT table_name, column_name, column_type, IF(is_nullable = 'YES', 'true', 'false'), NULLIF(column_default, 'NULL') \
             FROM information_schema.columns WHERE table_schema = DATABASE() \
             AND JSON_CONTAINS(?, JSON_QUOTE(table_name)) ORDER BY table_name, ordinal_position",
            "SELECT table_name, IF(constraint_name = 'PRIMARY', 'p', 'f'), constraint_name, column_name, \
             referenced_table_name, referenced_column_name FROM information_schema.key_column_usage \
             WHERE table_schema = DATABASE() AND (constraint_name = 'PRIMARY' OR referenced_table_name IS NOT NULL) \
             AND JSON_CONTAINS(?, JSON_QUOTE(table_name)) ORDER BY table_name, 2, constraint_name, ordinal_position",
            "SELECT table_name, index_name, IF(non_unique = 0, 'true', 'false'), COALESCE(column_name, '(expression)') \
             FROM information_schema.statistics WHERE table_schema = DATABASE() \
             AND JSON_CONTAINS(?, JSON_QUOTE(table_name)) ORDER BY table_name, index_name, seq_in_index",
        ],
    }
}

/// A column that may be empty where a database has no word for it.
fn word(row: &[Value], at: usize) -> String {
    optional(row, at).unwrap_or_default()
}

#[expect(clippy::indexing_slicing, reason = "the texts above ask for it")]
fn optional(row: &[Value], at: usize) -> Option<String> {
    match &row[at] {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Rows of an answer; none where the dialect has fewer questions.
fn rows(answers: &[Rows], at: usize) -> &[Vec<Value>] {
    answers.get(at).map_or(&[], |answer| &answer.held)
}

/// Reads the answer to [`tables`].
pub(super) fn read_tables(answers: &[Rows]) -> Vec<TableName> {
    rows(answers, 0)
        .iter()
        .map(|row| TableName {
            key: word(row, 0),
            name: word(row, 1),
            view: word(row, 2) == "view",
            schema: word(row, 3),
            bare: word(row, 4),
        })
        .collect()
}

/// Reads the answers to [`details`].
pub(super) fn read_details(names: &[TableName], answers: &[Rows]) -> Vec<Table> {
    let of = |at: usize, key: &str| {
        let key = Value::from(key);
        rows(answers, at)
            .iter()
            .filter(move |row| row.first() == Some(&key))
    };
    names
        .iter()
        .map(|name| {
            let mut table = Table {
                name: name.clone(),
                columns: of(0, &name.key)
                    .map(|row| TableColumn {
                        name: word(row, 1),
                        kind: word(row, 2),
                        nullable: word(row, 3) == "true",
                        default: optional(row, 4),
                    })
                    .collect(),
                primary_key: Vec::new(),
                foreign_keys: Vec::new(),
                indexes: Vec::new(),
                statement: of(3, &name.key).find_map(|row| optional(row, 1)),
            };
            let mut last = None;
            for row in of(1, &name.key) {
                let column = word(row, 3);
                if word(row, 1) == "p" {
                    table.primary_key.push(column);
                    continue;
                }
                let constraint = Some(word(row, 2));
                if constraint != last {
                    table.foreign_keys.push(ForeignKey {
                        columns: Vec::new(),
                        table: word(row, 4),
                        others: Vec::new(),
                    });
                    last = constraint;
                }
                if let Some(key) = table.foreign_keys.last_mut() {
                    key.columns.push(column);
                    key.others.extend(optional(row, 5));
                }
            }
            for row in of(2, &name.key) {
                let index = word(row, 1);
                if table.indexes.last().is_none_or(|last| last.name != index) {
                    table.indexes.push(Index {
                        name: index,
                        unique: word(row, 2) == "true",
                        columns: Vec::new(),
                    });
                }
                if let Some(index) = table.indexes.last_mut() {
                    index.columns.push(word(row, 3));
                }
            }
            table
        })
        .collect()
}

impl Table {
    /// The table as JSON for programs.
    pub(super) fn structured(&self) -> Map<String, Value> {
        let columns: Vec<Value> = self
            .columns
            .iter()
            .map(|column| {
                json!({
                    "name": column.name,
                    "type": column.kind,
                    "nullable": column.nullable,
                    "default": column.default,
                    "primary_key": self.primary_key.contains(&column.name),
                })
            })
            .collect();
        let keys: Vec<Value> = self
            .foreign_keys
            .iter()
            .map(|key| {
                json!({
                    "columns": key.columns,
                    "references": {"table": key.table, "columns": key.others},
                })
            })
            .collect();
        let indexes: Vec<Value> = self
            .indexes
            .iter()
            .map(|index| json!({"name": index.name, "unique": index.unique, "columns": index.columns}))
            .collect();
        super::object(json!({
            "table": self.name.name,
            "kind": if self.name.view { "view" } else { "table" },
            "columns": columns,
            "primary_key": self.primary_key,
            "foreign_keys": keys,
            "indexes": indexes,
        }))
    }
}
