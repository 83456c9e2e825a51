//! Compile-fail tests of `#[mcp_tool]`.
//!
//! Each file has its expected output next to it; `TRYBUILD=overwrite` regenerates the output, to be reviewed before
//! committing.

#[test]
fn misuse_is_answered_with_what_to_write_instead() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
