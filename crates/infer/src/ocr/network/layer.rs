//! Network layers.

use std::borrow::Cow;

use rten_simd::SimdUnaryOp;
use rten_vecmath::{Gelu, Sigmoid};

use super::MakeConvolution;
use super::convolution::{Convolution, Depthwise, Window};
use super::tensor::Tensor;

/// One operation on tensors.
#[derive(Debug)]
pub(crate) enum Layer {
    Convolution(Convolution),
    Depthwise(Depthwise),
    /// Transposed 2x2 convolution with stride 2: every pixel becomes four. The channels of the four are consecutive.
    TransposedConvolution(Convolution),
    Activation(Activation),
    Add,
    /// The second operand may be one number per channel.
    Multiply,
    /// Global average pooling.
    Mean,
    /// Concatenates channels.
    Concatenate,
    /// 2x2 max pooling with stride 1: the pixel and its right, lower and lower right neighbours.
    MaxPool2x2,
    MeanPool {
        height: usize,
        width: usize,
    },
    /// Nearest-neighbour upsampling.
    Upsample(usize),
}

/// Element-wise function.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Activation {
    Relu,
    Gelu,
    Sigmoid,
    HardSigmoid { slope: f32 },
    HardSwish,
}

impl Layer {
    /// Inputs without further readers are passed as owned, and some layers work in place.
    pub(crate) fn run(&self, mut inputs: Vec<Cow<'_, Tensor>>) -> Result<Tensor, String> {
        if let Layer::Concatenate = self {
            return concatenate(inputs);
        }
        let second = if inputs.len() > 1 { inputs.pop() } else { None };
        let first = inputs.pop().ok_or("a layer without an input")?;
        match (self, second) {
            (Layer::Convolution(convolution), None) => convolution.run(&first),
            (Layer::Depthwise(depthwise), None) => depthwise.run(&first),
            (Layer::TransposedConvolution(convolution), None) => Ok(pixel_shuffle(&convolution.run(&first)?)),
            (Layer::Activation(activation), None) => {
                let mut first = first.into_owned();
                activation.apply(&mut first.numbers);
                Ok(first)
            }
            (Layer::Add, Some(second)) => combine(first.into_owned(), &second, |one, other| one + other),
            (Layer::Multiply, Some(second)) => combine(first.into_owned(), &second, |one, other| one * other),
            (Layer::Mean, None) => Ok(mean(&first)),
            (Layer::MaxPool2x2, None) => Ok(max_pool_2x2(first.into_owned())),
            (Layer::MeanPool { height, width }, None) => Ok(mean_pool(&first, *height, *width)),
            (Layer::Upsample(factor), None) => Ok(upsample(&first, *factor)),
            _ => Err("a layer with a wrong number of inputs".into()),
        }
    }
}

impl Activation {
    fn apply(self, numbers: &mut [f32]) {
        let each = |numbers: &mut [f32], function: fn(f32) -> f32| {
            numbers.iter_mut().for_each(|number| *number = function(*number));
        };
        match self {
            Activation::Relu => each(numbers, |number| number.max(0.0)),
            Activation::Gelu => Gelu {}.map_mut(numbers),
            Activation::Sigmoid => Sigmoid {}.map_mut(numbers),
            Activation::HardSigmoid { slope } => {
                numbers.iter_mut().for_each(|number| *number = (slope * *number + 0.5).clamp(0.0, 1.0));
            }
            Activation::HardSwish => each(numbers, |number| number * (number / 6.0 + 0.5).clamp(0.0, 1.0)),
        }
    }
}

fn combine(mut first: Tensor, second: &Tensor, function: impl Fn(f32, f32) -> f32) -> Result<Tensor, String> {
    if first.numbers.len() == second.numbers.len() {
        first.numbers.iter_mut().zip(&second.numbers).for_each(|(one, other)| *one = function(*one, *other));
        return Ok(first);
    }
    if second.area() != 1 || first.channels != second.channels {
        return Err("two images of different sizes".into());
    }
    for (plane, other) in first.planes_mut().zip(&second.numbers) {
        plane.iter_mut().for_each(|one| *one = function(*one, *other));
    }
    Ok(first)
}

fn concatenate(inputs: Vec<Cow<'_, Tensor>>) -> Result<Tensor, String> {
    let mut inputs = inputs.into_iter();
    let mut all = inputs.next().ok_or("a layer without an input")?.into_owned();
    for input in inputs {
        if (input.height, input.width) != (all.height, all.width) {
            return Err("two images of different sizes".into());
        }
        all.channels += input.channels;
        all.numbers.extend_from_slice(&input.numbers);
    }
    Ok(all)
}

