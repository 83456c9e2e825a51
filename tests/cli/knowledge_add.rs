//! `corbie add` and `corbie tasks`, and interrupted adds.

use std::path::Path;

use serde_json::{Value, json};

use crate::knowledge::{BEES, KnowledgeFixture, TAXES};
use crate::process::{TEST_TIMEOUT, wait_for};

/// More files than are added before the test checks.
const FILE_COUNT: usize = 300;

fn fixture_with_many_files() -> KnowledgeFixture {
    let place = KnowledgeFixture::new();
    for number in 0..FILE_COUNT {
        let text = format!("Note {number}: the harbour master wrote down {number} ships that morning. ").repeat(20);
        place.write(&format!("note-{number:03}.txt"), &text);
    }
    place
}

/// Runs a check without a server and with one.
fn with_and_without_server(check: impl Fn(&KnowledgeFixture)) {
    check(&KnowledgeFixture::new());
    #[cfg(unix)]
    {
        let place = KnowledgeFixture::new();
        let _server = place.serve();
        check(&place);
    }
}

#[test]
fn k43_files_folders_and_patterns_are_added() {
    with_and_without_server(|place| {
        place.write("bees.md", BEES);
        place.write("deep/taxes.txt", TAXES);
        place.write("deep/er/cats.txt", "Cats purr when they are content, and when they are not.\n");
        let add = |arguments: &str| {
            let ended = place.run(&format!("add {arguments}"));
            assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{arguments}: {ended:?}");
            ended.stdout
        };
        assert_eq!(add("./bees.md"), "1 file: 1 added\n");
        assert_eq!(add("--no-recursive ./deep"), "1 file: 1 added\n");
        assert_eq!(add("./**/*.txt ./bees.md"), "3 files: 1 added, 2 unchanged\n");
        place.write("bees.md", "Bumble bees live in small nests.\n");
        assert_eq!(add("."), "3 files: 1 updated, 2 unchanged\n");
        assert_eq!(place.json("show --json")["total_count"], 3);
    });
}

#[test]
fn relative_path_starts_from_the_working_directory() {
    let check = |place: &KnowledgeFixture, count: usize| {
        let setup = place.corbie("add here.txt").file("here.txt", &format!("Here is text number {count}, for you.\n"));
        let ended = setup.run("");
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "1 file: 1 added\n"), "{ended:?}");
    };
    let place = KnowledgeFixture::new();
    check(&place, 1);
    #[cfg(unix)]
    {
        let _server = place.serve();
        check(&place, 2);
    }
}

#[test]
fn tags_and_metadata_are_stored() {
    with_and_without_server(|place| {
        place.write("taxes.txt", TAXES);
        let setup = place.corbie("add --json --tag a --tag b --metadata").argument(r#"{"author": "Ada"}"#);
        let ended = setup.argument(place.documents().join("documents").display().to_string()).run("");
        let status = &ended.messages()[0];
        assert_eq!((&status["status"], &status["result"]["added"]), (&json!("completed"), &json!(1)), "{ended:?}");
        let metadata = &place.json("show --json")["documents"][0]["metadata"];
        assert_eq!((&metadata["tags"], &metadata["author"]), (&json!(["a", "b"]), &json!("Ada")));
        let wrong = place.corbie("add . --metadata").argument("[1]").run("");
        assert!(wrong.code == Some(2) && wrong.stderr.contains("not a JSON object"), "{wrong:?}");
    });
}

#[test]
fn failed_file_has_a_line_and_the_others_are_added() {
    with_and_without_server(|place| {
        place.write("taxes.txt", TAXES);
        place.write("broken.pdf", "this is no PDF");
        let ended = place.run("add . ./missing.txt ./odd.xyz");
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), "4 files: 1 added, 3 failed\n"), "{ended:?}");
        for part in ["broken.pdf: ", "missing.txt: File not found", "odd.xyz: Unsupported file format"] {
            assert!(ended.stderr.lines().any(|line| line.starts_with("corbie: ") && line.contains(part)), "{ended:?}");
        }
        assert_eq!(ended.stderr.lines().count(), 3, "{ended:?}");
        assert_eq!(ended.stderr.matches("missing.txt").count(), 1, "a line names its file once: {ended:?}");
    });
}

/// All lists of formats come from `corbie_extract`.
#[test]
fn lists_of_formats_are_complete() {
    let place = KnowledgeFixture::new();
    place.write("odd.xyz", "odd");
    let tools: Value = serde_json::from_str(&place.run("tools list --json").stdout).unwrap();
    let adding = tools["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "knowledge-add").unwrap();
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/knowledge.md")).unwrap();
    let lists = [
        place.run("add odd.xyz").stderr,
        place.run("extract odd.xyz").stderr,
        place.run("extract --help").stdout,
        place.run("search x --format xyz").stderr.to_uppercase(),
        adding["description"].as_str().unwrap().to_owned(),
        page.lines().find(|line| line.contains("are read; scans")).unwrap().to_owned(),
    ];
    for list in lists {
        let words: Vec<&str> = list.split(|letter: char| !letter.is_alphanumeric()).collect();
        for format in corbie_extract::Format::ALL {
            assert!(words.contains(&format.as_str().to_uppercase().as_str()), "{format} in {list}");
        }
    }
}

#[test]
fn folder_without_documents_is_no_failure() {
    let place = KnowledgeFixture::new();
    place.write("empty/.hidden", "x");
    let ended = place.run("add ./empty");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.stdout, "No files with a supported format; 1 skipped: 1 hidden\n");
}

