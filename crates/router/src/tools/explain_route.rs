//! `explain_route`: how a prompt would be routed, without calling a model.

use corbie_mcp::{Arguments, Context, Json, RegistrationError, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::grounding::{GroundingEffect, GroundingResult};
use crate::router::{Plan, ResolvedCandidate, Router};
use crate::{ChoiceReason, Decision};
use corbie_config::providers::Price;
use corbie_knowledge::grounding;
use corbie_util::number::shortest_f64;

const DESCRIPTION: &str = "Explain how a prompt would be routed, without calling a model: its category and confidence, \
the matching rule, whether reasoning is used, and the candidate models and providers in failover order with their \
prices.";

#[derive(Debug, Deserialize, JsonSchema)]
struct ExplainRouteInput {
    /// The prompt
    #[schemars(length(min = 1))]
    prompt: String,
    /// Model, as if requested by the caller
    #[schemars(length(min = 1, max = 256))]
    #[serde(default)]
    model: Option<String>,
}

/// Routing decision for a prompt.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RouteExplanation {
    /// Category that would be applied
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Index of the most probable category
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// Entropy of the probabilities in bits
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entropy: Option<f64>,
    /// Deciding method: rules, lexical, embedding, model or external
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The most probable categories, best first
    pub probabilities: Vec<Probability>,
    /// Whether the confidence is too low, so that the fallback category is applied
    pub used_fallback: bool,
    /// Whether the category requests reasoning; models without reasoning ignore it
    pub use_reasoning: bool,
    /// System prompt that would be sent
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Documents that match the prompt, if they affect routing
    #[serde(skip_serializing_if = "Option::is_none")]
    pub documents: Option<DocumentsOutput>,
    /// Providers and models that would be tried, in order
    pub candidates: Vec<CandidateOutput>,
    /// Requested models that no provider lists
    pub unavailable_models: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct DocumentsOutput {
    /// Relevance of the best passage, from 0 to 1
    pub relevance: f64,
    /// Number of passages that would be passed to the model
    pub passages: usize,
    /// answered: they answer the prompt; unsure: they may answer it; unanswered: they do not cover it
    pub verdict: &'static str,
    /// Files of the passages with page numbers, best first
    pub sources: Vec<String>,
    /// Model that would be tried first without the documents, if different
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_without_documents: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Probability {
    pub category: String,
    pub score: f64,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct CandidateOutput {
    pub provider: String,
    pub model: String,
    /// Reason: requested, documents, rule, category, fallback or default
    pub reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Whether the circuit of its provider is open
    pub circuit_open: bool,
    /// Price of a million tokens
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

pub(super) fn tool(router: Router) -> Result<Tool, RegistrationError> {
    Tool::builder("explain_route")
        .title("Explain the routing decision")
        .description(DESCRIPTION)
        .module("corbie::route")
        .idempotent(true)
        .input::<ExplainRouteInput>()
        .output::<Json<RouteExplanation>>()
        .run(move |context: Context, arguments: Arguments| {
            let router = router.clone();
            async move {
                let ExplainRouteInput { prompt, model } = arguments.parse()?;
                let documents = router.document_access(context.caller());
                Ok::<_, ToolError>(Json(RouteExplanation::of(router.plan(&prompt, model.as_deref(), documents).await)))
            }
        })
}

impl RouteExplanation {
    pub fn of(plan: Plan) -> RouteExplanation {
        let Plan { classification: looked, grounding: grounds, grounding_effect: say, decision, candidates, unserved } =
            plan;
        let documents = grounds.zip(say).map(|(grounds, say)| documents(&grounds, say, &decision));
        let looked = looked.as_ref();
        let probability =
            |(category, score): &(String, f32)| Probability { category: category.clone(), score: f64::from(*score) };
        RouteExplanation {
            category: decision.category,
            class: looked.map(|looked| looked.class),
            confidence: looked.map(|looked| shortest_f64(looked.output.confidence)),
            entropy: looked.and_then(|looked| looked.entropy),
            method: looked.map(|looked| looked.method.to_owned()),
            probabilities: looked.iter().flat_map(|looked| looked.top.iter().map(probability)).collect(),
            used_fallback: decision.fell_back,
            use_reasoning: decision.use_reasoning,
            system_prompt: decision.system_prompt,
            documents,
            candidates: candidates.into_iter().map(candidate).collect(),
            unavailable_models: unserved,
        }
    }
}

fn documents(grounds: &GroundingResult, say: GroundingEffect, decision: &Decision) -> DocumentsOutput {
    let mut sources: Vec<String> = grounds.passages.iter().map(grounding::citation_label).collect();
    sources.dedup();
    let first = decision.models.first().map(|choice| &choice.model);
    DocumentsOutput {
        relevance: shortest_f64(grounds.relevance),
        passages: grounds.passages.len(),
        verdict: say.verdict.as_str(),
        sources,
        model_without_documents: say.model_without_documents.filter(|otherwise| first != Some(otherwise)),
    }
}

fn candidate(contender: ResolvedCandidate) -> CandidateOutput {
    let ResolvedCandidate { provider, candidate, price } = contender;
    CandidateOutput {
        provider: provider.name.clone(),
        model: candidate.model,
        reason: candidate.reason.as_str(),
        rule: match candidate.reason {
            ChoiceReason::Rule(rule) => Some(rule),
            _ => None,
        },
        circuit_open: provider.is_circuit_open(),
        price,
    }
}
