//! Beam search for the most probable intended words of a text.
//!
//! Each piece of a text has several readings: as typed, as another word, as two words without a space, or, together
//! with the next piece, as one word or as two with a letter on the wrong side of the space. The score of a reading is
//! the probability of its words after the previous words and of its typing errors. The best sequence is searched from
//! left to right, with a limited number of hypotheses at each piece.

use super::distance::MAX_LETTERS;
use super::lexicon::{Lexicon, LexiconMatch, WordId};
use super::tokenize::Piece;

/// Beam width.
const BEAM_WIDTH: usize = 8;
/// Maximum number of readings of a piece as a word, and as a pair of words.
const MAX_READINGS: usize = 8;
const MAX_PAIRS: usize = 4;
/// Maximum number of readings of each half of a pair.
const MAX_HALVES: usize = 3;
/// Shorter halves must be spelled correctly, because they could be any short word.
const MIN_CORRECTED_HALF: usize = 3;
/// Shorter pieces have at most one error.
const MIN_LETTERS_FOR_TWO_EDITS: usize = 4;

// Costs in nats, like those of typing errors.

/// A space is missing, or one letter too early or too late.
const MISSING_SPACE_COST: f32 = 3.5;
/// A letter instead of a space, in addition to the cost of the missing space.
const LETTER_FOR_SPACE_COST: f32 = 2.0;
/// A space inside a word.
const EXTRA_SPACE_COST: f32 = 8.0;
/// An inflected form, in addition to the cost of its stem.
const INFLECTED_FORM_COST: f32 = 4.0;
/// Cost of keeping an unknown word: base and per letter. A long word hardly ever matches another by chance.
const UNKNOWN_WORD_COST: f32 = 8.0;
const UNKNOWN_LETTER_COST: f32 = 1.5;
/// Additional cost for each further unknown word in the text.
const FURTHER_UNKNOWN_WORD_COST: f32 = 4.0;
/// Discount if it looks like a name.
const NAME_DISCOUNT: f32 = 8.0;
/// Surcharge on every error in a text with a single unknown word.
const CAREFUL_TEXT_PENALTY: f32 = 1.5;
/// Bonus of a known word in a sloppy text.
const KNOWN_WORD_BONUS: f32 = 1.5;

/// Minimum mean score of the words of a text, including errors. Mistyped English reaches it in 99 of 100 texts, other
/// languages in less than half.
const MIN_MEAN_SCORE: f32 = -13.5;

/// Dictionary status of a piece.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum PieceStatus {
    Known(WordId),
    /// An unknown form of a known word, such as its plural.
    Form(WordId),
    Unknown,
    /// Unknown, but not to be corrected.
    Protected,
}

/// Typing quality of a text, estimated from the number of unknown words.
#[derive(Debug, Clone, Copy)]
pub(super) struct CorrectionPolicy {
    /// On every error.
    surcharge: f32,
    strange: f32,
    /// Enough errors that even known words may be wrong.
    is_sloppy: bool,
    /// Enough errors that both halves of a pair may be wrong.
    is_very_sloppy: bool,
}

/// A reading of one or two pieces.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PieceReading {
    /// Index of the first piece.
    pub(super) at: usize,
    /// Number of pieces: one or two.
    pub(super) pieces: usize,
    pub(super) words: ReadingWords,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ReadingWords {
    AsTyped,
    One(WordId),
    Two(WordId, WordId),
}

/// A candidate reading of a piece, without context.
#[derive(Debug, Clone, Copy)]
struct Choice {
    pieces: usize,
    words: ReadingWords,
    /// Score without the word probabilities; negative.
    worth: f32,
}

/// A hypothesis up to some piece.
#[derive(Debug, Clone, Copy)]
struct BeamEntry {
    score: f32,
    /// The last word, if it is in the dictionary.
    last: Option<WordId>,
    reading: PieceReading,
    /// Index of the previous hypothesis, among the hypotheses that end at the start of this reading.
    before: usize,
}

impl CorrectionPolicy {
    pub(super) fn of(strange: usize) -> CorrectionPolicy {
        let others = strange.clamp(1, 3) - 1;
        CorrectionPolicy {
            surcharge: CAREFUL_TEXT_PENALTY * (2 - others) as f32 / 2.0,
            strange: UNKNOWN_WORD_COST + FURTHER_UNKNOWN_WORD_COST * others as f32,
            is_sloppy: others >= 1,
            is_very_sloppy: others >= 2,
        }
    }
}

