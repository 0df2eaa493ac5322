use sha2::{Digest as _, Sha256};

use super::*;
use testing::fuzz;

/// A backup with these records, whatever they are, and the end that says that they
/// are whole.
fn backup(records: &[u8]) -> Vec<u8> {
    let mut count = 0_u64;
    let mut rest = records;
    while let [1, a, b, c, d, e, f, g, h, after @ ..] = rest {
        let length = |bytes: [u8; 4]| u32::from_be_bytes(bytes) as usize;
        let Some(skipped) = length([*a, *b, *c, *d]).checked_add(length([*e, *f, *g, *h])) else {
            break;
        };
        let Some(after) = after.get(skipped..) else {
            break;
        };
        (rest, count) = (after, count + 1);
    }
    let mut body = records.to_vec();
    body.push(0);
    body.extend(count.to_be_bytes());
    let digest = Sha256::digest(&body);
    body.extend(digest);
    let packed = zstd::encode_all(&*body, 1).expect("packed");
    [b"REPERTOIRE BACKUP 1\n".to_vec(), packed].concat()
}

#[test]
fn fuzz_backups() {
    let folder = TempDir::new().expect("a folder");
    let (from, to) = (folder.path().join("backup"), folder.path().join("data"));
    fuzz("backup", &["\u{1}\0\0\0\u{2}\0\0\0\u{3}"], |input| {
        for bytes in [input.to_vec(), backup(input)] {
            fs::write(&from, bytes).expect("a file");
            if restore(&from, &to, &options(), |_| {}).is_ok() {
                // It is a directory now, of whatever use.
                if let Ok(store) = Store::open(&to, &options()) {
                    let _verified = store.verify(|_| {});
                }
                fs::remove_dir_all(&to).expect("removed");
            }
            assert!(!to.exists());
        }
    });
}
