//! `explain_route`: how a prompt would be routed, without calling a model.

use corbie_mcp::{Arguments, Context, Json, RegistrationError, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::classify::tools::short;
use crate::config::providers::Price;
use crate::knowledge::grounding;
use crate::route::ground::{Grounds, Say};
use crate::route::router::{Contender, Plan, Router};
use crate::route::{Decision, Why};

const DESCRIPTION: &str = "Tells where a prompt would go, without asking any model: its category and how sure that is, the \
rule, whether the model would reason, who would be asked in which order, and what they cost.";

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    /// The prompt
    #[schemars(length(min = 1))]
    prompt: String,
    /// A model, as if the caller named it
    #[schemars(length(min = 1, max = 256))]
    #[serde(default)]
    model: Option<String>,
}

/// What would be done with a prompt.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Explained {
    /// The category that counts
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// The number of the most probable category
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// How undecided it is, in bits
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entropy: Option<f64>,
    /// What decided: rules, words, embedding, model or external
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The most probable categories, best first
    pub probabilities: Vec<Probability>,
    /// It is not sure enough, and the fallback category counts
    pub fell_back: bool,
    /// Whether the category wants the model to reason; one that cannot is told nothing
    pub use_reasoning: bool,
    /// What the model would be told first
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// What the documents know of it, where they have a say
    #[serde(skip_serializing_if = "Option::is_none")]
    pub documents: Option<Documents>,
    /// Who would be asked, in order
    pub candidates: Vec<Candidate>,
    /// Models that are wanted and that nobody is known to serve
    pub unserved: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Documents {
    /// How relevant the best passage is, from 0 to 1
    pub relevance: f64,
    /// How many passages the model would be given
    pub passages: usize,
    /// known: they answer it; unsure: they may; unknown: they say nothing about it
    pub verdict: &'static str,
    /// The files the passages stand in, with their pages, best first
    pub sources: Vec<String>,
    /// The model that would be asked first without them, where it is another
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Probability {
    pub category: String,
    pub score: f64,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Candidate {
    pub provider: String,
    pub model: String,
    /// What chose it: asked, documents, rule, category, fallback or default
    pub why: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Whether its provider is left alone at the moment
    pub resting: bool,
    /// What a million of its tokens cost
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

pub(super) fn tool(router: Router) -> Result<Tool, RegistrationError> {
    Tool::builder("explain_route")
        .title("Explain a route")
        .description(DESCRIPTION)
        .module("corbie::route")
        .idempotent(true)
        .input::<Input>()
        .output::<Json<Explained>>()
        .run(move |context: Context, arguments: Arguments| {
            let router = router.clone();
            async move {
                let Input { prompt, model } = arguments.parse()?;
                let documents = router.documents_for(context.caller());
                Ok::<_, ToolError>(Json(Explained::of(router.plan(&prompt, model.as_deref(), documents).await)))
            }
        })
}

impl Explained {
    pub fn of(plan: Plan) -> Explained {
        let Plan { looked, grounds, say, decision, candidates, unserved } = plan;
        let documents = grounds.zip(say).map(|(grounds, say)| documents(&grounds, say, &decision));
        let looked = looked.as_ref();
        let probability =
            |(category, score): &(String, f32)| Probability { category: category.clone(), score: f64::from(*score) };
        Explained {
            category: decision.category,
            class: looked.map(|looked| looked.class),
            confidence: looked.map(|looked| short(looked.seen.confidence)),
            entropy: looked.and_then(|looked| looked.entropy),
            method: looked.map(|looked| looked.method.to_owned()),
            probabilities: looked.iter().flat_map(|looked| looked.top.iter().map(probability)).collect(),
            fell_back: decision.fell_back,
            use_reasoning: decision.use_reasoning,
            system_prompt: decision.system_prompt,
            documents,
            candidates: candidates.into_iter().map(candidate).collect(),
            unserved,
        }
    }
}

fn documents(grounds: &Grounds, say: Say, decision: &Decision) -> Documents {
    let mut sources: Vec<String> = grounds.passages.iter().map(grounding::place).collect();
    sources.dedup();
    let first = decision.models.first().map(|choice| &choice.model);
    Documents {
        relevance: short(grounds.relevance),
        passages: grounds.passages.len(),
        verdict: say.verdict.as_str(),
        sources,
        instead_of: say.otherwise.filter(|otherwise| first != Some(otherwise)),
    }
}

fn candidate(contender: Contender) -> Candidate {
    let Contender { provider, candidate, price } = contender;
    Candidate {
        provider: provider.name.clone(),
        model: candidate.model,
        why: candidate.why.as_str(),
        rule: match candidate.why {
            Why::Rule(rule) => Some(rule),
            _ => None,
        },
        resting: provider.is_resting(),
        price,
    }
}
