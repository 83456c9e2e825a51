use std::fs;

use super::*;

fn anything() -> Rules {
    Rules::new(&[], 100 << 20)
}

#[cfg(unix)]
#[test]
fn s11_a_folder_that_becomes_a_link_after_it_was_allowed_does_not_lead_outside() {
    let place = tempfile::tempdir().unwrap();
    for folder in ["allowed/inner", "outside"] {
        fs::create_dir_all(place.path().join(folder)).unwrap();
        fs::write(place.path().join(folder).join("notes.txt"), folder).unwrap();
    }
    let rules = Rules::new(&[place.path().join("allowed")], 1 << 20);
    let asked = place.path().join("allowed/inner/notes.txt");
    let followed = rules.follow(&asked).unwrap();
    rules.open_followed(&followed, &asked).unwrap();
    fs::rename(place.path().join("allowed/inner"), place.path().join("allowed/before")).unwrap();
    std::os::unix::fs::symlink(place.path().join("outside"), place.path().join("allowed/inner")).unwrap();
    let refused = rules.open_followed(&followed, &asked).unwrap_err();
    assert_eq!(refused.code(), "path_not_allowed");
    assert_eq!(anything().open_followed(&followed, &asked).unwrap_err().code(), "file_not_readable");
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
