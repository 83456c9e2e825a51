//! SIGKILL at random times, restart, consistency check.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::ledger::Ledger;
use crate::rng::SeededRng;
use crate::stdio_process::StdioProcess;

/// Default number of rounds; an environment variable raises it.
const ROUNDS: usize = 20;
/// Number of files.
const FILE_COUNT: usize = 12;
/// Search error of an empty base.
const EMPTY_BASE_ERROR: &str = "empty_knowledge_base";

#[test]
fn k08_killed_at_any_moment_it_has_lost_nothing_it_acknowledged() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let rounds = number("CORBIE_DURABILITY_ROUNDS").unwrap_or(ROUNDS);
    let seed = number("CORBIE_DURABILITY_SEED").unwrap_or(7);
    let folder = tempfile::tempdir().unwrap();
    let (storage, files) = (folder.path().join("storage"), folder.path().join("files"));
    fs::create_dir_all(&storage).unwrap();
    fs::create_dir_all(&files).unwrap();
    let mut run = KillRun {
        rng: SeededRng::new(seed as u64),
        ledger: Ledger::default(),
        version: 0,
        tasks: HashSet::new(),
        counts: RunCounts::default(),
    };
    for round in 0..rounds {
        let mut peer = StdioProcess::start(&storage, None);
        run.verify(&mut peer, round);
        if round % 5 == 4 {
            run.compare_with_rebuilt_index(&mut peer, &storage, folder.path());
        }
        run.work(peer, &files);
        check_store(&storage, round);
    }
    let mut peer = StdioProcess::start(&storage, None);
    run.verify(&mut peer, rounds);
    peer.shutdown();
    check_store(&storage, rounds);
    let RunCounts { added, queued: promised, removed, unanswered: open } = run.counts;
    let done =
        format!("{added} added, {promised} promised, {removed} removed, {open} open when killed, in {rounds} rounds");
    assert!(
        rounds < ROUNDS || [added, promised, removed, open].iter().all(|count| *count > 0),
        "too little was done: {done}"
    );
    fs::write(std::env::temp_dir().join("corbie-durability.txt"), done).unwrap();
}

struct KillRun {
    rng: SeededRng,
    ledger: Ledger,
    /// Counter that makes every text unique.
    version: usize,
    /// Accepted tasks.
    tasks: HashSet<String>,
    counts: RunCounts,
}

/// Operation counts; a run without operations proves nothing.
#[derive(Debug, Default)]
struct RunCounts {
    added: usize,
    queued: usize,
    removed: usize,
    /// Calls without a reply when the program was killed.
    unanswered: usize,
}

