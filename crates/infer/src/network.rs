//! The model itself: tokens in, numbers out. Everything that knows the runtime (rten) is here (`ocr/network`
//! runs the networks that see without it).
//!
//! A runtime for another device would stand beside this file, with the same functions.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use rten::{Model, ModelOptions, NodeId, RunOptions, ThreadPool, Value, ValueOrView};
use rten_onnx::onnx::ModelProto;
use rten_onnx::protobuf::{DecodeMessage, OwnedValues, ProtobufError, ReadPos, ReadValue, ValueReader};
use rten_tensor::Layout;

/// A loaded model with the inputs and the output that matter.
pub(crate) struct Network {
    model: Model,
    ids: NodeId,
    others: Vec<(NodeId, Input)>,
    output: NodeId,
    options: RunOptions,
}

/// What a model may want to know besides the tokens. Nothing is ever padded, so all of it follows from the length.
#[derive(Debug, Clone, Copy)]
enum Input {
    /// Which tokens count: all of them.
    Mask,
    /// Which of two sentences a token is in: the first.
    Segments,
    Positions,
}

/// What a model was exported for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Task {
    FeatureExtraction,
    TextClassification,
}

/// What a model says about texts of one length.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) numbers: Vec<f32>,
    /// One row a token, or one row a text where the model pools by itself.
    pub(crate) rows_per_text: usize,
    pub(crate) width: usize,
}

impl Task {
    /// As exporters call it.
    fn name(self) -> &'static str {
        match self {
            Task::FeatureExtraction => "feature-extraction",
            Task::TextClassification => "text-classification",
        }
    }

    /// Outputs that models are exported with, the ones that spare us work first.
    fn outputs(self) -> &'static [&'static str] {
        match self {
            Task::FeatureExtraction => {
                &["sentence_embedding", "token_embeddings", "last_hidden_state", "hidden_states"]
            }
            Task::TextClassification => &["logits"],
        }
    }
}

impl Network {
    /// A model that gives vectors.
    pub(crate) fn new(model: Model, threads: Arc<ThreadPool>) -> Result<Network, String> {
        Network::for_task(Task::FeatureExtraction, model, threads)
    }

    /// A model from a file, one that [`parse`] has found to be safe.
    pub(crate) fn load(task: Task, file: &Path, threads: usize) -> Result<Network, String> {
        let model = ModelOptions::with_all_ops().prepack_weights(true).load_file(file);
        Network::for_task(task, model.map_err(|error| error.to_string())?, pool(threads))
    }

    fn for_task(task: Task, model: Model, threads: Arc<ThreadPool>) -> Result<Network, String> {
        let mut ids = None;
        let mut others = Vec::new();
        for &node in model.input_ids() {
            let name = model.node_info(node).and_then(|info| info.name().map(str::to_owned)).unwrap_or_default();
            match name.as_str() {
                "input_ids" => ids = Some(node),
                "attention_mask" => others.push((node, Input::Mask)),
                "token_type_ids" => others.push((node, Input::Segments)),
                "position_ids" => others.push((node, Input::Positions)),
                other => {
                    return Err(format!(
                        "it wants an input `{other}`; export it for `{}`, with `input_ids` and `attention_mask` alone",
                        task.name()
                    ));
                }
            }
        }
        let ids = ids.ok_or("it has no input `input_ids`; is it a text model?")?;
        let named = |name: &&str| {
            model
                .output_ids()
                .iter()
                .copied()
                .find(|node| model.node_info(*node).and_then(|info| info.name()) == Some(name))
        };
        let output = task.outputs().iter().find_map(named).or_else(|| model.output_ids().first().copied());
        let output = output.ok_or("it has no output")?;
        let options = RunOptions::default().with_thread_pool(Some(threads));
        Ok(Network { model, ids, others, output, options })
    }

    /// Runs texts that all have the same number of tokens, and expects vectors.
    pub(crate) fn run(&self, texts: &[&[u32]]) -> Result<Output, String> {
        let (count, length) = (texts.len(), texts.first().map_or(0, |text| text.len()));
        let (shape, numbers) = self.run_unchecked(texts)?;
        match shape[..] {
            [texts, width] if texts == count && width > 0 => Ok(Output { numbers, rows_per_text: 1, width }),
            [texts, tokens, width] if texts == count && tokens == length && length * width > 0 => {
                Ok(Output { numbers, rows_per_text: length, width })
            }
            _ => Err(format!("its output has the shape {shape:?} for {count} texts of {length} tokens")),
        }
    }

