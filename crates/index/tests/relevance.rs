//! Relevance of the same passages in bases of different sizes (X-51, K-59).

use corbie_index::{Chunk, Document, Hit, Index, IndexUpdate, Mode, Query};
use corbie_test_support::seeded_rng::SeededRng;

const DIMENSION: usize = 256;
const SIZES: [usize; 5] = [1, 10, 100, 1000, 10_000];

/// Passages with a question about each.
const PAIRS: [(&str, &str); 24] = [
    ("The deposit is paid back within six weeks after the end of the lease.", "when is the deposit paid back"),
    ("Crows remember the faces of people who were unkind to them.", "do crows recognise people"),
    ("The managers approved all invoices after the meeting in March.", "who approved the invoices"),
    ("A backup of the database is written every night at two.", "how often is the database saved"),
    ("The lighthouse was built in 1897 and automated in 1972.", "when was the lighthouse built"),
    ("New colleagues have thirty days of holiday each year.", "how many days of holiday do new colleagues get"),
    ("The pump must not run dry for more than a minute.", "how long may the pump run without water"),
    ("Rye bread is baked in the village on Tuesdays and Fridays.", "on which days is rye bread baked"),
    ("Error E17 means that the lid of the tank is open.", "what does error E17 mean"),
    ("The orchestra rehearses in the hall of the old railway station.", "where does the orchestra rehearse"),
    ("Tulips are planted in autumn and flower in spring.", "when are tulips planted"),
    ("Visitors register at the gate and wear a badge.", "what must visitors do at the gate"),
    ("Travel costs are refunded when the receipts are complete.", "are travel costs refunded"),
    ("The contract ends on the last day of a quarter.", "when does the contract end"),
    ("Passwords have at least fourteen characters and no date.", "minimum length of a password"),
    ("The bridge carries twelve tonnes, and eight in frost.", "how heavy may a lorry on the bridge be"),
    ("Bees find their way back over more than five kilometres.", "how far can bees fly home"),
    ("The museum is closed on Mondays, except on public holidays.", "is the museum open on Monday"),
    ("Samples are kept at minus twenty degrees for a year.", "at which temperature are samples kept"),
    ("The lift was inspected by an engineer of the insurance.", "who inspected the lift"),
    ("A tram leaves every seven minutes from the main square.", "how often does the tram leave"),
    ("Paint from before 1978 may contain lead.", "does old paint contain lead"),
    ("Students pay half the price in the canteen.", "how much do students pay for lunch"),
    ("The server room is cooled with water from the river.", "how is the server room cooled"),
];

/// Words of the other documents. Some are words of the questions.
const OTHER_WORDS: &str = "committee chapter archive paid often holiday database letter summer orchard minute station \
    glacier copper violin harbour lantern saddle printer ribbon gravel orchid ticket meadow engine people window";

/// A direction with this cosine to a unit vector.
fn direction(random: &mut SeededRng, near: Option<(&[f32], f32)>) -> Vec<f32> {
    let mut free: Vec<f32> = (0..DIMENSION).map(|_| random.below(2001) as f32 / 1000.0 - 1.0).collect();
    let Some((unit, cosine)) = near else { return normalized(free) };
    let along: f32 = free.iter().zip(unit).map(|(one, other)| one * other).sum();
    free.iter_mut().zip(unit).for_each(|(part, unit)| *part -= along * unit);
    let across = normalized(free);
    let sine = (1.0 - cosine * cosine).sqrt();
    across.iter().zip(unit).map(|(across, unit)| cosine * unit + sine * across).collect()
}

fn normalized(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|part| part * part).sum::<f32>().sqrt();
    vector.iter_mut().for_each(|part| *part /= length);
    vector
}

fn document(key: u64, text: &str, vector: Vec<f32>) -> IndexUpdate {
    let chunk = Chunk { key, text: text.to_owned(), context: String::new(), vectors: vec![vector] };
    IndexUpdate::Put(Document { key, added: 0, facets: Vec::new(), chunks: vec![chunk] })
}

/// The hits for each pair in a base of this size. The answers are the documents 0 to 23.
fn search_pairs(size: usize, cosine: impl Fn(usize) -> f32) -> Vec<Vec<Hit>> {
    let mut random = SeededRng::new(7);
    let questions: Vec<Vec<f32>> = PAIRS.iter().map(|_| direction(&mut random, None)).collect();
    let answers: Vec<IndexUpdate> = PAIRS
        .iter()
        .zip(&questions)
        .enumerate()
        .map(|(at, ((text, _), unit))| document(at as u64, text, direction(&mut random, Some((unit, cosine(at))))))
        .collect();
    let words: Vec<&str> = OTHER_WORDS.split_whitespace().collect();
    let mut other = |key: u64| {
        let text: Vec<&str> = (0..12).map(|_| words[random.below(words.len())]).collect();
        document(key, &text.join(" "), direction(&mut random, None))
    };
    let others: Vec<IndexUpdate> = (1..size as u64).map(|at| other(1000 + at)).collect();
    let index = Index::new(DIMENSION);
    index.apply(others);
    let ask = |(at, answer): (usize, IndexUpdate)| {
        index.apply(vec![answer]);
        let (text, vector) = (PAIRS[at].1, Some(questions[at].as_slice()));
        let hits = index.snapshot().search(&Query { text, vector, filter: None, top: 10, mode: Mode::Hybrid });
        index.apply(vec![IndexUpdate::Remove { document: at as u64 }]);
        hits
    };
    answers.into_iter().enumerate().map(ask).collect()
}

#[test]
fn x51_k59_a_passage_keeps_its_relevance_when_the_base_grows() {
    let relevance = |size: usize| -> Vec<f32> {
        let found = search_pairs(size, |at| 0.35 + at as f32 / 60.0);
        let own = |(at, hits): (usize, &Vec<Hit>)| {
            let hit = hits.iter().find(|hit| hit.document == at as u64);
            hit.map_or_else(|| panic!("{:?} is not found among {size}", PAIRS[at]), |hit| hit.relevance)
        };
        found.iter().enumerate().map(own).collect()
    };
    let by_size = SIZES.map(relevance);
    let mut ranges: Vec<f32> = (0..PAIRS.len())
        .map(|at| {
            let all = || by_size.iter().map(|found| found[at]);
            all().fold(0.0, f32::max) - all().fold(1.0, f32::min)
        })
        .collect();
    ranges.sort_by(f32::total_cmp);
    let (median, p95) = (ranges[PAIRS.len() / 2], ranges[PAIRS.len() * 95 / 100]);
    assert!(median <= 0.05 && p95 <= 0.15, "median {median}, p95 {p95}: {by_size:?}");
    // It tells something, too.
    assert!(by_size[0].iter().any(|relevance| *relevance > 0.7), "{by_size:?}");
}

#[test]
fn x51_k59_an_absent_topic_stays_low_in_a_base_of_any_size() {
    for size in SIZES {
        // No answer is near its question.
        let found = search_pairs(size, |_| 0.0);
        let best = found.iter().enumerate().flat_map(|(at, hits)| {
            let others = hits.iter().filter(move |hit| hit.document != at as u64);
            others.map(|hit| hit.relevance)
        });
        let best = best.fold(0.0, f32::max);
        assert!(best < 0.15, "{best} among {size}");
    }
}
