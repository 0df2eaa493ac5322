//! Whatever stands in a file, reading it ends, and says something that can be used.

use bytes::Bytes;
use model::Severity;

use super::{EXERCISE, files, read};

#[test]
fn fuzz_exercise() {
    let words = [
        "---\n",
        "cases:\n",
        "    - ",
        "hidden: true\n",
        "expected: ",
        "throws: ",
        "ask: { ",
        " }",
        "[",
        "]",
        "\n  ",
        "'",
        ": ",
        "(?i)",
        "{1000}",
        "pattern: ",
        "type: test\n",
        "type: output\n",
        "language: skill\n",
        "comparator: ",
        "-1",
        "1e999",
        "~",
    ];
    testing::fuzz("exercise", &words, |input| {
        let mut files = files(EXERCISE);
        let content = Bytes::copy_from_slice(input);
        files.insert(
            "exercises/01-add-two/EXERCISE.md".to_owned(),
            content.clone(),
        );
        files.insert("PATH.md".to_owned(), content);
        let (path, problems) = read("numbers", &files);
        let is_refused = problems.iter().any(|p| p.severity == Severity::Error);
        assert_eq!(path.is_none(), is_refused);
        let lines = input.split(|byte| *byte == b'\n').count();
        for problem in problems {
            let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(problem.rule.chars().all(is_name), "{problem}");
            assert!(problem.line as usize <= lines + 1, "{problem}");
            assert!(!problem.message.contains('\n'), "{problem}");
        }
    });
}
