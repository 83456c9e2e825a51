//! Beam search for the most probable intended words of a text.
//!
//! Each piece of a text has several readings: as typed, as another word, as two words without a space, or, together
//! with the next piece, as one word or as two with a letter on the wrong side of the space. The score of a reading is
//! the probability of its words after the previous words and of its typing errors. The best sequence is searched from
//! left to right, with a limited number of hypotheses at each piece.

use super::distance::MOST_LETTERS;
use super::pieces::Piece;
use super::words::{Id, Near, Words};

/// Beam width.
const BEAM: usize = 8;
/// Maximum number of readings of a piece as a word, and as a pair of words.
const MOST_READINGS: usize = 8;
const MOST_PAIRS: usize = 4;
/// Maximum number of readings of each half of a pair.
const MOST_HALVES: usize = 3;
/// Shorter halves must be spelled correctly, because they could be any short word.
const SHORTEST_MENDED_HALF: usize = 3;
/// Shorter pieces have at most one error.
const SHORTEST_WITH_TWO_SLIPS: usize = 4;

// Costs in nats, like those of typing errors.

/// A space is missing, or one letter too early or too late.
const SPACE: f32 = 3.5;
/// A letter instead of a space, in addition to the cost of the missing space.
const LETTER_FOR_SPACE: f32 = 2.0;
/// A space inside a word.
const EXTRA_SPACE: f32 = 8.0;
/// An inflected form, in addition to the cost of its stem.
const FORM: f32 = 4.0;
/// Cost of keeping an unknown word: base and per letter. A long word hardly ever matches another by chance.
const STRANGE: f32 = 8.0;
const STRANGE_LETTER: f32 = 1.5;
/// Additional cost for each further unknown word in the text.
const STRANGE_AMONG_OTHERS: f32 = 4.0;
/// Discount if it looks like a name.
const NAME: f32 = 8.0;
/// Surcharge on every error in a text with a single unknown word.
const CAREFUL: f32 = 1.5;
/// Bonus of a known word in a sloppy text.
const KNOWN: f32 = 1.5;

/// Minimum mean score of the words of a text, including errors. Mistyped English reaches it in 99 of 100 texts, other
/// languages in less than half.
const LEAST_SENSE: f32 = -13.5;

/// Dictionary status of a piece.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Standing {
    Known(Id),
    /// An unknown form of a known word, such as its plural.
    Form(Id),
    Strange,
    /// Unknown, but not to be corrected.
    Meant,
}

