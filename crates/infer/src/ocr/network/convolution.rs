//! Convolution kernels, where most of the time is spent.
//!
//! Written by hand because rten computes depthwise convolutions one number at a time, and they are a third of these
//! networks. A piece of the input is copied so that the pixels for each weight are contiguous in memory, for any stride
//! and padding; then a block of output channels is accumulated in registers.

use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, SimdOp};

#[cfg(target_arch = "x86_64")]
use super::bf16::Bf16Weights;
use super::tensor::Tensor;

/// Kernel size, stride and padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) height: usize,
    pub(crate) width: usize,
    pub(crate) stride_y: usize,
    pub(crate) stride_x: usize,
    /// Padding: top, left, bottom, right.
    pub(crate) border: [usize; 4],
}

/// Standard convolution.
#[derive(Debug)]
pub(crate) struct Convolution {
    window: Window,
    inputs: usize,
    outputs: usize,
    weights: Weights,
    bias: Vec<f32>,
}

#[derive(Debug)]
enum Weights {
    /// Indexed by block of output channels, weight of one channel, channel in the block.
    F32(Vec<f32>),
    #[cfg(target_arch = "x86_64")]
    Bf16(Bf16Weights),
}

/// The computed pixels. For a 1x1 kernel, all rows are treated as one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Area {
    pub(super) input_width: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
    outputs: usize,
}

/// Depthwise convolution: each output channel depends on one input channel.
#[derive(Debug)]
pub(crate) struct Depthwise {
    window: Window,
    weights: Vec<f32>,
    bias: Vec<f32>,
}

/// Output channels per block.
pub(super) const CHANNELS_PER_BLOCK: usize = 8;
/// Pixels per copied piece.
pub(super) const PIXELS_PER_TILE: usize = 64;
/// With more numbers under the window, half as many pixels are copied, so that the copy stays in the cache.
pub(super) const MAX_FULL_TILE_WEIGHTS: usize = 160;

impl Window {
    pub(crate) const POINT: Window = Window { height: 1, width: 1, stride_y: 1, stride_x: 1, border: [0; 4] };

    pub(crate) fn output(&self, height: usize, width: usize) -> (usize, usize) {
        let [top, left, bottom, right] = self.border;
        let steps =
            |size: usize, window: usize, stride: usize| size.checked_sub(window).map_or(0, |rest| rest / stride + 1);
        (
            steps(height + top + bottom, self.height, self.stride_y),
            steps(width + left + right, self.width, self.stride_x),
        )
    }

    /// Columns of the copy beyond those of the output.
    pub(super) fn overhang(&self) -> usize {
        (self.width - 1) / self.stride_x
    }

    /// Copies a row of the input in kernel order: for each phase of the stride, the columns of that phase. `row`
    /// includes the padding. Pixels outside the image are zero.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "it is the inside of a loop")]
    pub(super) fn copy_row(
        &self,
        picture: &[f32],
        width: usize,
        row: usize,
        first: usize,
        pixels: usize,
        copy: &mut [f32],
        length: usize,
    ) {
        let [top, left, ..] = self.border;
        let height = picture.len() / width;
        for (phase, copy) in copy.chunks_exact_mut(length).enumerate().take(self.stride_x) {
            let copy = &mut copy[..pixels + self.overhang()];
            let Some(y) = row.checked_sub(top).filter(|y| *y < height) else {
                copy.fill(0.0);
                continue;
            };
            let line = &picture[y * width..(y + 1) * width];
            // The column of the first pixel, including the padding.
            let column = first * self.stride_x + phase;
            let before = left.saturating_sub(column).div_ceil(self.stride_x).min(copy.len());
            let start = column + before * self.stride_x - left;
            let inside = width.saturating_sub(start).div_ceil(self.stride_x).min(copy.len() - before);
            copy[..before].fill(0.0);
            copy[before + inside..].fill(0.0);
            let inner = &mut copy[before..before + inside];
            let Some((last, inner)) = inner.split_last_mut() else { continue };
            // The last one separately, because the pixels after it may be out of bounds.
            *last = line[start + (inside - 1) * self.stride_x];
            match self.stride_x {
                1 => inner.copy_from_slice(&line[start..start + inside - 1]),
                2 => {
                    for (target, pair) in inner.iter_mut().zip(line[start..].chunks_exact(2)) {
                        *target = pair[0];
                    }
                }
                stride => {
                    for (target, number) in inner.iter_mut().zip(line[start..].iter().step_by(stride)) {
                        *target = *number;
                    }
                }
            }
        }
    }

