//! How much a folder may hold.

use super::*;

/// What comes of a look at a folder with two skills, of three files and ten bytes in all.
async fn look(change: impl FnOnce(&mut Limits)) -> Result<Vec<String>, String> {
    let (root, (_folder, mut work)) = (TempDir::new().expect("a folder"), work());
    write(root.path(), "one/SKILL.md", "abcd");
    write(root.path(), "one/a.md", "ab");
    write(root.path(), "two/SKILL.md", "abcd");
    (work.limits.skills, work.limits.files, work.limits.bytes) = (2, 3, 10);
    change(&mut work.limits);
    let place = Directory::new(root.path()).expect("a place");
    match place.look(None, &work).await {
        Ok(Look::Listing(found)) => Ok(paths(&found).into_iter().map(str::to_owned).collect()),
        Err(Error::TooLarge(why)) => Err(why.replace(&root.path().display().to_string(), "ROOT")),
        other => panic!("neither a listing nor too large: {other:?}"),
    }
}

#[tokio::test]
async fn a_folder_may_hold_exactly_as_much_as_the_limits_say() {
    let both = Ok(vec!["one".to_owned(), "two".to_owned()]);
    assert_eq!(look(|_| {}).await, both);
}

#[tokio::test]
async fn each_limit_of_a_folder_refuses_it_by_itself() {
    let refused = |why: &str| Err(why.to_owned());
    assert_eq!(
        look(|limits| limits.skills = 1).await,
        refused("`ROOT` has more than 1 skills")
    );
    assert_eq!(
        look(|limits| limits.files = 2).await,
        refused("`ROOT` has more than 2 files or 10 bytes")
    );
    assert_eq!(
        look(|limits| limits.bytes = 9).await,
        refused("`ROOT` has more than 3 files or 9 bytes")
    );
}
