//! A folder in the layout of sentence-transformers, read with bounds.
//!
//! | file | decides |
//! |---|---|
//! | `modules.json` | the steps: a transformer, pooling, normalizing; without it, the first two |
//! | `config.json` | the shape of the model, which must be BERT's |
//! | `model.safetensors` | the weights, of 32 or 16 bits |
//! | `tokenizer.json` | the tokens |
//! | `1_Pooling/config.json` | mean, or the first token; without it, mean |
//! | `sentence_bert_config.json` | how many tokens are read; without it, 256 |
//!
//! The folder may be wrong: nothing is taken for granted, no memory is reserved for a number
//! before the file has shown that it contains as much, and no path leads out of the folder.
//! (Layout: sentence-transformers 2 to 5; format of weights:
//! <https://github.com/huggingface/safetensors#format>.)

use std::fs::File;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use safetensors::{Dtype, SafeTensors};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::bert::{ModelShape, Pooling, Weights};
use super::matrix::Activation;

/// Bytes of a file of settings, of a tokenizer and of weights.
const MAX_CONFIG_BYTES: u64 = 1 << 20;
const MAX_TOKENIZER_BYTES: u64 = 64 << 20;
const MAX_WEIGHTS_BYTES: u64 = 2 << 30;
/// Tokens of a text, where no file says it.
const DEFAULT_MAX_TOKENS: usize = 256;
/// And the most that are read, whatever the files say: attention takes the square.
const MAX_TOKENS: usize = 1_024;

/// A model cannot be loaded from a folder.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}; {remedy}", file.display())]
pub struct OpenError {
    /// The file.
    pub file: PathBuf,
    /// The problem.
    pub problem: String,
    /// The remedy.
    pub remedy: String,
}

impl OpenError {
    pub(super) fn new(file: &Path, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }

    /// A problem that another copy of the file may not have.
    pub(super) fn damaged(file: &Path, problem: impl Into<String>) -> Self {
        Self::new(
            file,
            problem,
            "get the model's files again, all from one place",
        )
    }
}

/// The contents of a folder.
pub(super) struct Folder {
    pub(super) shape: ModelShape,
    pub(super) pooling: Pooling,
    /// Tokens of a text that are read.
    pub(super) tokens: usize,
    pub(super) config: Vec<u8>,
    pub(super) tokenizer: Vec<u8>,
    pub(super) tokenizer_file: PathBuf,
    pub(super) weights: Vec<u8>,
    pub(super) weights_file: PathBuf,
}

#[derive(Deserialize)]
struct Module {
    #[serde(default)]
    path: String,
    r#type: String,
}

#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    architectures: Vec<String>,
    model_type: Option<String>,
    vocab_size: usize,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    max_position_embeddings: usize,
    #[serde(default = "two")]
    type_vocab_size: usize,
    #[serde(default = "epsilon")]
    layer_norm_eps: f32,
    hidden_act: Option<String>,
    position_embedding_type: Option<String>,
    #[serde(default)]
    is_decoder: bool,
}

fn two() -> usize {
    2
}

fn epsilon() -> f32 {
    1e-12
}

#[derive(Deserialize)]
struct SentenceConfig {
    max_seq_length: Option<usize>,
}

impl Folder {
    /// Reads all of it, but does not parse tokenizer and weights.
    pub(super) fn read(folder: &Path) -> Result<Self, OpenError> {
        if !folder.is_dir() {
            return Err(OpenError::new(
                folder,
                "there is no such folder",
                "name the folder that holds the model's `config.json`",
            ));
        }
        let (model, pooling) = steps(folder)?;
        let config_file = model.join("config.json");
        let config = need(&config_file, MAX_CONFIG_BYTES)?;
        let shape = shape(&config_file, &parse(&config_file, &config)?)?;
        let pooling = match pooling {
            Some(folder) => read_pooling(&folder.join("config.json"))?,
            None => Pooling::Mean,
        };
        let tokens = read_tokens(&model.join("sentence_bert_config.json"), &shape)?;
        let tokenizer_file = model.join("tokenizer.json");
        let tokenizer = need(&tokenizer_file, MAX_TOKENIZER_BYTES)?;
        let weights_file = model.join("model.safetensors");
        let weights = read_weights(&weights_file, &model)?;
        Ok(Self {
            shape,
            pooling,
            tokens,
            config,
            tokenizer,
            tokenizer_file,
            weights,
            weights_file,
        })
    }
}

