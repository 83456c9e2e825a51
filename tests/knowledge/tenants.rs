//! A process that read a document reads none of another caller or another knowledge base: the document may have taken it
//! over.

use std::collections::{BTreeSet, HashSet};

use serde_json::json;

use crate::fixture::{CallTransport, KnowledgeServer, server_command};
use crate::process::wait_for;

/// The child processes of a process.
fn children(of: u32) -> BTreeSet<u32> {
    let threads = std::fs::read_dir(format!("/proc/{of}/task")).unwrap();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>()).collect()
}

/// Whether it lives and has read a document: the limit of its processor time is set with the first one.
fn has_read(process: &u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    if stat.rsplit_once(')').is_none_or(|(_, rest)| rest.starts_with(" Z")) {
        return false;
    }
    let limits = std::fs::read_to_string(format!("/proc/{process}/limits")).unwrap_or_default();
    let line = limits.lines().find(|line| line.starts_with("Max cpu time")).unwrap_or_default();
    !line.is_empty() && !line.contains("unlimited")
}

/// Adds a document and gives the processes that wait for the next and have read one, once there are as many.
fn add(corbie: &mut KnowledgeServer, number: usize, (way, base, count): (CallTransport, &str, usize)) -> BTreeSet<u32> {
    corbie.transport = way;
    let path = corbie.file(&format!("{number}.txt"), format!("Note {number} of the harbour master tells of ships."));
    let added = corbie.call("knowledge-add", json!({ "file_path": path, "knowledge_base": base, "async": false }));
    assert_eq!(added["success"], true, "{added}");
    // A process that was ended takes some time to disappear.
    wait_for("the processes that have read a document", || {
        let processes: BTreeSet<u32> = children(corbie.running.id()).into_iter().filter(has_read).collect();
        (processes.len() == count).then_some(processes)
    })
}

/// With `workers` processes at most, and the processes that have read a document after each of some.
fn processes_after(workers: &str, documents: &[(CallTransport, &str, usize)]) -> Vec<BTreeSet<u32>> {
    let setup = server_command(&[("MAX_CONCURRENT_TASKS", workers)]).variable("CORBIE_DOCUMENTS__WORKERS", workers);
    let mut corbie = KnowledgeServer::from_command(setup);
    documents.iter().enumerate().map(|(number, document)| add(&mut corbie, number, *document)).collect()
}

#[test]
fn s12_two_callers_or_two_bases_never_share_a_worker() {
    let documents = [
        (CallTransport::Stdio, "default", 1),
        (CallTransport::Http, "default", 1),
        (CallTransport::Http, "other", 1),
        (CallTransport::Stdio, "default", 1),
        (CallTransport::Stdio, "other", 1),
    ];
    let after = processes_after("1", &documents);
    let mut seen = HashSet::new();
    for (processes, document) in after.iter().zip(documents) {
        assert!(seen.insert(processes), "a process that read for another is used again: {document:?} {after:?}");
    }
}

#[test]
fn documents_of_the_same_caller_and_base_are_read_by_the_same_worker() {
    let after = processes_after("1", &[(CallTransport::Http, "default", 1); 3]);
    assert!(after.iter().all(|processes| *processes == after[0]), "{after:?}");
    // With room for two, callers who take turns keep theirs.
    let after = processes_after(
        "2",
        &[
            (CallTransport::Http, "default", 1),
            (CallTransport::Stdio, "default", 2),
            (CallTransport::Http, "default", 2),
        ],
    );
    assert!(after[1] == after[2] && after[1].is_superset(&after[0]), "{after:?}");
}
