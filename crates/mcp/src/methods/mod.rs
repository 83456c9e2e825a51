//! Protocol methods, one file per method or small family. Each takes a [`Call`](crate::dispatch::Call) and returns a
//! reply.

pub(crate) mod complete;
pub(crate) mod discover;
pub(crate) mod extra;
pub(crate) mod initialize;
pub(crate) mod lists;
pub(crate) mod logging;
mod measure;
mod permission;
pub(crate) mod prompts_get;
mod recorded;
pub(crate) mod resources_list;
pub(crate) mod resources_read;
pub(crate) mod rounds;
pub(crate) mod subscriptions;
pub(crate) mod tasks;
pub(crate) mod tools_call;
mod tools_call_task;