/// The best readings of the pieces, given the status of each. `None` if even the best has a low score: the text is in
/// another language, or not a text.
pub(super) fn search(
    words: &Lexicon,
    pieces: &[Piece],
    standings: &[PieceStatus],
    care: CorrectionPolicy,
) -> Option<Vec<PieceReading>> {
    // The hypotheses that end before each piece, and after the last.
    let mut rows: Vec<Vec<BeamEntry>> = vec![Vec::new(); pieces.len() + 1];
    let nothing = PieceReading { at: 0, pieces: 0, words: ReadingWords::AsTyped };
    rows[0].push(BeamEntry { score: 0.0, last: Some(words.boundary()), reading: nothing, before: 0 });
    for at in 0..pieces.len() {
        let choices = choices(words, &pieces[at..], &standings[at..], care);
        prune_beam(&mut rows[at]);
        let (done, coming) = rows.split_at_mut(at + 1);
        for (before, row) in done[at].iter().enumerate() {
            let last = row.last.filter(|_| !pieces[at].follows_a_gap);
            for choice in &choices {
                let reading = PieceReading { at, pieces: choice.pieces, words: choice.words };
                let score = row.score + choice.worth + choice.words.log_probability(words, last);
                coming[choice.pieces - 1].push(BeamEntry { score, last: choice.words.last(), reading, before });
            }
        }
    }
    let end = rows.last_mut().expect("there is a row even for no pieces");
    for row in end.iter_mut() {
        row.score += words.log_probability(row.last, words.boundary());
    }
    prune_beam(end);
    let makes_sense = end[0].score >= MIN_MEAN_SCORE * pieces.len() as f32;
    (makes_sense || !care.is_sloppy).then(|| backtrack(&rows))
}

/// The readings of the best hypothesis, from first to last.
fn backtrack(rows: &[Vec<BeamEntry>]) -> Vec<PieceReading> {
    let (mut end, mut place) = (rows.len() - 1, 0);
    let mut readings = Vec::new();
    while end > 0 {
        let row = rows[end][place];
        readings.push(row.reading);
        (end, place) = (row.reading.at, row.before);
    }
    readings.reverse();
    readings
}

/// Of the hypotheses with the same last word, only the best can lead to the overall best.
fn prune_beam(rows: &mut Vec<BeamEntry>) {
    rows.sort_by(|one, other| other.score.total_cmp(&one.score));
    let mut last = Vec::with_capacity(BEAM_WIDTH);
    rows.retain(|row| {
        let is_kept = last.len() < BEAM_WIDTH && !last.contains(&row.last);
        if is_kept {
            last.push(row.last);
        }
        is_kept
    });
}

/// The readings of the first piece.
fn choices(words: &Lexicon, pieces: &[Piece], standings: &[PieceStatus], care: CorrectionPolicy) -> Vec<Choice> {
    let typed = &pieces[0].letters;
    let is_doubtful = |at: usize| match standings[at] {
        PieceStatus::Unknown => true,
        PieceStatus::Known(_) | PieceStatus::Form(_) => care.is_sloppy && !pieces[at].is_name,
        PieceStatus::Protected => false,
    };
    let one = |words, worth| Choice { pieces: 1, words, worth };
    let mut choices = vec![match standings[0] {
        PieceStatus::Known(id) => one(ReadingWords::One(id), if care.is_sloppy { KNOWN_WORD_BONUS } else { 0.0 }),
        PieceStatus::Form(stem) => one(ReadingWords::AsTyped, words.log_probability(None, stem) - INFLECTED_FORM_COST),
        PieceStatus::Unknown => {
            let name = if pieces[0].is_name { NAME_DISCOUNT } else { 0.0 };
            one(ReadingWords::AsTyped, name - care.strange - UNKNOWN_LETTER_COST * typed.len() as f32)
        }
        PieceStatus::Protected => one(ReadingWords::AsTyped, 0.0),
    }];
    if is_doubtful(0) {
        let is_strange = standings[0] == PieceStatus::Unknown;
        let slips = if is_strange && typed.len() >= MIN_LETTERS_FOR_TWO_EDITS { 2 } else { 1 };
        let near = words.candidates(typed, slips, care.surcharge, MAX_READINGS);
        let others = near.iter().filter(|near| PieceStatus::Known(near.id) != standings[0]);
        choices.extend(others.map(|near| one(ReadingWords::One(near.id), -near.cost)));
        if is_strange && typed.len() <= MAX_LETTERS {
            choices.extend(split(words, typed, care));
        }
    }
    let Some(next) = pieces.get(1).filter(|next| next.follows_a_space) else { return choices };
    if (is_doubtful(0) || is_doubtful(1)) && !pieces[0].is_name && !next.is_name {
        let together = [typed.as_slice(), &next.letters].concat();
        if standings[..2].contains(&PieceStatus::Unknown) {
            let near = words.candidates(&together, 1, care.surcharge, MAX_HALVES);
            let price = |near: &LexiconMatch| near.cost + EXTRA_SPACE_COST + care.surcharge;
            choices.extend(near.iter().map(|near| Choice {
                pieces: 2,
                words: ReadingWords::One(near.id),
                worth: -price(near),
            }));
        }
        choices.extend(move_space(words, &together, typed.len(), care));
    }
    choices
}

