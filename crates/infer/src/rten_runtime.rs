//! Inference with the rten runtime: token IDs in, tensors out. Only this file depends on rten (`ocr/network` runs the
//! OCR networks without it).
//!
//! A runtime for another device would be a second file with the same functions.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use rten::{Model, ModelOptions, NodeId, RunOptions, ThreadPool, Value, ValueOrView};
use rten_onnx::onnx::ModelProto;
use rten_onnx::protobuf::{DecodeMessage, OwnedValues, ProtobufError, ReadPos, ReadValue, ValueReader};
use rten_tensor::Layout;

/// A loaded model with its input and output nodes.
pub(crate) struct RtenModel {
    model: Model,
    ids: NodeId,
    extra_inputs: Vec<(NodeId, ExtraInput)>,
    output: NodeId,
    options: RunOptions,
}

/// Inputs of a model besides the token IDs. Texts are never padded, so all of them follow from the length.
#[derive(Debug, Clone, Copy)]
enum ExtraInput {
    /// Attention mask: all ones.
    Mask,
    /// Token type IDs: all zeros.
    Segments,
    Positions,
}

/// The task of an exported model.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ModelTask {
    FeatureExtraction,
    TextClassification,
}

/// Output for texts of one length.
#[derive(Debug)]
pub(crate) struct ModelOutput {
    pub(crate) numbers: Vec<f32>,
    /// One row per token, or one row per text if the model pools internally.
    pub(crate) rows_per_text: usize,
    pub(crate) width: usize,
}

impl ModelTask {
    /// The exporters' name of the task.
    fn name(self) -> &'static str {
        match self {
            ModelTask::FeatureExtraction => "feature-extraction",
            ModelTask::TextClassification => "text-classification",
        }
    }

    /// Known output names, ordered by the amount of post-processing they need, least first.
    fn outputs(self) -> &'static [&'static str] {
        match self {
            ModelTask::FeatureExtraction => {
                &["sentence_embedding", "token_embeddings", "last_hidden_state", "hidden_states"]
            }
            ModelTask::TextClassification => &["logits"],
        }
    }
}

impl RtenModel {
    /// Creates an embedding model.
    pub(crate) fn new(model: Model, threads: Arc<ThreadPool>) -> Result<RtenModel, String> {
        RtenModel::for_task(ModelTask::FeatureExtraction, model, threads)
    }

    /// Loads a model from a file that [`parse`] has validated.
    pub(crate) fn load(task: ModelTask, file: &Path, threads: usize) -> Result<RtenModel, String> {
        let model = ModelOptions::with_all_ops().prepack_weights(true).load_file(file);
        RtenModel::for_task(task, model.map_err(|error| error.to_string())?, thread_pool(threads))
    }

    fn for_task(task: ModelTask, model: Model, threads: Arc<ThreadPool>) -> Result<RtenModel, String> {
        let mut ids = None;
        let mut others = Vec::new();
        for &node in model.input_ids() {
            let name = model.node_info(node).and_then(|info| info.name().map(str::to_owned)).unwrap_or_default();
            match name.as_str() {
                "input_ids" => ids = Some(node),
                "attention_mask" => others.push((node, ExtraInput::Mask)),
                "token_type_ids" => others.push((node, ExtraInput::Segments)),
                "position_ids" => others.push((node, ExtraInput::Positions)),
                other => {
                    return Err(format!(
                        "unsupported input `{other}`; export it for `{}` with only `input_ids` and `attention_mask`",
                        task.name()
                    ));
                }
            }
        }
        let ids = ids.ok_or("it has no input `input_ids`; use a text model")?;
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
        Ok(RtenModel { model, ids, extra_inputs: others, output, options })
    }

    /// Runs texts with the same number of tokens and expects embeddings.
    pub(crate) fn run(&self, texts: &[&[u32]]) -> Result<ModelOutput, String> {
        let (count, length) = (texts.len(), texts.first().map_or(0, |text| text.len()));
        let (shape, numbers) = self.run_unchecked(texts)?;
        match shape[..] {
            [texts, width] if texts == count && width > 0 => Ok(ModelOutput { numbers, rows_per_text: 1, width }),
            [texts, tokens, width] if texts == count && tokens == length && length * width > 0 => {
                Ok(ModelOutput { numbers, rows_per_text: length, width })
            }
            _ => Err(format!("unexpected output shape {shape:?} for {count} texts of {length} tokens")),
        }
    }

