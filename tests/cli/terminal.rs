//! Runs the program in a pseudo-terminal.

use crate::process::{ProcessOutput, TestCommand, report_skip};

/// Runs a shell command line with a terminal as stdin, stdout and stderr.
pub(crate) fn run_in_terminal(command_line: &str, input: &str) -> Option<ProcessOutput> {
    let exists = |program: &str| {
        let looked = std::process::Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
        looked.is_ok_and(|looked| looked.status.success())
    };
    if exists("script") {
        let script = TestCommand::new("script".into()).arguments("-qec").argument(command_line).argument("/dev/null");
        return Some(script.run(input));
    }
    if exists("python3") {
        let program = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(['sh', '-c', sys.argv[1]])))";
        let python = TestCommand::new("python3".into()).argument("-c").argument(program).argument(command_line);
        return Some(python.run(input));
    }
    report_skip("neither `script` nor `python3` is there to make a terminal");
    None
}