/// Bytes of a file; none where there is no such file.
fn read(file: &Path, max: u64) -> Result<Option<Vec<u8>>, OpenError> {
    let cannot = |error: std::io::Error| {
        let problem = format!("cannot be read: {error}");
        OpenError::new(file, problem, "let the server read it")
    };
    let about = match file.metadata() {
        Ok(about) => about,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(cannot(error)),
    };
    if !about.is_file() {
        return Err(OpenError::damaged(file, "is not a file"));
    }
    if about.len() > max {
        let problem = format!("has {} bytes; {max} are the most that is read", about.len());
        return Err(OpenError::new(file, problem, "choose a smaller model"));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(about.len()).unwrap_or_default());
    let opened = File::open(file).map_err(cannot)?;
    // It may have grown since its size was asked for.
    opened.take(max).read_to_end(&mut bytes).map_err(cannot)?;
    Ok(Some(bytes))
}

fn need(file: &Path, max: u64) -> Result<Vec<u8>, OpenError> {
    read(file, max)?.ok_or_else(|| {
        OpenError::new(
            file,
            "is missing",
            "the folder needs config.json, tokenizer.json and model.safetensors, as \
             sentence-transformers writes them",
        )
    })
}

fn parse<T: DeserializeOwned>(file: &Path, bytes: &[u8]) -> Result<T, OpenError> {
    serde_json::from_slice(bytes)
        .map_err(|error| OpenError::damaged(file, format!("is not as it should be: {error}")))
}