#[test]
fn k43_skipped_files_are_counted_by_kind() {
    with_and_without_server(|place| {
        place.write("taxes.txt", TAXES);
        for name in ["a.py", "deep/b.PY", "Makefile", ".hidden/c.txt", "deep/.d.txt"] {
            place.write(name, "x = 1\n");
        }
        let ended = place.run("add .");
        let summary = "1 file: 1 added; 5 skipped: 2 .py, 2 hidden, 1 without an extension\n";
        assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (Some(0), summary, ""));
        let result = &place.json("add --json .")["result"];
        assert_eq!((&result["unchanged"], &result["skipped"]), (&json!(1), &json!(5)), "{result}");
        assert_eq!(result["skipped_by_kind"], json!({ ".py": 2, "hidden": 2, "no_extension": 1 }));
        assert_eq!(place.run("add ./*.txt").stdout, "1 file: 1 unchanged\n", "a pattern says which files are meant");
    });
}

#[test]
fn tool_call_saves_the_index() {
    let place = KnowledgeFixture::new();
    place.write("taxes.txt", TAXES);
    let path = place.documents().join("documents/taxes.txt");
    let arguments = json!({ "file_path": path, "async": false }).to_string();
    let ended = place.corbie("tools call knowledge-add").argument(arguments).run("");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let inside = |folder: &Path, is_wanted: fn(&Path) -> bool| {
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).find(|path| is_wanted(path)).unwrap()
    };
    let base = inside(&inside(&Path::new(&place.storage()).join("index"), Path::is_dir), Path::is_dir);
    assert!(base.ends_with("base-default"), "{}", base.display());
    assert_eq!(inside(&base, Path::is_file).extension().unwrap(), "segment");
    assert!(place.run("search when was the invoice paid").stdout.contains("taxes.txt"));
}

// === tasks ===

#[test]
fn tasks_of_all_processes_are_listed() {
    with_and_without_server(|place| {
        place.write("taxes.txt", TAXES);
        assert_eq!(place.run("add .").code, Some(0));
        let ended = place.run("tasks");
        let lines: Vec<&str> = ended.stdout.lines().collect();
        let [heading, task] = lines[..] else { panic!("{ended:?}") };
        assert!(heading.starts_with("STATE") && task.starts_with("completed  100 %"), "{ended:?}");
        assert!(ended.stdout.contains("/documents: 1 file: 1 added\n"), "what became of the files: {ended:?}");
        let listed = place.json("tasks --json");
        let task = &listed["tasks"][0];
        assert_eq!((&task["status"], &task["result"]["added"]), (&json!("completed"), &json!(1)), "{listed}");
        let id = task["task_id"].as_str().unwrap();
        let ended = place.run(&format!("tasks cancel {}", &id[..13]));
        assert!(ended.startup_error().contains("has already ended (completed)"), "{ended:?}");
        assert!(place.run("tasks cancel zz").startup_error().contains("no task has the ID prefix"));
        assert_eq!(place.json("tasks --json --base other")["tasks"], json!([]));
    });
    assert!(KnowledgeFixture::new().run("tasks").stdout.starts_with("No tasks."));
}

/// The last task, as listed for every process.
#[cfg(unix)]
fn last_task(place: &KnowledgeFixture) -> Value {
    place.json("tasks --json --limit 1")["tasks"][0].clone()
}

/// Waits until some documents are added.
#[cfg(unix)]
fn wait_for_first_document(place: &KnowledgeFixture) {
    wait_for("the first document", || {
        let listed = place.json("show --json --limit 1");
        (listed["total_count"].as_u64()? > 0).then_some(())
    });
}

/// Asserts that every document is complete and no more are added.
#[cfg(unix)]
fn assert_no_partial_documents(place: &KnowledgeFixture) -> u64 {
    let listed = place.json("show --json --limit 1000");
    let documents = listed["documents"].as_array().unwrap();
    assert!(documents.iter().all(|document| document["processing_status"] == "completed"), "{listed}");
    let checked = place.json("knowledge check --json");
    assert_eq!((&checked["success"], &checked["problems"]), (&json!(true), &json!([])), "{checked}");
    assert_eq!(checked["documents"], documents.len());
    assert_eq!(place.json("show --json --limit 1")["total_count"], documents.len());
    documents.len() as u64
}

