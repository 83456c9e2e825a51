//! Inference engine for the OCR networks.
//!
//! The networks are stored as ONNX; rten is the reference in tests. This engine runs them because rten takes twice the
//! time (see `convolution.rs`). It is single-threaded: pages are processed in parallel, not the parts of a page.

#[cfg(target_arch = "x86_64")]
mod bf16;
mod convolution;
mod layer;
mod tensor;

use std::borrow::Cow;
use std::collections::HashMap;

use rten_onnx::onnx::{GraphProto, ModelProto, NodeProto, TensorProto};
use rten_onnx::protobuf::{DecodeMessage, ValueReader};

use convolution::{Convolution, Depthwise, Window};
use layer::{Activation, Layer, transposed_convolution};
pub(crate) use tensor::Tensor;

#[derive(Debug)]
pub(crate) struct Network {
    steps: Vec<NetworkStep>,
    values: usize,
    output: usize,
}

/// A layer with the values it reads and writes. The first value is the input image.
#[derive(Debug)]
struct NetworkStep {
    layer: Layer,
    inputs: Vec<usize>,
    /// For each input, whether this is its last use.
    is_last_use: Vec<bool>,
    output: usize,
}

impl Network {
    pub(crate) fn load(file: &'static [u8]) -> Result<Network, String> {
        Network::load_with(file, Convolution::new)
    }

    fn load_with(file: &'static [u8], convolution: MakeConvolution) -> Result<Network, String> {
        let model = ModelProto::decode(ValueReader::from_buf(file)).map_err(|error| error.to_string())?;
        Network::from_graph(&model.graph.ok_or("it has no graph")?, convolution)
    }

    fn from_graph(graph: &GraphProto, convolution: MakeConvolution) -> Result<Network, String> {
        let constants: HashMap<&str, &TensorProto> =
            graph.initializer.iter().filter_map(|tensor| Some((tensor.name.as_deref()?, tensor))).collect();
        let named = |values: &[rten_onnx::onnx::ValueInfoProto]| match values {
            [value] => value.name.clone().ok_or("it has an input or output without a name".to_owned()),
            _ => Err("it must have one input and one output".to_owned()),
        };
        let mut values: HashMap<String, usize> = HashMap::from([(named(&graph.input)?, 0)]);
        let mut steps = Vec::with_capacity(graph.node.len());
        for node in &graph.node {
            let read = Node { node, constants: &constants, convolution };
            let layer = read.layer()?;
            let inputs = node.input.iter().filter(|name| !constants.contains_key(name.as_str()));
            let inputs = inputs
                .map(|name| values.get(name).copied().ok_or(format!("no layer produces `{name}`")))
                .collect::<Result<Vec<usize>, String>>()?;
            let [output] = &node.output[..] else { return Err("a layer with more than one output".into()) };
            let number = values.len();
            values.insert(output.clone(), number);
            steps.push(NetworkStep { layer, is_last_use: vec![false; inputs.len()], inputs, output: number });
        }
        let output = values.get(&named(&graph.output)?).copied().ok_or("no layer produces its output")?;
        let mut seen = vec![false; values.len()];
        seen[output] = true;
        for step in steps.iter_mut().rev() {
            for (input, last) in step.inputs.iter().zip(&mut step.is_last_use) {
                *last = !std::mem::replace(&mut seen[*input], true);
            }
        }
        Ok(Network { steps, values: values.len(), output })
    }

    pub(crate) fn run(&self, picture: Tensor) -> Result<Tensor, String> {
        let mut values: Vec<Option<Tensor>> = vec![None; self.values];
        values[0] = Some(picture);
        for step in &self.steps {
            let mut owned: Vec<Option<Tensor>> = Vec::with_capacity(step.inputs.len());
            for (input, last) in step.inputs.iter().zip(&step.is_last_use) {
                owned.push(if *last { values[*input].take() } else { None });
            }
            let inputs = owned.into_iter().zip(&step.inputs).map(|(owned, input)| match owned {
                Some(owned) => Ok(Cow::Owned(owned)),
                None => values[*input].as_ref().map(Cow::Borrowed).ok_or("an input image is missing".to_owned()),
            });
            let output = step.layer.run(inputs.collect::<Result<_, String>>()?)?;
            values[step.output] = Some(output);
        }
        values[self.output].take().ok_or("it has no output".to_owned())
    }
}

/// A layer in the ONNX file.
struct Node<'a> {
    node: &'a NodeProto,
    constants: &'a HashMap<&'a str, &'a TensorProto>,
    convolution: MakeConvolution,
}

/// Constructor of a convolution, CPU-specific or portable.
type MakeConvolution = fn(Window, usize, &[f32], &[f32]) -> Convolution;