/// Typing quality of a text, estimated from the number of unknown words.
#[derive(Debug, Clone, Copy)]
pub(super) struct Care {
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
pub(super) struct Reading {
    /// Index of the first piece.
    pub(super) at: usize,
    /// Number of pieces: one or two.
    pub(super) pieces: usize,
    pub(super) words: Wording,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Wording {
    AsTyped,
    One(Id),
    Two(Id, Id),
}

/// A candidate reading of a piece, without context.
#[derive(Debug, Clone, Copy)]
struct Choice {
    pieces: usize,
    words: Wording,
    /// Score without the word probabilities; negative.
    worth: f32,
}

/// A hypothesis up to some piece.
#[derive(Debug, Clone, Copy)]
struct Row {
    score: f32,
    /// The last word, if it is in the dictionary.
    last: Option<Id>,
    reading: Reading,
    /// Index of the previous hypothesis, among the hypotheses that end at the start of this reading.
    before: usize,
}

impl Care {
    pub(super) fn of(strange: usize) -> Care {
        let others = strange.clamp(1, 3) - 1;
        Care {
            surcharge: CAREFUL * (2 - others) as f32 / 2.0,
            strange: STRANGE + STRANGE_AMONG_OTHERS * others as f32,
            is_sloppy: others >= 1,
            is_very_sloppy: others >= 2,
        }
    }
}

/// The best readings of the pieces, given the status of each. `None` if even the best has a low score: the text is in
/// another language, or not a text.
pub(super) fn search(words: &Words, pieces: &[Piece], standings: &[Standing], care: Care) -> Option<Vec<Reading>> {
    // The hypotheses that end before each piece, and after the last.
    let mut rows: Vec<Vec<Row>> = vec![Vec::new(); pieces.len() + 1];
    let nothing = Reading { at: 0, pieces: 0, words: Wording::AsTyped };
    rows[0].push(Row { score: 0.0, last: Some(words.border()), reading: nothing, before: 0 });
    for at in 0..pieces.len() {
        let choices = choices(words, &pieces[at..], &standings[at..], care);
        keep_best(&mut rows[at]);
        let (done, coming) = rows.split_at_mut(at + 1);
        for (before, row) in done[at].iter().enumerate() {
            let last = row.last.filter(|_| !pieces[at].follows_a_gap);
            for choice in &choices {
                let reading = Reading { at, pieces: choice.pieces, words: choice.words };
                let score = row.score + choice.worth + choice.words.chance(words, last);
                coming[choice.pieces - 1].push(Row { score, last: choice.words.last(), reading, before });
            }
        }
    }
    let end = rows.last_mut().expect("there is a row even for no pieces");
    for row in end.iter_mut() {
        row.score += words.chance(row.last, words.border());
    }
    keep_best(end);
    let makes_sense = end[0].score >= LEAST_SENSE * pieces.len() as f32;
    (makes_sense || !care.is_sloppy).then(|| trace(&rows))
}

/// The readings of the best hypothesis, from first to last.
fn trace(rows: &[Vec<Row>]) -> Vec<Reading> {
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
fn keep_best(rows: &mut Vec<Row>) {
    rows.sort_by(|one, other| other.score.total_cmp(&one.score));
    let mut last = Vec::with_capacity(BEAM);
    rows.retain(|row| {
        let is_kept = last.len() < BEAM && !last.contains(&row.last);
        if is_kept {
            last.push(row.last);
        }
        is_kept
    });
}

/// The readings of the first piece.
fn choices(words: &Words, pieces: &[Piece], standings: &[Standing], care: Care) -> Vec<Choice> {
    let typed = &pieces[0].letters;
    let is_doubtful = |at: usize| match standings[at] {
        Standing::Strange => true,
        Standing::Known(_) | Standing::Form(_) => care.is_sloppy && !pieces[at].is_name,
        Standing::Meant => false,
    };
    let one = |words, worth| Choice { pieces: 1, words, worth };
    let mut choices = vec![match standings[0] {
        Standing::Known(id) => one(Wording::One(id), if care.is_sloppy { KNOWN } else { 0.0 }),
        Standing::Form(stem) => one(Wording::AsTyped, words.chance(None, stem) - FORM),
        Standing::Strange => {
            let name = if pieces[0].is_name { NAME } else { 0.0 };
            one(Wording::AsTyped, name - care.strange - STRANGE_LETTER * typed.len() as f32)
        }
        Standing::Meant => one(Wording::AsTyped, 0.0),
    }];
    if is_doubtful(0) {
        let is_strange = standings[0] == Standing::Strange;
        let slips = if is_strange && typed.len() >= SHORTEST_WITH_TWO_SLIPS { 2 } else { 1 };
        let near = words.near(typed, slips, care.surcharge, MOST_READINGS);
        let others = near.iter().filter(|near| Standing::Known(near.id) != standings[0]);
        choices.extend(others.map(|near| one(Wording::One(near.id), -near.price)));
        if is_strange && typed.len() <= MOST_LETTERS {
            choices.extend(split(words, typed, care));
        }
    }
    let Some(next) = pieces.get(1).filter(|next| next.follows_a_space) else { return choices };
    if (is_doubtful(0) || is_doubtful(1)) && !pieces[0].is_name && !next.is_name {
        let together = [typed.as_slice(), &next.letters].concat();
        if standings[..2].contains(&Standing::Strange) {
            let near = words.near(&together, 1, care.surcharge, MOST_HALVES);
            let price = |near: &Near| near.price + EXTRA_SPACE + care.surcharge;
            choices.extend(near.iter().map(|near| Choice {
                pieces: 2,
                words: Wording::One(near.id),
                worth: -price(near),
            }));
        }
        choices.extend(move_space(words, &together, typed.len(), care));
    }
    choices
}

/// Two words without a space, or with a letter instead of the space.
fn split(words: &Words, typed: &[char], care: Care) -> Vec<Choice> {
    let halves = |half: &[char]| Halves::of(words, half, care);
    let firsts: Vec<Halves> = (1..typed.len()).map(|end| halves(&typed[..end])).collect();
    let seconds: Vec<Halves> = (1..typed.len()).map(|start| halves(&typed[start..])).collect();
    let mut pairs = Vec::new();
    for (place, first) in firsts.iter().enumerate() {
        pair_up(first, &seconds[place], SPACE + care.surcharge, care, &mut pairs);
        if let Some(second) = seconds.get(place + 1) {
            pair_up(first, second, SPACE + LETTER_FOR_SPACE + care.surcharge, care, &mut pairs);
        }
    }
    best_pairs(words, pairs, 1)
}

/// Two words with a letter on the wrong side of the space.
fn move_space(words: &Words, together: &[char], space: usize, care: Care) -> Vec<Choice> {
    let mut pairs = Vec::new();
    for place in [space - 1, space + 1] {
        if (1..together.len()).contains(&place) {
            let (first, second) = together.split_at(place);
            let [first, second] = [first, second].map(|half| Halves::of(words, half, care));
            pair_up(&first, &second, SPACE + care.surcharge, care, &mut pairs);
        }
    }
    best_pairs(words, pairs, 2)
}

/// Candidate words for one half of a pair.
#[derive(Debug)]
struct Halves {
    is_known: bool,
    near: Vec<Near>,
}

impl Halves {
    fn of(words: &Words, half: &[char], care: Care) -> Halves {
        if let Some(id) = words.find(half) {
            return Halves { is_known: true, near: vec![Near { id, price: 0.0 }] };
        }
        let is_long_enough = half.len() >= SHORTEST_MENDED_HALF;
        let near = if is_long_enough { words.near(half, 1, care.surcharge, MOST_HALVES) } else { Vec::new() };
        Halves { is_known: false, near }
    }
}

/// Combines the candidates of both halves. One half must be spelled correctly, unless the text is full of typos.
fn pair_up(first: &Halves, second: &Halves, price: f32, care: Care, pairs: &mut Vec<(Near, Near, f32)>) {
    if first.is_known || second.is_known || care.is_very_sloppy {
        for one in &first.near {
            pairs.extend(second.near.iter().map(|other| (*one, *other, price + one.price + other.price)));
        }
    }
}

fn best_pairs(words: &Words, pairs: Vec<(Near, Near, f32)>, pieces: usize) -> Vec<Choice> {
    let choice = |(one, other, price): (Near, Near, f32)| {
        let wording = Wording::Two(one.id, other.id);
        (wording.chance(words, None) - price, Choice { pieces, words: wording, worth: -price })
    };
    let mut choices: Vec<(f32, Choice)> = pairs.into_iter().map(choice).collect();
    choices.sort_by(|one, other| other.0.total_cmp(&one.0));
    choices.into_iter().take(MOST_PAIRS).map(|(_, choice)| choice).collect()
}

impl Wording {
    /// Log-probability after the previous word, or without context. Unknown words have their cost instead.
    fn chance(self, words: &Words, before: Option<Id>) -> f32 {
        match self {
            Wording::AsTyped => 0.0,
            Wording::One(id) => words.chance(before, id),
            Wording::Two(one, other) => words.chance(before, one) + words.chance(Some(one), other),
        }
    }

    fn last(self) -> Option<Id> {
        match self {
            Wording::AsTyped => None,
            Wording::One(id) | Wording::Two(_, id) => Some(id),
        }
    }
}
