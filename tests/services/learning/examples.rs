//! The examples of the specification of learning come true.

use serde_json::{Value, json};

use super::{solutions, tool};
use crate::support::Server;

#[tokio::test]
async fn the_examples_of_finding_a_path_come_true() {
    let server = Server::start();
    let found = tool(
        &server,
        "get_paths",
        json!({"category": "testing", "include_progress": true}),
    )
    .await;
    assert_eq!(found["success"], true);
    let path = &found["data"]["paths"][0];
    assert_eq!(
        (
            &path["id"],
            &path["name"],
            &path["difficulty"],
            &path["estimated_hours"],
            &path["exercise_count"]
        ),
        (
            &json!("testing-fundamentals"),
            &json!("Testing Fundamentals"),
            &json!("beginner"),
            &json!(4),
            &json!(12)
        )
    );
    assert_eq!(
        path["description"],
        "Learn unit testing, integration testing, and TDD"
    );
    assert_eq!(
        path["progress"],
        json!({"completed_exercises": 0, "percent_complete": 0})
    );
    assert_eq!(
        path["skills_covered"],
        json!(["jest-skill", "testing-library-skill"])
    );

    let of = json!({"path_id": "testing-fundamentals"});
    let first = tool(&server, "next_exercise", of.clone()).await;
    assert_eq!(first["data"]["exercise"]["id"], "test-first-unit-test");
}

/// Solves the first five exercises of the path of the examples.
async fn solve_five(server: &Server) {
    for (_, solution) in solutions("testing-fundamentals").into_iter().take(5) {
        let passed = tool(server, "submit_solution", solution).await;
        assert_eq!(
            (&passed["success"], &passed["data"]["passed"]),
            (&json!(true), &json!(true)),
            "{passed:#}"
        );
    }
}

#[tokio::test]
async fn the_examples_of_a_path_and_of_the_next_exercise_come_true() {
    let server = Server::start();
    solve_five(&server).await;
    let path = tool(
        &server,
        "get_path",
        json!({"path_id": "testing-fundamentals", "include_exercises": true}),
    )
    .await;
    let path = &path["data"]["path"];
    let objectives = [
        "Write effective unit tests",
        "Understand test-driven development",
        "Use mocking and stubbing",
    ];
    assert_eq!(path["learning_objectives"], json!(objectives));
    assert_eq!(
        path["exercises"][0],
        json!({
            "id": "test-first-unit-test", "title": "Your First Unit Test", "type": "tutorial",
            "estimated_minutes": 15, "status": "completed", "skills_practiced": ["jest-skill"],
        })
    );

    let of = json!({"path_id": "testing-fundamentals"});
    let next = tool(&server, "next_exercise", of.clone()).await;
    let exercise = &next["data"]["exercise"];
    assert_eq!(
        next["data"]["path_progress"],
        json!({"completed": 5, "remaining": 7, "percent_complete": 42})
    );
    let expected = json!({
        "id": "test-async-functions", "path_id": "testing-fundamentals", "title": "Testing Async Functions",
        "type": "practice", "difficulty": "medium", "estimated_minutes": 20,
        "hints": ["Use async/await in your test", "Mock the fetch function"], "validation_type": "test",
        "test_cases": [{
            "input": "fetchUser(1)", "expected": "{ id: 1, name: 'Test User' }",
            "description": "Should return user object",
        }],
        "skills_practiced": ["jest-skill"], "related_docs": ["https://jestjs.io/docs/asynchronous"],
    });
    for (key, value) in expected.as_object().expect("an object") {
        assert_eq!(&exercise[key], value, "{key}");
    }
}

/// Submits the solution of the example.
async fn submit_the_example(server: &Server) -> Value {
    let solution = "test('fetches user successfully', async () => {\n  const user = await fetchUser(1);\n  expect(user).toEqual({ id: 1, name: 'Test User' });\n});";
    let submit = json!({"exercise_id": "test-async-functions", "solution": solution, "request_feedback": true});
    tool(server, "submit_solution", submit).await
}

fn ace() -> Value {
    json!({
        "id": "async-ace", "name": "Async Ace",
        "description": "Complete your first async testing exercise", "icon": "lightning",
    })
}

#[tokio::test]
async fn the_example_of_a_submission_comes_true() {
    let server = Server::start();
    solve_five(&server).await;
    let passed = submit_the_example(&server).await;
    let data = &passed["data"];
    assert_eq!(
        (&passed["success"], &data["passed"]),
        (&json!(true), &json!(true)),
        "{passed:#}"
    );
    let results = &data["feedback"]["test_results"];
    assert_eq!(
        (&results["passed"], &results["failed"]),
        (&json!(3), &json!(0))
    );
    assert!(has(
        &data["feedback"]["suggestions"],
        "Consider adding error handling tests"
    ));
    assert!(has(
        &data["feedback"]["exemplary_aspects"],
        "Proper use of async/await"
    ));
    assert!(has(
        &data["feedback"]["exemplary_aspects"],
        "Clear assertion"
    ));
    assert_eq!(
        data["next_exercise"],
        json!({
            "id": "test-mocking-basics", "title": "Introduction to Mocking", "type": "tutorial",
            "estimated_minutes": 25, "status": "available",
            "skills_practiced": data["next_exercise"]["skills_practiced"],
        })
    );
    let ace = ace();
    assert!(
        data["achievements_earned"]
            .as_array()
            .expect("some")
            .contains(&ace)
    );
}

#[tokio::test]
async fn the_examples_of_progress_and_of_a_reset_come_true() {
    let server = Server::start();
    solve_five(&server).await;
    submit_the_example(&server).await;
    let (ace, of) = (ace(), json!({"path_id": "testing-fundamentals"}));
    let progress = tool(&server, "get_progress", json!({"include_history": true})).await;
    let progress = &progress["data"];
    let paths = progress["paths"].as_array().expect("paths").iter();
    let testing = paths
        .clone()
        .find(|path| path["path_id"] == "testing-fundamentals")
        .expect("the path");
    assert_eq!(
        (
            &testing["completed_exercises"],
            &testing["percent_complete"],
            &testing["status"]
        ),
        (&json!(6), &json!(50), &json!("in_progress"))
    );
    assert_eq!(progress["overall"]["completed_exercises"], 6);
    assert_eq!(progress["streak"]["current_streak"], 1);
    let activity = &progress["recent_activity"][1];
    assert_eq!(activity["type"], "exercise_completed");
    assert_eq!(activity["details"], "Completed 'Testing Async Functions'");
    assert!(
        progress["achievements"]
            .as_array()
            .expect("some")
            .contains(&ace)
    );

    let preview = tool(&server, "reset_progress", of.clone()).await;
    let mut expected = json!({
        "path_id": "testing-fundamentals", "exercises_reset": 6, "achievements_retained": true,
        "previous_completion": 50, "confirmed": false,
    });
    assert_eq!(preview["data"], expected);
    let reset = json!({"path_id": "testing-fundamentals", "confirm": true});
    let reset = tool(&server, "reset_progress", reset).await;
    expected["confirmed"] = json!(true);
    assert_eq!(reset["data"], expected);
    let after = tool(&server, "get_progress", json!({})).await;
    assert_eq!(after["data"]["overall"]["completed_exercises"], 0);
    assert!(
        after["data"]["achievements"]
            .as_array()
            .expect("some")
            .contains(&ace)
    );
}

fn has(list: &Value, text: &str) -> bool {
    list.as_array()
        .is_some_and(|list| list.contains(&json!(text)))
}
