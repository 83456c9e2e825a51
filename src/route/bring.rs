//! The forms an answer can be wanted in.

use std::sync::Arc;

use tokio::time::Instant;

use crate::providers::call::{self, Hope, Outcome};
use crate::providers::chat::Completion;
use crate::providers::provider::Provider;
use crate::providers::stream::Stream;
use crate::providers::{Answered, Question};

/// Asks one provider for an answer in one form.
pub(super) trait Bring {
    type Answer;

    fn bring(
        provider: &Arc<Provider>,
        key: usize,
        question: &Question,
        deadline: Instant,
        hope: Hope,
    ) -> impl Future<Output = Outcome<Self::Answer>> + Send;
}

/// All of it, read.
pub(super) struct Whole;

/// All of it, as it came where that can be.
pub(super) struct AsItCame;

/// The beginning, and the rest as it comes.
pub(super) struct InPieces;

impl Bring for Whole {
    type Answer = Completion;

    async fn bring(
        provider: &Arc<Provider>,
        key: usize,
        question: &Question,
        deadline: Instant,
        hope: Hope,
    ) -> Outcome<Completion> {
        call::complete(provider, key, question, deadline, hope).await
    }
}

impl Bring for AsItCame {
    type Answer = Answered;

    async fn bring(
        provider: &Arc<Provider>,
        key: usize,
        question: &Question,
        deadline: Instant,
        hope: Hope,
    ) -> Outcome<Answered> {
        call::pass_on(provider, key, question, deadline, hope).await
    }
}

impl Bring for InPieces {
    type Answer = Stream;

    async fn bring(
        provider: &Arc<Provider>,
        key: usize,
        question: &Question,
        deadline: Instant,
        hope: Hope,
    ) -> Outcome<Stream> {
        call::open(provider, key, question, deadline, hope).await
    }
}
