// The Tools page: forms, raw exchange, trust and the audit log.

import test from "node:test";
import assert from "node:assert/strict";
import { accessible, corbie, fits, open, picture, refusals, PHONE, visit } from "./harness.mjs";

test("a tool is called with its form, and request and response are shown", async (t) => {
  const server = await corbie(t);
  const page = await open(t, server, { at: "#/tools/call/classify_text" });
  await page.getByLabel("text (required)").fill("What is 2 + 2?");
  await page.getByLabel("with_probabilities").check();
  await page.getByRole("button", { name: "Call", exact: true }).click();
  const result = page.locator("section.card", { has: page.getByRole("heading", { name: "Result" }) });
  await result.getByText('"category": "math"').waitFor();
  const wire = page.locator("section.card", { has: page.getByRole("heading", { name: "HTTP exchange" }) });
  await wire.getByText("HTTP 200").waitFor();
  await wire.getByText('"method": "tools/call"').waitFor();
  await wire.getByText('"jsonrpc": "2.0"').first().waitFor();
  await accessible(page);
  await picture(page, "console-tools");
});

test("missing and invalid arguments are reported before the call", async (t) => {
  const server = await corbie(t);
  const page = await open(t, server, { at: "#/tools/call/knowledge-search" });
  await page.getByRole("button", { name: "Call", exact: true }).click();
  await page.getByText("query is required.").waitFor();
  await page.getByLabel("query (required)").fill("holidays");
  await page.getByLabel("filters").fill("{not json");
  await page.getByRole("button", { name: "Call", exact: true }).click();
  await page.getByText("invalid JSON").waitFor();
  assert.equal(await page.getByLabel("filters").getAttribute("aria-invalid"), "true");
});

test("arguments can be edited as JSON, and errors of the server are shown", async (t) => {
  const server = await corbie(t);
  const page = await open(t, server, { at: "#/tools/call/get_tool_schema" });
  await page.getByLabel("name (required)").fill("classify_text");
  await page.getByLabel("Edit as JSON").check();
  const raw = page.getByRole("textbox", { name: "Arguments as JSON" });
  assert.deepEqual(JSON.parse(await raw.inputValue()), { name: "classify_text" });
  await raw.fill('{"name": 7}');
  await page.getByRole("button", { name: "Call", exact: true }).click();
  await page.locator(".problem, .badge.bad").first().waitFor();
});

test("destructive tools need confirmation", async (t) => {
  const server = await corbie(t);
  const page = await open(t, server, { at: "#/tools/call/knowledge-clear" });
  await page.getByLabel(/^confirm\b/).check();
  await page.getByLabel(/^confirmation_phrase/).fill("DELETE ALL");
  await page.getByRole("button", { name: "Call", exact: true }).click();
  await page.getByRole("dialog").getByText("cannot be undone").waitFor();
  await accessible(page);
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  assert.equal(await page.getByRole("heading", { name: "Result" }).count(), 0);
});

test("tools can be filtered, and each has a form", async (t) => {
  const server = await corbie(t);
  const page = await open(t, server, { at: "#/tools" });
  await page.locator(".tool-names a").first().waitFor();
  const names = await page.locator(".tool-names a > span:first-child").allTextContents();
  assert.ok(names.length >= 20, `${names.length} tools`);
  await page.keyboard.press("/");
  await page.keyboard.type("provider");
  await page.locator(".tool-names a", { hasText: "list_providers" }).waitFor();
  await page.waitForFunction(() => document.querySelectorAll(".tool-names a").length < 6);
  for (const name of names) {
    await page.evaluate((at) => (location.hash = at), `#/tools/call/${name}`);
    await page.locator("form h2", { hasText: name }).waitFor();
  }
});

test("on a phone the list is collapsed after a tool is selected", async (t) => {
  const server = await corbie(t);
  const page = await open(t, server, { at: "#/tools", viewport: { width: 360, height: 740 } });
  const link = page.locator(".tool-names a", { hasText: "classify_text" });
  await link.waitFor();
  assert.equal(await page.locator("form").count(), 0, "the list comes first");
  await fits(page);
  await link.click();
  await page.locator("form h2", { hasText: "classify_text" }).waitFor();
  assert.equal(await link.isVisible(), false, "the list is collapsed");
  const field = page.getByLabel("text (required)");
  const { y } = await field.boundingBox();
  assert.ok(y < 740, `the first field is on the first screen: ${y}`);
  await field.fill("What is 2 + 2?");
  await field.press("Enter");
  await page.locator("section.card", { has: page.getByRole("heading", { name: "Result" }) }).getByText('"category": "math"').waitFor();
  await fits(page);
  await accessible(page);
  await page.getByText("All tools").click();
  await page.locator(".tool-names a", { hasText: "list_categories" }).click();
  await page.locator("form h2", { hasText: "list_categories" }).waitFor();
});

test("trust and the audit log", async (t) => {
  const server = await corbie(t);
  await server.call("batch_categorize", { texts: ["What is 2 + 2?"] });
  await server.call("list_categories");
  const page = await open(t, server, { at: "#/tools/audit", viewport: PHONE });
  await page.getByText("All tools, including destructive ones").waitFor();
  await page.getByRole("cell", { name: "batch_categorize" }).first().waitFor();
  assert.equal(await page.getByRole("cell", { name: "list_categories" }).count(), 0);
  await page.getByLabel("Show status polling").check();
  await page.getByRole("cell", { name: "list_categories" }).first().waitFor();
  await fits(page);
  await accessible(page);
  const careful = await corbie(t, { config: "trust: { loopback: untrusted }\n" });
  const other = await open(t, careful, { at: "#/tools" });
  const refused = refusals(other);
  await visit(other, "#/tools/audit");
  await other.getByText("Only callers with trust level trusted can read the audit log.").waitFor();
  await other.getByText("Read-only tools.").waitFor();
  assert.equal(await refused(), 0, "what would be refused is not asked for");
  // The form of a denied tool shows the missing trust level instead of the button.
  for (const [name, level] of [["knowledge-add", "verified"], ["evaluate_categories", "verified"], ["knowledge-clear", "trusted"], ["check_setup", "trusted"]]) {
    await visit(other, `#/tools/call/${name}`);
    await other.getByText(`${name} requires trust level ${level}; this page has untrusted`).waitFor();
    assert.equal(await other.getByRole("button", { name: "Call", exact: true }).count(), 0, name);
  }
  await accessible(other);
  await visit(other, "#/tools/call/classify_text");
  await other.getByRole("button", { name: "Call", exact: true }).waitFor();
});
