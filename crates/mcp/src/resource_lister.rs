//! Paginated lists of dynamic resources, such as the documents of a store.
//!
//! Clients read them through a [`ResourceTemplate`](crate::ResourceTemplate); this module only lists them. Thousands of
//! resources cost nothing until a client lists them, and then one page.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use crate::context::Context;
use crate::error::Error;

/// Lists and counts a program's dynamic resources.
#[derive(Clone)]
pub struct ResourceLister {
    count: Arc<dyn Fn() -> usize + Send + Sync>,
    list: Arc<ListHandler>,
}

type ListHandler = dyn Fn(Context, PageRequest) -> BoxFuture<'static, Result<ResourcePage, Error>> + Send + Sync;

/// The requested page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    /// The `next` of the previous page; `None` for the first. It passed through a client, so it is untrusted.
    pub cursor: Option<String>,
    /// Maximum number of entries, at least one. Returning more fails the call.
    pub limit: usize,
}

/// A page of resources and the cursor of the next page.
#[derive(Debug, Clone, Default)]
pub struct ResourcePage {
    pub resources: Vec<ResourceListing>,
    /// `None` on the last page.
    pub next: Option<String>,
}

/// One entry of `resources/list`.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceListing(Map<String, Value>);

impl ResourceLister {
    /// `count` runs on every `initialize` and must be cheap; `list` may take longer.
    pub fn new<C, F, Fut>(count: C, list: F) -> ResourceLister
    where
        C: Fn() -> usize + Send + Sync + 'static,
        F: Fn(Context, PageRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ResourcePage, Error>> + Send + 'static,
    {
        let list = Arc::new(list);
        ResourceLister {
            count: Arc::new(count),
            // Called inside the future, so that a panic before the first await is caught like any other.
            list: Arc::new(move |context, wanted| {
                let list = list.clone();
                Box::pin(async move { list(context, wanted).await })
            }),
        }
    }

    pub(crate) fn count(&self) -> usize {
        (self.count)()
    }

    pub(crate) fn list(
        &self,
        context: Context,
        wanted: PageRequest,
    ) -> BoxFuture<'static, Result<ResourcePage, Error>> {
        (self.list)(context, wanted)
    }
}

impl ResourceListing {
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> ResourceListing {
        let mut members = Map::new();
        members.insert("uri".into(), uri.into().into());
        members.insert("name".into(), name.into().into());
        ResourceListing(members)
    }

    pub fn title(self, title: impl Into<String>) -> ResourceListing {
        self.member("title", title.into())
    }

    pub fn description(self, description: impl Into<String>) -> ResourceListing {
        self.member("description", description.into())
    }

    pub fn mime_type(self, mime_type: impl Into<String>) -> ResourceListing {
        self.member("mimeType", mime_type.into())
    }

    /// Sets an additional member, such as `size` or `annotations`.
    pub fn member(mut self, name: &str, value: impl Into<Value>) -> ResourceListing {
        self.0.insert(name.into(), value.into());
        self
    }
}

impl From<ResourceListing> for Value {
    fn from(listing: ResourceListing) -> Value {
        Value::Object(listing.0)
    }
}

impl fmt::Debug for ResourceLister {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResourceLister")
    }
}
