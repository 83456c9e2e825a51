//! Parity tests: search over an external store returns the same hits as the index.

use super::*;
use crate::bitmap::Bitmap;
use crate::index::Index;
use crate::query::{Filter, Mode, Query};
use crate::snapshot::Snapshot;
use crate::update::{Chunk, Document, Facet, IndexUpdate};
use crate::vectors::{self, QueryVector};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap};

const DIMENSION: usize = 8;

/// Words in several languages, some in several inflections. Each text is long enough for language detection.
const TEXTS: [&str; 6] = [
    "the managers approved all invoices after their meetings in the large house and paid the invoice of the manager \
     because it was approved before the meeting with many important questions about payments and houses",
    "die verträge wurden gestern von den geschäftsführern in der hauptstadt unterschrieben und der vertrag wird nach der \
     prüfung durch die gesellschaft für das nächste jahr verlängert oder gekündigt mit allen rechnungen",
    "les réunions de la société ont été annulées à cause de la grève des transports publics et la réunion suivante sera \
     organisée dans une autre ville pour les directeurs qui étaient absents pendant toute la semaine",
    "договоры были подписаны вчера в столице двумя директорами этой компании и каждый договор будет проверен после \
     заседания совета перед началом следующего года вместе со всеми счетами которые директор оплатил",
    "東京都の人口は約千四百万人です 日本の首都であり 経済の中心地です 契約書は昨日署名されました 会議は来週です",
    "RFC-9110 v1.2 parse_http_header 3,000 me@example.com 🚀 X-17 foo-bar-baz 1912 ISO 8601 🚀 7",
];

/// Pseudo-random numbers from a seed.
struct TestRng(u64);

impl TestRng {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }

    fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    fn words(&mut self, text: usize, count: usize) -> String {
        let words: Vec<&str> = TEXTS[text].split_whitespace().collect();
        let word = |_| if self.one_in(12) { self.rare_word() } else { words[self.below(words.len())].to_owned() };
        (0..count).map(word).collect::<Vec<_>>().join(" ")
    }

    /// A word that occurs in few documents and is similar to other rare words.
    fn rare_word(&mut self) -> String {
        let syllables = ["ba", "bo", "da", "do", "va", "vo"];
        (0..3).map(|_| syllables[self.below(syllables.len())]).collect()
    }

    fn vector(&mut self) -> Vec<f32> {
        (0..DIMENSION).map(|_| self.below(2000) as f32 / 1000.0 - 0.9995).collect()
    }

    fn document(&mut self, key: u64, next_chunk: &mut u64) -> Document {
        let text = self.below(TEXTS.len());
        let chunks = (0..self.below(6)).map(|_| {
            *next_chunk += 1 + self.below(40) as u64;
            let length = [3, 12, 60][self.below(3)];
            let length = self.below(length);
            let context = self.below(4);
            let text = if self.one_in(8) { TEXTS.len() - 1 } else { text };
            let vectors = if self.one_in(5) { 0 } else { 1 + self.below(2) };
            Chunk {
                key: *next_chunk,
                text: self.words(text, length),
                context: self.words(text, context),
                vectors: (0..vectors).map(|_| self.vector()).collect(),
            }
        });
        let chunks = chunks.collect();
        let facets = vec![Facet { key: "tag".into(), value: self.below(4).to_string() }];
        Document { key, added: self.below(10) as i64, facets, chunks }
    }

    /// Words in a mix of languages, some of them misspelt.
    fn question(&mut self) -> String {
        let text = self.below(TEXTS.len());
        let count = 1 + self.below(7);
        let words = (0..count).map(|_| {
            let text = if self.one_in(4) { self.below(TEXTS.len()) } else { text };
            let mut letters: Vec<char> = self.words(text, 1).chars().collect();
            let at = self.below(letters.len());
            match self.below(12) {
                0 => drop(letters.remove(at)),
                1 => letters.insert(at, 'e'),
                2 => letters[at] = 'q',
                3 => letters.swap(0, at.min(1)),
                4 => letters.extend("ünd".chars()),
                _ => {}
            }
            letters.into_iter().collect::<String>()
        });
        words.collect::<Vec<_>>().join(" ")
    }

    fn filter(&mut self) -> Option<Filter> {
        let mut values: Vec<String> = (0..1 + self.below(2)).map(|_| self.below(5).to_string()).collect();
        values.dedup();
        match self.below(4) {
            0 => Some(Filter { all: vec![("tag".into(), values)], ..Filter::default() }),
            1 => Some(Filter { added_from: Some(self.below(10) as i64), ..Filter::default() }),
            _ => None,
        }
    }
}

