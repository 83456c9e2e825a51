//! Text recognition: the network that maps one cropped line to probabilities of characters.

use super::crop::{Crop, HEIGHT};
use super::ctc_decoder::{RecognizedText, decode};
use super::network::{Network, Tensor};

/// The recognition network and its character set.
#[derive(Debug)]
pub(crate) struct Recognizer {
    network: Network,
    /// Class 0 is the CTC blank; the class after the characters is the space.
    characters: Vec<char>,
}

impl Recognizer {
    pub(crate) fn new(network: Network, characters: &str) -> Recognizer {
        Recognizer { network, characters: characters.lines().filter_map(|line| line.chars().next()).collect() }
    }

    /// Recognizes one line. Lines are not batched: the network weights its channels by their mean over the whole input,
    /// so padding next to a longer line would change the result, and on one thread batching gains nothing.
    pub(crate) fn recognize(&self, crop: Crop) -> Result<RecognizedText, String> {
        let input = Tensor { channels: 3, height: HEIGHT, width: crop.width, numbers: crop.numbers };
        let output = self.network.run(input)?;
        let classes = self.characters.len() + 2;
        if output.channels != classes || output.height != 1 {
            return Err(format!("it returned {} classes, expected {classes}", output.channels));
        }
        Ok(decode(&self.characters, &output))
    }
}