impl Node<'_> {
    fn layer(&self) -> Result<Layer, String> {
        let kind = self.node.op_type.as_deref().unwrap_or_default();
        Ok(match kind {
            "Conv" => self.convolution()?,
            "ConvTranspose" => {
                let (shape, weights) = self.constant(1)?;
                let (_, bias) = self.constant(2)?;
                if shape[2..] != [2, 2]
                    || self.numbers("strides", 1) != [2, 2]
                    || weights.len() != shape[0] * bias.len() * 4
                {
                    return Err("a transposed convolution with a kernel other than 2×2".into());
                }
                transposed_convolution(self.convolution, shape[0], &weights, &bias)
            }
            "Relu" => Layer::Activation(Activation::Relu),
            "Gelu" => Layer::Activation(Activation::Gelu),
            "Sigmoid" => Layer::Activation(Activation::Sigmoid),
            "HardSwish" => Layer::Activation(Activation::HardSwish),
            "HardSigmoid" => {
                let slope = self.attribute("alpha").and_then(|attribute| attribute.f).unwrap_or(0.2);
                Layer::Activation(Activation::HardSigmoid { slope })
            }
            "Add" => Layer::Add,
            "Mul" => Layer::Multiply,
            "GlobalAveragePool" => Layer::Mean,
            "Concat" => Layer::Concatenate,
            "MaxPool" if self.numbers("kernel_shape", 1) == [2, 2] && self.numbers("strides", 1) == [1, 1] => {
                Layer::MaxPool2x2
            }
            "AveragePool" if self.numbers::<2>("kernel_shape", 1) == self.numbers("strides", 1) => {
                let [height, width] = self.numbers("kernel_shape", 1);
                Layer::MeanPool { height, width }
            }
            "Resize" => match self.constant(2)?.1[..] {
                [1.0, 1.0, height, width] if height == width && height.fract() == 0.0 && height >= 1.0 => {
                    Layer::Upsample(height as usize)
                }
                ref scales => return Err(format!("resize by {scales:?}")),
            },
            _ => return Err(format!("unsupported layer `{kind}`")),
        })
    }

    fn convolution(&self) -> Result<Layer, String> {
        let (shape, weights) = self.constant(1)?;
        let [outputs, inputs, height, width] = shape[..] else { return Err("a convolution without input".into()) };
        let bias = if self.node.input.len() > 2 { self.constant(2)?.1 } else { vec![0.0; outputs] };
        let [stride_y, stride_x] = self.numbers("strides", 1);
        let window = Window { height, width, stride_y, stride_x, border: self.numbers("pads", 0) };
        if bias.len() != outputs || weights.len() != outputs * inputs * height * width || weights.is_empty() {
            return Err("a convolution with missing weights".into());
        }
        match self.attribute("group").and_then(|attribute| attribute.i).unwrap_or(1) {
            1 => Ok(Layer::Convolution((self.convolution)(window, inputs, &weights, &bias))),
            groups if groups == outputs as i64 && inputs == 1 => {
                Ok(Layer::Depthwise(Depthwise::new(window, &weights, &bias)))
            }
            groups => Err(format!("a convolution in {groups} groups")),
        }
    }

    fn attribute(&self, name: &str) -> Option<&rten_onnx::onnx::AttributeProto> {
        self.node.attribute.iter().find(|attribute| attribute.name.as_deref() == Some(name))
    }

    fn numbers<const N: usize>(&self, name: &str, otherwise: usize) -> [usize; N] {
        let mut numbers = [otherwise; N];
        let found = self.attribute(name).map(|attribute| &attribute.ints[..]).unwrap_or_default();
        numbers
            .iter_mut()
            .zip(found)
            .for_each(|(number, found)| *number = usize::try_from(*found).unwrap_or(otherwise));
        numbers
    }

    /// Shape and numbers of a constant input.
    fn constant(&self, input: usize) -> Result<(Vec<usize>, Vec<f32>), String> {
        let missing = || format!("input {input} of a layer is not a constant");
        let tensor =
            self.node.input.get(input).and_then(|name| self.constants.get(name.as_str())).ok_or_else(missing)?;
        let shape = tensor.dims.iter().map(|size| usize::try_from(*size).unwrap_or_default()).collect();
        let numbers = match &tensor.raw_data {
            Some(raw) => raw
                .borrow()
                .chunks_exact(4)
                .map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]))
                .collect(),
            None => tensor.float_data.clone(),
        };
        Ok((shape, numbers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with rten on the same file.
    fn check(file: &'static [u8], height: usize, width: usize) {
        // Black strokes on white that resemble letters. The networks were not trained on noise.
        let mut picture = Tensor::zeros(3, height, width);
        for (index, number) in picture.numbers.iter_mut().enumerate() {
            let (y, x) = (index / width % height, index % width);
            let stroke = (x / 4 * 7 + y / 14 * 5) % 3 == 0 && (y % 48).abs_diff(24) < 14;
            *number = if stroke { -1.0 } else { 1.0 };
        }
        let model = rten::Model::load_static_slice(file).unwrap();
        let input = rten::Value::from_shape([1, 3, height, width], picture.numbers.clone()).unwrap();
        let expected = model.run_one(input.into(), None).unwrap().into_tensor::<f32>().unwrap().into_data();
        let size =
            |numbers: &[f32]| (numbers.iter().map(|number| number * number).sum::<f32>() / numbers.len() as f32).sqrt();
        // With bf16 instructions there is some noise; without them, almost none.
        for (convolution, most) in [(Convolution::portable as MakeConvolution, 1e-4), (Convolution::new, 0.1)] {
            let found = Network::load_with(file, convolution).unwrap().run(picture.clone()).unwrap();
            assert_eq!(found.numbers.len(), expected.len());
            let off: Vec<f32> = found.numbers.iter().zip(&expected).map(|(found, expected)| found - expected).collect();
            let (off, all) = (size(&off), size(&expected).max(0.1));
            assert!(off < most * all, "{width} by {height}: off by {off} of {all}");
        }
    }

    #[test]
    fn both_networks_give_what_another_runtime_gives() {
        for (height, width) in [(32, 32), (64, 96), (160, 224)] {
            check(crate::ocr::DETECTION_MODEL, height, width);
        }
        for width in [48, 56, 200, 320] {
            check(crate::ocr::RECOGNITION_MODEL, 48, width);
        }
    }
}