/// The content of a database, and an index of the same documents.
struct TestStore {
    lists: BTreeMap<String, Vec<Vec<u8>>>,
    documents: Vec<Document>,
    removed: BTreeSet<u64>,
    /// Whether terms that occur only in removed documents are still known, as in a segment before a merge.
    retains_removed_terms: bool,
    sums: CorpusStats,
    index: Index,
}

impl TestStore {
    fn new(numbers: &mut TestRng, documents: usize) -> TestStore {
        let mut next_chunk = 0;
        let documents: Vec<Document> =
            (0..documents).map(|key| numbers.document(key as u64, &mut next_chunk)).collect();
        let removed: BTreeSet<u64> = if numbers.one_in(2) {
            BTreeSet::new()
        } else {
            (0..documents.len() as u64 / 4).map(|key| key * 3).collect()
        };
        let mut lists: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
        let mut sums = CorpusStats::default();
        for document in &documents {
            let read = analyze(document);
            for (term, postings) in read.terms {
                lists.entry(term).or_default().push(encode(&postings));
            }
            if !removed.contains(&document.key) {
                sums.add(&read.stats);
            }
        }
        let index = Index::new(DIMENSION);
        index.apply(documents.iter().cloned().map(IndexUpdate::Put).collect());
        index.apply(removed.iter().map(|document| IndexUpdate::Remove { document: *document }).collect());
        let mut base = TestStore { lists, documents, removed, retains_removed_terms: numbers.one_in(2), sums, index };
        if !base.retains_removed_terms {
            base.index.purge();
        }
        if numbers.one_in(2) {
            base.join(numbers);
        }
        base
    }

    /// Merges posting lists, as a store does from time to time.
    fn join(&mut self, numbers: &mut TestRng) {
        let (remembers, live) = (self.retains_removed_terms, self.live(None));
        for lists in self.lists.values_mut() {
            let (some, others): (Vec<_>, Vec<_>) = lists.drain(..).partition(|_| numbers.one_in(2));
            let some: Vec<&[u8]> = some.iter().map(Vec::as_slice).collect();
            *lists = others;
            lists.insert(0, merge_lists(&some, |key| remembers || live.contains(&key)).expect("lists"));
        }
    }

    /// Keys of live chunks that the filter allows.
    fn live(&self, filter: Option<&Filter>) -> foldhash::HashSet<u64> {
        let allows = |document: &&Document| {
            filter.is_none_or(|filter| {
                let facets = &document.facets;
                filter.all.iter().all(|(_, values)| facets.iter().any(|facet| values.contains(&facet.value)))
                    && filter.added_from.is_none_or(|from| document.added >= from)
            })
        };
        let live = self.documents.iter().filter(|document| !self.removed.contains(&document.key));
        live.filter(allows).flat_map(|document| &document.chunks).map(|chunk| chunk.key).collect()
    }

    /// With `is_late`, the filter is applied after scoring, to the best chunks only.
    fn search(&self, query: &Query, is_late: bool) -> Vec<ExternalHit> {
        let (live, allowed) = (self.live(None), self.live(query.filter));
        let count = |term: &str| {
            let mut count = 0;
            for list in self.lists.get(term).into_iter().flatten() {
                for_each_posting(list, |posting| {
                    count += u64::from(self.retains_removed_terms || live.contains(&posting.key))
                })
                .expect("a list");
            }
            count
        };
        let mut asked = ExternalQuery::new(query.text, query.mode, &self.sums);
        let unknown = asked.unknown_words(|form| count(form) > 0);
        let terms = self.lists.keys().filter(|term| unknown.iter().any(|word| word.may_match(term)));
        for step in group_by_distance(&unknown, terms.map(String::as_str)) {
            let step = step.into_iter().filter(|close| !asked.is_corrected(close));
            let step: Vec<(FuzzyMatch, u64)> = step.map(|close| (close.clone(), count(&close.term))).collect();
            asked.correct(&step);
        }
        let lists: HashMap<String, Vec<Vec<u8>>> =
            asked.forms().iter().filter_map(|form| Some((form.to_string(), self.lists.get(*form)?.clone()))).collect();
        let (is_live, is_allowed) = (|key| live.contains(&key), |key| is_late || allowed.contains(&key));
        let mut weighed =
            asked.score(&lists, is_live, is_allowed, &self.sums, allowed.len() as u64, query.top).expect("lists");
        let vectors = IndexVectors::new(&self.index.snapshot(), query);
        if is_late {
            let count = |most: usize| weighed.best(most).iter().filter(|key| allowed.contains(key)).count();
            let enough = (0..).find(|most| count(*most) >= depth(query.top) || weighed.best(*most).len() < *most);
            let best = weighed.best(enough.expect("all are enough"));
            let near: Vec<u64> = vectors.nearest.iter().map(|near| near.key).collect();
            weighed.retain(|key| best.contains(&key) && allowed.contains(&key) || near.contains(&key));
        }
        let candidates = weighed.candidates(&vectors.nearest);
        assert!(candidates.len() <= pool(query.top));
        let missing = candidates.iter().filter(|candidate| candidate.similarity.is_none());
        let missing = missing.filter_map(|candidate| Some((candidate.key, *vectors.all.get(&candidate.key)?)));
        let missing: HashMap<u64, f32> = missing.collect();
        weighed.hits(candidates, &missing)
    }
}

