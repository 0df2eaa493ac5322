//! Lists of names as data: files next to the source, read with `include_str!`.

/// The names of a list, separated by white space. A line that begins with `#` is a
/// comment.
pub fn listed(list: &str) -> impl Iterator<Item = &str> {
    list.lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(str::split_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_names_between_white_space_without_comments() {
        let list = "# A comment.\n: cat  ls-files\n\n\tx # no comment here\n";
        let names: Vec<&str> = listed(list).collect();
        let wanted = [":", "cat", "ls-files", "x", "#", "no", "comment", "here"];
        assert_eq!(names, wanted);
    }
}