    /// Offset of the first pixel for each weight of a channel, in a copy of `inputs` channels.
    pub(super) fn offsets(&self, inputs: usize, length: usize) -> Vec<usize> {
        let terms = (0..inputs).flat_map(|input| {
            (0..self.height).flat_map(move |row| (0..self.width).map(move |column| (input, row, column)))
        });
        let channel = self.height * self.stride_x * length;
        terms.map(|(input, row, column)| input * channel + self.offset(row, column, length)).collect()
    }

    /// Offset of a row and column of the window in a copy with rows of `length`.
    fn offset(&self, row: usize, column: usize, length: usize) -> usize {
        (row * self.stride_x + column % self.stride_x) * length + column / self.stride_x
    }
}

impl Convolution {
    /// `weights` is indexed by output channel, input channel, row and column.
    pub(crate) fn new(window: Window, inputs: usize, weights: &[f32], bias: &[f32]) -> Convolution {
        #[cfg(target_arch = "x86_64")]
        if let Some(pairs) = Bf16Weights::new(window, inputs, bias.len(), weights) {
            return Convolution { weights: Weights::Bf16(pairs), ..Convolution::empty(window, inputs, bias) };
        }
        Convolution::portable(window, inputs, weights, bias)
    }

    /// Portable version, for any CPU.
    pub(crate) fn portable(window: Window, inputs: usize, weights: &[f32], bias: &[f32]) -> Convolution {
        let terms = inputs * window.height * window.width;
        let mut packed = vec![0.0; bias.len().div_ceil(CHANNELS_PER_BLOCK) * terms * CHANNELS_PER_BLOCK];
        for (output, weights) in weights.chunks_exact(terms).enumerate() {
            for (term, weight) in weights.iter().enumerate() {
                packed
                    [(output / CHANNELS_PER_BLOCK * terms + term) * CHANNELS_PER_BLOCK + output % CHANNELS_PER_BLOCK] =
                    *weight;
            }
        }
        Convolution { weights: Weights::F32(packed), ..Convolution::empty(window, inputs, bias) }
    }

    fn empty(window: Window, inputs: usize, bias: &[f32]) -> Convolution {
        let outputs = bias.len();
        let mut bias = bias.to_vec();
        bias.resize(outputs.next_multiple_of(CHANNELS_PER_BLOCK), 0.0);
        Convolution { window, inputs, outputs, weights: Weights::F32(Vec::new()), bias }
    }

    pub(crate) fn run(&self, input: &Tensor) -> Result<Tensor, String> {
        if input.channels != self.inputs {
            return Err(format!("{} channels where {} were expected", input.channels, self.inputs));
        }
        let (height, width) = self.window.output(input.height, input.width);
        let mut output = Tensor::zeros(self.outputs, height, width);
        let area = if self.window == Window::POINT {
            Area { input_width: input.area(), rows: 1, columns: input.area(), outputs: self.outputs }
        } else {
            Area { input_width: input.width, rows: height, columns: width, outputs: self.outputs }
        };
        match &self.weights {
            Weights::F32(weights) => {
                Run { convolution: self, weights, input, area, output: &mut output.numbers }.dispatch();
            }
            #[cfg(target_arch = "x86_64")]
            Weights::Bf16(pairs) => pairs.run(self.window, &self.bias, input, area, &mut output.numbers),
        }
        Ok(output)
    }
}

