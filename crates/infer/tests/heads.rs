//! Trained classifiers on synthetic data: six topics with distinct words, each a cluster of vectors. Four are trained,
//! two are out of scope.

use std::ops::Range;
use std::sync::LazyLock;

use corbie_infer::heads::{Classifier, ClassifyError, Example, LoadError, Prediction, TrainError};
use corbie_infer::{Embedding, ModelId};

const DIMENSION: usize = 32;
const TOPICS: [[&str; 4]; 6] = [
    ["invoice", "refund", "payment", "receipt"],
    ["rain", "sunshine", "forecast", "storm"],
    ["guitar", "concert", "album", "singer"],
    ["flight", "hotel", "luggage", "passport"],
    ["protein", "enzyme", "membrane", "genome"],
    ["goalkeeper", "penalty", "referee", "league"],
];
const LEARNED: usize = 4;
const PHRASES: [&str; 5] =
    ["tell me about the {}", "what is a {}?", "i need help with my {}", "is there any {} today", "{} please"];

/// One shared classifier for read-only tests.
static TRAINED: LazyLock<Classifier> =
    LazyLock::new(|| train(&TextGenerator::new().texts(0..LEARNED, 40), LEARNED).expect("it trains"));

struct LabelledText {
    text: String,
    embedding: Embedding,
    topic: usize,
}

/// Deterministic text generator.
struct TextGenerator {
    state: u64,
    centres: Vec<Vec<f32>>,
}

impl TextGenerator {
    fn new() -> TextGenerator {
        let mut world = TextGenerator { state: 42, centres: Vec::new() };
        world.centres = (0..TOPICS.len()).map(|_| world.noise()).collect();
        world
    }

    /// The generator after the training texts of [`TRAINED`].
    fn unseen() -> TextGenerator {
        TextGenerator { state: 4711, ..TextGenerator::new() }
    }

    fn texts(&mut self, topics: Range<usize>, each: usize) -> Vec<LabelledText> {
        (0..each).flat_map(|_| topics.clone()).map(|topic| self.text(topic)).collect()
    }

    /// The noise makes neighbouring clusters overlap, and one text in ten has a word of another topic.
    fn text(&mut self, topic: usize) -> LabelledText {
        let says = if self.below(10) == 0 { self.below(TOPICS.len()) } else { topic };
        let word = TOPICS[says][self.below(4)];
        let text = PHRASES[self.below(PHRASES.len())].replace("{}", word);
        let noise = self.noise();
        let vector = self.centres[topic].iter().zip(noise).map(|(centre, noise)| centre + 1.2 * noise).collect();
        LabelledText { text, embedding: embedding("small-world", unit(vector)), topic }
    }

    fn noise(&mut self) -> Vec<f32> {
        // The sum of twelve uniform numbers approximates a normal distribution.
        let numbers = (0..DIMENSION).map(|_| (0..12).map(|_| self.uniform()).sum::<f32>() - 6.0);
        unit(numbers.collect())
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.uniform() * limit as f32) as usize
    }

    fn uniform(&mut self) -> f32 {
        self.state = self.state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.state >> 40) as f32 / (1u32 << 24) as f32
    }
}

fn unit(vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    vector.into_iter().map(|number| number / length).collect()
}

fn embedding(model: &str, vector: Vec<f32>) -> Embedding {
    Embedding { model: ModelId::from(model), vector, tokens: 4, truncated: false }
}

fn train(texts: &[LabelledText], classes: usize) -> Result<Classifier, TrainError> {
    let examples: Vec<Example<'_>> =
        texts.iter().map(|text| Example { text: &text.text, embedding: &text.embedding, class: text.topic }).collect();
    Classifier::train(&examples, classes)
}

fn classify(classifier: &Classifier, texts: &[LabelledText]) -> Vec<Prediction> {
    texts.iter().map(|text| classifier.classify(&text.text, &text.embedding).expect("one model")).collect()
}

#[test]
fn unseen_texts_are_told_right() {
    let texts = TextGenerator::unseen().texts(0..LEARNED, 100);
    let verdicts = classify(&TRAINED, &texts);
    let right = verdicts.iter().zip(&texts).filter(|(verdict, text)| verdict.class() == text.topic).count();
    assert!(right >= 360, "{right} of 400");
}

#[test]
fn confidence_is_as_often_right_as_it_says() {
    let texts = TextGenerator::unseen().texts(0..LEARNED, 100);
    let verdicts = classify(&TRAINED, &texts);
    let right = verdicts.iter().zip(&texts).filter(|(verdict, text)| verdict.class() == text.topic).count();
    let believed: f32 = verdicts.iter().map(Prediction::confidence).sum();
    assert!((believed - right as f32).abs() < 0.05 * 400.0, "{right} are right, {believed} were believed to be");
}

