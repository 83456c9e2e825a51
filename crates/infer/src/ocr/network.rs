//! A network from pictures to numbers, run by rten on one thread.

use std::sync::Arc;

use rten::{Model, ModelOptions, NodeId, RunOptions, ThreadPool, Value};
use rten_tensor::Layout;

use crate::network::pool;

pub(crate) struct Network {
    model: Model,
    input: NodeId,
    output: NodeId,
    options: RunOptions,
}

/// Numbers in rows of rows, the last dimension first in memory.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) shape: Vec<usize>,
    pub(crate) numbers: Vec<f32>,
}

impl Network {
    pub(crate) fn load(file: &'static [u8], threads: &Arc<ThreadPool>) -> Result<Network, String> {
        let model = ModelOptions::with_all_ops().prepack_weights(true).load_static_slice(file);
        let model = model.map_err(|error| error.to_string())?;
        let (&[input], &[output]) = (model.input_ids(), model.output_ids()) else {
            return Err("it does not have one input and one output".into());
        };
        let options = RunOptions::default().with_thread_pool(Some(Arc::clone(threads)));
        Ok(Network { model, input, output, options })
    }

    /// One thread for all networks: pages are read side by side, not the lines of a page.
    pub(crate) fn one_thread() -> Arc<ThreadPool> {
        pool(1)
    }

    /// Runs pictures of three colours.
    pub(crate) fn run(
        &self,
        pictures: usize,
        height: usize,
        width: usize,
        numbers: Vec<f32>,
    ) -> Result<Output, String> {
        let input = Value::from_shape([pictures, 3, height, width], numbers).map_err(|error| error.to_string())?;
        let [output] = self
            .model
            .run_n(vec![(self.input, input.into())], [self.output], Some(self.options.clone()))
            .map_err(|error| error.to_string())?;
        let shape = output.shape().to_vec();
        let numbers = output.into_tensor::<f32>().ok_or("its output is not of 32-bit floats")?.into_data();
        Ok(Output { shape, numbers })
    }
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network").finish_non_exhaustive()
    }
}
