//! Replays the fuzzing corpus, which includes past findings, and a fixed number of mutated inputs.
//!
//! Every crate with fuzz targets includes this file in a test. The fuzzer itself needs a separate build and an
//! open-ended run (`tests/fuzz/run`). This test runs with all other tests and is deterministic. `CORBIE_CHANGED_INPUTS`
//! sets the number of mutated inputs.

use std::panic::{RefUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Maximum length of a mutated input.
const MAX_INPUT_LEN: usize = 16 * 1024;
/// Bytes with a special meaning in many formats.
const STRUCTURAL_BYTES: &[u8] = b"\0\n\r \"'{}[]<>:,;/\\$#&%=-+.0199aeE\x7f\x80\xff";

/// Checks an invariant with every committed input of a target, then with `changed` mutations of them.
pub fn replay(corpus: &Path, changed: u64, hold: impl Fn(&[u8]) + RefUnwindSafe) {
    let inputs = corpus_inputs(corpus);
    assert!(!inputs.is_empty(), "nothing is committed in {}", corpus.display());
    for (path, input) in &inputs {
        assert!(catch_unwind(|| hold(input)).is_ok(), "{}", path.display());
    }
    let wanted = std::env::var("CORBIE_CHANGED_INPUTS").ok().and_then(|number| number.parse().ok());
    for number in 0..wanted.unwrap_or(changed) {
        let (path, input) = mutated_input(&inputs, number);
        if catch_unwind(|| hold(&input)).is_err() {
            let kept = std::env::temp_dir().join(format!("corbie-fuzz-{number}"));
            std::fs::write(&kept, &input).expect("there is room");
            panic!("change {number} of {}, kept in {}", path.display(), kept.display());
        }
    }
}

/// Sorted by name, so that the order is the same on all machines.
fn corpus_inputs(corpus: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files = std::fs::read_dir(corpus).expect("the corpus is committed");
    let mut paths: Vec<PathBuf> = files.map(|file| file.expect("entry").path()).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), std::fs::read(&path).expect("readable"))).collect()
}

/// Deterministic for each number.
fn mutated_input(inputs: &[(PathBuf, Vec<u8>)], number: u64) -> (&Path, Vec<u8>) {
    let mut chance = SeededRng(number);
    let (path, input) = &inputs[chance.below(inputs.len())];
    let mut input = input.clone();
    for _ in 0..=chance.below(4) {
        mutate(&mut input, &inputs[chance.below(inputs.len())].1, &mut chance);
    }
    input.truncate(MAX_INPUT_LEN);
    (path, input)
}

fn mutate(input: &mut Vec<u8>, other: &[u8], chance: &mut SeededRng) {
    let at = chance.below(input.len() + 1);
    let length = chance.below(32).min(input.len() - at);
    match chance.below(6) {
        // Flips a bit.
        0 if at < input.len() => input[at] ^= 1 << chance.below(8),
        // Replaces a byte by a special one.
        1 if at < input.len() => input[at] = STRUCTURAL_BYTES[chance.below(STRUCTURAL_BYTES.len())],
        2 => input.insert(at, STRUCTURAL_BYTES[chance.below(STRUCTURAL_BYTES.len())]),
        // Removes or duplicates a range.
        3 => drop(input.drain(at..at + length)),
        4 => {
            let piece = input[at..at + length].to_vec();
            input.splice(at..at, piece);
        }
        // Splices two inputs.
        _ => {
            input.truncate(at);
            input.extend_from_slice(&other[chance.below(other.len() + 1)..]);
        }
    }
}

/// Deterministic pseudorandom numbers (SplitMix64).
struct SeededRng(u64);

impl SeededRng {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }
}
