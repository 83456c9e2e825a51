#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! The OpenAI-compatible API: the real program, hand-written HTTP, and the mock upstream of all three wire formats.

#[path = "openai_api/access.rs"]
mod access;
#[path = "openai_api/budgets.rs"]
mod budgets;
#[path = "openai_api/cache.rs"]
mod cache;
#[path = "openai_api/chat_completions.rs"]
mod chat_completions;
#[path = "openai_api/disconnect.rs"]
mod disconnect;
#[path = "openai_api/embeddings.rs"]
mod embeddings;
#[path = "openai_api/errors.rs"]
mod errors;
#[path = "openai_api/fixture.rs"]
mod fixture;
#[path = "cli/http.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
mod http;
#[path = "openai_api/interrupted_streams.rs"]
mod interrupted_streams;
#[path = "openai_api/lenient_clients.rs"]
mod lenient_clients;
#[path = "openai_api/malformed_streams.rs"]
mod malformed_streams;
#[cfg(target_os = "linux")]
#[path = "openai_api/memory.rs"]
mod memory;
#[path = "openai_api/models.rs"]
mod models;
#[path = "openai_api/passthrough.rs"]
mod passthrough;
#[path = "openai_api/policies.rs"]
mod policies;
#[path = "cli/process.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
mod process;
#[path = "openai_api/provider_embeddings.rs"]
mod provider_embeddings;
#[path = "openai_api/round_trips.rs"]
mod round_trips;
#[path = "openai_api/routing.rs"]
mod routing;
#[path = "openai_api/semantic_cache.rs"]
mod semantic_cache;
#[path = "openai_api/tools.rs"]
mod tools;
#[path = "openai_api/translation.rs"]
mod translation;
#[path = "route/upstream.rs"]
#[allow(dead_code, reason = "shared with the tests of the router, which use more of it")]
mod upstream;
#[path = "openai_api/usage.rs"]
mod usage;
