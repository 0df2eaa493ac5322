//! The forward pass of BERT (Devlin et al., 2018), for embeddings: no heads, no
//! training, 32 bits.
//!
//! Sentences are laid one behind the other, without padding: what concerns single tokens is
//! computed for all at once, and attention within each sentence.

// A zero in its place would be a wrong vector that nobody sees.
#![expect(
    clippy::indexing_slicing,
    reason = "the shape of a model says how long everything is, and loading checks it"
)]

use std::ops::Range;

use super::matrix::{Activation, Columns, Matrix, add, normalize, shares};

/// The dimensions of a model, as in its `config.json`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ModelShape {
    pub(super) vocabulary: usize,
    pub(super) positions: usize,
    pub(super) types: usize,
    pub(super) hidden: usize,
    pub(super) layers: usize,
    pub(super) heads: usize,
    pub(super) wide: usize,
    pub(super) epsilon: f32,
    pub(super) activation: Activation,
}

/// The pooling of tokens into a sentence's vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pooling {
    /// The mean of its tokens' vectors.
    Mean,
    /// The vector of its first token.
    First,
}

/// A token: its row of the vocabulary, and its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) id: u32,
    pub(super) kind: u32,
}

/// Finds the weights of a name, which must have a shape.
pub(super) trait Weights {
    /// The reason why there are none.
    type Error;

    /// The values, row by row.
    fn get(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, Self::Error>;
}

/// A model.
pub(super) struct Bert {
    shape: ModelShape,
    words: Vec<f32>,
    positions: Vec<f32>,
    types: Vec<f32>,
    norm: Norm,
    layers: Vec<Layer>,
}

struct Layer {
    /// Queries, keys and values of every head.
    qkv: Matrix,
    attended: Matrix,
    attended_norm: Norm,
    up: Matrix,
    down: Matrix,
    norm: Norm,
}

struct Norm {
    scale: Vec<f32>,
    shift: Vec<f32>,
}

impl Norm {
    fn new<W: Weights>(weights: &W, name: &str, wide: usize) -> Result<Self, W::Error> {
        Ok(Self {
            scale: weights.get(&format!("{name}.LayerNorm.weight"), &[wide])?,
            shift: weights.get(&format!("{name}.LayerNorm.bias"), &[wide])?,
        })
    }

    fn apply(&self, values: &mut [f32], shape: &ModelShape) {
        normalize(values, &self.scale, &self.shift, shape.epsilon);
    }
}

/// Some layers of the same inputs as one.
fn dense<W: Weights>(
    weights: &W,
    names: &[String],
    inputs: usize,
    outputs: usize,
) -> Result<Matrix, W::Error> {
    let (mut values, mut added) = (Vec::new(), Vec::new());
    for name in names {
        values.extend(weights.get(&format!("{name}.weight"), &[outputs, inputs])?);
        added.extend(weights.get(&format!("{name}.bias"), &[outputs])?);
    }
    let value = |input, output| values[output * inputs + input];
    Ok(Matrix::new(inputs, outputs * names.len(), value, &added))
}

impl Layer {
    fn new<W: Weights>(weights: &W, shape: &ModelShape, at: usize) -> Result<Self, W::Error> {
        let (hidden, wide) = (shape.hidden, shape.wide);
        let named = |part: &str| format!("encoder.layer.{at}.{part}");
        let qkv = ["query", "key", "value"].map(|part| named(&format!("attention.self.{part}")));
        Ok(Self {
            qkv: dense(weights, &qkv, hidden, hidden)?,
            attended: dense(weights, &[named("attention.output.dense")], hidden, hidden)?,
            attended_norm: Norm::new(weights, &named("attention.output"), hidden)?,
            up: dense(weights, &[named("intermediate.dense")], hidden, wide)?,
            down: dense(weights, &[named("output.dense")], wide, hidden)?,
            norm: Norm::new(weights, &named("output"), hidden)?,
        })
    }

