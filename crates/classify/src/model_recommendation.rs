//! Model recommendation: which model to use for a text, and whether to enable reasoning.
//!
//! Two ordered lists of rules; in each, the first matching rule decides (C-44). Without a match, the category decides.
//! A pure function: the same input always gives the same recommendation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::taxonomy::{Category, DEFAULT_MODEL};

/// The recommendation for a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelRecommendation<'a> {
    pub model: &'a str,
    pub use_reasoning: bool,
    /// Names of the deciding rules; `None` if the category decided.
    pub model_rule: Option<&'a str>,
    pub reasoning_rule: Option<&'a str>,
}

/// The input of a recommendation.
#[derive(Debug, Clone, Copy)]
pub struct RecommendationInput<'a> {
    pub text: &'a str,
    pub category: &'a Category,
    pub confidence: f32,
    pub out_of_scope: f32,
}

/// The two rule lists, compiled.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRecommender {
    model: Vec<RoutingRule<String>>,
    reasoning: Vec<RoutingRule<bool>>,
}

/// The two lists in the taxonomy file.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RoutingRules {
    /// Rules for the recommended model. The first matching rule decides; without one, the category's model is
    /// recommended.
    pub model: Vec<RoutingRule<String>>,
    /// Rules for reasoning. The first matching rule decides; without one, the category's setting applies.
    pub reasoning: Vec<RoutingRule<bool>>,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoutingRule<Choice> {
    /// Name of the rule in results.
    pub name: String,
    /// When the rule matches: all of its conditions must be met.
    #[serde(default)]
    pub when: Condition,
    /// Result of the rule: a model, or whether to reason.
    #[serde(rename = "use")]
    pub choice: Choice,
}

/// Conditions of a rule. Unset conditions are always met.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Condition {
    /// The category is one of these. A name that is not a category is allowed and never matches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
    /// The confidence is below this value, from 0 to 1.
    #[schemars(range(min = 0, max = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence_below: Option<f32>,
    /// The confidence is at least this value, from 0 to 1.
    #[schemars(range(min = 0, max = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence_at_least: Option<f32>,
    /// The out-of-scope score of the text, from 0 to 1, is at least this high.
    #[schemars(range(min = 0, max = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub out_of_scope_at_least: Option<f32>,
    /// The text has more than this number of words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words_over: Option<usize>,
    /// The text has at most this number of words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words_at_most: Option<usize>,
    /// The text contains at least one of these words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub any_word: Vec<String>,
    /// The text contains none of these words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub no_word: Vec<String>,
}

/// Below this confidence the contract's rules recommend a stronger model and reasoning.
const LOW_CONFIDENCE: f32 = 0.6;
/// Texts with more words than this are long.
const LONG_TEXT_WORDS: usize = 20;
/// Words of questions that need reasoning.
const REASONING_WORDS: &[&str] = &[
    "analyse",
    "analysis",
    "analyze",
    "argue",
    "assess",
    "compare",
    "contrast",
    "critique",
    "derive",
    "describe",
    "design",
    "discuss",
    "elaborate",
    "evaluate",
    "examine",
    "explain",
    "how",
    "interpret",
    "investigate",
    "justify",
    "outline",
    "prove",
    "rationale",
    "reason",
    "strategy",
    "synthesize",
    "tradeoffs",
    "why",
];
/// Words of programming tasks that go beyond a question.
const CODE_TASK_WORDS: &[&str] = &[
    "algorithm",
    "architecture",
    "build",
    "concurrency",
    "concurrent",
    "debug",
    "deadlock",
    "design",
    "develop",
    "implement",
    "migrate",
    "optimise",
    "optimize",
    "performance",
    "port",
    "redesign",
    "refactor",
    "rewrite",
    "scale",
    "security",
];