    /// Runs one text, and expects one number for each of `classes`.
    pub(crate) fn score(&self, text: &[u32], classes: usize) -> Result<Vec<f32>, String> {
        let (shape, numbers) = self.run_unchecked(&[text])?;
        if shape[..] == [1, classes] {
            return Ok(numbers);
        }
        Err(format!(
            "its output has the shape {shape:?}, and `config.json` names {classes} classes, which takes [1, {classes}]; \
             export the model and its `config.json` together, for `{}`",
            Task::TextClassification.name()
        ))
    }

    /// The shape of the output and its numbers, whatever they are.
    fn run_unchecked(&self, texts: &[&[u32]]) -> Result<(Vec<usize>, Vec<f32>), String> {
        let (count, length) = (texts.len(), texts.first().map_or(0, |text| text.len()));
        let tensor = |numbers: Vec<i32>| -> Result<ValueOrView<'static>, String> {
            Ok(Value::from_shape([count, length], numbers).map_err(|error| error.to_string())?.into())
        };
        let ids = texts.iter().flat_map(|text| text.iter().map(|id| *id as i32)).collect();
        let mut inputs = vec![(self.ids, tensor(ids)?)];
        for (node, input) in &self.others {
            inputs.push((
                *node,
                tensor(match input {
                    Input::Mask => vec![1; count * length],
                    Input::Segments => vec![0; count * length],
                    Input::Positions => (0..count).flat_map(|_| 0..length as i32).collect(),
                })?,
            ));
        }
        let [output] =
            self.model.run_n(inputs, [self.output], Some(self.options.clone())).map_err(|error| error.to_string())?;
        let shape = output.shape().to_vec();
        let numbers = output.into_tensor::<f32>().ok_or("its output is not of 32-bit floats")?.into_data();
        Ok((shape, numbers))
    }
}

pub(crate) fn pool(threads: usize) -> Arc<ThreadPool> {
    Arc::new(ThreadPool::with_num_threads(threads.max(1)))
}

/// Parses the file of a network just as the runtime will, but for this: the runtime reserves whatever memory a field
/// asks for, and follows graphs in graphs until the stack ends. Neither can be caught. What is parsed here is safe to
/// load.
pub(crate) fn parse(file: File) -> Result<ModelProto, String> {
    let size = file.metadata().map_err(|error| error.to_string())?.len();
    let here = 0u8;
    let file = Bounded { inner: ValueReader::from_file(file), size, stack: std::ptr::from_ref(&here).addr() };
    ModelProto::decode(file).map_err(|error| error.to_string())
}

/// The runtime's own reader of a file, within the file's size and a part of the stack.
struct Bounded {
    inner: ValueReader<ReadPos<BufReader<File>>>,
    size: u64,
    /// Where the stack was at the start.
    stack: usize,
}

/// Takes a few dozen graphs in graphs; models have two or three.
const MOST_STACK_BYTES: usize = 64 * 1024;

impl Bounded {
    fn check(&self, length: usize) -> Result<(), ProtobufError> {
        if self.position().checked_add(length as u64).is_none_or(|end| end > self.size) {
            return Err(std::io::Error::other("it ends in the middle; is the file whole?").into());
        }
        Ok(())
    }
}

impl ReadValue for Bounded {
    type Types = OwnedValues;

    fn read_i32(&mut self) -> Result<i32, ProtobufError> {
        self.inner.read_i32()
    }

    fn read_i64(&mut self) -> Result<i64, ProtobufError> {
        self.inner.read_i64()
    }

    /// Every message begins with one.
    fn read_varint(&mut self) -> Result<u64, ProtobufError> {
        let here = 0u8;
        if std::ptr::from_ref(&here).addr().abs_diff(self.stack) > MOST_STACK_BYTES {
            return Err(std::io::Error::other("it is nested too deeply").into());
        }
        self.inner.read_varint()
    }

    fn read_bytes(&mut self, length: usize) -> Result<Vec<u8>, ProtobufError> {
        self.check(length)?;
        self.inner.read_bytes(length)
    }

    fn read_string(&mut self, length: usize) -> Result<String, ProtobufError> {
        self.check(length)?;
        self.inner.read_string(length)
    }

    fn skip(&mut self, length: usize) -> Result<(), ProtobufError> {
        self.check(length)?;
        self.inner.skip(length)
    }

    fn position(&self) -> u64 {
        self.inner.position()
    }
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network").field("others", &self.others).finish_non_exhaustive()
    }
}
