//! Wrong uses of `#[mcp_tool]` and the words the compiler answers with.
//!
//! Each file has its answer beside it; `TRYBUILD=overwrite` writes the answers anew, to be read before they are kept.

#[test]
fn misuse_is_answered_with_what_to_write_instead() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