impl Area {
    /// Output offset of a whole block of channels; `None` if the last block is incomplete.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn place(&self, block: usize, row: usize, first: usize) -> Option<usize> {
        let whole = (block + 1) * CHANNELS_PER_BLOCK <= self.outputs;
        whole.then(|| (block * CHANNELS_PER_BLOCK * self.rows + row) * self.columns + first)
    }

    /// Writes the sums of a block of channels, with a stride of `PIECE`.
    #[inline(always)]
    pub(super) fn put(
        &self,
        block: usize,
        row: usize,
        first: usize,
        pixels: usize,
        sums: &[f32; CHANNELS_PER_BLOCK * PIXELS_PER_TILE],
        output: &mut [f32],
    ) {
        let channels = (self.outputs - block * CHANNELS_PER_BLOCK).min(CHANNELS_PER_BLOCK);
        for (inner, sums) in sums.chunks_exact(PIXELS_PER_TILE).enumerate().take(channels) {
            let start = ((block * CHANNELS_PER_BLOCK + inner) * self.rows + row) * self.columns + first;
            output[start..start + pixels].copy_from_slice(&sums[..pixels]);
        }
    }
}

struct Run<'a> {
    convolution: &'a Convolution,
    weights: &'a [f32],
    input: &'a Tensor,
    area: Area,
    output: &'a mut [f32],
}

impl SimdOp for Run<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let Convolution { window, inputs, bias, .. } = self.convolution;
        let lines = inputs * window.height * window.stride_x;
        let piece = if lines > MAX_FULL_TILE_WEIGHTS { PIXELS_PER_TILE / 2 } else { PIXELS_PER_TILE };
        // Extra space after the pixels for the overhang and for whole registers.
        let length = piece + window.overhang();
        let mut copy = vec![0.0; lines * length + 2 * PIXELS_PER_TILE];
        let offsets = window.offsets(*inputs, length);
        let mut sums = [0.0; CHANNELS_PER_BLOCK * PIXELS_PER_TILE];
        for row in 0..self.area.rows {
            for first in (0..self.area.columns).step_by(piece) {
                let pixels = piece.min(self.area.columns - first);
                let group = window.stride_x * length;
                for (plane, copy) in self.input.planes().zip(copy.chunks_exact_mut(window.height * group)) {
                    for (inner, copy) in copy.chunks_exact_mut(group).enumerate() {
                        let line = row * window.stride_y + inner;
                        window.copy_row(plane, self.area.input_width, line, first, pixels, copy, length);
                    }
                }
                let blocks = self
                    .weights
                    .chunks_exact(offsets.len() * CHANNELS_PER_BLOCK)
                    .zip(bias.chunks_exact(CHANNELS_PER_BLOCK));
                for (block, (weights, bias)) in blocks.enumerate() {
                    if isa.f32().len() >= 16 {
                        sum_piece::<I, 8>(isa, &copy, &offsets, weights, bias, 0, pixels, &mut sums);
                    } else {
                        // Eight by two would not fit into sixteen registers.
                        sum_piece::<I, 4>(isa, &copy, &offsets, weights, bias, 0, pixels, &mut sums);
                        sum_piece::<I, 4>(isa, &copy, &offsets, weights, bias, 4, pixels, &mut sums);
                    }
                    self.area.put(block, row, first, pixels, &sums, self.output);
                }
            }
        }
    }
}

