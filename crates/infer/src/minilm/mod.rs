//! Hand-written forward pass of the built-in model for CPUs with 8-bit dot products (AVX-512 VNNI).
//!
//! The arithmetic is that of the graph in `models/`, which rten runs on other CPUs and which is the reference in tests.
//! In rten, short texts are dominated by overhead: of 1.8 ms, 0.7 were spent in three hundred small operators around
//! the matrix products, and the products ran at two thirds of the speed. Here a short text takes 1.0 ms; the limit of
//! the CPU (170 million multiplications at 230 per nanosecond) is 0.75.

mod attention;
mod dense;
mod math;
mod simd_io;
mod weights;

use dense::{Dense, QuantizedRows};
use math::{gelu, layer_norm};
use weights::Weights;

pub(crate) const WIDTH: usize = 384;
const INNER: usize = 1536;
const LAYERS: usize = 6;

/// The loaded model.
pub(crate) struct MiniLm {
    /// Word embeddings, one row of 8-bit numbers per token, read in place from the executable.
    words: &'static [u8],
    word_scales: Vec<f32>,
    positions: Vec<f32>,
    norm: LayerNorm,
    layers: Vec<Layer>,
}

struct Layer {
    /// Query, key and value in one matrix product.
    query_key_value: Dense,
    attention_output: Dense,
    attention_norm: LayerNorm,
    feed_forward_in: Dense,
    feed_forward_out: Dense,
    norm: LayerNorm,
}

/// Learned parameters of a layer norm.
struct LayerNorm {
    weight: Vec<f32>,
    bias: Vec<f32>,
}

impl MiniLm {
    /// `None` if the CPU has no 8-bit dot products.
    pub(crate) fn load() -> Option<Result<MiniLm, String>> {
        is_supported().then(|| MiniLm::read(&Weights::builtin()?))
    }

    fn read(weights: &Weights) -> Result<MiniLm, String> {
        let norm = |name: &str| -> Result<LayerNorm, String> {
            Ok(LayerNorm {
                weight: weights.floats(&format!("{name}.weight"), WIDTH)?,
                bias: weights.floats(&format!("{name}.bias"), WIDTH)?,
            })
        };
        let layer = |index: usize| -> Result<Layer, String> {
            let at = format!("encoder.layer.{index}");
            Ok(Layer {
                query_key_value: Dense::read(weights, &format!("{at}.attention.self.qkv"), WIDTH, 3 * WIDTH)?,
                attention_output: Dense::read(weights, &format!("{at}.attention.output.dense"), WIDTH, WIDTH)?,
                attention_norm: norm(&format!("{at}.attention.output.LayerNorm"))?,
                feed_forward_in: Dense::read(weights, &format!("{at}.intermediate.dense"), WIDTH, INNER)?,
                feed_forward_out: Dense::read(weights, &format!("{at}.output.dense"), INNER, WIDTH)?,
                norm: norm(&format!("{at}.output.LayerNorm"))?,
            })
        };
        let words = weights.bytes("words")?;
        let count = words.len() / WIDTH;
        Ok(MiniLm {
            words,
            word_scales: weights.floats("words.scale", count)?,
            positions: weights.floats("positions", crate::builtin::embedding_model_card().max_tokens * WIDTH)?,
            norm: norm("embeddings.LayerNorm")?,
            layers: (0..LAYERS).map(layer).collect::<Result<_, _>>()?,
        })
    }

    /// The last hidden state of one text: one row of [`WIDTH`] numbers per token.
    pub(crate) fn states(&self, ids: &[u32]) -> Result<Vec<f32>, String> {
        if ids.len() * WIDTH > self.positions.len() {
            return Err(format!("{} tokens exceed the input length", ids.len()));
        }
        if let Some(id) = ids.iter().find(|id| **id as usize >= self.word_scales.len()) {
            return Err(format!("unknown token ID {id}"));
        }
        Ok(run(self, ids))
    }
}

impl std::fmt::Debug for MiniLm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MiniLm").field("layers", &self.layers.len()).finish_non_exhaustive()
    }
}