impl KillRun {
    /// Adds, changes, removes and clears until the program is killed.
    fn work(&mut self, mut peer: StdioProcess, files: &Path) {
        let until = Instant::now() + Duration::from_millis(self.rng.below(1500) as u64);
        let mut promised = HashMap::new();
        let mut adds = HashSet::new();
        let mut cleared = None;
        while Instant::now() < until {
            // Calls on one file are ordered only if each waits for the previous one.
            let busy: HashSet<usize> = self.ledger.pending.values().map(|sent| sent.file).collect();
            let free: Vec<usize> = (0..FILE_COUNT).filter(|file| !busy.contains(file)).collect();
            let Some(&file) = free.get(self.rng.below(free.len())) else {
                peer.receive_until(Instant::now() + Duration::from_millis(20));
                self.apply_answers(&mut peer, &adds, &mut promised);
                continue;
            };
            let known = self.ledger.files.get(&file).and_then(|entry| entry.id.clone());
            let sent = match (self.rng.below(10), known) {
                (0..=2, Some(id)) => {
                    let sent = peer.send("knowledge-remove", &json!({ "document_id": id, "confirm": true }));
                    sent.map(|call| self.ledger.record_sent(call, file, None))
                }
                (3, _) if cleared.is_none() && self.rng.below(20) == 0 => {
                    cleared =
                        peer.send("knowledge-clear", &json!({ "confirm": true, "confirmation_phrase": "DELETE ALL" }));
                    break;
                }
                (kind, _) => {
                    self.version += 1;
                    let text = text(file, self.version);
                    let path = files.join(format!("file{file}.txt"));
                    // Atomic write: a partial file is not a valid document.
                    let half = files.join("half");
                    fs::write(&half, &text).unwrap();
                    fs::rename(half, &path).unwrap();
                    let waits = kind % 2 == 0;
                    let sent = peer.send("knowledge-add", &json!({ "file_path": path, "async": !waits }));
                    sent.map(|call| {
                        self.ledger.record_sent(call, file, Some(text));
                        if waits {
                            adds.insert(call);
                        } else {
                            promised.insert(call, None);
                        }
                    })
                }
            };
            if sent.is_none() {
                break;
            }
            peer.receive_until(Instant::now() + Duration::from_millis(self.rng.below(30) as u64));
            self.apply_answers(&mut peer, &adds, &mut promised);
        }
        if cleared.is_some() {
            peer.receive_until(Instant::now() + Duration::from_millis(self.rng.below(40) as u64));
        }
        let answers = peer.kill();
        for (call, answer) in &answers {
            self.apply_answer(*call, answer, &adds, &mut promised);
        }
        if let Some(call) = cleared {
            let is_certain = answers.get(&call).is_some_and(|answer| answer["success"] == true);
            for file in self.ledger.files.values_mut() {
                match is_certain && self.ledger.pending.is_empty() {
                    true => file.possible_contents = vec![None],
                    false => file.possible_contents.push(None),
                }
                if is_certain {
                    file.id = None;
                }
            }
        }
        self.counts.unanswered += self.ledger.pending.len();
        self.ledger.pending.clear();
    }

    /// Processes the replies received so far.
    fn apply_answers(
        &mut self,
        peer: &mut StdioProcess,
        adds: &HashSet<u64>,
        promised: &mut HashMap<u64, Option<String>>,
    ) {
        for (call, answer) in peer.take_answers() {
            self.apply_answer(call, &answer, adds, promised);
        }
    }

    fn apply_answer(
        &mut self,
        call: u64,
        answer: &Value,
        adds: &HashSet<u64>,
        promised: &mut HashMap<u64, Option<String>>,
    ) {
        let success = answer["success"] == true;
        if let Some(task) = promised.get_mut(&call) {
            // The task is accepted and may run at any time from now on; the file stays in doubt until the check.
            assert!(success, "{answer}");
            *task = answer["task_id"].as_str().map(str::to_owned);
            self.tasks.extend(task.clone());
            self.counts.queued += 1;
        } else if adds.contains(&call) && success {
            self.counts.added += 1;
            self.ledger.record_acknowledged(call, answer["document_id"].as_str().map(str::to_owned));
        } else if success {
            self.counts.removed += 1;
            self.ledger.record_acknowledged(call, None);
        } else {
            // The document was already removed, or a clear cancelled the add.
            let expected = ["document_not_found", "cancelled"];
            assert!(expected.contains(&answer["error"].as_str().unwrap_or_default()), "{answer}");
            self.ledger.record_refused(call);
        }
    }

