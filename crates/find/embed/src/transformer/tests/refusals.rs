//! Folders that are no model that can be used.

use super::*;

/// Why a folder is refused, after something was done to it.
fn refused(spoil: impl FnOnce(&TempDir)) -> String {
    let folder = folder();
    spoil(&folder);
    let error = Transformer::open(folder.path()).expect_err("a folder that is refused");
    assert!(error.file.starts_with(folder.path()), "{error}");
    assert!(!error.remedy.is_empty());
    error.to_string()
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
fn numbers_that_no_model_has_are_refused_before_memory_is_reserved_for_them() {
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
