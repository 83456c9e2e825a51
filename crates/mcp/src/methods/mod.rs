//! Protocol methods, one file per method or small family. Each takes a [`Call`](crate::dispatch::MethodCall) and returns a
//! reply.

mod audited;
mod call_metrics;
pub(crate) mod complete;
mod confirm_destructive;
pub(crate) mod custom;
pub(crate) mod discover;
pub(crate) mod initialize;
pub(crate) mod lists;
pub(crate) mod logging;
pub(crate) mod multi_round_trip;
pub(crate) mod prompts_get;
pub(crate) mod resources_list;
pub(crate) mod resources_read;
pub(crate) mod subscriptions;
pub(crate) mod tasks;
pub(crate) mod tools_call;
mod tools_call_task;
