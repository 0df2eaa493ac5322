//! Links that lead to no file of the skill.

use super::{Reading, files, read};
use crate::ReadOptions;

/// A skill with these instructions, and other files.
fn linked(body: &str, others: &[(&str, &str)]) -> Reading {
    let text = format!("---\nname: demo\ndescription: Shows how.\n---\n{body}");
    let entry = ("SKILL.md", text.as_bytes());
    let others = others.iter().map(|(path, text)| (*path, text.as_bytes()));
    let options = ReadOptions {
        folder: Some("demo"),
        ..ReadOptions::default()
    };
    read(&files([entry].into_iter().chain(others)), &options)
}

/// What is told of links, as `file:line message`.
fn dead(body: &str, others: &[(&str, &str)]) -> Vec<String> {
    let problems = linked(body, others).problems;
    let dead = problems.iter().filter(|p| p.rule == "link-dead");
    dead.map(|p| format!("{}:{} {}", p.file, p.line, p.message))
        .collect()
}

const OTHERS: &[(&str, &str)] = &[
    ("references/table.md", "x"),
    ("references/a b.md", "x"),
    ("references/of (one).md", "x"),
    ("docs/guide.md", "x"),
];

#[test]
fn a_link_to_no_file_is_told_with_what_was_meant() {
    for (body, told) in [
        (
            "One.\nSee [it](references/tabel.md).",
            "6 `references/tabel.md` is not in the skill; did you mean `references/table.md`?",
        ),
        (
            "[it](table.md#part \"A title\")",
            "5 `table.md#part` is not in the skill; did you mean `references/table.md`?",
        ),
        (
            "[it](references/Table.md)",
            "5 `references/Table.md` is not in the skill; did you mean `references/table.md`?",
        ),
        ("![it](img/a.png)", "5 `img/a.png` is not in the skill"),
        (
            "* one\n\n    [it](<references/a  b.md>)",
            "7 `references/a  b.md` is not in the skill; did you mean `references/a b.md`?",
        ),
        (
            "[it][x]\n\n[x]: ./gone.md 'A title'",
            "7 `./gone.md` is not in the skill",
        ),
        ("[it](scripts/)", "5 `scripts/` is not in the skill"),
        (
            "`code` [it](gone.md) <!-- [a](b.md) -->",
            "5 `gone.md` is not in the skill",
        ),
        ("```\n```\n[it](gone.md)", "7 `gone.md` is not in the skill"),
        (
            "`not closed [it](gone.md)",
            "5 `gone.md` is not in the skill",
        ),
        // Twice in one file is once.
        (
            "[it](gone.md) [it](gone.md#x)",
            "5 `gone.md` is not in the skill",
        ),
        (
            "[it](skills/x/SKILL.md)",
            "5 `skills/x/SKILL.md` is not in the skill",
        ),
    ] {
        assert_eq!(dead(body, OTHERS), [format!("SKILL.md:{told}")], "{body}");
    }
}

#[test]
fn what_is_there_or_may_be_meant_is_not_told() {
    for body in [
        "[a](references/table.md) [b](./docs/../references/table.md#x) [c](references/) [d](docs/)",
        "[a](references/a%20b.md) [b](<references/a b.md>) [c](references/of%20(one).md)",
        "[a](#part) [b](https://a.example/x.md) [c](mailto:a@b.example) [d](/etc/x.md) [e](~/x.md)",
        "[a](../other/SKILL.md) [b](docs/../../x.md)",
        "[a]({{name}}.md) [b](<name>.md) [c](path/to/x.md) [d]($X.md) [e](*.md) [f](....md)",
        "[a](url) [b](link) [c](LICENSE) [d]() [e]( ) [f](1.2)",
        "```md\n[a](gone.md)\n```\n~~~\n```\n[a](gone.md)\n~~~",
        "````\n```\n[a](gone.md)\n```\n[a](gone.md)\n````",
        "Text.\n\n    [a](gone.md)\n\n\t[a](gone.md)",
        "`[a](gone.md)` ``[a](gone.md) ` ``",
        "<!-- [a](gone.md)\n[b](gone.md)\n--> x",
        "[^1]: gone.md\n[Note]: gone.md is what it says",
        "if x[1](a, b.md) then",
        "> ```\n> [a](gone.md)\n> ```\n",
        "- ```\n  [a](gone.md)\n  ```\n",
    ] {
        assert_eq!(dead(body, OTHERS), Vec::<String>::new(), "{body}");
    }
}

#[test]
fn links_of_other_files_count_from_there_or_from_the_skill() {
    let others = [
        (
            "docs/guide.md",
            "[a](more.md) [b](../references/table.md) [c](references/table.md)\n[d](tables.md) [e](../../x.md)",
        ),
        ("docs/more.md", "x"),
        ("docs/gone.txt", "[a](gone.md)"),
        ("references/table.md", "x"),
    ];
    assert_eq!(
        dead("x", &others),
        ["docs/guide.md:2 `tables.md` is not in the skill; did you mean `../references/table.md`?"]
    );
}

#[test]
fn a_dead_link_refuses_where_warnings_do() {
    let text = "---\nname: demo\ndescription: Shows how.\n---\n[a](gone.md)\n";
    for (strict, is_taken) in [(false, true), (true, false)] {
        let options = ReadOptions {
            strict,
            folder: Some("demo"),
            ..ReadOptions::default()
        };
        let reading = read(&files([("SKILL.md", text.as_bytes())]), &options);
        assert_eq!(reading.skill.is_some(), is_taken, "{strict}");
    }
}

#[test]
fn many_links_cost_no_more_than_their_text_and_some_are_told() {
    let many: Vec<String> = (0..100).map(|at| format!("[x](a{at}.md)")).collect();
    let told = dead(&many.join("\n"), &[]);
    assert_eq!(told.len(), 21);
    let rest = "SKILL.md:0 80 more links lead to no file of the skill";
    assert_eq!(told[0], rest);
    assert_eq!(told[20], "SKILL.md:24 `a19.md` is not in the skill");
    // A megabyte each, on one line and on many: squares would take hours.
    for part in [
        "](",
        "](a(",
        "`",
        "``` ",
        "<!--",
        "[x](a.md)",
        "[",
        "](<",
        "\n```",
        "\n    x",
    ] {
        let text = part.repeat((1 << 20) / part.len());
        let others = [("a.md", "x"), ("big.md", text.as_str())];
        assert_eq!(dead("x", &others), Vec::<String>::new(), "{part:?}");
    }
}
