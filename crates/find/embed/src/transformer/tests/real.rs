//! A real model, where its folder is named.

use super::*;

/// all-MiniLM-L6-v2 in 64 bits, by its definition in Python: the first values of each
/// vector, and how near the first text is to each. The last one is cut.
const REAL: [(&str, usize, [f32; 6], f32); 4] = [
    (
        "Review a pull request",
        1,
        [
            -0.122_54,
            0.031_390_3,
            -0.027_661_2,
            -0.014_304,
            0.032_827_9,
            0.008_960_2,
        ],
        1.0,
    ),
    (
        "Look over the changes that somebody proposes, and say what should be better.",
        1,
        [
            0.044_791_8,
            0.001_457_9,
            0.050_848_8,
            -0.113_112_4,
            -0.006_249,
            0.038_285_3,
        ],
        0.215_150_4,
    ),
    (
        "Überprüfe die Änderungen – 变更, naïve café; x_1 = foo(bar)!",
        1,
        [
            -0.045_182_6,
            0.041_726_6,
            0.029_488_1,
            -0.040_559_5,
            -0.001_417_1,
            -0.018_252_3,
        ],
        -0.124_404_3,
    ),
    (
        "word ",
        400,
        [
            -0.008_123_7,
            -0.095_586,
            -0.038_673_1,
            0.049_662,
            -0.043_793_7,
            0.023_719_8,
        ],
        0.039_961_9,
    ),
];

#[test]
#[ignore = "nightly: a real model of 90 MB"]
fn the_vectors_of_a_real_model_are_those_of_its_makers() {
    let Some(folder) = std::env::var_os("REPERTOIRE_TEST_MODEL") else {
        testing::skip("REPERTOIRE_TEST_MODEL names no folder of all-MiniLM-L6-v2 (`tests/model`)");
        return;
    };
    let model = Transformer::open(&PathBuf::from(folder)).expect("a model");
    let texts = REAL.map(|(text, times, ..)| text.repeat(times));
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let made = model.embed(&texts).expect("vectors");
    for ((text, _, first, near), vector) in REAL.iter().zip(&made) {
        for (made, is) in vector.iter().zip(first) {
            assert!((made - is).abs() < 2e-5, "{text}: {made} and {is}");
        }
        let product: f32 = vector.iter().zip(&made[0]).map(|(a, b)| a * b).sum();
        assert!(
            (product - near).abs() < 2e-5,
            "{text}: {product} and {near}"
        );
    }
}