/// Folders of the transformer and, where there is one, of pooling.
fn steps(folder: &Path) -> Result<(PathBuf, Option<PathBuf>), OpenError> {
    let file = folder.join("modules.json");
    let Some(bytes) = read(&file, MAX_CONFIG_BYTES)? else {
        let pooling = folder.join("1_Pooling");
        return Ok((folder.to_owned(), pooling.is_dir().then_some(pooling)));
    };
    let modules: Vec<Module> = parse(&file, &bytes)?;
    let (mut model, mut pooling) = (None, None);
    for module in modules {
        let kind = module.r#type.rsplit('.').next().unwrap_or_default();
        let position = match kind {
            "Transformer" => &mut model,
            "Pooling" => &mut pooling,
            // Every vector is brought to length 1 in any case.
            "Normalize" => continue,
            _ => {
                let problem = format!("has the step `{}`, which is not known", module.r#type);
                let remedy = "choose a model of transformer, pooling and normalizing only";
                return Err(OpenError::new(&file, problem, remedy));
            }
        };
        let path = Path::new(&module.path);
        if !path
            .components()
            .all(|part| matches!(part, Component::Normal(_)))
        {
            let problem = format!(
                "has the path `{}`, which leads out of the folder",
                module.path
            );
            return Err(OpenError::damaged(&file, problem));
        }
        if position.replace(folder.join(path)).is_some() {
            let problem = format!("has the step `{kind}` twice");
            return Err(OpenError::damaged(&file, problem));
        }
    }
    let model = model.ok_or_else(|| OpenError::damaged(&file, "has no step `Transformer`"))?;
    Ok((model, pooling))
}

fn shape(file: &Path, config: &Config) -> Result<ModelShape, OpenError> {
    let other = |what: &str, is: &str| {
        OpenError::new(
            file,
            format!("has the {what} `{is}`, which is not supported"),
            "choose a BertModel, such as all-MiniLM-L6-v2",
        )
    };
    match config.architectures.as_slice() {
        [one] if one == "BertModel" => {}
        [] if config.model_type.as_deref() == Some("bert") => {}
        [] => {
            return Err(other(
                "type",
                config.model_type.as_deref().unwrap_or_default(),
            ));
        }
        [one, ..] => return Err(other("architecture", one)),
    }
    if let Some(kind) = config.position_embedding_type.as_deref()
        && kind != "absolute"
    {
        return Err(other("kind of positions", kind));
    }
    if config.is_decoder {
        return Err(other("direction", "is_decoder"));
    }
    let activation = match config.hidden_act.as_deref() {
        None | Some("gelu") => Activation::Gelu,
        Some("gelu_new" | "gelu_fast" | "gelu_pytorch_tanh") => Activation::GeluTanh,
        Some("relu") => Activation::Relu,
        Some(activation) => return Err(other("activation", activation)),
    };
    for (name, value, max) in [
        ("vocab_size", config.vocab_size, 2_000_000),
        (
            "max_position_embeddings",
            config.max_position_embeddings,
            65_536,
        ),
        ("type_vocab_size", config.type_vocab_size, 64),
        ("hidden_size", config.hidden_size, 8_192),
        ("num_hidden_layers", config.num_hidden_layers, 128),
        (
            "num_attention_heads",
            config.num_attention_heads,
            config.hidden_size,
        ),
        ("intermediate_size", config.intermediate_size, 65_536),
    ] {
        if value == 0 || value > max {
            let problem = format!("has `{name}` {value}, which is not from 1 to {max}");
            return Err(OpenError::damaged(file, problem));
        }
    }
    if !config
        .hidden_size
        .is_multiple_of(config.num_attention_heads)
    {
        let problem = "has a `hidden_size` that its heads do not share evenly";
        return Err(OpenError::damaged(file, problem));
    }
    if !(config.layer_norm_eps > 0.0 && config.layer_norm_eps < 1.0) {
        let problem = "has a `layer_norm_eps` that is not between 0 and 1";
        return Err(OpenError::damaged(file, problem));
    }
    Ok(ModelShape {
        vocabulary: config.vocab_size,
        positions: config.max_position_embeddings,
        types: config.type_vocab_size,
        hidden: config.hidden_size,
        layers: config.num_hidden_layers,
        heads: config.num_attention_heads,
        wide: config.intermediate_size,
        epsilon: config.layer_norm_eps,
        activation,
    })
}

/// Older files have a switch for each mode, newer ones a name.
fn read_pooling(file: &Path) -> Result<Pooling, OpenError> {
    let Some(bytes) = read(file, MAX_CONFIG_BYTES)? else {
        return Ok(Pooling::Mean);
    };
    let config: serde_json::Map<String, serde_json::Value> = parse(file, &bytes)?;
    let named = config.get("pooling_mode").and_then(|mode| mode.as_str());
    let switched = config
        .iter()
        .filter(|(_, on)| on.as_bool() == Some(true))
        .filter_map(|(name, _)| name.strip_prefix("pooling_mode_"));
    let modes: Vec<&str> = named.into_iter().chain(switched).collect();
    match modes.as_slice() {
        [] | ["mean" | "mean_tokens"] | ["mean", "mean_tokens"] => Ok(Pooling::Mean),
        ["cls" | "cls_token"] | ["cls", "cls_token"] => Ok(Pooling::First),
        modes => {
            let problem = format!("asks for the pooling `{}`", modes.join(" + "));
            let remedy = "choose a model that pools by the mean or by the first token";
            Err(OpenError::new(file, problem, remedy))
        }
    }
}

fn read_tokens(file: &Path, shape: &ModelShape) -> Result<usize, OpenError> {
    let stated = match read(file, MAX_CONFIG_BYTES)? {
        Some(bytes) => parse::<SentenceConfig>(file, &bytes)?.max_seq_length,
        None => None,
    };
    if stated == Some(0) {
        let problem = "has a `max_seq_length` of 0";
        return Err(OpenError::damaged(file, problem));
    }
    Ok(stated
        .unwrap_or(DEFAULT_MAX_TOKENS)
        .min(shape.positions)
        .min(MAX_TOKENS))
}

fn read_weights(file: &Path, model: &Path) -> Result<Vec<u8>, OpenError> {
    if let Some(bytes) = read(file, MAX_WEIGHTS_BYTES)? {
        return Ok(bytes);
    }
    let pickled = model.join("pytorch_model.bin");
    if pickled.exists() {
        return Err(OpenError::new(
            &pickled,
            "is a Python pickle, which is a program and is not read",
            "save the model again in Python, with `SentenceTransformer(folder).save(other, \
             safe_serialization=True)`, which writes model.safetensors",
        ));
    }
    let index = model.join("model.safetensors.index.json");
    if index.exists() {
        return Err(OpenError::new(
            &index,
            "says that the weights are in many files",
            "save the model again with `max_shard_size` above its size",
        ));
    }
    need(file, MAX_WEIGHTS_BYTES)
}

/// The weights of a file.
pub(super) struct Tensors<'a> {
    file: &'a Path,
    tensors: SafeTensors<'a>,
}