fn mean(input: &Tensor) -> Tensor {
    let area = input.area().max(1) as f32;
    let mut output = Tensor::zeros(input.channels, 1, 1);
    for (mean, plane) in output.numbers.iter_mut().zip(input.planes()) {
        // Parallel accumulators: a single sum would be latency-bound and less precise.
        let mut lanes = [0.0f32; 32];
        let chunks = plane.chunks_exact(32);
        let rest: f32 = chunks.remainder().iter().sum();
        for chunk in chunks {
            lanes.iter_mut().zip(chunk).for_each(|(lane, number)| *lane += number);
        }
        *mean = (lanes.iter().sum::<f32>() + rest) / area;
    }
    output
}

fn max_pool_2x2(mut input: Tensor) -> Tensor {
    let width = input.width;
    for plane in input.planes_mut() {
        for row in plane.chunks_exact_mut(width) {
            for column in 1..width {
                row[column - 1] = row[column - 1].max(row[column]);
            }
        }
        for start in (width..plane.len()).step_by(width) {
            let (above, below) = plane.split_at_mut(start);
            let above = &mut above[start - width..];
            above.iter_mut().zip(&below[..width]).for_each(|(one, other)| *one = one.max(*other));
        }
    }
    input
}

fn mean_pool(input: &Tensor, height: usize, width: usize) -> Tensor {
    let mut output = Tensor::zeros(input.channels, input.height / height, input.width / width);
    let (rows, columns) = (output.height, output.width);
    let share = 1.0 / (height * width) as f32;
    for (output, input_plane) in output.planes_mut().zip(input.planes()) {
        for (index, number) in output.iter_mut().enumerate() {
            let (y, x) = (index / columns % rows.max(1) * height, index % columns * width);
            let sum: f32 =
                (y..y + height).map(|y| input_plane[y * input.width + x..][..width].iter().sum::<f32>()).sum();
            *number = sum * share;
        }
    }
    output
}

fn upsample(input: &Tensor, factor: usize) -> Tensor {
    let mut output = Tensor::zeros(input.channels, input.height * factor, input.width * factor);
    let width = output.width;
    let rows =
        output.numbers.chunks_exact_mut((width * factor).max(1)).zip(input.numbers.chunks_exact(input.width.max(1)));
    for (output, input) in rows {
        let (first, rest) = output.split_at_mut(width);
        for (output, number) in first.chunks_exact_mut(factor).zip(input) {
            output.fill(*number);
        }
        rest.chunks_exact_mut(width).for_each(|row| row.copy_from_slice(first));
    }
    output
}

/// Pixel shuffle: four times as many channels become four times as many pixels, in the order top left, top right,
/// bottom left, bottom right.
fn pixel_shuffle(input: &Tensor) -> Tensor {
    let mut output = Tensor::zeros(input.channels / 4, input.height * 2, input.width * 2);
    let (area, width) = (input.area(), input.width);
    for (output, four) in output.planes_mut().zip(input.numbers.chunks_exact((4 * area).max(1))) {
        for (row, output) in output.chunks_exact_mut(2 * width).enumerate() {
            let start = row % 2 * 2 * area + row / 2 * width;
            let (left, right) = (&four[start..start + width], &four[start + area..start + area + width]);
            for (pair, (left, right)) in output.chunks_exact_mut(2).zip(left.iter().zip(right)) {
                pair.copy_from_slice(&[*left, *right]);
            }
        }
    }
    output
}

/// Creates [`Layer::TransposedConvolution`] from the weights of a transposed 2x2 convolution, indexed by input channel, output
/// channel, row and column.
pub(crate) fn transposed_convolution(
    convolution: MakeConvolution,
    inputs: usize,
    weights: &[f32],
    bias: &[f32],
) -> Layer {
    let outputs = bias.len() * 4;
    let mut turned = vec![0.0; weights.len()];
    for (index, weight) in weights.iter().enumerate() {
        turned[index % outputs * inputs + index / outputs] = *weight;
    }
    let bias: Vec<f32> = bias.iter().flat_map(|bias| [*bias; 4]).collect();
    Layer::TransposedConvolution(convolution(Window::POINT, inputs, &turned, &bias))
}
