//! The forms an answer can be wanted in.

use crate::providers::Answered;
use crate::providers::call::{Call, Outcome};
use crate::providers::chat::Completion;
use crate::providers::stream::Stream;

/// Asks one provider for an answer in one form.
pub(super) trait Bring {
    type Answer;

    fn bring(call: Call<'_>) -> impl Future<Output = Outcome<Self::Answer>> + Send;
}

/// All of it, read.
pub(super) struct Whole;

/// All of it, as it came where that can be.
pub(super) struct AsItCame;

/// The beginning, and the rest as it comes.
pub(super) struct InPieces;

impl Bring for Whole {
    type Answer = Completion;

    async fn bring(call: Call<'_>) -> Outcome<Completion> {
        call.complete().await
    }
}

impl Bring for AsItCame {
    type Answer = Answered;

    async fn bring(call: Call<'_>) -> Outcome<Answered> {
        call.pass_on().await
    }
}

impl Bring for InPieces {
    type Answer = Stream;

    async fn bring(call: Call<'_>) -> Outcome<Stream> {
        call.open().await
    }
}
