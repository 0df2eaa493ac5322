use super::*;
use model::seal_token;
use testing::fuzz;

/// A refusal of the caller's text, and no fault of the server's.
fn refused<T>(answer: Result<Response<T>, Status>, token: &str) {
    use tonic::Code::{InvalidArgument, NotFound, OutOfRange};
    if let Err(status) = answer {
        let code = status.code();
        let is_refusal = matches!(code, InvalidArgument | NotFound | OutOfRange);
        assert!(is_refusal, "{token:?}: {status:?}");
    }
}

#[test]
fn fuzz_tokens() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let _entered = runtime.enter();
    let world = World::new();
    runtime.block_on(world.published_after_token(3));
    let ours = world.domain.resume_token();
    let words = [
        "skills",
        "versions",
        "resume",
        "tool-calls",
        "\n",
        "/",
        "-1",
        &ours,
    ];
    fuzz("token", &words, |input| {
        let text = String::from_utf8_lossy(input);
        let mut lines = text.splitn(3, '\n');
        let mut next = || lines.next().unwrap_or_default();
        let (purpose, binding, position) = (next(), next(), next());
        // As it came, and as one that our own check takes for ours.
        for token in [text.to_string(), seal_token(purpose, binding, position)] {
            let token = token.as_str();
            runtime.block_on(async {
                let request = v1::ListSkillsRequest {
                    page_token: token.to_owned(),
                    ..Default::default()
                };
                refused(world.lookup.list_skills(Request::new(request)).await, token);
                let request = v1::ListVersionsRequest {
                    skill_id: "a/b/s1".to_owned(),
                    page_token: token.to_owned(),
                    ..Default::default()
                };
                refused(
                    world.registry.list_versions(Request::new(request)).await,
                    token,
                );
                let request = v1::ListToolCallsRequest {
                    page_token: token.to_owned(),
                    ..Default::default()
                };
                refused(
                    world.lookup.list_tool_calls(Request::new(request)).await,
                    token,
                );
                let request = v1::ListLoadedSkillsRequest {
                    session_id: token.to_owned(),
                };
                refused(
                    world.lookup.list_loaded_skills(Request::new(request)).await,
                    token,
                );
                let request = v1::WatchRequest {
                    resume_token: token.to_owned(),
                    ..Default::default()
                };
                refused(world.registry.watch(Request::new(request)).await, token);
            });
        }
    });
}