fn is_supported() -> bool {
    std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("avx512bw")
        && std::arch::is_x86_feature_detected!("avx512vl")
        && std::arch::is_x86_feature_detected!("avx512dq")
        && std::arch::is_x86_feature_detected!("avx512vnni")
        && std::arch::is_x86_feature_detected!("fma")
}

#[expect(unsafe_code, reason = "calling a function for a processor's features; `load` has looked for them")]
fn run(model: &MiniLm, ids: &[u32]) -> Vec<f32> {
    // SAFETY: a `MiniLm` exists only if `is_supported` found all of these features.
    unsafe { forward(model, ids) }
}

/// Runs all layers. The loops of `math` and `attention` are plain Rust that the compiler vectorizes here for AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,fma")]
fn forward(model: &MiniLm, ids: &[u32]) -> Vec<f32> {
    let tokens = ids.len();
    let mut states = embed(model, ids);
    let mut quantised = QuantizedRows::default();
    let mut looked = vec![0.0; tokens * 3 * WIDTH];
    let mut attended = vec![0.0; tokens * WIDTH];
    let mut wide = vec![0.0; tokens * INNER];
    let mut out = vec![0.0; tokens * WIDTH];
    for layer in &model.layers {
        quantised.quantize_symmetric(&states, &layer.query_key_value);
        layer.query_key_value.multiply(&quantised, &mut looked);
        attention::attend(&looked, tokens, &mut attended);
        quantised.quantize_symmetric(&attended, &layer.attention_output);
        layer.attention_output.multiply(&quantised, &mut out);
        add_and_norm(&out, &mut states, &layer.attention_norm);

        quantised.quantize_symmetric(&states, &layer.feed_forward_in);
        layer.feed_forward_in.multiply(&quantised, &mut wide);
        for number in &mut wide {
            *number = gelu(*number);
        }
        quantised.quantize_gelu(&wide, &layer.feed_forward_out);
        layer.feed_forward_out.multiply(&quantised, &mut out);
        add_and_norm(&out, &mut states, &layer.norm);
    }
    states
}

/// Token and position embeddings.
#[inline(always)]
fn embed(model: &MiniLm, ids: &[u32]) -> Vec<f32> {
    let mut states = Vec::with_capacity(ids.len() * WIDTH);
    for (id, position) in ids.iter().zip(model.positions.chunks_exact(WIDTH)) {
        let word = &model.words[*id as usize * WIDTH..][..WIDTH];
        let scale = model.word_scales[*id as usize];
        states.extend(word.iter().zip(position).map(|(byte, position)| f32::from(*byte as i8) * scale + position));
    }
    for row in states.chunks_exact_mut(WIDTH) {
        layer_norm(row, &model.norm.weight, &model.norm.bias);
    }
    states
}

#[inline(always)]
fn add_and_norm(change: &[f32], states: &mut [f32], norm: &LayerNorm) {
    for (row, change) in states.chunks_exact_mut(WIDTH).zip(change.chunks_exact(WIDTH)) {
        for (number, change) in row.iter_mut().zip(change) {
            *number += change;
        }
        layer_norm(row, &norm.weight, &norm.bias);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tiles have up to eight rows, and a remainder tile has fewer.
    #[cfg(target_os = "linux")]
    #[test]
    fn no_layer_reads_or_writes_beyond_its_slices() {
        let Some(plain) = MiniLm::load() else { return };
        let plain = plain.unwrap();
        let guarded =
            corbie_test_support::guard_page::with_guard_pages(MiniLm::load).expect("the same processor").unwrap();
        for tokens in (1..=9).chain([16, 23, 64]) {
            let ids: Box<[u32]> = (0..tokens).map(|at| 1000 + 37 * at).collect();
            let found = corbie_test_support::guard_page::with_guard_pages(|| guarded.states(&ids.clone()));
            assert_eq!(found.unwrap(), plain.states(&ids).unwrap(), "{tokens} tokens");
        }
    }
}