#[test]
fn texts_of_unknown_topics_look_strange() {
    let mut world = TextGenerator::unseen();
    let known = classify(&TRAINED, &world.texts(0..LEARNED, 50));
    let strange = classify(&TRAINED, &world.texts(LEARNED..TOPICS.len(), 100));
    let pairs = strange.iter().flat_map(|one| known.iter().map(move |other| one.strangeness > other.strangeness));
    let share = pairs.filter(|is_stranger| *is_stranger).count() as f32 / (200 * 200) as f32;
    assert!(share > 0.9, "{share}");
    let refused = |verdicts: &[Prediction]| verdicts.iter().filter(|verdict| verdict.out_of_scope >= 0.95).count();
    assert!(refused(&strange) > 100 && refused(&known) < 30, "{} and {}", refused(&strange), refused(&known));
}

#[test]
fn probabilities_are_probabilities() {
    let mut world = TextGenerator::unseen();
    let mut texts = world.texts(0..TOPICS.len(), 5);
    for odd in ["", " \n ", "?!", "\u{0}\u{202e}", "ÅΩß漢字🦀", &"long ".repeat(10_000)] {
        texts.push(LabelledText { text: odd.to_owned(), ..world.text(0) });
    }
    for verdict in classify(&TRAINED, &texts) {
        assert_eq!(verdict.probabilities.len(), LEARNED);
        assert!((verdict.probabilities.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{verdict:?}");
        assert!(verdict.probabilities.iter().all(|probability| (0.0..=1.0).contains(probability)), "{verdict:?}");
        assert!((0.0..=1.0).contains(&verdict.out_of_scope) && verdict.strangeness.is_finite(), "{verdict:?}");
    }
}

#[test]
fn the_same_examples_give_the_same_bytes() {
    let again = train(&TextGenerator::new().texts(0..LEARNED, 40), LEARNED).unwrap();
    assert!(again.to_bytes() == TRAINED.to_bytes());
}

#[test]
fn a_saved_classifier_gives_the_same_verdicts() {
    let loaded = Classifier::from_bytes(&TRAINED.to_bytes()).unwrap();
    assert_eq!((loaded.model(), loaded.classes()), (TRAINED.model(), LEARNED));
    let texts = TextGenerator::unseen().texts(0..TOPICS.len(), 10);
    assert_eq!(classify(&loaded, &texts), classify(&TRAINED, &texts));
    assert!(loaded.to_bytes() == TRAINED.to_bytes());
}

#[test]
fn what_is_no_saved_classifier_is_refused() {
    assert_eq!(Classifier::from_bytes(b"{}").unwrap_err(), LoadError::InvalidMagic);
    let bytes = TRAINED.to_bytes();
    let cut = Classifier::from_bytes(&bytes[..bytes.len() - 1]).unwrap_err();
    assert_eq!(cut, LoadError::WrongLength { found: bytes.len() - 1, expected: bytes.len() as u64 });
    assert!(cut.to_string().ends_with("copy it again or retrain"), "{cut}");
}

#[test]
fn one_example_of_each_class_is_enough_to_begin_with() {
    let mut world = TextGenerator::new();
    let classifier = train(&world.texts(0..LEARNED, 1), LEARNED).unwrap();
    let texts = world.texts(0..LEARNED, 25);
    let verdicts = classify(&classifier, &texts);
    let right = verdicts.iter().zip(&texts).filter(|(verdict, text)| verdict.class() == text.topic).count();
    assert!(right > 50, "{right} of 100");
    assert!(verdicts.iter().all(|verdict| verdict.out_of_scope == 0.0), "it has nothing to tell strangers by");
}

#[test]
fn classes_may_be_of_very_different_sizes() {
    let mut world = TextGenerator::new();
    let mut texts = world.texts(0..1, 60);
    texts.extend(world.texts(1..2, 6));
    texts.push(world.text(2));
    let classifier = train(&texts, 3).unwrap();
    let unseen = world.texts(0..2, 20);
    let verdicts = classify(&classifier, &unseen);
    let right = verdicts.iter().zip(&unseen).filter(|(verdict, text)| verdict.class() == text.topic).count();
    assert!(right > 30, "{right} of 40");
}

#[test]
fn examples_that_are_all_alike_still_give_probabilities() {
    let mut world = TextGenerator::new();
    let one = world.text(0);
    let texts: Vec<LabelledText> = (0..20)
        .map(|index| LabelledText { text: one.text.clone(), embedding: one.embedding.clone(), topic: index % 2 })
        .collect();
    let verdict = train(&texts, 2).unwrap().classify(&one.text, &one.embedding).unwrap();
    assert!((verdict.confidence() - 0.5).abs() < 0.05, "{verdict:?}");
}

#[test]
fn unusable_examples_are_refused_with_the_next_step() {
    let refused = |change: &dyn Fn(&mut Vec<LabelledText>), classes| {
        let mut texts = TextGenerator::new().texts(0..LEARNED, 2);
        change(&mut texts);
        train(&texts, classes).unwrap_err()
    };
    assert_eq!(refused(&|texts| texts.clear(), 4), TrainError::NoExamples);
    assert_eq!(refused(&|_| (), 1), TrainError::TooFewClasses { classes: 1 });
    assert_eq!(refused(&|_| (), 3), TrainError::NoSuchClass { index: 3, class: 3, classes: 3 });
    assert_eq!(refused(&|_| (), 5), TrainError::ClassWithoutExamples { class: 4 });
    assert_eq!(refused(&|_| (), usize::MAX), TrainError::ClassWithoutExamples { class: 4 });
    assert_eq!(
        refused(&|texts| texts.retain(|text| text.topic != 1), 4),
        TrainError::ClassWithoutExamples { class: 1 }
    );
    assert_eq!(
        refused(&|texts| texts[5].embedding.model = ModelId::from("other"), 4),
        TrainError::MixedModels { index: 5, found: ModelId::from("other"), expected: ModelId::from("small-world") }
    );
    assert_eq!(
        refused(&|texts| texts[5].embedding.vector = vec![1.0], 4),
        TrainError::MixedDimensions { index: 5, found: 1, expected: DIMENSION }
    );
    for number in [f32::NAN, f32::INFINITY, 7.0] {
        assert_eq!(refused(&|texts| texts[5].embedding.vector[3] = number, 4), TrainError::NotAUnitVector { index: 5 });
    }
}

#[test]
fn vectors_of_another_model_get_no_verdict() {
    let refused = |model, vector| TRAINED.classify("hello", &embedding(model, vector)).unwrap_err();
    let expected = ModelId::from("small-world");
    let other = refused("other", unit(vec![1.0; DIMENSION]));
    assert_eq!(other, ClassifyError::ModelMismatch { found: ModelId::from("other"), expected });
    assert_eq!(refused("small-world", vec![1.0]), ClassifyError::DimensionMismatch { found: 1, expected: DIMENSION });
    assert_eq!(refused("small-world", vec![f32::NAN; DIMENSION]), ClassifyError::NotAUnitVector);
}

#[test]
fn thousands_of_classes_are_learned_in_seconds() {
    let mut world = TextGenerator::new();
    let classes = 2000;
    world.centres = (0..classes).map(|_| world.noise()).collect();
    let texts: Vec<LabelledText> = (0..2 * classes)
        .map(|index| {
            let topic = index % classes;
            let noise = world.noise();
            let vector = world.centres[topic].iter().zip(noise).map(|(centre, noise)| centre + 0.3 * noise).collect();
            LabelledText { text: format!("topic {topic}"), embedding: embedding("small-world", unit(vector)), topic }
        })
        .collect();
    let started = std::time::Instant::now();
    let classifier = train(&texts, classes).unwrap();
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
    let right =
        texts.iter().filter(|text| classifier.classify(&text.text, &text.embedding).unwrap().class() == text.topic);
    assert!(right.count() > texts.len() * 9 / 10);
    assert_eq!(Classifier::from_bytes(&classifier.to_bytes()).unwrap().to_bytes(), classifier.to_bytes());
}

#[test]
fn the_nearest_examples_are_named_and_vote() {
    let text = TextGenerator::unseen().text(2);
    let nearest = TRAINED.nearest(&text.embedding).unwrap();
    assert_eq!(nearest.len(), 20);
    assert!(nearest.is_sorted_by(|one, next| one.similarity >= next.similarity));
    let votes = TRAINED.classify_knn(&text.embedding).unwrap().unwrap();
    assert!((votes.probabilities.iter().sum::<f32>() - 1.0).abs() < 1e-5);
    let foreign = embedding("another model", vec![1.0; DIMENSION]);
    assert!(matches!(TRAINED.classify_knn(&foreign).unwrap(), Err(ClassifyError::ModelMismatch { .. })));
    assert!(matches!(TRAINED.nearest(&foreign), Err(ClassifyError::ModelMismatch { .. })));
}

#[test]
fn a_glance_settles_nothing_after_few_examples_and_plain_texts_after_many() {
    let few = train(&TextGenerator::new().texts(0..LEARNED, 10), LEARNED).unwrap();
    assert_eq!(few.classify_early("tell me about the invoice"), None);
    let plain: Vec<LabelledText> = (0..400)
        .map(|index| {
            let topic = index % LEARNED;
            let text = PHRASES[index / LEARNED % PHRASES.len()].replace("{}", TOPICS[topic][index / 20 % 4]);
            let noise = TextGenerator::new().noise();
            LabelledText { text, embedding: embedding("small-world", noise), topic }
        })
        .collect();
    let many = train(&plain, LEARNED).unwrap();
    let verdict = many.classify_early("tell me about the invoice").expect("its words leave no doubt");
    assert_eq!(verdict.class(), 0);
    assert!(verdict.confidence() > 0.9 && verdict.out_of_scope < 0.95, "{verdict:?}");
    assert_eq!(many.classify_early("completely unheard sesquipedalian vocabulary"), None);
}