/// Vector search results of the index, used in place of the store's. The tests compare everything else.
#[derive(Default)]
struct IndexVectors {
    nearest: Vec<VectorMatch>,
    all: HashMap<u64, f32>,
}

impl IndexVectors {
    fn new(snapshot: &Snapshot, query: &Query) -> IndexVectors {
        let Some(direction) = query.vector.and_then(|vector| QueryVector::new(vector, DIMENSION)) else {
            return IndexVectors::default();
        };
        let parts = &snapshot.segments;
        let allowed: Vec<Option<Bitmap>> = parts.iter().map(|part| part.allowed(query.filter)).collect();
        let views = parts.iter().zip(&allowed);
        let views: Vec<vectors::VectorView> = views
            .map(|(part, allowed)| vectors::VectorView { vectors: &part.segment.vectors, allowed: allowed.as_ref() })
            .collect();
        let key = |part: usize, chunk: usize| parts[part].segment.chunks[chunk];
        let nearest = direction.search(&views, depth(query.top)).into_iter();
        let nearest = nearest
            .map(|found| VectorMatch {
                key: key(found.segment as usize, found.chunk as usize),
                similarity: found.score,
            })
            .collect();
        let mut all = HashMap::new();
        for (at, part) in parts.iter().enumerate() {
            for chunk in 0..part.segment.chunks.len() {
                if let Some(similarity) = direction.similarity(&part.segment.vectors, chunk) {
                    all.insert(key(at, chunk), similarity);
                }
            }
        }
        IndexVectors { nearest, all }
    }
}

/// Runs random queries against one base and returns the number of hits.
fn compare(seed: u64, documents: usize, questions: usize) -> usize {
    let mut numbers = TestRng(seed);
    let base = TestStore::new(&mut numbers, documents);
    let snapshot = base.index.snapshot();
    let mut found = 0;
    for _ in 0..questions {
        let (text, filter, vector) = (numbers.question(), numbers.filter(), numbers.vector());
        let mode = [Mode::Hybrid, Mode::Hybrid, Mode::Words, Mode::Vectors][numbers.below(4)];
        let top = [0, 1, 5, 10, 20, 80][numbers.below(6)];
        let vector = (!numbers.one_in(4)).then_some(vector.as_slice());
        let query = Query { text: &text, vector, filter: filter.as_ref(), top, mode };
        let (own, wanted) = (base.search(&query, numbers.one_in(3)), snapshot.search(&query));
        let keys = |hits: &[ExternalHit]| hits.iter().map(|hit| hit.chunk).collect::<Vec<_>>();
        let wanted_keys: Vec<u64> = wanted.iter().map(|hit| hit.chunk).collect();
        assert_eq!(keys(&own), wanted_keys, "{seed} {query:?}\n{own:#?}\n{wanted:#?}");
        for (own, wanted) in own.iter().zip(&wanted) {
            assert!(is_close(own.words, wanted.words), "{seed} {query:?} {own:?} {wanted:?}");
            assert!(is_close(own.relevance, wanted.relevance), "{seed} {query:?} {own:?} {wanted:?}");
            assert_eq!(own.similarity, wanted.similarity, "{seed} {query:?}");
        }
        found += own.len();
    }
    found
}

fn is_close(one: f32, other: f32) -> bool {
    (one - other).abs() <= 1e-5 * one.abs().max(1.0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_store_answers_as_the_index_does(seed in any::<u64>(), documents in 0_usize..60) {
        compare(seed, documents, 8);
    }
}

#[test]
fn a_store_of_many_documents_answers_as_the_index_does() {
    let found: usize = (0..4).map(|seed| compare(seed, 400, 40)).sum();
    assert!(found > 500, "{found}");
}
