//! Response modes: buffered, passthrough and streaming.

use corbie_llm::ChatResponse;
use corbie_llm::call::{CallOutcome, ProviderCall};
use corbie_llm::chat::Completion;
use corbie_llm::stream::ChatStream;

/// Calls one provider and reads the response in one mode.
pub(super) trait ResponseMode {
    type Answer;

    fn request(call: ProviderCall<'_>) -> impl Future<Output = CallOutcome<Self::Answer>> + Send;
}

/// Buffered: the complete response, parsed.
pub(super) struct BufferedMode;

/// Passthrough: the complete response, forwarded without parsing if the provider's protocol allows it.
pub(super) struct PassthroughMode;

/// Streaming: returns after the first event, and the caller reads the rest as it arrives.
pub(super) struct StreamingMode;

impl ResponseMode for BufferedMode {
    type Answer = Completion;

    async fn request(call: ProviderCall<'_>) -> CallOutcome<Completion> {
        call.complete().await
    }
}

impl ResponseMode for PassthroughMode {
    type Answer = ChatResponse;

    async fn request(call: ProviderCall<'_>) -> CallOutcome<ChatResponse> {
        call.passthrough().await
    }
}

impl ResponseMode for StreamingMode {
    type Answer = ChatStream;

    async fn request(call: ProviderCall<'_>) -> CallOutcome<ChatStream> {
        call.open_stream().await
    }
}
