//! Which words a text was meant to have.
//!
//! Each piece of a text can be read in several ways: as it was typed, as another word, as two words that ran together,
//! or, with the piece after it, as one word or as two with a letter on the wrong side of the space. A reading is as
//! good as its words are probable after those before and its slips are. The best row of readings is looked for from
//! left to right with only a few rows kept at each piece (a beam search).

use super::distance::MOST_LETTERS;
use super::pieces::Piece;
use super::words::{Id, Near, Words};

/// How many rows of readings are kept.
const BEAM: usize = 8;
/// How many words a piece may be read as, and how many pairs of words.
const MOST_READINGS: usize = 8;
const MOST_PAIRS: usize = 4;
/// How many words each half of a pair may be read as.
const MOST_HALVES: usize = 3;
/// A half with fewer letters has to be spelled right: it could be any short word.
const SHORTEST_MENDED_HALF: usize = 3;
/// A piece with fewer letters has one slip at most.
const SHORTEST_WITH_TWO_SLIPS: usize = 4;

// Prices in nats, as those of slips.

/// A space was left out, or typed one letter too early or too late.
const SPACE: f32 = 3.5;
/// A letter was typed for a space, beyond the price of the missing space.
const LETTER_FOR_SPACE: f32 = 2.0;
/// There is a space inside a word.
const EXTRA_SPACE: f32 = 8.0;
/// A form of a known word, beyond the price of that word.
const FORM: f32 = 4.0;
/// A strange word is meant that way: at least, and for each letter. Long words are hardly ever hit by chance.
const STRANGE: f32 = 8.0;
const STRANGE_LETTER: f32 = 1.5;
/// So much more for each further strange word in the text.
const STRANGE_AMONG_OTHERS: f32 = 4.0;
/// So much less if it looks like a name.
const NAME: f32 = 8.0;
/// What each slip costs more in a text with a single strange word.
const CAREFUL: f32 = 1.5;
/// What a known word in a sloppy text is worth for being one.
const KNOWN: f32 = 1.5;

/// What the words of a text are worth on average, at least, with all slips and after each other. In mistyped English
/// that is so for 99 texts of 100, in other languages for less than half.
const LEAST_SENSE: f32 = -13.5;

/// How a piece stands with what is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Standing {
    Known(Id),
    /// A form of a known word that is not known itself, such as its plural.
    Form(Id),
    Strange,
    /// Not known, and yet not to be mended.
    Meant,
}

/// How carefully a text was typed, told by the number of its strange words.
#[derive(Debug, Clone, Copy)]
pub(super) struct Care {
    /// On every slip.
    surcharge: f32,
    strange: f32,
    /// So many slips that even known words may be wrong.
    is_sloppy: bool,
    /// So many that both halves of a pair may be.
    is_very_sloppy: bool,
}

/// How one piece is read, or two.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Reading {
    /// Where the first of its pieces is.
    pub(super) at: usize,
    /// How many it is made of: one or two.
    pub(super) pieces: usize,
    pub(super) words: Wording,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Wording {
    AsTyped,
    One(Id),
    Two(Id, Id),
}

/// A way to read a piece, without what comes before.
#[derive(Debug, Clone, Copy)]
struct Choice {
    pieces: usize,
    words: Wording,
    /// All but the chances of its words; negative.
    worth: f32,
}

/// A row of readings up to some piece.
#[derive(Debug, Clone, Copy)]
struct Row {
    score: f32,
    /// The last word, if it is known.
    last: Option<Id>,
    reading: Reading,
    /// Its place among the rows that end where this reading begins.
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

/// The best way to read the pieces, with a standing for each. None where even that makes no sense: the text is in
/// another language, or it is no text at all.
pub(super) fn search(words: &Words, pieces: &[Piece], standings: &[Standing], care: Care) -> Option<Vec<Reading>> {
    // The rows that end before each piece, and after the last.
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

/// The readings of the best row, from the first to the last.
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

/// Of the rows with the same last word only the best can become the best of all.
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

/// The ways to read the first of the pieces.
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

/// Two words that ran together, with or without a letter that was typed for the space.
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

/// Two words with a letter on the wrong side of the space between them.
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

/// What one half of a pair may have been meant as.
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

/// All pairs of the two halves, of which one at least has to be spelled right if the text is not full of slips.
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
    /// The logarithm of its chance after a word, or after anything. Words that are not known have their price instead.
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
