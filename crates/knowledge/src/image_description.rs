//! Descriptions of images without text, by a vision model.
//!
//! Documents stay on this machine unless the operator configures such a model (K-10). The description precedes the
//! metadata of the image.

use std::sync::Arc;

use base64::prelude::{BASE64_STANDARD, Engine};
use corbie_extract::{Block, BlockKind, Format, Warning};

use super::chat_model::{ChatModel, ModelError, ModelPrompt};
use crate::workers::Extraction;
use corbie_llm::Chat;
use corbie_llm::chat::{ChatRole, ContentPart, Image, Message};

/// Client of the vision model.
#[derive(Debug, Clone)]
pub struct ImageDescriber {
    pub client: Arc<dyn ChatModel>,
    /// Name of the vision model.
    pub model: String,
}

const PROMPT: &str = "Describe this image in two or three plain sentences so that it can be found by search: its \
subject, the place, and notable details. No introduction.";
/// Size limit of such models.
const MAX_IMAGE_BYTES: usize = 5 << 20;
/// Enough for a few sentences; reasoning models use most of it for reasoning.
const MAX_RESPONSE_TOKENS: u32 = 2000;
/// Maximum characters of an answer that are kept.
const MAX_DESCRIPTION_CHARS: usize = 4000;

impl ImageDescriber {
    /// Adds a description to an image in which OCR found no text. If that fails, adds a warning.
    pub async fn describe(&self, bytes: &[u8], read: &mut Extraction) {
        let media_type = match read.document.format {
            Format::Jpg => "image/jpeg",
            Format::Png => "image/png",
            _ => return,
        };
        // An image that was not searched for text, or not read completely, may contain text that must not leave the
        // machine.
        let [page] = read.document.pages.as_mut_slice() else { return };
        if !read.wordless {
            return;
        }
        if bytes.len() > MAX_IMAGE_BYTES {
            let message = format!("image description skipped: image is larger than {} MiB", MAX_IMAGE_BYTES >> 20);
            return read.document.warnings.push(Warning::on_page(1, message));
        }
        match self.request_description(bytes, media_type).await {
            Ok(text) if text.is_empty() => {}
            Ok(text) => page.blocks.insert(0, Block::new(BlockKind::Caption, text)),
            Err(error) => {
                read.document.warnings.push(Warning::on_page(1, format!("image description failed: {error}")))
            }
        }
    }

    async fn request_description(&self, bytes: &[u8], media_type: &str) -> Result<String, ModelError> {
        let image = Image::Inline { media_type: media_type.into(), base64: BASE64_STANDARD.encode(bytes) };
        let parts = vec![ContentPart::Image { image }, ContentPart::Text { text: PROMPT.into() }];
        let messages = vec![Message { role: ChatRole::User, parts }];
        let chat = Chat { messages, max_tokens: Some(MAX_RESPONSE_TOKENS), ..Chat::default() };
        let prompt = ModelPrompt { chat, model: Some(self.model.clone()), caller: None, relevance: None };
        let answer = self.client.complete(prompt).await?;
        Ok(answer.text.trim().chars().take(MAX_DESCRIPTION_CHARS).collect())
    }
}
