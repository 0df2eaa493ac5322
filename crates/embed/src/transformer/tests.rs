//! A model of two layers that the tests make themselves, what hostile folders do, and
//! a real model, where there is one.

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

/// Why a folder is refused, after something was done to it.
fn refused(spoil: impl FnOnce(&TempDir)) -> String {
    let folder = folder();
    spoil(&folder);
    let error = Transformer::open(folder.path()).expect_err("a folder that is refused");
    assert!(error.file.starts_with(folder.path()), "{error}");
    assert!(!error.remedy.is_empty());
    error.to_string()
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
        let model = open(&folder).with_threads(NonZeroUsize::new(threads).expect("some"));
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

#[test]
fn only_config_tokenizer_and_weights_are_needed() {
    let folder = folder();
    let whole = embed(&open(&folder), "a cat");
    for file in [
        "modules.json",
        "sentence_bert_config.json",
        "1_Pooling/config.json",
    ] {
        fs::remove_file(folder.path().join(file)).expect("removed");
        assert_eq!(embed(&open(&folder), "a cat"), whole, "without {file}");
    }
    for file in ["config.json", "tokenizer.json", "model.safetensors"] {
        let why = refused(|folder| fs::remove_file(folder.path().join(file)).expect("removed"));
        assert!(why.contains(file) && why.contains("is missing"), "{why}");
    }
    let nowhere = Transformer::open(&PathBuf::from("/no/such/folder")).expect_err("no folder");
    assert!(nowhere.to_string().contains("there is no such folder"));
}

#[test]
fn weights_that_are_elsewhere_are_refused_with_advice() {
    for (other, advice) in [
        ("pytorch_model.bin", "safe_serialization"),
        ("model.safetensors.index.json", "max_shard_size"),
    ] {
        let why = refused(|folder| {
            let weights = folder.path().join("model.safetensors");
            fs::rename(weights, folder.path().join(other)).expect("renamed");
        });
        assert!(why.contains(other) && why.contains(advice), "{why}");
    }
}

#[test]
fn other_architectures_poolings_and_steps_are_refused_by_name() {
    let with = |name: &str, value: Value| {
        let mut config = config();
        config[name] = value;
        refused(|folder| put_json(folder, "config.json", &config))
    };
    assert!(with("architectures", json!(["MPNetModel"])).contains("`MPNetModel`"));
    assert!(with("architectures", json!(["BertModel", "X"])).contains("architecture"));
    assert!(with("hidden_act", json!("silu")).contains("`silu`"));
    assert!(with("position_embedding_type", json!("relative_key")).contains("`relative_key`"));
    assert!(with("is_decoder", json!(true)).contains("is_decoder"));
    for (pooling, named) in [
        (json!({"pooling_mode_max_tokens": true}), "max_tokens"),
        (
            json!({"pooling_mode_mean_tokens": true, "pooling_mode_cls_token": true}),
            "mean_tokens + cls_token",
        ),
        (json!({"pooling_mode": "lasttoken"}), "lasttoken"),
    ] {
        let why = refused(|folder| put_json(folder, "1_Pooling/config.json", &pooling));
        assert!(why.contains(named), "{why}");
    }
    let with = |modules: Value| refused(|folder| put_json(folder, "modules.json", &modules));
    assert!(
        with(
            json!([{"path": "", "type": "m.Transformer"}, {"path": "2_Dense", "type": "m.Dense"}])
        )
        .contains("`m.Dense`")
    );
    assert!(with(json!([{"path": "../other", "type": "m.Transformer"}])).contains("leads out"));
    assert!(with(json!([{"path": "/etc", "type": "m.Transformer"}])).contains("leads out"));
    assert!(with(json!([])).contains("no step `Transformer`"));
}

#[test]
fn numbers_that_no_model_has_are_refused_before_room_is_made_for_them() {
    for (name, value) in [
        ("num_hidden_layers", json!(1_000_000)),
        ("num_hidden_layers", json!(100)),
        ("num_hidden_layers", json!(0)),
        ("hidden_size", json!(u64::MAX)),
        ("hidden_size", json!(8_192)),
        ("hidden_size", json!(-1)),
        ("num_attention_heads", json!(3)),
        ("num_attention_heads", json!(0)),
        ("vocab_size", json!(2_000_000)),
        ("vocab_size", json!(29)),
        ("intermediate_size", json!(1e30)),
        ("max_position_embeddings", json!(65_536)),
        ("type_vocab_size", json!(0)),
        ("layer_norm_eps", json!(-1.0)),
    ] {
        let mut config = config();
        config[name] = value.clone();
        let why = refused(|folder| put_json(folder, "config.json", &config));
        assert!(
            why.contains("config.json") || why.contains("model.safetensors"),
            "{name} {value}: {why}"
        );
    }
    for tokens in [json!(0), json!(1), json!(2), json!("many"), json!(-4)] {
        let limit = json!({"max_seq_length": tokens});
        refused(|folder| put_json(folder, "sentence_bert_config.json", &limit));
    }
    let folder = folder();
    put_json(
        &folder,
        "sentence_bert_config.json",
        &json!({"max_seq_length": u64::MAX >> 1}),
    );
    assert_eq!(open(&folder).tokens, POSITIONS);
}

#[test]
fn weights_that_are_cut_short_or_of_another_shape_are_refused() {
    let whole = bytes_of(&model());
    for length in [0, 7, 8, 100, whole.len() / 2, whole.len() - 1] {
        let why = refused(|folder| put(folder, "model.safetensors", &whole[..length]));
        assert!(why.contains("model.safetensors"), "{why}");
    }
    let mut huge = whole.clone();
    huge[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    refused(|folder| put(folder, "model.safetensors", &huge));
    let spoiled = |spoil: &dyn Fn(&mut Made)| {
        let mut made = model();
        spoil(&mut made);
        refused(|folder| put(folder, "model.safetensors", bytes_of(&made)))
    };
    let name = "encoder.layer.1.output.dense.weight";
    assert!(spoiled(&|made| made.retain(|is, _| is != name)).contains(name));
    let turned = spoiled(&|made| made.get_mut(name).expect("weights").0.reverse());
    assert!(
        turned.contains("[32, 16]") && turned.contains("[16, 32]"),
        "{turned}"
    );
    assert!(
        spoiled(&|made| made.get_mut(name).expect("weights").1[3] = f32::NAN)
            .contains("not all numbers")
    );
    let grown = spoiled(&|made| {
        let norm = made
            .get_mut("encoder.layer.1.output.LayerNorm.weight")
            .expect("weights");
        norm.1.fill(f32::MAX);
    });
    assert!(grown.contains("beyond all numbers"), "{grown}");
}

#[test]
fn every_cut_and_many_changes_of_a_tokenizer_are_errors_or_harmless() {
    let whole = tokens_of_words().to_string();
    let folder = folder();
    let mut state = 3_u32;
    for round in 0..300 {
        let mut bytes = whole.clone().into_bytes();
        for _ in 0..=(round % 4) {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let at = state as usize % bytes.len();
            match state >> 30 {
                0 => bytes.truncate(at),
                1 => bytes[at] = b'9',
                2 => bytes[at] = b'-',
                _ => drop(bytes.remove(at)),
            }
            if bytes.is_empty() {
                break;
            }
        }
        put(&folder, "tokenizer.json", &bytes);
        if let Ok(model) = Transformer::open(folder.path()) {
            let vector = model.embed(&["the cats sat on a mat", "!"]);
            assert!(vector.is_ok_and(|vectors| vectors.len() == 2));
        }
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for file in [
        "tokenizer.json",
        "config.json",
        "modules.json",
        "1_Pooling/config.json",
    ] {
        refused(|folder| put(folder, file, &deep));
        refused(|folder| put(folder, file, "{}x"));
        refused(|folder| put(folder, file, "\u{fffd}"));
    }
}

#[test]
fn tokens_that_the_model_has_no_row_for_are_refused() {
    let mut tokens = tokens_of_words();
    tokens["model"]["vocab"]["beyond"] = json!(30);
    let why = refused(|folder| put_json(folder, "tokenizer.json", &tokens));
    assert!(why.contains("the token 30"), "{why}");
    // Marks are rows as well, and what they say is not in the vocabulary.
    let mut tokens = tokens_of_words();
    tokens["post_processor"]["special_tokens"]["[SEP]"]["ids"] = json!([4_000_000_000_u32]);
    let why = refused(|folder| put_json(folder, "tokenizer.json", &tokens));
    assert!(why.contains("not in the vocabulary"), "{why}");
    let mut tokens = tokens_of_words();
    tokens["post_processor"]["special_tokens"]["[SEP]"]["ids"] = json!(vec![3; 50]);
    tokens["post_processor"]["special_tokens"]["[SEP]"]["tokens"] = json!(vec!["[SEP]"; 50]);
    refused(|folder| put_json(folder, "tokenizer.json", &tokens));
}

#[test]
fn a_folder_in_the_place_of_a_file_and_a_file_in_the_place_of_a_folder_are_refused() {
    for file in [
        "config.json",
        "tokenizer.json",
        "model.safetensors",
        "modules.json",
    ] {
        let why = refused(|folder| {
            fs::remove_file(folder.path().join(file)).expect("removed");
            fs::create_dir(folder.path().join(file)).expect("a folder");
        });
        assert!(why.contains(file) && why.contains("is not a file"), "{why}");
    }
    let file = folder().path().join("config.json");
    assert!(Transformer::open(&file).is_err());
}

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
