//! Resources that come and go, such as the documents of a store: listed page by page as the store has them.
//!
//! They are read through a [`ResourceTemplate`](crate::ResourceTemplate); only the list of them is made here. Thousands
//! of them cost nothing until somebody asks, and then one page.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use crate::context::Context;
use crate::error::Error;

/// How a program lists resources of its own, and how many there are.
#[derive(Clone)]
pub struct ResourceLister {
    count: Arc<dyn Fn() -> usize + Send + Sync>,
    list: Arc<List>,
}

type List = dyn Fn(Context, WantedPage) -> BoxFuture<'static, Result<ResourcePage, Error>> + Send + Sync;

/// The page that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedPage {
    /// The `next` of the page before; none for the first. It has been with a client, so it is not to be trusted.
    pub cursor: Option<String>,
    /// How many entries the page has room for, one at least. More are a mistake and fail the call.
    pub room: usize,
}

/// Some of the resources, and where the next begin.
#[derive(Debug, Clone, Default)]
pub struct ResourcePage {
    pub resources: Vec<ResourceListing>,
    /// None on the last page.
    pub next: Option<String>,
}

/// One resource as `resources/list` shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceListing(Map<String, Value>);

impl ResourceLister {
    /// `count` is asked with every `initialize` and must be cheap; `list` may wait.
    pub fn new<C, F, Fut>(count: C, list: F) -> ResourceLister
    where
        C: Fn() -> usize + Send + Sync + 'static,
        F: Fn(Context, WantedPage) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ResourcePage, Error>> + Send + 'static,
    {
        let list = Arc::new(list);
        ResourceLister {
            count: Arc::new(count),
            // Called inside the future, so that a panic before the first wait is contained like any other.
            list: Arc::new(move |context, wanted| {
                let list = list.clone();
                Box::pin(async move { list(context, wanted).await })
            }),
        }
    }

    pub(crate) fn count(&self) -> usize {
        (self.count)()
    }

    pub(crate) fn list(&self, context: Context, wanted: WantedPage) -> BoxFuture<'static, Result<ResourcePage, Error>> {
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

    /// Any further member, such as `size` or `annotations`.
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
