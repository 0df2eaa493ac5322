//! The built-in embedder: a table with a row for each word, or piece of one.
//!
//! The vector of a text is the sum of its rows, of length 1. So it costs some
//! microseconds, knows no order of words, and needs no network and no other file.
//! `table/README.md` says where the table comes from and what it was measured at.

use std::sync::LazyLock;

use super::pieces::Pieces;
use super::{EmbedError, Embedder, normalize};
use model::Digest;

/// Values of a row.
const DIMENSION_COUNT: usize = 192;
/// Words and pieces, each with a row.
const ROW_COUNT: usize = 62_274;
// Not compressed: to inflate it took each process some 50 ms and 12 MB. A row is read where it
// lies.
static TABLE: &[u8] = include_bytes!("../table/table.bin");
static ROWS: &[u8] = TABLE.split_at(ROW_COUNT * DIMENSION_COUNT).0;
/// One a line, in the order of the rows.
static WORDS: &[u8] = TABLE.split_at(ROW_COUNT * DIMENSION_COUNT).1;

/// One of this many rows goes into the digest: a table that is fitted again differs in
/// nearly all of them.
const ROWS_PER_SAMPLE: usize = 64;

static PIECES: LazyLock<Pieces> = LazyLock::new(|| Pieces::new(WORDS));

/// The table that comes with the server. It is read at its first use.
#[derive(Debug, Clone, Copy, Default)]
pub struct Table;

impl Table {
    /// The rows of a text, in its order.
    #[cfg(test)]
    pub(super) fn rows_of(text: &str) -> Vec<u32> {
        PIECES.rows_of(text)
    }

    #[expect(clippy::indexing_slicing, reason = "every piece has a row")]
    fn vector(text: &str) -> Vec<f32> {
        let mut sum = vec![0.0_f32; DIMENSION_COUNT];
        for row in PIECES.rows_of(text) {
            let from = row as usize * DIMENSION_COUNT;
            let row = &ROWS[from..from + DIMENSION_COUNT];
            for (sum, byte) in sum.iter_mut().zip(row) {
                *sum += f32::from(byte.cast_signed());
            }
        }
        normalize(&mut sum);
        sum
    }
}

impl Embedder for Table {
    fn name(&self) -> &'static str {
        "built-in table"
    }

    fn digest(&self) -> Digest {
        let mut sample = WORDS.to_vec();
        for row in ROWS.chunks(DIMENSION_COUNT).step_by(ROWS_PER_SAMPLE) {
            sample.extend_from_slice(row);
        }
        Digest::of(&sample)
    }

    fn dimensions(&self) -> usize {
        DIMENSION_COUNT
    }

    fn batch(&self) -> usize {
        2_048
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        Ok(texts.iter().map(|text| Self::vector(text)).collect())
    }

    fn is_noise(&self, text: &str) -> bool {
        PIECES.is_noise(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_word_of_any_language_is_noise_and_what_may_be_one_is_not() {
        let noise = |texts: &[&str]| -> Vec<bool> {
            texts.iter().map(|text| Table.is_noise(text)).collect()
        };
        let random = [
            "zzzzqqqq",
            "asdfghjkl",
            "xkcdqwpt vbnmqrtz",
            "gizaxone",
            "bcdfg hjklm",
            "1234567890",
        ];
        assert_eq!(noise(&random), [true; 6]);
        let words = [
            "review",
            "Einkaufszettel",
            "Umsatzsteuervoranmeldungen prüfen",
            "議事録",
            "コードレビュー",
            "코드 리뷰",
            "проверка кода",
            "AcroForm",
            "c++",
            "keigo",
            "",
        ];
        assert_eq!(noise(&words), [false; 11]);
        // It has no letter of this alphabet, and so nothing to say about it.
        assert_eq!(noise(&["فحص"]), [false]);
    }

    /// Vectors that are stored were made by these.
    #[test]
    fn the_rows_the_words_and_the_digest_are_those_of_every_version_so_far() {
        let lines = WORDS.split(|byte| *byte == b'\n').count() - 1;
        let digests = [Digest::of(ROWS), Digest::of(WORDS), Table.digest()];
        let expected = [
            "717dbef7f24d1674f3809aa126151e501b40d5e52dfe92e727e71ff9e8a1c957",
            "6c211a482deb94e299b73ec9c15bdd112fce006c879d61fba70ee9150323cb6a",
            "ec37e1206133740fd8ff9e3055331c60366e3b282ea4073622ece53a147bda85",
        ];
        assert_eq!(
            (lines, digests.map(|digest| digest.hex())),
            (ROW_COUNT, expected.map(str::to_owned))
        );
    }

    #[test]
    fn the_rows_and_the_vectors_of_texts_are_those_of_the_script_that_made_the_table() {
        #[derive(serde::Deserialize)]
        struct Golden {
            text: String,
            tokens: Vec<u32>,
            first8: Vec<f32>,
        }
        let golden: Vec<Golden> =
            serde_json::from_str(include_str!("../table/golden.json")).expect("golden texts");
        assert!(golden.len() >= 30, "{} texts", golden.len());
        let table = Table;
        for Golden {
            text,
            tokens,
            first8,
        } in golden
        {
            assert_eq!(Table::rows_of(&text), tokens, "{text:?}");
            let made = table.embed(&[&text]).expect("a vector").remove(0);
            assert_eq!(made.len(), table.dimensions());
            for (made, wanted) in made.iter().zip(&first8) {
                assert!(
                    (made - wanted).abs() < 1e-4,
                    "{text:?}: {made} for {wanted}"
                );
            }
        }
    }
}
