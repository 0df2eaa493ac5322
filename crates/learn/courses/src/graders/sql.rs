//! SQL: the rows of a solution, against those of the reference solution.

use std::sync::Arc;

use sandbox::{Outcome, Program, SqlCase};

use super::{Graders, not_computed, text, without_result};
use crate::compare::same_rows;
use crate::feedback::{CaseOutcome, Stuck, WrongCase};
use crate::grading::{Case, Database, Expected, Table, Validation};
use crate::{Exercise, Solution, render};

impl Graders {
    pub(super) async fn sql(
        &self,
        exercise: &Exercise,
        solution: &Solution,
    ) -> Result<Vec<CaseOutcome>, Stuck> {
        let grading = &exercise.grading;
        let Validation::Sql {
            ordered,
            column_names,
            may_write,
            cases,
        } = &grading.validation
        else {
            return Err(Stuck("The exercise is graded in another way".to_owned()));
        };
        let reference = || self.tables(&grading.reference, *may_write, cases);
        // Computed once, in a process without a learner's code: a solution never runs with what
        // it is compared with.
        let expected = grading.expected.get_or_try_init(reference).await?;
        let Expected::Tables(tables) = &**expected else {
            return Err(Stuck("The exercise is graded in another way".to_owned()));
        };
        let outcomes = self.query(solution, *may_write, cases).await?;
        let found = tables.iter().zip(outcomes);
        let found = found.map(|(expected, outcome)| match outcome {
            Outcome::Rows { columns, rows } => {
                judge(expected, &Table { columns, rows }, *ordered, *column_names)
            }
            other => without_result(&other, solution),
        });
        Ok(found.collect())
    }

    async fn query(
        &self,
        solution: &Solution,
        may_write: bool,
        cases: &[Case<Database>],
    ) -> Result<Vec<Outcome>, Stuck> {
        let databases = cases.iter().map(|case| SqlCase {
            data: case.check.data.clone(),
            query: case.check.query.clone(),
        });
        let program = Program::Sql {
            solution: text(solution),
            may_write,
            cases: databases.collect(),
        };
        self.run(program, cases.len()).await
    }

    /// The rows of the reference solution.
    async fn tables(
        &self,
        reference: &Solution,
        may_write: bool,
        cases: &[Case<Database>],
    ) -> Result<Arc<Expected>, Stuck> {
        let outcomes = self.query(reference, may_write, cases).await?;
        let tables = cases
            .iter()
            .zip(outcomes)
            .map(|(case, outcome)| match outcome {
                Outcome::Rows { columns, rows } => Ok(Table { columns, rows }),
                _ => Err(not_computed(&case.info)),
            });
        let tables: Result<Vec<Table>, Stuck> = tables.collect();
        Ok(Arc::new(Expected::Tables(tables?)))
    }
}

fn judge(expected: &Table, actual: &Table, ordered: bool, column_names: bool) -> CaseOutcome {
    let named = |table: &Table| -> Vec<String> {
        let names = table.columns.iter();
        // As SQL itself: `Name` and `name` are one column.
        names.map(|name| name.to_lowercase()).collect()
    };
    let widths = expected.columns.len() == actual.columns.len();
    let same_names = !column_names || named(expected) == named(actual);
    let rows = same_rows(&expected.rows, &actual.rows, ordered);
    if widths && same_names && rows {
        return CaseOutcome::Right;
    }
    let plain = if !widths {
        "It has not the columns that were asked for"
    } else if rows {
        "The rows are right; the columns have other names"
    } else if ordered && same_rows(&expected.rows, &actual.rows, false) {
        "The rows are right; their order is not"
    } else if expected.rows.len() == actual.rows.len() {
        "It has as many rows as it should, and not the same ones"
    } else if expected.rows.len() > actual.rows.len() {
        "It has fewer rows than it should"
    } else {
        "It has more rows than it should"
    };
    CaseOutcome::Wrong(WrongCase {
        error: Some(plain.to_owned()),
        plain: Some(plain),
        ..WrongCase::other(render::table(expected), render::table(actual))
    })
}
