//! Response modes: buffered, passthrough and streaming.

use crate::providers::Answered;
use crate::providers::call::{Call, Outcome};
use crate::providers::chat::Completion;
use crate::providers::stream::Stream;

/// Calls one provider and reads the response in one mode.
pub(super) trait Bring {
    type Answer;

    fn bring(call: Call<'_>) -> impl Future<Output = Outcome<Self::Answer>> + Send;
}

/// Buffered: the complete response, parsed.
pub(super) struct Whole;

/// Passthrough: the complete response, forwarded without parsing if the provider's protocol allows it.
pub(super) struct AsItCame;

/// Streaming: returns after the first event, and the caller reads the rest as it arrives.
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
