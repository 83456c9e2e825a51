//! Pooling: token embeddings to one vector per text.

use serde::{Deserialize, Serialize};

/// Pooling method. A model only works with the method of its training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pooling {
    /// Mean of all tokens: MiniLM, e5, gte.
    #[default]
    Mean,
    /// The first token (CLS): bge.
    Cls,
    /// The last token, which attends to all previous tokens: Qwen3-Embedding.
    LastToken,
}

impl Pooling {
    /// Pools rows of `width` numbers into one vector.
    pub(crate) fn pool(self, rows: &[f32], width: usize) -> Vec<f32> {
        match self {
            Pooling::Cls => rows[..width].to_vec(),
            Pooling::LastToken => rows[rows.len() - width..].to_vec(),
            Pooling::Mean => {
                let mut sum = vec![0.0; width];
                for row in rows.chunks_exact(width) {
                    for (sum, number) in sum.iter_mut().zip(row) {
                        *sum += number;
                    }
                }
                let count = (rows.len() / width) as f32;
                sum.iter().map(|sum| sum / count).collect()
            }
        }
    }
}

/// Normalizes a vector to unit length; `None` for the zero vector and for non-finite numbers.
pub(crate) fn normalise(mut vector: Vec<f32>) -> Option<Vec<f32>> {
    // In f64, because squares of large numbers would overflow.
    let length = vector.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt();
    if !length.is_finite() || length < 1e-12 {
        return None;
    }
    for number in &mut vector {
        *number = (f64::from(*number) / length) as f32;
    }
    Some(vector)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_of_pooling_takes_its_rows() {
        let rows = [1.0, 2.0, 3.0, 4.0, 5.0, 9.0];
        assert_eq!(Pooling::Mean.pool(&rows, 2), [3.0, 5.0]);
        assert_eq!(Pooling::Cls.pool(&rows, 2), [1.0, 2.0]);
        assert_eq!(Pooling::LastToken.pool(&rows, 2), [5.0, 9.0]);
    }

    #[test]
    fn vectors_without_a_direction_are_refused() {
        for bad in [vec![0.0; 4], vec![f32::NAN, 1.0], vec![f32::INFINITY, 1.0], vec![f32::NEG_INFINITY], vec![]] {
            assert_eq!(normalise(bad.clone()), None, "{bad:?}");
        }
        assert_eq!(normalise(vec![3.0, 4.0]), Some(vec![0.6, 0.8]));
        assert_eq!(normalise(vec![f32::MAX, 0.0]), Some(vec![1.0, 0.0]));
    }
}