    /// Runs one text and expects one logit per class.
    pub(crate) fn score(&self, text: &[u32], classes: usize) -> Result<Vec<f32>, String> {
        let (shape, numbers) = self.run_unchecked(&[text])?;
        if shape[..] == [1, classes] {
            return Ok(numbers);
        }
        Err(format!(
            "output shape is {shape:?}, expected [1, {classes}] for the {classes} classes in `config.json`; export the \
             model and its `config.json` together, for `{}`",
            ModelTask::TextClassification.name()
        ))
    }

    /// The shape and the numbers of the output, without validation.
    fn run_unchecked(&self, texts: &[&[u32]]) -> Result<(Vec<usize>, Vec<f32>), String> {
        let (count, length) = (texts.len(), texts.first().map_or(0, |text| text.len()));
        let tensor = |numbers: Vec<i32>| -> Result<ValueOrView<'static>, String> {
            Ok(Value::from_shape([count, length], numbers).map_err(|error| error.to_string())?.into())
        };
        let ids = texts.iter().flat_map(|text| text.iter().map(|id| *id as i32)).collect();
        let mut inputs = vec![(self.ids, tensor(ids)?)];
        for (node, input) in &self.extra_inputs {
            inputs.push((
                *node,
                tensor(match input {
                    ExtraInput::Mask => vec![1; count * length],
                    ExtraInput::Segments => vec![0; count * length],
                    ExtraInput::Positions => (0..count).flat_map(|_| 0..length as i32).collect(),
                })?,
            ));
        }
        let [output] =
            self.model.run_n(inputs, [self.output], Some(self.options.clone())).map_err(|error| error.to_string())?;
        let shape = output.shape().to_vec();
        let numbers = output.into_tensor::<f32>().ok_or("its output is not 32-bit float")?.into_data();
        Ok((shape, numbers))
    }
}

pub(crate) fn thread_pool(threads: usize) -> Arc<ThreadPool> {
    Arc::new(ThreadPool::with_num_threads(threads.max(1)))
}

/// Parses a network file like the runtime, with two limits. The runtime allocates the memory that a field requests and
/// recurses into nested graphs until the stack overflows; neither can be caught. A file that passes here is safe to
/// load.
pub(crate) fn parse(file: File) -> Result<ModelProto, String> {
    let size = file.metadata().map_err(|error| error.to_string())?.len();
    let here = 0u8;
    let file = BoundedReader { inner: ValueReader::from_file(file), size, stack: std::ptr::from_ref(&here).addr() };
    ModelProto::decode(file).map_err(|error| error.to_string())
}

/// The runtime's file reader, limited to the file size and to a part of the stack.
struct BoundedReader {
    inner: ValueReader<ReadPos<BufReader<File>>>,
    size: u64,
    /// Stack address at the start.
    stack: usize,
}

/// Enough for a few dozen nested graphs; models have two or three.
const MAX_STACK_BYTES: usize = 64 * 1024;

impl BoundedReader {
    fn check(&self, length: usize) -> Result<(), ProtobufError> {
        if self.position().checked_add(length as u64).is_none_or(|end| end > self.size) {
            return Err(std::io::Error::other("it is truncated; copy the file again").into());
        }
        Ok(())
    }
}

impl ReadValue for BoundedReader {
    type Types = OwnedValues;

    fn read_i32(&mut self) -> Result<i32, ProtobufError> {
        self.inner.read_i32()
    }

    fn read_i64(&mut self) -> Result<i64, ProtobufError> {
        self.inner.read_i64()
    }

    /// Every message starts with a varint.
    fn read_varint(&mut self) -> Result<u64, ProtobufError> {
        let here = 0u8;
        if std::ptr::from_ref(&here).addr().abs_diff(self.stack) > MAX_STACK_BYTES {
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

impl std::fmt::Debug for RtenModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network").field("others", &self.extra_inputs).finish_non_exhaustive()
    }
}