/// Accumulates `ROWS` channels of a block, starting at `from`, for all pixels of a piece.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "it is the inside of a loop")]
fn sum_piece<I: Isa, const ROWS: usize>(
    isa: I,
    copy: &[f32],
    offsets: &[usize],
    weights: &[f32],
    bias: &[f32],
    from: usize,
    pixels: usize,
    sums: &mut [f32; CHANNELS_PER_BLOCK * PIXELS_PER_TILE],
) {
    let ops = isa.f32();
    let lanes = ops.len();
    for place in (0..pixels).step_by(2 * lanes) {
        let mut left = [ops.zero(); ROWS];
        let mut right = [ops.zero(); ROWS];
        for row in 0..ROWS {
            left[row] = ops.splat(bias[from + row]);
            right[row] = left[row];
        }
        let near = &copy[place..];
        for (offset, weights) in offsets.iter().zip(weights.chunks_exact(CHANNELS_PER_BLOCK)) {
            let pixels = &near[*offset..*offset + 2 * lanes];
            let (one, two) = (ops.load(&pixels[..lanes]), ops.load(&pixels[lanes..]));
            let weights = &weights[from..from + ROWS];
            for row in 0..ROWS {
                let weight = ops.splat(weights[row]);
                left[row] = ops.mul_add(weight, one, left[row]);
                right[row] = ops.mul_add(weight, two, right[row]);
            }
        }
        for row in 0..ROWS {
            let start = (from + row) * PIXELS_PER_TILE + place;
            ops.store(left[row], &mut sums[start..]);
            // With narrow registers, the second half may already be beyond the piece.
            ops.store(right[row], &mut sums[start + lanes..]);
        }
    }
}

impl Depthwise {
    /// `weights` is indexed by channel, row and column.
    pub(crate) fn new(window: Window, weights: &[f32], bias: &[f32]) -> Depthwise {
        Depthwise { window, weights: weights.to_vec(), bias: bias.to_vec() }
    }

    pub(crate) fn run(&self, input: &Tensor) -> Result<Tensor, String> {
        if input.channels != self.bias.len() {
            return Err(format!("{} channels where {} were expected", input.channels, self.bias.len()));
        }
        let (height, width) = self.window.output(input.height, input.width);
        let mut output = Tensor::zeros(input.channels, height, width);
        RunDepthwise { depthwise: self, input, output: &mut output }.dispatch();
        Ok(output)
    }
}

struct RunDepthwise<'a> {
    depthwise: &'a Depthwise,
    input: &'a Tensor,
    output: &'a mut Tensor,
}

