//! A version as an archive.

use super::*;

#[tokio::test]
async fn an_archive_of_a_version_is_the_same_bytes_always_and_holds_its_files() {
    let world = World::new();
    let skill_md = text("1.0.0", "body");
    let files = [
        ("SKILL.md", skill_md.as_str()),
        ("references/a.md", "a"),
        ("scripts/x.py", "print()"),
    ];
    publish(&world.registry, ID, &files, &caller(""))
        .await
        .expect("published");
    for format in [ArchiveFormat::TarGz, ArchiveFormat::Zip] {
        let id = skill(ID);
        let query = |info_only| ExportQuery {
            version: VersionSelector::Active,
            format,
            info_only,
        };
        let (bytes, info) = (query(false), query(true));
        let export = || world.registry.export(&id, &bytes);
        let (first, second) = (
            export().await.expect("an archive"),
            export().await.expect("an archive"),
        );
        assert_eq!(first.bytes, second.bytes);
        assert_eq!(first.digest, Digest::of(&second.bytes));
        let told = world.registry.export(&id, &info).await.expect("told");
        assert_eq!((told.bytes.len(), told.size), (0, first.bytes.len() as u64));
        assert_eq!(told.digest, first.digest);
        assert_eq!(
            first.file_name(),
            format!("refunds-1.0.0.{}", format.ending())
        );
        let mut found = Vec::new();
        match format {
            ArchiveFormat::TarGz => {
                let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(&*first.bytes));
                for entry in archive.entries().expect("entries") {
                    let mut entry = entry.expect("an entry");
                    let mut text = String::new();
                    std::io::Read::read_to_string(&mut entry, &mut text).expect("text");
                    found.push((entry.path().expect("a path").display().to_string(), text));
                }
            }
            ArchiveFormat::Zip => {
                let mut archive =
                    zip::ZipArchive::new(std::io::Cursor::new(first.bytes)).expect("a zip");
                for at in 0..archive.len() {
                    let mut entry = archive.by_index(at).expect("an entry");
                    let mut text = String::new();
                    std::io::Read::read_to_string(&mut entry, &mut text).expect("text");
                    found.push((entry.name().to_owned(), text));
                }
            }
        }
        let expected: Vec<_> = files
            .iter()
            .map(|(p, t)| ((*p).to_owned(), (*t).to_owned()))
            .collect();
        assert_eq!(found, expected);
    }
}
