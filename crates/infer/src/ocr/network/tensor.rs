//! Tensor with channels, rows and columns.

/// Numbers indexed by channel, row, column.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Tensor {
    pub(crate) channels: usize,
    pub(crate) height: usize,
    pub(crate) width: usize,
    pub(crate) numbers: Vec<f32>,
}

impl Tensor {
    pub(crate) fn zeros(channels: usize, height: usize, width: usize) -> Tensor {
        Tensor { channels, height, width, numbers: vec![0.0; channels * height * width] }
    }

    /// Pixels per channel.
    pub(crate) fn area(&self) -> usize {
        self.height * self.width
    }

    pub(crate) fn planes(&self) -> std::slice::ChunksExact<'_, f32> {
        self.numbers.chunks_exact(self.area().max(1))
    }

    pub(crate) fn planes_mut(&mut self) -> std::slice::ChunksExactMut<'_, f32> {
        let area = self.area().max(1);
        self.numbers.chunks_exact_mut(area)
    }
}