    fn apply(&self, values: &mut [f32], sentences: &[Range<usize>], shape: &ModelShape) {
        let qkv = self.qkv.times(values);
        let mut context = vec![0.0; values.len()];
        for tokens in sentences {
            let qkv = &qkv[scaled(tokens, self.qkv.outputs())];
            let context = &mut context[scaled(tokens, shape.hidden)];
            attend(qkv, context, tokens.len(), shape);
        }
        add(values, &self.attended.times(&context));
        self.attended_norm.apply(values, shape);
        let mut wide = self.up.times(values);
        shape.activation.apply(&mut wide);
        add(values, &self.down.times(&wide));
        self.norm.apply(values, shape);
    }
}

fn scaled(range: &Range<usize>, by: usize) -> Range<usize> {
    range.start * by..range.end * by
}

/// Self-attention of one sentence, head by head.
fn attend(qkv: &[f32], context: &mut [f32], tokens: usize, shape: &ModelShape) {
    let hidden = shape.hidden;
    let wide = hidden / shape.heads.max(1);
    let stride = 3 * hidden;
    let at = |token: usize, column: usize| qkv[token * stride + column];
    #[expect(clippy::cast_precision_loss, reason = "some hundreds")]
    // Else the scores grow with the width of a head, and one token takes all of the attention.
    let factor = 1.0 / (wide as f32).sqrt();
    for head in 0..shape.heads {
        let first = head * wide;
        let keys = |input, token| at(token, hidden + first + input);
        let values = |token, output| at(token, 2 * hidden + first + output);
        let queries = Columns::some(qkv, stride, first, wide);
        let mut scores = vec![0.0; tokens * tokens];
        Matrix::new(wide, tokens, keys, &[]).times_into(queries, &mut scores, tokens, 0);
        shares(&mut scores, tokens, factor);
        let scores = Columns::all(&scores, tokens);
        Matrix::new(tokens, wide, values, &[]).times_into(scores, context, hidden, first);
    }
}

impl Bert {
    /// Loads its weights.
    pub(super) fn new<W: Weights>(weights: &W, shape: ModelShape) -> Result<Self, W::Error> {
        let of = |part: &str| format!("embeddings.{part}_embeddings.weight");
        let hidden = shape.hidden;
        let layers = (0..shape.layers).map(|at| Layer::new(weights, &shape, at));
        Ok(Self {
            words: weights.get(&of("word"), &[shape.vocabulary, hidden])?,
            positions: weights.get(&of("position"), &[shape.positions, hidden])?,
            types: weights.get(&of("token_type"), &[shape.types, hidden])?,
            norm: Norm::new(weights, "embeddings", hidden)?,
            layers: layers.collect::<Result<_, _>>()?,
            shape,
        })
    }

    /// Its dimensions.
    pub(super) fn shape(&self) -> &ModelShape {
        &self.shape
    }

    /// A vector for each sentence, of any length. `None` where a token has no row.
    pub(super) fn vectors(
        &self,
        sentences: &[&[Token]],
        pooling: Pooling,
    ) -> Option<Vec<Vec<f32>>> {
        let hidden = self.shape.hidden;
        let mut values = Vec::new();
        let mut ranges = Vec::with_capacity(sentences.len());
        for sentence in sentences {
            let begin = values.len() / hidden;
            for (position, token) in sentence.iter().enumerate() {
                let word = row(&self.words, token.id as usize, hidden)?;
                let position = row(&self.positions, position, hidden)?;
                let kind = row(&self.types, token.kind as usize, hidden)?;
                let three = word.iter().zip(position).zip(kind);
                values.extend(three.map(|((word, position), kind)| word + kind + position));
            }
            ranges.push(begin..values.len() / hidden);
        }
        self.norm.apply(&mut values, &self.shape);
        for layer in &self.layers {
            layer.apply(&mut values, &ranges, &self.shape);
        }
        let vector = |tokens: &Range<usize>| {
            let rows = &values[scaled(tokens, hidden)];
            let taken = match pooling {
                Pooling::Mean => tokens.len(),
                Pooling::First => 1,
            };
            // The mean but for its length.
            let mut sum = vec![0.0; hidden];
            for row in rows.chunks_exact(hidden).take(taken) {
                add(&mut sum, row);
            }
            sum
        };
        Some(ranges.iter().map(vector).collect())
    }
}

fn row(table: &[f32], at: usize, wide: usize) -> Option<&[f32]> {
    let from = at.checked_mul(wide)?;
    table.get(from..from + wide)
}
