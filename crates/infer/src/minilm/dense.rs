//! Dense layer with 8-bit integer weights; most of the run time is spent here.

use std::arch::x86_64::*;

use super::math::{largest, to_integer};
use super::simd_io::{LANES, load, load_integers, store};
use super::weights::Weights;

/// Weights in the order of the kernel: panels of 32 outputs; within a panel, four inputs at a time for all its outputs.
pub(super) struct Dense {
    inputs: usize,
    outputs: usize,
    panels: Vec<Block>,
    /// Correction of each output for the zero point of the inputs.
    sums: Vec<i32>,
    scale: Vec<f32>,
    bias: Vec<f32>,
    /// Factors that scale down outlier inputs before quantization; the weights compensate for them.
    shift: Option<Vec<f32>>,
}

/// Sixteen outputs by four inputs, the content of one register.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Block([i8; 64]);

/// Rows of 8-bit quantized inputs, each with its own scale.
#[derive(Default)]
pub(super) struct QuantizedRows {
    bytes: Vec<u8>,
    scales: Vec<f32>,
    zero_point: i32,
    shifted: Vec<f32>,
}

const PANEL: usize = 32;
/// Rows per tile: with two registers of outputs each, as many as fit next to the weights.
const MAX_TILE_ROWS: usize = 8;
const GELU_FLOOR: f32 = 0.17;
/// A row of zeros still needs a scale.
const MIN_SCALE: f32 = 1e-8;

impl Dense {
    pub(super) fn read(weights: &Weights, name: &str, inputs: usize, outputs: usize) -> Result<Dense, String> {
        let plain = weights.bytes(&format!("{name}.weight"))?;
        if plain.len() != inputs * outputs {
            return Err(format!("`{name}` has {} weights, expected {inputs} times {outputs}", plain.len()));
        }
        let mut panels = Vec::with_capacity(plain.len() / 64);
        for panel in (0..outputs).step_by(PANEL) {
            for input in (0..inputs).step_by(4) {
                for half in [panel, panel + 16] {
                    let at = |index: usize| plain[(input + index % 4) * outputs + half + index / 4] as i8;
                    panels.push(Block(std::array::from_fn(at)));
                }
            }
        }
        let mut sums = vec![0; outputs];
        for row in plain.chunks_exact(outputs) {
            for (sum, weight) in sums.iter_mut().zip(row) {
                *sum += i32::from(*weight as i8);
            }
        }
        Ok(Dense {
            inputs,
            outputs,
            panels,
            sums,
            scale: weights.floats(&format!("{name}.scale"), outputs)?,
            bias: weights.floats(&format!("{name}.bias"), outputs)?,
            shift: weights.floats_if_any(&format!("{name}.shift"), inputs)?,
        })
    }
}

impl QuantizedRows {
    /// Symmetric quantization for signed inputs: 127 levels each way.
    #[inline(always)]
    pub(super) fn quantize_symmetric(&mut self, rows: &[f32], layer: &Dense) {
        self.bytes.clear();
        self.scales.clear();
        self.zero_point = 128;
        for row in rows.chunks_exact(layer.inputs) {
            self.shifted.clear();
            match &layer.shift {
                Some(shift) => self.shifted.extend(row.iter().zip(shift).map(|(number, shift)| number * shift)),
                None => self.shifted.extend_from_slice(row),
            }
            let most = largest(&self.shifted, f32::abs).max(MIN_SCALE);
            let levels = 127.0 / most;
            self.bytes
                .extend(self.shifted.iter().map(|number| (to_integer(number * levels) + 128).clamp(0, 255) as u8));
            self.scales.push(most);
        }
    }