    /// After a restart: pending work is completed, and every file is in one of the states allowed by the ledger.
    fn verify(&mut self, peer: &mut StdioProcess, round: usize) {
        let began = Instant::now();
        loop {
            let status = peer.call("knowledge-status", &json!({}));
            assert_eq!(status["health"]["status"], "healthy", "round {round}: {status}");
            if status["tasks"] == json!({ "running": 0, "queued": 0 }) {
                break;
            }
            assert!(began.elapsed() < Duration::from_secs(120), "round {round}: {status}");
            peer.receive_until(Instant::now() + Duration::from_millis(20));
        }
        for task in self.tasks.drain() {
            let status = peer.call("knowledge-task-status", &json!({ "task_id": task }));
            let word = status["status"].as_str().unwrap_or_default();
            assert!(["completed", "failed", "cancelled"].contains(&word), "round {round}: {status}");
        }
        let shown = peer.call("knowledge-show", &json!({ "limit": 1000 }));
        let mut there: HashMap<String, Value> = HashMap::new();
        for document in shown["documents"].as_array().unwrap() {
            if document["processing_status"] == "failed" {
                continue;
            }
            assert_eq!(document["processing_status"], "completed", "round {round}: {document}");
            let before = there.insert(document["filename"].as_str().unwrap().to_owned(), document.clone());
            assert!(before.is_none(), "round {round}: twice: {document}");
        }
        for (number, file) in &mut self.ledger.files {
            let document = there.remove(&format!("file{number}.txt"));
            let says = document.as_ref().map(|document| {
                let got = peer.call("knowledge-get", &json!({ "document_id": document["id"] }));
                got["pages"][0]["text"].as_str().expect("its text").to_owned()
            });
            assert!(
                file.possible_contents.contains(&says),
                "round {round}: file{number} is {says:?}, and may be {:?}",
                file.possible_contents
            );
            file.id = document.as_ref().map(|document| document["id"].as_str().unwrap().to_owned());
            if let (Some(document), Some(says)) = (&document, &says) {
                let word = says.split_whitespace().nth(1).unwrap();
                let found = peer.call("knowledge-search", &json!({ "query": word, "top_k": 50 }));
                let of_it = |hit: &&Value| hit["document_id"] == document["id"];
                let hits = found["results"].as_array().unwrap().iter().filter(of_it).count();
                assert!(hits > 0, "round {round}: {word} of file{number} is not found: {found}");
            }
            file.possible_contents = vec![says];
        }
        assert!(there.is_empty(), "round {round}: documents nobody added: {there:?}");
    }

    /// The persisted index gives the same results as a rebuilt one.
    fn compare_with_rebuilt_index(&mut self, peer: &mut StdioProcess, storage: &Path, folder: &Path) {
        let anew = tempfile::tempdir_in(folder).unwrap();
        let mut other = StdioProcess::start(storage, Some(anew.path()));
        for query in ["kestrel over the harbour", "document about ships", "word7", "lanterns and ropes"] {
            let question = json!({ "query": query, "top_k": 50 });
            let results = |answer: Value| -> Vec<String> {
                let result = |hit: &Value| format!("{} {}", hit["chunk_id"], hit["relevance_score"]);
                match &answer["results"] {
                    Value::Array(hits) => hits.iter().map(result).collect(),
                    // After a clear both indexes report an empty base.
                    _ => {
                        assert_eq!(answer["error"], EMPTY_BASE_ERROR, "{answer}");
                        vec![EMPTY_BASE_ERROR.to_owned()]
                    }
                }
            };
            let (kept, anew) =
                (results(peer.call("knowledge-search", &question)), results(other.call("knowledge-search", &question)));
            let differs = kept.iter().zip(&anew).position(|(kept, anew)| kept != anew);
            assert!(
                kept.len() == anew.len() && differs.is_none(),
                "{query}: {} and {} results, the first other one is {differs:?}",
                kept.len(),
                anew.len()
            );
        }
        other.shutdown();
    }
}

/// A text of a few chunks with a unique word.
fn text(file: usize, version: usize) -> String {
    let mut text = format!("document word{version}x{file} ");
    let sentences = [
        "A kestrel hovered over the harbour while ships waited for the tide.",
        "The lanterns were lit before the ropes had been coiled.",
        "Nobody on the pier remembered who had written the ledger.",
        "Grain, salt and timber were weighed in the morning.",
    ];
    // No two chunks are equal: equal ones may be returned in any order.
    for (number, sentence) in sentences.iter().cycle().skip(version % 4).take(3 + version % 9).enumerate() {
        text += &format!("{sentence} That was entry {version}{file}{number}. ");
    }
    text.trim_end().to_owned()
}

/// The store is consistent: SQLite's integrity check and corbie's own invariants.
fn check_store(storage: &Path, round: usize) {
    if !storage.join("knowledge.db").exists() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = corbie::knowledge::store::sqlite::Store::open(storage, Default::default()).unwrap();
        let report = store.check().await.unwrap();
        assert!(report.is_consistent(), "round {round}: {report:?}");
    });
}
