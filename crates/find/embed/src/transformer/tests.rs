//! A model of two layers that the tests make themselves, what hostile folders do, and
//! a real model, where there is one.

mod real;
mod refusals;

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use safetensors::tensor::{Dtype, TensorView};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

const HIDDEN: usize = 16;
const WIDE: usize = 32;
const HEADS: usize = 2;
const LAYERS: usize = 2;
const POSITIONS: usize = 12;
const WORDS: [&str; 30] = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "the", "cat", "dog", "sat", "ran", "on", "under",
    "mat", "tree", "and", "or", "##s", "##ed", "write", "test", "read", "file", "red", "blue",
    "old", "new", ".", ",", "!", "sleep",
];

type Made = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

/// A model whose values a small generator made.
fn model() -> Made {
    let mut state = 7_u32;
    let mut made = Made::new();
    let mut put = |name: String, shape: &[usize], about: f32| {
        let next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            about + (f32::from((state >> 16) as u16) / 32_768.0 - 1.0) * 0.4
        };
        let values = std::iter::repeat_with(next)
            .take(shape.iter().product())
            .collect();
        made.insert(name, (shape.to_vec(), values));
    };
    put(
        "embeddings.word_embeddings.weight".into(),
        &[WORDS.len(), HIDDEN],
        0.0,
    );
    put(
        "embeddings.position_embeddings.weight".into(),
        &[POSITIONS, HIDDEN],
        0.0,
    );
    put(
        "embeddings.token_type_embeddings.weight".into(),
        &[2, HIDDEN],
        0.0,
    );
    let mut norms = vec!["embeddings".to_owned()];
    for layer in 0..LAYERS {
        let layer = format!("encoder.layer.{layer}");
        for (part, outputs, inputs) in [
            ("attention.self.query", HIDDEN, HIDDEN),
            ("attention.self.key", HIDDEN, HIDDEN),
            ("attention.self.value", HIDDEN, HIDDEN),
            ("attention.output.dense", HIDDEN, HIDDEN),
            ("intermediate.dense", WIDE, HIDDEN),
            ("output.dense", HIDDEN, WIDE),
        ] {
            put(format!("{layer}.{part}.weight"), &[outputs, inputs], 0.0);
            put(format!("{layer}.{part}.bias"), &[outputs], 0.0);
        }
        norms.extend([
            format!("{layer}.attention.output"),
            format!("{layer}.output"),
        ]);
    }
    for norm in norms {
        put(format!("{norm}.LayerNorm.weight"), &[HIDDEN], 1.0);
        put(format!("{norm}.LayerNorm.bias"), &[HIDDEN], 0.0);
    }
    made
}

fn config() -> Value {
    json!({
        "architectures": ["BertModel"], "model_type": "bert", "hidden_act": "gelu",
        "vocab_size": WORDS.len(), "hidden_size": HIDDEN, "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS, "intermediate_size": WIDE,
        "max_position_embeddings": POSITIONS, "type_vocab_size": 2, "layer_norm_eps": 1e-12,
    })
}

fn tokens_of_words() -> Value {
    let vocabulary: serde_json::Map<String, Value> = WORDS
        .iter()
        .zip(0..)
        .map(|(word, at)| ((*word).to_owned(), json!(at)))
        .collect();
    let special = |id: usize| {
        json!({"id": id, "content": WORDS[id], "special": true, "single_word": false,
               "lstrip": false, "rstrip": false, "normalized": false})
    };
    json!({
        "version": "1.0",
        "truncation": {"max_length": 4, "strategy": "LongestFirst", "stride": 0},
        "padding": {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": null,
                    "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"},
        "added_tokens": (0..4).map(special).collect::<Vec<_>>(),
        "normalizer": {"type": "BertNormalizer", "clean_text": true,
                       "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}},
                       {"Sequence": {"id": "A", "type_id": 0}},
                       {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]},
                               "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}}},
        "decoder": null,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": vocabulary},
    })
}

fn bytes_of(made: &Made) -> Vec<u8> {
    let data: BTreeMap<_, Vec<u8>> = made
        .iter()
        .map(|(name, (_, values))| {
            (
                name,
                values
                    .iter()
                    .flat_map(|value| value.to_le_bytes())
                    .collect(),
            )
        })
        .collect();
    let views = made.iter().map(|(name, (shape, _))| {
        (
            name,
            TensorView::new(Dtype::F32, shape.clone(), &data[name]).expect("a tensor"),
        )
    });
    safetensors::serialize(views, None).expect("bytes")
}

fn put(folder: &TempDir, name: &str, content: impl AsRef<[u8]>) {
    let file = folder.path().join(name);
    fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    fs::write(file, content).expect("written");
}

fn put_json(folder: &TempDir, name: &str, content: &Value) {
    put(folder, name, content.to_string());
}

