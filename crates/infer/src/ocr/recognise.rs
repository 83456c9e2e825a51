//! A line of text in a picture becomes letters.

use super::crop::{Crop, HEIGHT};
use super::network::Network;

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
        let output = self.network.run(1, HEIGHT, crop.width, crop.numbers)?;
        let classes = self.characters.len() + 2;
        match output.shape[..] {
            [1, _, found] if found == classes => Ok(self.decode(&output.numbers, classes)),
            _ => Err(format!("it gave the shape {:?}, and there are {classes} classes", output.shape)),
        }
    }

    /// The most probable class at each place. The same class twice in a row is one letter; two letters that are the
    /// same have a nothing between them.
    fn decode(&self, probabilities: &[f32], classes: usize) -> Reading {
        let mut text = String::new();
        let (mut sum, mut count, mut last) = (0.0f32, 0usize, 0usize);
        for place in probabilities.chunks_exact(classes) {
            let (class, probability) = largest(place);
            if class != 0 && class != last {
                text.push(self.characters.get(class - 1).copied().unwrap_or(' '));
                sum += probability;
                count += 1;
            }
            last = class;
        }
        let confidence = if count == 0 { 0.0 } else { (sum / count as f32).clamp(0.0, 1.0) };
        Reading { text: text.trim().to_owned(), confidence }
    }
}

/// The first of the largest numbers, and where it is.
fn largest(numbers: &[f32]) -> (usize, f32) {
    const LANES: usize = 16;
    // In lanes, or the search would be a chain of seven thousand comparisons.
    let mut lanes = [f32::MIN; LANES];
    let chunks = numbers.chunks_exact(LANES);
    let rest = chunks.remainder().iter().copied().fold(f32::MIN, f32::max);
    for chunk in chunks {
        for (lane, number) in lanes.iter_mut().zip(chunk) {
            *lane = if *number > *lane { *number } else { *lane };
        }
    }
    let most = lanes.iter().copied().fold(rest, f32::max);
    (numbers.iter().position(|number| *number == most).unwrap_or(0), most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_is_found_wherever_it_is() {
        for length in [1, 5, 16, 17, 40] {
            for place in 0..length {
                let mut numbers = vec![0.1; length];
                numbers[place] = 0.7;
                assert_eq!(largest(&numbers), (place, 0.7));
            }
        }
    }
}