impl ModelRecommender {
    /// The recommendation for a text.
    pub fn recommend<'a>(&'a self, facts: RecommendationInput<'a>) -> ModelRecommendation<'a> {
        let words = TextWords::of(facts.text);
        let model = self.model.iter().find(|rule| rule.when.matches(facts, &words));
        let reasoning = self.reasoning.iter().find(|rule| rule.when.matches(facts, &words));
        ModelRecommendation {
            model: model.map_or(&facts.category.model, |rule| &rule.choice),
            use_reasoning: reasoning.map_or(facts.category.use_reasoning, |rule| rule.choice),
            model_rule: model.map(|rule| rule.name.as_str()),
            reasoning_rule: reasoning.map(|rule| rule.name.as_str()),
        }
    }
}

/// The rules of the contract: C-40 to C-43, in the order of C-44.
impl Default for ModelRecommender {
    fn default() -> ModelRecommender {
        let words = |lists: &[&[&str]]| -> Vec<String> { lists.concat().iter().map(|&word| word.to_owned()).collect() };
        let of = |name: &str| Condition { categories: vec![name.to_owned()], ..Condition::default() };
        let simple_math =
            Condition { words_at_most: Some(LONG_TEXT_WORDS), no_word: words(&[REASONING_WORDS]), ..of("math") };
        let code_task = Condition { any_word: words(&[REASONING_WORDS, CODE_TASK_WORDS]), ..of("code") };
        let long_code = Condition { words_over: Some(LONG_TEXT_WORDS), ..of("code") };
        let unsure = Condition { confidence_below: Some(LOW_CONFIDENCE), ..Condition::default() };
        let long_and_complex = Condition {
            words_over: Some(LONG_TEXT_WORDS),
            any_word: words(&[REASONING_WORDS]),
            ..Condition::default()
        };
        fn rule<Choice>(name: &str, when: &Condition, choice: Choice) -> RoutingRule<Choice> {
            RoutingRule { name: name.to_owned(), when: when.clone(), choice }
        }
        let coder = || "deepseek/deepseek-coder".to_owned();
        ModelRecommender::from(RoutingRules {
            model: vec![
                rule("simple-math", &simple_math, DEFAULT_MODEL.to_owned()),
                rule("complex-code", &code_task, coder()),
                rule("long-code", &long_code, coder()),
                rule("unsure", &unsure, "openai/gpt-4".to_owned()),
            ],
            reasoning: vec![
                rule("long-and-complex", &long_and_complex, true),
                rule("simple-math", &simple_math, false),
                rule("complex-code", &code_task, true),
                rule("long-code", &long_code, true),
                rule("unsure", &unsure, true),
            ],
        })
    }
}

/// Words are lower-cased and sorted for binary search.
impl From<RoutingRules> for ModelRecommender {
    fn from(rules: RoutingRules) -> ModelRecommender {
        fn prepared<Choice>(mut rule: RoutingRule<Choice>) -> RoutingRule<Choice> {
            for words in [&mut rule.when.any_word, &mut rule.when.no_word] {
                words.iter_mut().for_each(|word| *word = word.to_lowercase());
                words.sort_unstable();
            }
            rule
        }
        let RoutingRules { model, reasoning } = rules;
        ModelRecommender {
            model: model.into_iter().map(prepared).collect(),
            reasoning: reasoning.into_iter().map(prepared).collect(),
        }
    }
}

impl Condition {
    fn matches(&self, facts: RecommendationInput<'_>, words: &TextWords) -> bool {
        (self.categories.is_empty() || self.categories.contains(&facts.category.name))
            && self.confidence_below.is_none_or(|limit| facts.confidence < limit)
            && self.confidence_at_least.is_none_or(|limit| facts.confidence >= limit)
            && self.out_of_scope_at_least.is_none_or(|limit| facts.out_of_scope >= limit)
            && self.words_over.is_none_or(|limit| words.count > limit)
            && self.words_at_most.is_none_or(|limit| words.count <= limit)
            && (self.any_word.is_empty() || words.has_any(&self.any_word))
            && !words.has_any(&self.no_word)
    }
}

/// The words of a text, as rules match them.
struct TextWords {
    count: usize,
    /// In lower case.
    words: Vec<String>,
}