fn folder() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    put_json(&folder, "config.json", &config());
    put_json(&folder, "tokenizer.json", &tokens_of_words());
    put(&folder, "model.safetensors", bytes_of(&model()));
    put_json(
        &folder,
        "modules.json",
        &json!([
            {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
            {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
        ]),
    );
    put_json(
        &folder,
        "1_Pooling/config.json",
        &json!({"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true}),
    );
    put_json(
        &folder,
        "sentence_bert_config.json",
        &json!({"max_seq_length": 10}),
    );
    folder
}

fn open(folder: &TempDir) -> Transformer {
    Transformer::open(folder.path()).expect("a model")
}

fn embed(model: &Transformer, text: &str) -> Vec<f32> {
    model.embed(&[text]).expect("a vector").remove(0)
}

/// The same model by its definition, in 64 bits, one token after the other.
fn by_definition(ids: &[usize], pooling: Pooling) -> Vec<f64> {
    let made = model();
    let get = |name: &str| -> Vec<f64> { made[name].1.iter().copied().map(f64::from).collect() };
    let dense = |name: &str, x: &[f64]| -> Vec<f64> {
        let (weight, bias) = (get(&format!("{name}.weight")), get(&format!("{name}.bias")));
        let rows = weight.chunks(x.len()).zip(bias);
        rows.map(|(row, bias)| row.iter().zip(x).map(|(w, x)| w * x).sum::<f64>() + bias)
            .collect()
    };
    let norm = |name: &str, x: &[f64]| -> Vec<f64> {
        let count = f64::from(u32::try_from(x.len()).expect("few"));
        let mean = x.iter().sum::<f64>() / count;
        let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        let scale = get(&format!("{name}.LayerNorm.weight"));
        let shift = get(&format!("{name}.LayerNorm.bias"));
        let both = scale.iter().zip(shift);
        x.iter()
            .zip(both)
            .map(|(x, (scale, shift))| (x - mean) / variance.sqrt() * scale + shift)
            .collect()
    };
    let sum = |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| a + b).collect() };
    // The error function by its series.
    let erf = |x: f64| -> f64 {
        let (mut term, mut all) = (x, x);
        for n in 1..120 {
            term *= -x * x / f64::from(n);
            all += term / f64::from(2 * n + 1);
        }
        all * std::f64::consts::FRAC_2_SQRT_PI
    };
    let mut tokens: Vec<Vec<f64>> = ids
        .iter()
        .enumerate()
        .map(|(at, id)| {
            let words = get("embeddings.word_embeddings.weight");
            let positions = get("embeddings.position_embeddings.weight");
            let types = get("embeddings.token_type_embeddings.weight");
            let word = &words[id * HIDDEN..][..HIDDEN];
            let position = &positions[at * HIDDEN..][..HIDDEN];
            norm("embeddings", &sum(&sum(word, position), &types[..HIDDEN]))
        })
        .collect();
    let wide = HIDDEN / HEADS;
    for layer in 0..LAYERS {
        let layer = format!("encoder.layer.{layer}");
        let asked = |part: &str| -> Vec<Vec<f64>> {
            tokens
                .iter()
                .map(|x| dense(&format!("{layer}.attention.self.{part}"), x))
                .collect()
        };
        let (queries, keys, values) = (asked("query"), asked("key"), asked("value"));
        let mut next = Vec::new();
        for (token, query) in tokens.iter().zip(&queries) {
            let mut heard = Vec::new();
            for head in 0..HEADS {
                let columns = head * wide..(head + 1) * wide;
                let scores: Vec<f64> = keys
                    .iter()
                    .map(|key| {
                        let product = query[columns.clone()].iter().zip(&key[columns.clone()]);
                        (product.map(|(q, k)| q * k).sum::<f64>()
                            / f64::from(u32::try_from(wide).expect("few")).sqrt())
                        .exp()
                    })
                    .collect();
                let all: f64 = scores.iter().sum();
                for column in columns {
                    let said = scores.iter().zip(&values);
                    heard.push(
                        said.map(|(score, value)| score / all * value[column])
                            .sum::<f64>(),
                    );
                }
            }
            let heard = dense(&format!("{layer}.attention.output.dense"), &heard);
            let token = norm(&format!("{layer}.attention.output"), &sum(token, &heard));
            let wide = dense(&format!("{layer}.intermediate.dense"), &token);
            let wide: Vec<f64> = wide
                .iter()
                .map(|x| x / 2.0 * (1.0 + erf(x / std::f64::consts::SQRT_2)))
                .collect();
            let down = dense(&format!("{layer}.output.dense"), &wide);
            next.push(norm(&format!("{layer}.output"), &sum(&token, &down)));
        }
        tokens = next;
    }
    let first = vec![0.0; HIDDEN];
    let pooled = match pooling {
        Pooling::Mean => tokens.iter().fold(first, |all, token| sum(&all, token)),
        Pooling::First => tokens.swap_remove(0),
    };
    let length = pooled.iter().map(|x| x * x).sum::<f64>().sqrt();
    pooled.iter().map(|x| x / length).collect()
}

fn assert_near(made: &[f32], is: &[f64]) {
    assert_eq!(made.len(), is.len());
    for (made, is) in made.iter().zip(is) {
        assert!((f64::from(*made) - is).abs() < 1e-5, "{made} and {is}");
    }
}

#[test]
fn a_vector_is_what_the_definition_of_the_model_says() {
    let folder = folder();
    // [CLS] the cat ##s sat on a mat . [SEP]
    let ids = [2, 5, 6, 16, 8, 10, 4, 12, 26, 3];
    assert_near(
        &embed(&open(&folder), "The cats sat on a mat."),
        &by_definition(&ids, Pooling::Mean),
    );
    put_json(
        &folder,
        "1_Pooling/config.json",
        &json!({"pooling_mode": "cls"}),
    );
    assert_near(
        &embed(&open(&folder), "The cats sat on a mat."),
        &by_definition(&ids, Pooling::First),
    );
}

#[test]
fn vectors_have_length_1_and_come_in_the_order_of_their_texts() {
    let model = open(&folder());
    let texts = [
        "a cat",
        "the old dog ran under a tree",
        "",
        "sleep!",
        "   \n",
        "a cat",
    ];
    let together = model.embed(&texts).expect("vectors");
    for (text, vector) in texts.iter().zip(&together) {
        assert_eq!(vector.len(), model.dimensions());
        let length = vector.iter().map(|value| value * value).sum::<f32>();
        let is = if text.trim().is_empty() { 0.0 } else { 1.0 };
        assert!((length - is).abs() < 1e-5, "{text}: {length}");
        assert_eq!(vector, &embed(&model, text), "{text}");
    }
    assert_ne!(together[0], together[1]);
    assert!(model.embed(&[]).expect("nothing").is_empty());
}

#[test]
fn a_text_has_the_same_vector_whatever_is_beside_it_on_however_many_threads() {
    let folder = folder();
    let texts: Vec<String> = (0..100)
        .map(|at| WORDS[4..][..=(at % 20)].join(" "))
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let alone: Vec<_> = texts
        .iter()
        .map(|text| embed(&open(&folder), text))
        .collect();
    for threads in [1, 2, 7] {
        let mut model = open(&folder);
        model.threads = NonZeroUsize::new(threads).expect("some");
        assert_eq!(model.embed(&texts).expect("vectors"), alone);
    }
}

#[test]
fn a_text_is_cut_where_the_model_reads_no_further() {
    let model = open(&folder());
    let long = "the old cat sat on a red mat and ran";
    assert_eq!(
        embed(&model, long),
        embed(&model, "the old cat sat on a red mat")
    );
    assert_ne!(
        embed(&model, long),
        embed(&model, "the old cat sat on a red")
    );
    let longer = format!("the old cat sat on a red mat {}", "and ".repeat(1_000_000));
    assert_eq!(embed(&model, &longer), embed(&model, long));
    assert_eq!(embed(&model, &"x".repeat(5_000_000)), embed(&model, "zzz"));
}

#[test]
fn characters_that_are_no_words_do_no_harm() {
    let model = open(&folder());
    for text in [
        "\0",
        "\u{200b}\u{feff}",
        "[CLS]",
        "[PAD] [PAD]",
        "🦀",
        "e\u{301}\u{301}",
        "\u{10ffff}",
    ] {
        let vector = embed(&model, text);
        assert!(vector.iter().all(|value| value.is_finite()), "{text:?}");
    }
    assert_eq!(embed(&model, "\0"), [0.0; HIDDEN]);
}

#[test]
fn the_digest_changes_with_each_file_that_a_vector_depends_on() {
    let folder = folder();
    let mut seen = vec![open(&folder).digest()];
    assert_eq!(open(&folder).digest(), seen[0]);
    let mut new = |folder: &TempDir| {
        let digest = open(folder).digest();
        assert!(!seen.contains(&digest));
        seen.push(digest);
    };
    put_json(
        &folder,
        "sentence_bert_config.json",
        &json!({"max_seq_length": 9}),
    );
    new(&folder);
    put_json(
        &folder,
        "1_Pooling/config.json",
        &json!({"pooling_mode_cls_token": true}),
    );
    new(&folder);
    let mut made = model();
    made.get_mut("embeddings.LayerNorm.bias")
        .expect("weights")
        .1[0] += 0.5;
    put(&folder, "model.safetensors", bytes_of(&made));
    new(&folder);
    let mut other = config();
    other["hidden_act"] = json!("relu");
    put_json(&folder, "config.json", &other);
    new(&folder);
    let mut other = tokens_of_words();
    other["normalizer"]["lowercase"] = json!(false);
    put_json(&folder, "tokenizer.json", &other);
    new(&folder);
}
