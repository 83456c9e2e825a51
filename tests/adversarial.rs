#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! Hostile clients as data: every exchange of `hostile/exchanges/` is replayed against the real program, which must
//! respond as specified, continue to serve other clients, and retain no state.

#[path = "adversarial/byte_template.rs"]
mod byte_template;
#[path = "adversarial/exchange.rs"]
mod exchange;
#[path = "adversarial/fuzz_corpus.rs"]
mod fuzz_corpus;
#[path = "cli/http.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
mod http;
#[path = "adversarial/player.rs"]
mod player;
#[path = "cli/process.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
mod process;
#[path = "adversarial/raw_socket.rs"]
mod raw_socket;
#[allow(dead_code, reason = "shared with the tests of `corbie extract`, which use more of it")]
#[path = "extract/sample_files.rs"]
mod sample_files;
#[path = "adversarial/target_server.rs"]
mod target_server;
#[path = "adversarial/trap_files.rs"]
mod trap_files;

use corbie_test_support::archive;
use corbie_test_support::pdf_builder;

use std::collections::HashSet;

/// One test per file, so that they run in parallel, and a list of all files.
macro_rules! corpus {
    ($($(#[$only:meta])? $test:ident = $file:literal,)*) => {
        const FILES: &[(&str, &str)] = &[$(($file, include_str!(concat!("adversarial/exchanges/", $file)))),*];

        $(
            $(#[$only])?
            #[test]
            fn $test() {
                player::play_file(include_str!(concat!("adversarial/exchanges/", $file)));
            }
        )*
    };
}

corpus! {
    s10_smuggled_requests = "smuggling.txt",
    s10_heads_without_measure = "heads.txt",
    s10_bodies_without_measure = "bodies.txt",
    s04_messages_that_are_none = "messages.txt",
    s04_lines_that_are_none = "lines.txt",
    s10_slow_clients = "slow.txt",
    s07_hosts_and_origins = "names.txt",
    s10_paths_and_methods = "paths.txt",
    // Uses Linux files: links, pipes, devices and `/proc`.
    #[cfg(target_os = "linux")]
    s11_s12_files_and_resources = "files.txt",
    s05_s09_guessed_tokens = "tokens.txt",
    s10_websocket_frames = "websocket.txt",
    t15_t16_sessions_and_headers = "sessions.txt",
    s04_s10_other_faces = "faces.txt",
    s01_s15_forged_logs = "logs.txt",
}

#[test]
fn s10_the_corpus_is_large_and_every_exchange_has_a_name_a_reason_and_an_outcome() {
    let mut names = HashSet::new();
    for (file, text) in FILES {
        for exchange in exchange::parse(text).unwrap_or_else(|problem| panic!("{file}: {problem}")) {
            let says = |step: &exchange::ExchangeStep| {
                matches!(
                    step,
                    exchange::ExchangeStep::Expect(_)
                        | exchange::ExchangeStep::NeverLogged(_)
                        | exchange::ExchangeStep::Flood(_)
                )
            };
            assert!(!exchange.goal.is_empty(), "{file}: what does `{}` try?", exchange.name);
            assert!(exchange.steps.iter().any(|(_, step)| says(step)), "{file}: what comes of `{}`?", exchange.name);
            assert!(names.insert(exchange.name.clone()), "{file}: `{}` is there twice", exchange.name);
        }
    }
    assert!(names.len() >= 200, "{} exchanges", names.len());
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/adversarial/exchanges");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!name.ends_with(".txt") || FILES.iter().any(|(file, _)| *file == name), "nobody plays {name}");
    }
}
