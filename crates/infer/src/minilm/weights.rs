//! Locates the model's tensors in the ONNX files.

use std::collections::HashMap;

use rten_onnx::onnx::ModelProto;

use crate::builtin::{NETWORK, WEIGHTS};

/// Bytes of each tensor in the data file.
pub(super) struct Weights {
    tensors: HashMap<String, &'static [u8]>,
}

impl Weights {
    pub(super) fn builtin() -> Result<Weights, String> {
        let model = ModelProto::parse_buf(NETWORK).map_err(|error| error.to_string())?;
        let mut places = HashMap::new();
        for tensor in model.graph.iter().flat_map(|graph| &graph.initializer) {
            let said = |key: &str| {
                let entry = tensor.external_data.iter().find(|entry| entry.key.as_deref() == Some(key))?;
                entry.value.as_ref()?.parse::<usize>().ok()
            };
            // Small tensors are in the graph itself; none of them is needed here.
            if let (Some(name), Some(offset), Some(length)) = (&tensor.name, said("offset"), said("length")) {
                let bytes = WEIGHTS.get(offset..).and_then(|rest| rest.get(..length)).ok_or("weights are truncated")?;
                places.insert(name.clone(), bytes);
            }
        }
        Ok(Weights { tensors: places })
    }

    pub(super) fn bytes(&self, name: &str) -> Result<&'static [u8], String> {
        self.tensors.get(name).copied().ok_or_else(|| format!("missing tensor `{name}`"))
    }

    pub(super) fn floats(&self, name: &str, count: usize) -> Result<Vec<f32>, String> {
        let (numbers, rest) = self.bytes(name)?.as_chunks::<4>();
        if numbers.len() != count || !rest.is_empty() {
            return Err(format!("`{name}` has {} values, expected {count}", numbers.len()));
        }
        Ok(numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }

    /// Like `floats`, for an optional tensor.
    pub(super) fn floats_if_any(&self, name: &str, count: usize) -> Result<Option<Vec<f32>>, String> {
        if self.tensors.contains_key(name) { self.floats(name, count).map(Some) } else { Ok(None) }
    }
}
