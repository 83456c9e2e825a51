//! A line of text in a picture becomes letters.

use rten_simd::{Isa, SimdOp, SimdUnaryOp};
use rten_vecmath::Exp;

use super::crop::{Crop, HEIGHT};
use super::network::{Network, Tensor};

/// The network that reads, and what its classes mean.
#[derive(Debug)]
pub(crate) struct Reader {
    network: Network,
    /// The class of nothing is before these, that of the space behind.
    characters: Vec<char>,
}

/// What a line says.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Reading {
    pub(crate) text: String,
    /// The mean probability of its letters; 0 where there are none.
    pub(crate) confidence: f32,
}

impl Reader {
    pub(crate) fn new(network: Network, characters: &str) -> Reader {
        Reader { network, characters: characters.lines().filter_map(|line| line.chars().next()).collect() }
    }

    /// Reads one line. Lines are not read together: the network weighs its channels by their mean over all it is
    /// given, so a line would be read differently beside a longer one; and on one thread nothing would be gained.
    pub(crate) fn read(&self, crop: Crop) -> Result<Reading, String> {
        let input = Tensor { channels: 3, height: HEIGHT, width: crop.width, numbers: crop.numbers };
        let output = self.network.run(input)?;
        let classes = self.characters.len() + 2;
        if output.channels != classes || output.height != 1 {
            return Err(format!("it gave {} classes and not {classes}", output.channels));
        }
        Ok(self.decode(&output))
    }

    /// The most probable class at each place. The same class twice in a row is one letter; two letters that are the
    /// same have a nothing between them.
    fn decode(&self, output: &Tensor) -> Reading {
        let mut text = String::new();
        let (mut sum, mut count, mut last) = (0.0f32, 0usize, 0u32);
        for (class, probability) in most_probable(output) {
            if class != 0 && class != last {
                text.push(self.characters.get(class as usize - 1).copied().unwrap_or(' '));
                sum += probability;
                count += 1;
            }
            last = class;
        }
        let confidence = if count == 0 { 0.0 } else { (sum / count as f32).clamp(0.0, 1.0) };
        // Wide gaps are read as several spaces.
        Reading { text: text.split_whitespace().collect::<Vec<_>>().join(" "), confidence }
    }
}

/// The class with the largest number at each place, the first of several, and its share after a softmax.
fn most_probable(output: &Tensor) -> Vec<(u32, f32)> {
    let (classes, largest) = Largest { output }.dispatch();
    let mut sums = vec![0.0f32; output.width];
    // Many classes at once, since to begin is not free.
    let mut shares = Vec::with_capacity(64 * output.width);
    for numbers in output.numbers.chunks(64 * output.width.max(1)) {
        shares.clear();
        for row in numbers.chunks_exact(output.width) {
            shares.extend(row.iter().zip(&largest).map(|(number, largest)| number - largest));
        }
        Exp {}.map_mut(&mut shares);
        for row in shares.chunks_exact(output.width) {
            sums.iter_mut().zip(row).for_each(|(sum, share)| *sum += share);
        }
    }
    classes.into_iter().zip(sums.into_iter().map(|sum| 1.0 / sum)).collect()
}

struct Largest<'a> {
    output: &'a Tensor,
}

/// Plain loops; as one operation they are compiled for wide registers.
impl SimdOp for Largest<'_> {
    type Output = (Vec<u32>, Vec<f32>);

    #[inline(always)]
    fn eval<I: Isa>(self, _: I) -> Self::Output {
        let places = self.output.width;
        let mut classes = vec![0u32; places];
        let mut largest = vec![f32::MIN; places];
        for (class, numbers) in self.output.numbers.chunks_exact(places.max(1)).enumerate() {
            for ((number, largest), best) in numbers.iter().zip(&mut largest).zip(&mut classes) {
                *best = if *number > *largest { class as u32 } else { *best };
                *largest = if *number > *largest { *number } else { *largest };
            }
        }
        (classes, largest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_the_largest_is_that_of_a_softmax() {
        // Three classes at two places.
        let output = Tensor { channels: 3, height: 1, width: 2, numbers: vec![1.0, -2.0, 3.0, 0.5, 0.0, 0.5] };
        let found = most_probable(&output);
        let expected = |numbers: [f32; 3], largest: f32| largest.exp() / numbers.map(f32::exp).iter().sum::<f32>();
        assert_eq!((found[0].0, found[1].0), (1, 1));
        assert!((found[0].1 - expected([1.0, 3.0, 0.0], 3.0)).abs() < 1e-6, "{found:?}");
        assert!((found[1].1 - expected([-2.0, 0.5, 0.5], 0.5)).abs() < 1e-6, "{found:?}");
    }
}