    /// Asymmetric quantization for GELU outputs, which are never below -0.17: 255 levels above that.
    #[inline(always)]
    pub(super) fn quantize_gelu(&mut self, rows: &[f32], layer: &Dense) {
        self.bytes.clear();
        self.scales.clear();
        self.zero_point = 0;
        for row in rows.chunks_exact(layer.inputs) {
            let most = largest(row, |number| number + GELU_FLOOR).max(MIN_SCALE);
            let levels = 255.0 / most;
            let bytes = row.iter().map(|number| to_integer((number + GELU_FLOOR) * levels).clamp(0, 255) as u8);
            self.bytes.extend(bytes);
            self.scales.push(most);
        }
    }
}

impl Dense {
    /// Writes one row of outputs per row of inputs.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,fma")]
    pub(super) fn multiply(&self, inputs: &QuantizedRows, out: &mut [f32]) {
        let rows = inputs.scales.len();
        assert_eq!(inputs.bytes.len(), rows * self.inputs);
        assert_eq!(out.len(), rows * self.outputs);
        let blocks = self.inputs / 4 * 2;
        // Panels in the outer loop, rows in the inner: weights are loaded once, and rows stay in cache.
        for (index, panel) in self.panels.chunks_exact(blocks).enumerate() {
            let mut row = 0;
            while row < rows {
                let many = (rows - row).min(MAX_TILE_ROWS);
                match many {
                    1 => self.tile::<1>(panel, index, inputs, row, out),
                    2 => self.tile::<2>(panel, index, inputs, row, out),
                    3 => self.tile::<3>(panel, index, inputs, row, out),
                    4 => self.tile::<4>(panel, index, inputs, row, out),
                    5 => self.tile::<5>(panel, index, inputs, row, out),
                    6 => self.tile::<6>(panel, index, inputs, row, out),
                    7 => self.tile::<7>(panel, index, inputs, row, out),
                    _ => self.tile::<MAX_TILE_ROWS>(panel, index, inputs, row, out),
                }
                row += many;
            }
        }
    }

    /// `ROWS` rows by one panel.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,fma")]
    fn tile<const ROWS: usize>(
        &self,
        panel: &[Block],
        index: usize,
        inputs: &QuantizedRows,
        row: usize,
        out: &mut [f32],
    ) {
        let rows: [&[[u8; 4]]; ROWS] = std::array::from_fn(|offset| {
            inputs.bytes[(row + offset) * self.inputs..][..self.inputs].as_chunks::<4>().0
        });
        let mut sums = [[_mm512_setzero_si512(); 2]; ROWS];
        for (step, [low, high]) in panel.as_chunks::<2>().0.iter().enumerate() {
            let weights = [load_block(low), load_block(high)];
            for (sums, row) in sums.iter_mut().zip(&rows) {
                let four = _mm512_set1_epi32(i32::from_le_bytes(row[step]));
                sums[0] = _mm512_dpbusd_epi32(sums[0], four, weights[0]);
                sums[1] = _mm512_dpbusd_epi32(sums[1], four, weights[1]);
            }
        }
        let columns = index * PANEL;
        for (offset, sums) in sums.iter().enumerate() {
            let own = _mm512_set1_ps(inputs.scales[row + offset]);
            let out = &mut out[(row + offset) * self.outputs + columns..][..PANEL];
            for (half, sum) in sums.iter().enumerate() {
                let at = columns + half * LANES;
                let zero: &[i32; LANES] = self.sums[at..].first_chunk().expect("outputs come in panels");
                let zero = zero.map(|sum| sum * inputs.zero_point);
                let sum = _mm512_cvtepi32_ps(_mm512_sub_epi32(*sum, load_integers(&zero)));
                let scaled = _mm512_mul_ps(_mm512_mul_ps(sum, load(&self.scale[at..])), own);
                store(_mm512_add_ps(scaled, load(&self.bias[at..])), &mut out[half * LANES..]);
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
#[expect(unsafe_code, reason = "a load from a reference of the right size and alignment")]
fn load_block(block: &Block) -> __m512i {
    // SAFETY: a block has the 64 bytes that are read, and is aligned to 64 bytes.
    unsafe { _mm512_load_si512(block.0.as_ptr().cast()) }
}
