//! Shell completions and man pages.

use std::process::Command;

use crate::process::{ProcessOutput, TestCommand, corbie, report_skip};

fn is_installed(program: &str) -> bool {
    Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output()
        .is_ok_and(|looked| looked.status.success())
}

fn completion_script(shell: &str) -> String {
    let ProcessOutput { code, stdout: out, stderr: err } = corbie("completions").arguments(shell).run("");
    assert_eq!((code, err.as_str()), (Some(0), ""), "{shell}");
    assert!(out.contains("corbie") && out.contains("eval-search"), "{shell}");
    out
}

#[test]
fn completions_are_there_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(!completion_script(shell).contains("worker"), "{shell} offers what nobody types");
    }
    assert_eq!(corbie("completions cmd").run("").code, Some(2));
}

/// Runs bash completion as the tab key does.
fn bash_completions(typed: &[&str]) -> Option<Vec<String>> {
    if !is_installed("bash") {
        report_skip("bash is not there");
        return None;
    }
    let ask = format!(
        "source ./corbie.bash; COMP_WORDS=({}); COMP_CWORD={}; $(complete -p corbie | sed 's/.*-F \\([^ ]*\\).*/\\1/') \
         corbie '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        typed.join(" "),
        typed.len() - 1,
        typed[typed.len() - 1],
        typed[typed.len() - 2],
    );
    let bash =
        TestCommand::new("bash".into()).argument("-c").argument(ask).file("corbie.bash", &completion_script("bash"));
    let ended = bash.run("");
    assert_eq!(ended.stderr, "");
    let mut offered: Vec<String> = ended.stdout.lines().map(str::to_owned).collect();
    offered.sort();
    Some(offered)
}

#[test]
fn bash_completes_commands_subcommands_flags_and_values() {
    let Some(commands) = bash_completions(&["corbie", "cl"]) else { return };
    assert_eq!(commands, ["classify", "clear"]);
    assert_eq!(bash_completions(&["corbie", "taxonomy", "tr"]).unwrap(), ["train"]);
    assert_eq!(bash_completions(&["corbie", "search", "--min"]).unwrap(), ["--min-relevance"]);
    assert_eq!(bash_completions(&["corbie", "show", "--sort", "n"]).unwrap(), ["name"]);
}

#[test]
fn shells_can_read_their_completions() {
    for (shell, flags) in [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")] {
        if !is_installed(shell) {
            report_skip(&format!("{shell} is not there"));
            continue;
        }
        let checked = TestCommand::new(shell.into())
            .arguments(flags)
            .argument("script")
            .file("script", &completion_script(shell))
            .run("");
        assert_eq!((checked.code, checked.stderr.as_str()), (Some(0), ""), "{shell}");
    }
}

#[test]
fn every_command_has_a_man_page_that_tells_its_flags() {
    fn check(command: &clap::Command, name: &str, folder: &std::path::Path, pages: &mut usize) {
        let page = std::fs::read_to_string(folder.join(format!("{name}.1"))).unwrap_or_else(|_| panic!("{name}.1"));
        assert!(page.contains(".SH EXAMPLES") && page.contains(".SH NAME"), "{name}: {page}");
        for flag in command.get_arguments().filter(|flag| !flag.is_hide_set()).filter_map(clap::Arg::get_long) {
            assert!(page.contains(&format!("\\-\\-{}", flag.replace('-', "\\-"))), "{name} does not tell --{flag}");
        }
        *pages += 1;
        for below in command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help") {
            check(below, &format!("{name}-{}", below.get_name()), folder, pages);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let into = folder.path().join("new/man1");
    let ended = corbie("man --folder").argument(into.display().to_string()).run("");
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let mut whole = corbie::cli::command();
    whole.build();
    let mut pages = 0;
    check(&whole, "corbie", &into, &mut pages);
    assert_eq!(into.read_dir().unwrap().count(), pages, "and no others: {}", ended.stdout);
}

#[test]
fn the_man_page_can_be_read_and_has_the_exit_codes() {
    let printed = corbie("man").run("");
    assert_eq!(printed.code, Some(0));
    assert!(printed.stdout.contains(".SH \"EXIT CODES\""), "{}", printed.stdout);
    if !is_installed("groff") {
        return report_skip("groff is not there");
    }
    let groff =
        TestCommand::new("groff".into()).arguments("-man -Tascii -ww -z corbie.1").file("corbie.1", &printed.stdout);
    let read = groff.run("");
    assert_eq!((read.code, read.stderr.as_str()), (Some(0), ""), "no warnings");
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let ended = corbie("man --folder taken/man1").file("taken", "").run("");
    assert!(ended.startup_error().contains("`taken/man1` cannot be created"), "{ended:?}");
}
