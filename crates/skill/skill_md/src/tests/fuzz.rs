use super::*;
use testing::fuzz;

#[test]
fn fuzz_skill_md() {
    let words = [
        "---\n",
        "name: ",
        "description: ",
        "allowed-tools: ",
        "- ",
        ": ",
        "{",
        "}",
        "[",
        "]",
        "&a",
        "*a",
        "!!str ",
        "|\n",
        ">-\n",
        "\"",
        "'",
        "#",
        "\n  ",
        "? ",
        "tool_configs:\n",
        "metadata:",
        "\\u0000",
        "<<: ",
        "...\n",
        "%YAML 1.2\n",
        "Bash(git:*)",
    ];
    fuzz("skill_md", &words, |input| {
        let files = files([("SKILL.md", input)]);
        let lenient = read(&files, &ReadOptions::default());
        let errors = lenient.problems.iter();
        let is_refused = errors
            .map(|problem| problem.severity)
            .any(|severity| severity == model::Severity::Error);
        assert_eq!(
            lenient.skill.is_none(),
            is_refused,
            "{:?}",
            lenient.problems
        );
        assert!(lenient.problems.len() <= crate::MAX_PROBLEMS + 1);
        let lines = String::from_utf8_lossy(input).lines().count() + 1;
        for problem in &lenient.problems {
            assert!(problem.line as usize <= lines, "{problem:?}");
        }
        let strict = ReadOptions {
            strict: true,
            folder: Some("demo"),
            ..ReadOptions::default()
        };
        let strict = read(&files, &strict);
        assert!(strict.skill.is_none() || lenient.skill.is_some());
        if let Ok(text) = std::str::from_utf8(input) {
            assert!(text.ends_with(crate::body(text)));
        }
    });
}