#[cfg(unix)]
fn assert_interrupted_add(place: &KnowledgeFixture) {
    let mut adding = place.corbie("add .").start();
    wait_for_first_document(place);
    adding.signal("INT");
    let ended = adding.wait_timeout(TEST_TIMEOUT);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(130), ""), "{ended:?}");
    let told = ended.stderr_line();
    assert!(told.starts_with("corbie: cancelled; ") && told.ends_with("added before are kept"), "{ended:?}");
    assert_eq!(last_task(place)["status"], "cancelled");
    let count = assert_no_partial_documents(place);
    assert!(count > 0 && count < FILE_COUNT as u64, "{count}");
    assert!(told.contains(&format!(" {count} document")), "{count}: {ended:?}");
}

#[cfg(unix)]
#[test]
fn k117_ctrl_c_cancels_the_task_and_leaves_no_half_document() {
    assert_interrupted_add(&fixture_with_many_files());
}

#[cfg(unix)]
#[test]
fn k117_ctrl_c_cancels_the_task_of_a_server_too() {
    let place = fixture_with_many_files();
    let _server = place.serve();
    assert_interrupted_add(&place);
}

#[cfg(unix)]
#[test]
fn k117_a_task_can_be_cancelled_from_elsewhere() {
    let place = fixture_with_many_files();
    let mut adding = place.corbie("add --json .").start();
    wait_for_first_document(&place);
    let id = last_task(&place)["task_id"].as_str().unwrap().to_owned();
    let ended = place.run(&format!("tasks cancel {}", &id[..18]));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.starts_with(&format!("Cancelled {id}")), "{ended:?}");
    let ended = adding.wait_timeout(TEST_TIMEOUT);
    assert_eq!((ended.code, &ended.messages()[0]["status"]), (Some(130), &json!("cancelled")), "{ended:?}");
    assert!(assert_no_partial_documents(&place) < FILE_COUNT as u64);
}

#[cfg(unix)]
#[test]
fn task_of_a_server_that_exits_is_resumed_by_the_next() {
    let place = fixture_with_many_files();
    let server = place.serve();
    let mut adding = place.corbie("add .").start();
    wait_for_first_document(&place);
    drop(server);
    let ended = adding.wait_timeout(TEST_TIMEOUT);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr_line().contains("the server that has the knowledge base open has exited"), "{ended:?}");
    assert!(matches!(last_task(&place)["status"].as_str(), Some("running" | "queued")), "{}", last_task(&place));
}

#[cfg(unix)]
#[test]
fn resumed_tasks_are_reported() {
    let place = fixture_with_many_files();
    let adding = place.corbie("add .").start();
    wait_for_first_document(&place);
    drop(adding);
    let ended = place.run("add ./note-000.txt");
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "1 file: 1 unchanged\n"), "{ended:?}");
    let folder = place.documents().join("documents").display().to_string();
    let told = format!("corbie: resuming 1 interrupted task: {folder}");
    assert!(ended.stderr.lines().any(|line| line == told), "{ended:?}");
}

#[cfg(unix)]
#[test]
fn s11_a_symlink_that_is_named_is_skipped_with_the_option_that_follows_it() {
    with_and_without_server(|place| {
        place.write("repo/bees.md", BEES);
        let private = place.documents().join("private");
        std::fs::create_dir(&private).unwrap();
        std::fs::write(private.join("taxes.txt"), TAXES).unwrap();
        std::os::unix::fs::symlink(&private, place.documents().join("documents/repo/docs")).unwrap();
        let ended = place.run("add ./repo/bees.md ./repo/docs");
        let counted = "1 file: 1 added; 1 skipped: 1 symbolic links\n";
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), counted), "{ended:?}");
        assert!(ended.stderr.contains("--follow-links"), "{ended:?}");
        for only in ["add ./repo/docs", "add ./repo/docs/"] {
            let ended = place.run(only);
            assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), "1 file: 1 failed\n"), "{ended:?}");
            for part in ["it is a symbolic link", "use the path of its target", "--follow-links"] {
                assert!(ended.stderr_line().contains(part), "{ended:?}");
            }
        }
        assert_eq!(place.json("show --json")["total_count"], 1);
        assert_eq!(place.run("add --follow-links ./repo/docs").stdout, "1 file: 1 added\n");
    });
}

#[cfg(unix)]
#[test]
fn s11_a_symlink_in_an_added_folder_does_not_reach_files_outside_unless_it_is_asked_for() {
    with_and_without_server(|place| {
        place.write("repo/bees.md", BEES);
        std::fs::write(place.documents().join("credentials.txt"), TAXES).unwrap();
        let link = place.documents().join("documents/repo/notes.txt");
        std::os::unix::fs::symlink(place.documents().join("credentials.txt"), link).unwrap();
        let ended = place.run("add ./repo");
        let told = "1 file: 1 added; 1 skipped: 1 symbolic links out of the folder\n";
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), told), "{ended:?}");
        assert!(ended.stderr.contains("--follow-links"), "{ended:?}");
        assert_eq!(place.json("show --json")["total_count"], 1);
        let ended = place.run("add --follow-links ./repo");
        assert_eq!(
            (ended.stdout.as_str(), ended.stderr.as_str()),
            ("2 files: 1 added, 1 unchanged\n", ""),
            "{ended:?}"
        );
    });
}