impl SimdOp for RunDepthwise<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let ops = isa.f32();
        let lanes = ops.len();
        let Depthwise { window, weights, bias } = self.depthwise;
        let (height, width) = (self.output.height, self.output.width);
        if height * width == 0 {
            return;
        }
        let length = width.next_multiple_of(4 * lanes) + window.overhang();
        let lines = (height - 1) * window.stride_y + window.height;
        let mut copy = vec![0.0; lines * window.stride_x * length];
        let offsets: Vec<usize> = (0..window.height)
            .flat_map(|row| (0..window.width).map(move |column| (row, column)))
            .map(|(row, column)| window.offset(row, column, length))
            .collect();
        let mut sums = vec![0.0; width.next_multiple_of(4 * lanes)];
        let input_width = self.input.width;
        let channels = self.output.planes_mut().zip(self.input.planes());
        for ((output, input), (weights, bias)) in channels.zip(weights.chunks_exact(offsets.len()).zip(bias)) {
            for (line, copy) in copy.chunks_exact_mut(window.stride_x * length).enumerate() {
                window.copy_row(input, input_width, line, 0, width, copy, length);
            }
            for (row, output) in output.chunks_exact_mut(width).enumerate() {
                let near = &copy[row * window.stride_y * window.stride_x * length..];
                for (index, sums) in sums.chunks_exact_mut(4 * lanes).enumerate() {
                    let mut four = [ops.splat(*bias); 4];
                    for (offset, weight) in offsets.iter().zip(weights) {
                        let pixels = &near[offset + index * 4 * lanes..][..4 * lanes];
                        let weight = ops.splat(*weight);
                        for part in 0..4 {
                            four[part] = ops.mul_add(weight, ops.load(&pixels[part * lanes..]), four[part]);
                        }
                    }
                    for part in 0..4 {
                        ops.store(four[part], &mut sums[part * lanes..]);
                    }
                }
                output.copy_from_slice(&sums[..width]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(count: usize, seed: u32) -> Vec<f32> {
        let mut state = seed;
        let next = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..count).map(next).collect()
    }

    /// Naive reference implementation, also for depthwise convolutions.
    fn plain(window: Window, input: &Tensor, weights: &[f32], bias: &[f32], depthwise: bool) -> Tensor {
        let (height, width) = window.output(input.height, input.width);
        let mut output = Tensor::zeros(bias.len(), height, width);
        let inputs = if depthwise { 1 } else { input.channels };
        for (index, number) in output.numbers.iter_mut().enumerate() {
            let (channel, y, x) = (index / (height * width), index / width % height, index % width);
            *number = bias[channel];
            for inner in 0..inputs {
                let from = if depthwise { channel } else { inner };
                for (row, column) in
                    (0..window.height).flat_map(|row| (0..window.width).map(move |column| (row, column)))
                {
                    let (Some(y), Some(x)) = (
                        (y * window.stride_y + row).checked_sub(window.border[0]).filter(|y| *y < input.height),
                        (x * window.stride_x + column).checked_sub(window.border[1]).filter(|x| *x < input.width),
                    ) else {
                        continue;
                    };
                    let weight = weights[((channel * inputs + inner) * window.height + row) * window.width + column];
                    *number += weight * input.numbers[(from * input.height + y) * input.width + x];
                }
            }
        }
        output
    }

    fn close(found: &Tensor, expected: &Tensor, most: f32, about: &str) {
        assert_eq!((found.height, found.width), (expected.height, expected.width), "{about}");
        for (index, (one, other)) in found.numbers.iter().zip(&expected.numbers).enumerate() {
            assert!((one - other).abs() < most, "{about}: {one} and not {other} at {index}");
        }
    }

    #[test]
    fn convolutions_are_the_sums_they_stand_for() {
        are_sums();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn no_convolution_reads_or_writes_beyond_its_slices() {
        corbie_test_support::guard_page::with_guard_pages(are_sums);
    }

    fn are_sums() {
        let windows = [
            Window::POINT,
            Window { height: 3, width: 3, stride_y: 1, stride_x: 1, border: [1; 4] },
            Window { height: 3, width: 3, stride_y: 2, stride_x: 2, border: [1; 4] },
            Window { height: 3, width: 3, stride_y: 2, stride_x: 1, border: [1; 4] },
            Window { height: 2, width: 2, stride_y: 1, stride_x: 1, border: [0, 0, 1, 1] },
            Window { height: 5, width: 5, stride_y: 1, stride_x: 1, border: [2; 4] },
            Window { height: 1, width: 5, stride_y: 1, stride_x: 1, border: [0, 2, 0, 2] },
            Window { height: 2, width: 3, stride_y: 3, stride_x: 3, border: [1, 2, 0, 1] },
        ];
        for window in windows {
            for (channels, outputs, height, width) in [(3, 16, 9, 7), (5, 11, 4, 70), (8, 4, 1, 1), (40, 24, 6, 131)] {
                let about = format!("{window:?}, {channels} to {outputs}, {width} by {height}");
                let area = window.height * window.width;
                let mut input = Tensor::zeros(channels, height, width);
                input.numbers = noise(input.numbers.len(), 1);
                let (weights, bias) = (noise(outputs * channels * area, 2), noise(outputs, 3));
                let expected = plain(window, &input, &weights, &bias, false);
                let found = Convolution::portable(window, channels, &weights, &bias).run(&input).unwrap();
                close(&found, &expected, 1e-4, &about);
                // With bf16 factors, the error grows with the square root of their number.
                let terms = (channels * area) as f32;
                let found = Convolution::new(window, channels, &weights, &bias).run(&input).unwrap();
                close(&found, &expected, 0.01 * terms.sqrt(), &about);
                let (weights, bias) = (noise(channels * area, 4), noise(channels, 5));
                let found = Depthwise::new(window, &weights, &bias).run(&input).unwrap();
                close(&found, &plain(window, &input, &weights, &bias, true), 1e-4, &about);
            }
        }
    }
}
