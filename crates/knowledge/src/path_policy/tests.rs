use std::fs;
use std::io::Write;

use futures_util::FutureExt;

use super::*;

fn anything() -> PathPolicy {
    PathPolicy::new(&[], 100 << 20)
}

#[cfg(unix)]
#[test]
fn s11_a_folder_that_becomes_a_link_after_it_was_allowed_does_not_lead_outside() {
    let place = tempfile::tempdir().unwrap();
    for folder in ["allowed/inner", "outside"] {
        fs::create_dir_all(place.path().join(folder)).unwrap();
        fs::write(place.path().join(folder).join("notes.txt"), folder).unwrap();
    }
    let rules = PathPolicy::new(&[place.path().join("allowed")], 1 << 20);
    let asked = place.path().join("allowed/inner/notes.txt");
    let followed = rules.resolve(&asked).unwrap();
    rules.open_resolved(&followed, &asked).unwrap();
    fs::rename(place.path().join("allowed/inner"), place.path().join("allowed/before")).unwrap();
    std::os::unix::fs::symlink(place.path().join("outside"), place.path().join("allowed/inner")).unwrap();
    let refused = rules.open_resolved(&followed, &asked).unwrap_err();
    assert_eq!(refused.code(), "path_not_allowed");
    assert_eq!(anything().open_resolved(&followed, &asked).unwrap_err().code(), "file_not_readable");
}

/// A large archive with the name of one part where the list of parts is, and nothing between.
fn large_archive(at: &Path, name: &str) {
    let mut file = File::create(at).unwrap();
    file.write_all(b"PK\x03\x04").unwrap();
    file.set_len(80 << 20).unwrap();
    file.seek(SeekFrom::End(0)).unwrap();
    let mut entry = b"PK\x01\x02".to_vec();
    entry.extend([0; 24]);
    entry.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
    entry.extend([0; 16]);
    entry.extend(name.as_bytes());
    file.write_all(&entry).unwrap();
}

#[test]
fn k30_both_ends_of_a_large_archive_tell_what_it_is() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("large.docx");
    large_archive(&path, "word/document.xml");
    let file = File::open(&path).unwrap();
    let size = file.metadata().unwrap().len();
    assert_eq!(read_both_ends(file, size).unwrap().len() as u64, 2 * SNIFF_BYTES);
    assert_eq!(anything().check(&path).unwrap().format, Format::Docx);
    large_archive(&path, "notes/list.xml");
    assert_eq!(anything().check(&path).unwrap_err().code(), "corrupted_file");
}

#[test]
fn small_files_are_looked_at_whole() {
    let place = tempfile::tempdir().unwrap();
    for size in
        [1, SNIFF_BYTES - 1, SNIFF_BYTES, SNIFF_BYTES + 1, 2 * SNIFF_BYTES - 1, 2 * SNIFF_BYTES, 2 * SNIFF_BYTES + 1]
    {
        let path = place.path().join("some.txt");
        let bytes: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
        fs::write(&path, &bytes).unwrap();
        let seen = read_both_ends(File::open(&path).unwrap(), size).unwrap();
        let end = usize::try_from(SNIFF_BYTES).unwrap();
        let expected =
            if size > 2 * SNIFF_BYTES { [&bytes[..end], &bytes[bytes.len() - end..]].concat() } else { bytes.clone() };
        assert!(seen == expected, "{size} bytes");
    }
}

#[tokio::test]
async fn no_more_than_a_few_files_are_checked_at_a_time() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("notes.txt");
    fs::write(&path, "some notes").unwrap();
    let checks = CheckLimiter::default();
    let others = checks.0.clone().acquire_many_owned(u32::try_from(MAX_CONCURRENT_CHECKS).unwrap()).await.unwrap();
    let mut waiting = std::pin::pin!(checks.check(anything(), path.clone()));
    assert!(waiting.as_mut().now_or_never().is_none());
    assert_eq!(checks.0.available_permits(), 0);
    drop(others);
    assert_eq!(waiting.await.unwrap().size, 10);
    assert_eq!(checks.0.available_permits(), MAX_CONCURRENT_CHECKS);
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_no_text_is_refused_however_it_is_reached() {
    use std::os::unix::ffi::OsStrExt;
    let place = tempfile::tempdir().unwrap();
    let broken = place.path().join(OsStr::from_bytes(b"notes\xff.txt"));
    let link = place.path().join("link.txt");
    fs::write(&broken, "some notes").unwrap();
    std::os::unix::fs::symlink(&broken, &link).unwrap();
    for path in [broken, link] {
        let refused = anything().check(&path).unwrap_err();
        assert_eq!(refused.code(), "file_not_readable");
        assert!(refused.to_string().ends_with("its name is not valid UTF-8; rename it"), "{refused}");
    }
}
