//! A bound on the work of the parser.
//!
//! Where a text can be read in two ways, the parser tries the one and then the other,
//! at each level anew: a statement of 300 bytes, nested deep enough, would be read for
//! years. Nothing can stop the parser, but it asks its language before each
//! expression and each operator: so the language counts, and refuses once a statement
//! has asked more often than any of its length needs to.
//!
//! Every method of the parser's trait is forwarded: a missing one would have the default of
//! no language.

use std::any::TypeId;
use std::cell::Cell;
use std::iter::Peekable;
use std::str::Chars;

use sqlparser::ast::{ColumnOption, Expr, GranteesType, Ident, ObjectNamePart, Statement};
use sqlparser::dialect::{Dialect as Grammar, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::TokenWithSpan;

/// Steps for each token: what the parser tries where nothing is nested.
const STEPS_PER_TOKEN: usize = 8;
/// Steps for what it tries twice.
const MAX_NESTING_STEPS: usize = 50_000;
/// Bytes that the steps for nesting may copy: a step copies a token at most.
const MAX_COPIED_BYTES: usize = 256 << 20;

/// A language that is asked a bounded number of times.
#[derive(Debug)]
pub(super) struct Budget {
    language: &'static dyn Grammar,
    left: Cell<usize>,
    is_spent: Cell<bool>,
}

impl Budget {
    /// As many steps as a statement of these tokens needs.
    pub(super) fn new(language: &'static dyn Grammar, tokens: &[TokenWithSpan]) -> Self {
        let longest = tokens.iter().map(|token| token.token.to_string().len());
        let longest = longest.max().unwrap_or_default().max(1);
        let left =
            STEPS_PER_TOKEN * tokens.len() + MAX_NESTING_STEPS.min(MAX_COPIED_BYTES / longest);
        Self {
            language,
            left: Cell::new(left),
            is_spent: Cell::new(false),
        }
    }

    /// Whether the parser needed more steps. Then its result means nothing: it may have taken
    /// another way because one was refused.
    pub(super) fn is_spent(&self) -> bool {
        self.is_spent.get()
    }

    fn step(&self) -> Result<(), ParserError> {
        if let Some(left) = self.left.get().checked_sub(1) {
            self.left.set(left);
            return Ok(());
        }
        self.is_spent.set(true);
        // The one error after which the parser does not try another way.
        Err(ParserError::RecursionLimitExceeded)
    }
}

/// Methods that the language answers itself, with no step counted.
macro_rules! forward {
    ($(fn $method:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)*) => {
        $(fn $method(&self $(, $argument: $kind)*) -> $answer {
            self.language.$method($($argument),*)
        })*
    };
}

/// Methods that say yes or no of a language.
macro_rules! yes_or_no {
    ($($method:ident)*) => {
        forward! { $(fn $method() -> bool;)* }
    };
}

impl Grammar for Budget {
    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        match self.step() {
            Ok(()) => self.language.parse_prefix(parser),
            Err(spent) => Some(Err(spent)),
        }
    }

    fn get_next_precedence_default(&self, parser: &Parser) -> Result<u8, ParserError> {
        self.step()?;
        self.language.get_next_precedence_default(parser)
    }

    fn parse_column_option(
        &self,
        parser: &mut Parser,
    ) -> Result<Option<Result<Option<ColumnOption>, ParserError>>, ParserError> {
        self.step()?;
        self.language.parse_column_option(parser)
    }

    forward! {
        fn dialect() -> TypeId;
        fn get_next_precedence(parser: &Parser) -> Option<Result<u8, ParserError>>;
        fn parse_infix(parser: &mut Parser, expr: &Expr, precedence: u8) -> Option<Result<Expr, ParserError>>;
        fn parse_statement(parser: &mut Parser) -> Option<Result<Statement, ParserError>>;
        fn prec_value(prec: Precedence) -> u8;
        fn prec_unknown() -> u8;
        fn is_delimited_identifier_start(ch: char) -> bool;
        fn is_nested_delimited_identifier_start(ch: char) -> bool;
        fn peek_nested_delimited_identifier_quotes(chars: Peekable<Chars<'_>>) -> Option<(char, Option<char>)>;
        fn identifier_quote_style(identifier: &str) -> Option<char>;
        fn is_identifier_start(ch: char) -> bool;
        fn is_identifier_part(ch: char) -> bool;
        fn is_custom_operator_part(ch: char) -> bool;
        fn is_reserved_for_identifier(kw: Keyword) -> bool;
        fn get_reserved_keywords_for_select_item_operator() -> &[Keyword];
        fn get_reserved_grantees_types() -> &[GranteesType];
        fn is_column_alias(kw: &Keyword, parser: &mut Parser) -> bool;
        fn is_select_item_alias(explicit: bool, kw: &Keyword, parser: &mut Parser) -> bool;
        fn is_table_factor(kw: &Keyword, parser: &mut Parser) -> bool;
        fn is_table_alias(kw: &Keyword, parser: &mut Parser) -> bool;
        fn is_table_factor_alias(explicit: bool, kw: &Keyword, parser: &mut Parser) -> bool;
        fn is_identifier_generating_function_name(ident: &Ident, name_parts: &[ObjectNamePart]) -> bool;
    }

    yes_or_no! {
        allow_extract_custom allow_extract_single_quotes convert_type_before_value
        describe_requires_table_keyword ignores_wildcard_escapes require_interval_qualifier
        requires_single_line_comment_whitespace support_map_literal_syntax
        supports_aliased_function_args supports_alter_column_type_using
        supports_alter_user_as_alter_role supports_array_join_syntax
        supports_array_typedef_with_brackets supports_array_typedef_without_element_type
        supports_asc_desc_in_column_definition supports_bang_not_operator
        supports_binary_kw_as_cast supports_bitwise_shift_operators supports_boolean_literals
        supports_column_definition_trailing_commas supports_comma_separated_drop_column_list
        supports_comma_separated_set_assignments supports_comma_separated_trim supports_comment_on
        supports_comment_optimizer_hint supports_connect_by
        supports_constraint_keyword_without_name supports_create_index_with_clause
        supports_create_table_like_parenthesized supports_create_table_multi_schema_info_sources
        supports_create_table_select supports_create_table_using
        supports_create_view_comment_syntax supports_cross_join_constraint supports_cte_without_as
        supports_data_type_signed_suffix supports_detach supports_dictionary_syntax
        supports_dollar_as_money_prefix supports_dollar_placeholder
        supports_double_ampersand_operator supports_empty_projections
        supports_end_transaction_modifier supports_eq_alias_assignment supports_exclude_constraint
        supports_execute_immediate supports_explain_with_utility_options
        supports_extract_comma_syntax supports_factorial_operator
        supports_filter_during_aggregation supports_from_first_insert supports_from_first_select
        supports_from_trailing_commas supports_geometric_types supports_group_by_expr
        supports_group_by_with_modifier supports_in_empty_list supports_in_unparenthesized_expr
        supports_insert_format supports_insert_set supports_insert_table_alias
        supports_insert_table_function supports_insert_table_query supports_install
        supports_interpolate supports_interval_options supports_key_column_option
        supports_lambda_functions supports_leading_comma_before_table_options
        supports_left_associative_joins_without_parens supports_limit_by supports_limit_comma
        supports_listen_notify supports_load_data supports_load_extension
        supports_long_type_as_bigint supports_map_literal_with_angle_brackets
        supports_match_against supports_match_recognize supports_multiline_comment_hints
        supports_named_fn_args_with_assignment_operator supports_named_fn_args_with_colon_operator
        supports_named_fn_args_with_eq_operator supports_named_fn_args_with_expr_name
        supports_named_fn_args_with_rarrow_operator supports_nested_comments
        supports_notnull_operator supports_numeric_literal_underscores supports_numeric_prefix
        supports_object_name_double_dot_notation supports_optimize_table supports_order_by_all
        supports_order_by_using_operator supports_outer_join_operator
        supports_parens_around_table_factor supports_parenthesized_set_variables supports_partiql
        supports_partition_by_after_order_by supports_pipe_operator supports_prewhere
        supports_projection_trailing_commas supports_quote_delimited_string supports_select_exclude
        supports_select_expr_star supports_select_format supports_select_item_multi_column_alias
        supports_select_modifiers supports_select_wildcard_except supports_select_wildcard_exclude
        supports_select_wildcard_ilike supports_select_wildcard_rename
        supports_select_wildcard_replace supports_select_wildcard_with_alias
        supports_semantic_view_table_factor supports_set_names supports_set_stmt_without_operator
        supports_settings supports_show_like_before_in supports_space_separated_column_options
        supports_start_transaction_modifier supports_string_escape_constant
        supports_string_literal_backslash_escape supports_string_literal_concatenation
        supports_string_literal_concatenation_with_newline supports_struct_literal
        supports_subquery_as_function_arg supports_table_hints supports_table_sample_before_alias
        supports_table_versioning supports_top_before_distinct supports_trailing_commas
        supports_triple_quoted_string supports_try_convert supports_unicode_string_literal
        supports_unpivot_expr supports_update_order_by supports_user_host_grantee
        supports_values_as_table_factor supports_window_clause_named_window_reference
        supports_window_function_null_treatment_arg supports_with_fill
        supports_within_after_array_aggregation supports_xml_expressions
    }
}
