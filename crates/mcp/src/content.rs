//! Content blocks of tools, prompts and resources: text, images, audio, files.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One item of a tool result or a prompt message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentBlock {
    Text(TextContent),
    Image(MediaContent),
    Audio(MediaContent),
    /// A link to a resource readable with `resources/read`.
    ResourceLink(Value),
    /// The embedded resource.
    Resource {
        resource: ResourceContents,
        #[serde(flatten)]
        extra: ContentMetadata,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TextContent {
    pub text: String,
    #[serde(flatten)]
    pub extra: ContentMetadata,
}

/// Base64 data with a media type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MediaContent {
    pub data: String,
    #[serde(rename = "mimeType")]
    pub mime_type: String,
    #[serde(flatten)]
    pub extra: ContentMetadata,
}

/// Optional members of any content block (M-11).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ContentMetadata {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
}

/// Contents of a resource: text, or bytes in base64.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResourceContents {
    pub uri: String,
    #[serde(rename = "mimeType", default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
}

impl ContentBlock {
    pub fn text(text: impl Into<String>) -> ContentBlock {
        ContentBlock::Text(TextContent { text: text.into(), extra: ContentMetadata::default() })
    }

    /// `data` is base64.
    pub fn image(data: impl Into<String>, mime_type: impl Into<String>) -> ContentBlock {
        ContentBlock::Image(MediaContent {
            data: data.into(),
            mime_type: mime_type.into(),
            extra: ContentMetadata::default(),
        })
    }

    /// `data` is base64.
    pub fn audio(data: impl Into<String>, mime_type: impl Into<String>) -> ContentBlock {
        ContentBlock::Audio(MediaContent {
            data: data.into(),
            mime_type: mime_type.into(),
            extra: ContentMetadata::default(),
        })
    }

    pub fn resource(resource: ResourceContents) -> ContentBlock {
        ContentBlock::Resource { resource, extra: ContentMetadata::default() }
    }

    /// The text, if the block has no other members.
    pub(crate) fn as_plain_text(&self) -> Option<&str> {
        match self {
            ContentBlock::Text(TextContent { text, extra }) if *extra == ContentMetadata::default() => Some(text),
            _ => None,
        }
    }

    /// The text, if this is a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            ContentBlock::Text(text) => Some(&text.text),
            _ => None,
        }
    }
}

impl ResourceContents {
    pub fn text(uri: impl Into<String>, mime_type: impl Into<String>, text: impl Into<String>) -> ResourceContents {
        ResourceContents {
            uri: uri.into(),
            mime_type: Some(mime_type.into()),
            text: Some(text.into()),
            blob: None,
            meta: None,
        }
    }

    /// `blob` is base64.
    pub fn blob(uri: impl Into<String>, mime_type: impl Into<String>, blob: impl Into<String>) -> ResourceContents {
        ResourceContents {
            uri: uri.into(),
            mime_type: Some(mime_type.into()),
            text: None,
            blob: Some(blob.into()),
            meta: None,
        }
    }
}