impl TextWords {
    fn of(text: &str) -> TextWords {
        let count = text.split_whitespace().count();
        let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
        TextWords { count, words: words.map(str::to_lowercase).collect() }
    }

    fn has_any(&self, sorted: &[String]) -> bool {
        !sorted.is_empty() && self.words.iter().any(|word| sorted.binary_search(word).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::taxonomy::Taxonomy;

    fn category(name: &str) -> Category {
        let mut category = Taxonomy::builtin().categories.remove(0);
        category.name = name.to_owned();
        category.model = format!("own/{name}");
        category
    }

    fn check(name: &str, confidence: f32, text: &str, model: (&str, Option<&str>), reasoning: (bool, Option<&str>)) {
        let (category, routing) = (category(name), ModelRecommender::default());
        let advice =
            routing.recommend(RecommendationInput { text, category: &category, confidence, out_of_scope: 0.0 });
        assert_eq!((advice.model, advice.model_rule), model, "{text}");
        assert_eq!((advice.use_reasoning, advice.reasoning_rule), reasoning, "{text}");
    }

    const FAST: &str = "openai/gpt-oss-20b";
    const LONG_QUESTION: &str = "there are very many words in this text about nothing in particular, so please explain \
                                 why anybody should read all of them to the end";

    #[test]
    fn c40_simple_math_gets_the_fast_model_and_no_reasoning() {
        check("math", 0.9, "what is 2 + 2?", (FAST, Some("simple-math")), (false, Some("simple-math")));
        check("math", 0.3, "what is 2 + 2?", (FAST, Some("simple-math")), (false, Some("simple-math")));
    }

    #[test]
    fn c41_x29_a_coding_task_gets_the_coder_once_there_is_such_a_category() {
        let (coder, rule) = ("deepseek/deepseek-coder", Some("complex-code"));
        check("code", 0.9, "Refactor this parser", (coder, rule), (true, rule));
        check("code", 0.9, "what does len() return", ("own/code", None), (false, None));
        check("technology", 0.9, "Refactor this parser", ("own/technology", None), (false, None));
        assert!(!Taxonomy::builtin().names().any(|name| name == "code"));
    }

    #[test]
    fn c42_when_unsure_a_better_model_reasons() {
        check("history", 0.59, "who was it", ("openai/gpt-4", Some("unsure")), (true, Some("unsure")));
        check("history", 0.6, "who was it", ("own/history", None), (false, None));
    }

    #[test]
    fn c43_long_and_complex_texts_are_reasoned_about() {
        check("history", 0.9, LONG_QUESTION, ("own/history", None), (true, Some("long-and-complex")));
        check("history", 0.9, "explain why", ("own/history", None), (false, None));
        check("history", 0.9, &"word ".repeat(21), ("own/history", None), (false, None));
    }

    #[test]
    fn c44_in_each_list_the_first_rule_that_fits_decides() {
        // Long and complex takes precedence for reasoning, and is not a model rule.
        check("math", 0.3, LONG_QUESTION, ("openai/gpt-4", Some("unsure")), (true, Some("long-and-complex")));
        check(
            "code",
            0.3,
            "implement it",
            ("deepseek/deepseek-coder", Some("complex-code")),
            (true, Some("complex-code")),
        );
    }

    #[test]
    fn c44_conditions_look_at_scope_and_confidence_too() {
        let when =
            Condition { out_of_scope_at_least: Some(0.9), confidence_at_least: Some(0.5), ..Condition::default() };
        let rules = RoutingRules {
            model: vec![RoutingRule { name: "strange".into(), when, choice: "big".into() }],
            reasoning: vec![],
        };
        let (routing, category) = (ModelRecommender::from(rules), category("a"));
        let model = |confidence, out_of_scope| {
            routing.recommend(RecommendationInput { text: "x", category: &category, confidence, out_of_scope }).model
        };
        assert_eq!((model(0.5, 0.9), model(0.5, 0.8), model(0.4, 0.9)), ("big", "own/a", "own/a"));
    }
}