/// Two words without a space, or with a letter instead of the space.
fn split(words: &Lexicon, typed: &[char], care: CorrectionPolicy) -> Vec<Choice> {
    let halves = |half: &[char]| Halves::of(words, half, care);
    let firsts: Vec<Halves> = (1..typed.len()).map(|end| halves(&typed[..end])).collect();
    let seconds: Vec<Halves> = (1..typed.len()).map(|start| halves(&typed[start..])).collect();
    let mut pairs = Vec::new();
    for (place, first) in firsts.iter().enumerate() {
        pair_up(first, &seconds[place], MISSING_SPACE_COST + care.surcharge, care, &mut pairs);
        if let Some(second) = seconds.get(place + 1) {
            pair_up(first, second, MISSING_SPACE_COST + LETTER_FOR_SPACE_COST + care.surcharge, care, &mut pairs);
        }
    }
    best_pairs(words, pairs, 1)
}

/// Two words with a letter on the wrong side of the space.
fn move_space(words: &Lexicon, together: &[char], space: usize, care: CorrectionPolicy) -> Vec<Choice> {
    let mut pairs = Vec::new();
    for place in [space - 1, space + 1] {
        if (1..together.len()).contains(&place) {
            let (first, second) = together.split_at(place);
            let [first, second] = [first, second].map(|half| Halves::of(words, half, care));
            pair_up(&first, &second, MISSING_SPACE_COST + care.surcharge, care, &mut pairs);
        }
    }
    best_pairs(words, pairs, 2)
}

/// Candidate words for one half of a pair.
#[derive(Debug)]
struct Halves {
    is_known: bool,
    near: Vec<LexiconMatch>,
}

impl Halves {
    fn of(words: &Lexicon, half: &[char], care: CorrectionPolicy) -> Halves {
        if let Some(id) = words.find(half) {
            return Halves { is_known: true, near: vec![LexiconMatch { id, cost: 0.0 }] };
        }
        let is_long_enough = half.len() >= MIN_CORRECTED_HALF;
        let near = if is_long_enough { words.candidates(half, 1, care.surcharge, MAX_HALVES) } else { Vec::new() };
        Halves { is_known: false, near }
    }
}

/// Combines the candidates of both halves. One half must be spelled correctly, unless the text is full of typos.
fn pair_up(
    first: &Halves,
    second: &Halves,
    price: f32,
    care: CorrectionPolicy,
    pairs: &mut Vec<(LexiconMatch, LexiconMatch, f32)>,
) {
    if first.is_known || second.is_known || care.is_very_sloppy {
        for one in &first.near {
            pairs.extend(second.near.iter().map(|other| (*one, *other, price + one.cost + other.cost)));
        }
    }
}

fn best_pairs(words: &Lexicon, pairs: Vec<(LexiconMatch, LexiconMatch, f32)>, pieces: usize) -> Vec<Choice> {
    let choice = |(one, other, price): (LexiconMatch, LexiconMatch, f32)| {
        let wording = ReadingWords::Two(one.id, other.id);
        (wording.log_probability(words, None) - price, Choice { pieces, words: wording, worth: -price })
    };
    let mut choices: Vec<(f32, Choice)> = pairs.into_iter().map(choice).collect();
    choices.sort_by(|one, other| other.0.total_cmp(&one.0));
    choices.into_iter().take(MAX_PAIRS).map(|(_, choice)| choice).collect()
}

impl ReadingWords {
    /// Log-probability after the previous word, or without context. Unknown words have their cost instead.
    fn log_probability(self, words: &Lexicon, before: Option<WordId>) -> f32 {
        match self {
            ReadingWords::AsTyped => 0.0,
            ReadingWords::One(id) => words.log_probability(before, id),
            ReadingWords::Two(one, other) => {
                words.log_probability(before, one) + words.log_probability(Some(one), other)
            }
        }
    }

    fn last(self) -> Option<WordId> {
        match self {
            ReadingWords::AsTyped => None,
            ReadingWords::One(id) | ReadingWords::Two(_, id) => Some(id),
        }
    }
}
