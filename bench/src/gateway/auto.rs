//! Checks that `auto` measures the intended path: prompts classified by the word-based early exit, and routed
//! accordingly.

use std::io::Write;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use memchr::memmem;
use serde::Deserialize;

use super::gateways::{self, write_settings};
use super::load::Connection;
use super::request::{self, ResponseShape};

/// Each shape has a prompt of another category, which names another model.
const CATEGORIES: [(ResponseShape, &str); 2] = [(ResponseShape::Full, "math"), (ResponseShape::Paced, "history")];

/// Calls the classifier directly: gateway responses do not contain the method.
pub(super) fn check_method() -> Result<()> {
    #[derive(Deserialize)]
    struct ClassifyOutput {
        category: String,
        method: String,
    }
    let mut command = gateways::corbie_command(&write_settings("corbie-classify.yaml", "{}\n")?)?;
    let mut child = command.args(["classify", "--json"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let questions = CATEGORIES.map(|(shape, _)| request::question(shape)).join("\n");
    child.stdin.take().context("it has a stdin")?.write_all(questions.as_bytes())?;
    let output = child.wait_with_output()?;
    let lines = std::str::from_utf8(&output.stdout)?.lines();
    let said: Vec<ClassifyOutput> =
        lines.map(serde_json::from_str).collect::<Result<_, _>>().context("`corbie classify`")?;
    ensure!(said.len() == CATEGORIES.len(), "`corbie classify` said {} lines", said.len());
    for (ClassifyOutput { category, method }, (shape, expected)) in said.iter().zip(CATEGORIES) {
        let question = request::question(shape);
        ensure!(category == expected && method == "lexical", "`{question}` is {category} by {method}; choose another");
    }
    Ok(())
}

/// Calls the gateway: its responses contain the category.
pub(super) fn check_routing(connection: &mut Connection, request: impl Fn(ResponseShape) -> Vec<u8>) -> Result<()> {
    for (shape, category) in CATEGORIES {
        let reply = connection.request(&request(shape))?;
        let header = format!("\r\nx-corbie-category: {category}\r\n");
        ensure!(memmem::find(reply, header.as_bytes()).is_some(), "a prompt about {category} was not routed as such");
    }
    Ok(())
}