impl<'a> Tensors<'a> {
    /// Of the file's bytes.
    pub(super) fn new(file: &'a Path, bytes: &'a [u8]) -> Result<Self, OpenError> {
        let tensors = SafeTensors::deserialize(bytes).map_err(|error| {
            OpenError::damaged(file, format!("is not a whole file of weights: {error}"))
        })?;
        Ok(Self { file, tensors })
    }
}

impl Weights for Tensors<'_> {
    type Error = OpenError;

    fn get(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, OpenError> {
        let damaged = |problem: String| Err(OpenError::damaged(self.file, problem));
        let prefixed = format!("bert.{name}");
        let tensor = [name, &prefixed]
            .into_iter()
            .find_map(|name| self.tensors.tensor(name).ok());
        let Some(tensor) = tensor else {
            return damaged(format!(
                "has no weights `{name}`, which config.json asks for"
            ));
        };
        if tensor.shape() != shape {
            let is = tensor.shape();
            return damaged(format!(
                "has weights `{name}` of {is:?}; config.json says {shape:?}"
            ));
        }
        let bytes = tensor.data();
        let values: Vec<f32> = match tensor.dtype() {
            Dtype::F32 => bytes
                .as_chunks()
                .0
                .iter()
                .map(|four| f32::from_le_bytes(*four))
                .collect(),
            Dtype::BF16 => halves(bytes)
                .map(|half| f32::from_bits(u32::from(half) << 16))
                .collect(),
            Dtype::F16 => halves(bytes).map(of_half).collect(),
            kind => {
                let problem = format!("has weights `{name}` of the kind {kind:?}");
                let remedy = "take the model's weights of 32 or 16 bits";
                return Err(OpenError::new(self.file, problem, remedy));
            }
        };
        if !values.iter().all(|value| value.is_finite()) {
            return damaged(format!("has weights `{name}` that are not all numbers"));
        }
        Ok(values)
    }
}

fn halves(bytes: &[u8]) -> impl Iterator<Item = u16> {
    bytes
        .as_chunks()
        .0
        .iter()
        .map(|two| u16::from_le_bytes(*two))
}

/// A number of 16 bits: sign, 5 bits of exponent, 10 bits of fraction.
fn of_half(half: u16) -> f32 {
    let sign = u32::from(half >> 15) << 31;
    let exponent = u32::from(half >> 10) & 31;
    let fraction = u32::from(half) & 1023;
    let size = match exponent {
        // 2 to the -24 for each step.
        0 => (f32::from(half & 1023) / 16_777_216.0).to_bits(),
        31 => 255 << 23 | fraction << 13,
        // 127 - 15: the bias of 32 bits in place of that of 16.
        _ => (exponent + 112) << 23 | fraction << 13,
    };
    f32::from_bits(sign | size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_16_bits_are_read_as_the_standard_says() {
        for (half, is) in [
            (0x0000, 0.0),
            (0x0001, 5.960_464_5e-8),
            (0x03ff, 6.097_555e-5),
            (0x0400, 6.103_515_6e-5),
            (0x3c00, 1.0),
            (0x3555, 0.333_251_95),
            (0xc000, -2.0),
            (0x7bff, 65_504.0),
            (0x7c00, f32::INFINITY),
        ] {
            assert_eq!(of_half(half).to_bits(), f32::to_bits(is), "{half:#06x}");
        }
        assert!(of_half(0x7e00).is_nan());
    }
}
