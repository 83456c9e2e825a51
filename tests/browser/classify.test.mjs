// The Classify page: trying texts, categories, the taxonomy editor and evaluations.

import test from "node:test";
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { accessible, corbie, fits, open, picture, refusals, until, PHONE, visit } from "./harness.mjs";

const desk = await readFile(new URL("../../docs/help-desk/finished.yaml", import.meta.url), "utf8");
const unseen = await readFile(new URL("../../docs/help-desk/unseen.jsonl", import.meta.url), "utf8");
const CONFIG = "classification: { taxonomy: $HOME/taxonomy.yaml }\n";
const TABS = ["try", "categories", "edit", "evaluate"];
const GARDEN = `  - name: garden
    description: Plants and soil
    examples:
      - when do I water the tomatoes
      - which soil do roses like
      - how do I cut back the hedge
      - the slugs eat my salad
      - can I plant garlic in autumn
`;

const helpDesk = (t, more = {}) => corbie(t, { config: CONFIG, files: { "taxonomy.yaml": desk }, ...more });
const text = (page) => page.getByRole("textbox", { name: "Text", exact: true });
const written = (page) => page.getByRole("textbox", { name: "Taxonomy", exact: true });
const findings = (page) => page.getByRole("status", { name: "Problems" });
const verdict = (page, name) => page.locator(".verdict strong").filter({ hasText: new RegExp(`^${name}$`) });
/** The length of each bar by category. */
const lengths = (page) => page.locator(".trying .bars .bar").evaluateAll((rows) => Object.fromEntries(rows.map((row) => [row.firstElementChild.textContent, Number(/scaleX\((.*)\)/.exec(row.querySelector(".fill").style.transform)?.[1] ?? 0)])));

/** Opens the editor and waits for the validation. */
async function edit(t, server, options = {}) {
  const page = await open(t, server, { at: "#/classify/edit", ...options });
  await findings(page).getByText("Valid:").waitFor();
  return page;
}

async function save(page) {
  await page.getByRole("button", { name: "Save…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
}

test("typing updates the distribution and the decision", async (t) => {
  const page = await open(t, await helpDesk(t), { at: "#/classify" });
  await text(page).waitFor();
  const places = () => page.locator(".trying .card").evaluateAll((cards) => cards.map((card) => [card.getBoundingClientRect().top, card.getBoundingClientRect().height]));
  const stood = await places();
  await text(page).pressSequentially("where is my parcel", { delay: 15 });
  await verdict(page, "delivery").waitFor();
  const before = await lengths(page);
  assert.ok(before.delivery > 0.5 && before.billing < 0.5, JSON.stringify(before));
  await text(page).fill("invoice 4711");
  await verdict(page, "billing").waitFor();
  const after = await lengths(page);
  assert.ok(after.billing > 0.5 && after.delivery < before.delivery, JSON.stringify(after));
  assert.deepEqual(await places(), stood, "nothing jumps while the bars move");
  await page.locator(".why").getByText("^invoice #?\\d+$").waitFor();
  await page.getByText("rule", { exact: true }).waitFor();
  await page.locator(".why").getByText("openai/gpt-oss-20b").waitFor();
  await page.locator(".gauge").getByText("bits").waitFor();
  await text(page).fill("");
  await page.getByText("Enter a text to classify it").waitFor();
  assert.deepEqual(Object.values(await lengths(page)), [0, 0, 0, 0]);
});

test("nearest examples have categories, and out-of-scope texts a warning", async (t) => {
  const page = await open(t, await helpDesk(t), { at: "#/classify/try" });
  await text(page).fill("the courier charged me twice and the box was empty");
  const near = page.locator(".near li");
  await near.getByText("the courier left it in the rain").waitFor();
  assert.equal(await near.count(), 5);
  await near.getByText("delivery").first().waitFor();
  await picture(page, "console-classify");
  await page.getByRole("button", { name: "Who was the first pharaoh?" }).click();
  await page.getByText("probably out of scope").waitFor();
  await page.getByText("probably belongs to no category").waitFor();
});

test("the out-of-scope caption matches the score", async (t) => {
  const page = await open(t, await helpDesk(t), { at: "#/classify/try" });
  let share = 0;
  await page.route("**/mcp", async (route) => {
    if (route.request().postDataJSON().params?.name !== "classify_text") return route.continue();
    const response = await route.fetch();
    const answer = await response.json();
    answer.result.structuredContent.out_of_scope = share;
    return route.fulfill({ response, json: answer });
  });
  const gauge = page.locator(".gauge").filter({ has: page.getByRole("heading", { name: "Out of scope" }) });
  const said = [];
  for (const [value, caption] of [[0, "very typical"], [0.4, "typical"], [0.6, "typical (above the median)"], [0.85, "unusual"], [0.97, "probably belongs to no category"]]) {
    share = value;
    await text(page).fill(`where is my parcel ${value}`);
    await gauge.getByText(`${(value * 100).toFixed(1)} %`).waitFor();
    await gauge.getByText(caption).waitFor();
    said.push(await gauge.locator("p").innerText());
    assert.equal(await page.getByText("probably out of scope").count(), value >= 0.95 ? 1 : 0);
  }
  assert.equal(new Set(said).size, said.length);
});

test("a newer text cancels the pending request", async (t) => {
  const page = await open(t, await helpDesk(t), { at: "#/classify/try" });
  await text(page).waitFor();
  const older = (request) => request.postData()?.includes("where is my parcel");
  let held = 0;
  let given = 0;
  page.on("requestfailed", (request) => older(request) && given++);
  await page.route("**/mcp", (route) => (older(route.request()) ? void held++ : route.continue()));
  await text(page).fill("where is my parcel");
  await until(() => held, "the first question is on its way");
  await text(page).fill("invoice 4711");
  await verdict(page, "billing").waitFor();
  await until(() => given === held, "the older question is given up");
});

test("categories have description, prompt, model and number of examples", async (t) => {
  const page = await open(t, await helpDesk(t), { at: "#/classify/categories" });
  const billing = page.locator(".categories li").filter({ has: page.getByRole("heading", { name: "billing" }) });
  await billing.getByText("Invoices, payments and refunds").waitFor();
  await billing.getByText("openai/gpt-oss-20b").waitFor();
  await billing.getByText("20 examples").waitFor();
  await page.locator(".categories li").filter({ hasText: "technical" }).getByText("openai/gpt-oss-120b").waitFor();
  const prompt = billing.getByText("Never ask for a card number");
  assert.equal(await prompt.isVisible(), false);
  await billing.getByText("System prompt").click();
  await prompt.waitFor();
});

test("errors have lines; after a fix the taxonomy can be tested and saved", async (t) => {
  const server = await helpDesk(t);
  const page = await edit(t, server);
  await written(page).fill(desk.replace("remainder: other", "remainder: others"));
  const mistake = findings(page).getByRole("button", { name: /Line 2.*others/ });
  await mistake.click();
  assert.equal(await written(page).evaluate((field) => field.value.slice(field.selectionStart, field.selectionEnd)), "others");
  assert.equal(await page.locator(".gutter b").textContent(), "2\n");
  await page.getByRole("button", { name: "Save…" }).click();
  await page.getByText("Fix the errors before saving").waitFor();
  assert.equal(await readFile(join(server.home, "taxonomy.yaml"), "utf8"), desk);

  await written(page).fill(desk + GARDEN);
  await findings(page).getByText("Valid: 5 categories").waitFor();
  await page.getByRole("textbox", { name: /Test changes/ }).fill("which soil do tomatoes like\nwhere is my parcel");
  await page.getByRole("button", { name: "Compare" }).click();
  await page.getByText("1 text changes category.").waitFor();
  const row = page.locator(".tried tbody tr").first();
  assert.match(await row.locator("td").nth(2).innerText(), /garden\s+[\d.]+ %/);
  assert.doesNotMatch(await row.locator("td").nth(1).innerText(), /garden/);
  await page.evaluate(() => document.getElementById("toasts").replaceChildren());
  await picture(page, "console-taxonomy");

  await page.keyboard.press("Control+s");
  const box = page.getByRole("dialog");
  await box.getByText("8 lines added, 0 removed").waitFor();
  await box.locator("ins").filter({ hasText: "- name: garden" }).waitFor();
  await accessible(page);
  await box.getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved: 5 categories in use.").waitFor();
  await page.getByText("saved", { exact: true }).waitFor();
  assert.equal(await readFile(join(server.home, "taxonomy.yaml"), "utf8"), desk + GARDEN);

  await page.getByRole("link", { name: "Try" }).click();
  await text(page).fill("which soil do tomatoes like");
  await verdict(page, "garden").waitFor();
  assert.equal(await page.locator(".trying .bars .bar").count(), 5);
  await page.getByRole("link", { name: "Categories" }).click();
  await page.getByRole("heading", { name: "garden" }).waitFor();
});

test("a file that has changed is not overwritten; compare and reload work", async (t) => {
  const server = await helpDesk(t);
  const page = await edit(t, server);
  const theirs = desk.replace("Parcels, shipping", "Boxes, shipping");
  await written(page).fill(desk + GARDEN);
  await writeFile(join(server.home, "taxonomy.yaml"), theirs);
  await save(page);
  await page.getByText("The file has changed since you opened it").waitFor();
  assert.equal(await readFile(join(server.home, "taxonomy.yaml"), "utf8"), theirs);
  await page.getByRole("button", { name: "Compare with my changes" }).click();
  const box = page.getByRole("dialog");
  await box.locator("del").filter({ hasText: "Boxes, shipping" }).waitFor();
  await box.getByRole("button", { name: "Cancel" }).click();
  assert.equal(await written(page).inputValue(), desk + GARDEN);
  await page.getByRole("button", { name: "Reload" }).click();
  await box.getByRole("button", { name: "Discard" }).click();
  await until(async () => (await written(page).inputValue()) === theirs, "the text of the file is there");
  await page.getByText("saved", { exact: true }).waitFor();
});

test("the draft survives a server restart, navigation and a reload", async (t) => {
  const server = await helpDesk(t);
  const page = await edit(t, server);
  page.expectErrors();
  const asked = [];
  page.on("dialog", (dialog) => (asked.push(dialog.type()), dialog.accept()));
  await written(page).click();
  await page.keyboard.press("Control+End");
  await server.stop();
  await page.keyboard.type(GARDEN);
  await findings(page).getByText("Your changes are kept").waitFor();
  await server.start();
  await findings(page).getByText("Valid: 5 categories").waitFor();
  assert.equal(await written(page).inputValue(), desk + GARDEN);

  await page.getByRole("link", { name: "Categories" }).click();
  await page.getByText("Unsaved taxonomy changes are kept in this tab").waitFor();
  await page.getByRole("heading", { name: "billing" }).waitFor();
  await page.getByRole("navigation", { name: "Sections" }).getByRole("link", { name: "Edit" }).click();
  await findings(page).getByText("Valid: 5 categories").waitFor();
  await page.reload();
  assert.deepEqual(asked, ["beforeunload"]);
  await findings(page).getByText("Valid: 5 categories").waitFor();
  assert.equal(await written(page).inputValue(), desk + GARDEN);
  await save(page);
  await page.getByText(/^Saved: /).waitFor();
  await page.reload();
  await findings(page).getByText("Valid:").waitFor();
  assert.deepEqual(asked, ["beforeunload"]);
});

test("a file with CRLF keeps its line endings", async (t) => {
  const windows = desk.replaceAll("\n", "\r\n");
  const server = await helpDesk(t, { files: { "taxonomy.yaml": windows } });
  const page = await edit(t, server);
  await page.getByText("saved", { exact: true }).waitFor();
  await written(page).focus();
  await page.keyboard.press("Control+End");
  await page.keyboard.type("# the end\n");
  await page.keyboard.press("Control+s");
  const box = page.getByRole("dialog");
  await box.getByText("1 line added, 0 removed").waitFor();
  await box.getByRole("button", { name: "Save" }).click();
  await page.getByText(/^Saved: /).waitFor();
  await page.getByText("saved", { exact: true }).waitFor();
  assert.equal(await readFile(join(server.home, "taxonomy.yaml"), "utf8"), `${windows}# the end\r\n`);
});

test("a file with mixed line endings keeps those of unchanged lines", async (t) => {
  const ends = ["\n", "\r\n", "\n", "\n", "\r\n"];
  const lines = desk.split("\n");
  const end = (at) => ends[at % ends.length];
  const mixed = lines.map((line, at) => (at + 1 < lines.length ? line + end(at) : line)).join("");
  const server = await helpDesk(t, { files: { "taxonomy.yaml": mixed } });
  const page = await edit(t, server);
  await page.getByText("saved", { exact: true }).waitFor();
  // Insert, change and delete a line, and append one.
  const shown = [...lines];
  const changed = shown.findIndex((line) => line.includes("Parcels, shipping"));
  shown[changed] = shown[changed].replace("Parcels", "Boxes");
  const gone = shown.findIndex((line, at) => at > changed && /^\s+- \w/.test(line) && /^\s+- \w/.test(lines[at + 1]));
  shown.splice(gone, 1);
  shown.splice(1, 0, "# put in");
  shown.splice(shown.length - 1, 0, "# the end");
  await written(page).fill(shown.join("\n"));
  await page.keyboard.press("Control+s");
  const box = page.getByRole("dialog");
  await box.getByText("3 lines added, 2 removed").waitFor();
  await box.getByText("Unchanged lines keep theirs").waitFor();
  await box.getByRole("button", { name: "Save" }).click();
  await page.getByText(/^Saved: /).waitFor();
  await page.getByText("saved", { exact: true }).waitFor();
  const kept = lines.map((line, at) => line.replace("Parcels, shipping", "Boxes, shipping") + (at + 1 < lines.length ? end(at) : ""));
  kept.splice(gone, 1);
  kept.splice(1, 0, "# put in\n");
  kept.splice(kept.length - 1, 0, "# the end\n");
  assert.equal(await readFile(join(server.home, "taxonomy.yaml"), "utf8"), kept.join(""));
  // A second change keeps the saved line endings. The editor has the focus after saving.
  await page.keyboard.press("Control+End");
  await page.keyboard.type("# once more\n");
  await save(page);
  await page.getByText("saved", { exact: true }).waitFor();
  await until(async () => (await readFile(join(server.home, "taxonomy.yaml"), "utf8")) === `${kept.join("")}# once more\n`, "only a line has come");
});

test("edits of a file with mixed line endings never merge lines", async (t) => {
  const page = await open(t, await corbie(t), { at: "#/classify" });
  const wrong = await page.evaluate(async () => {
    const { withFileLineEndings, rebase } = await import("/console/js/pages/classify/taxonomy-draft.js");
    const found = [];
    for (const file of ["a\rb\nc\r\nd", "a\r\rb\n\nc", "a\rb\nc\r\nd\r\ne\r\n", "\ra\n\r\n\r"]) {
      rebase({ text: file, version: "1" });
      if (withFileLineEndings(file.replace(/\r\n?/g, "\n")) !== file) found.push(["unchanged", file]);
      const lines = file.split(/\r\n|\r|\n/);
      for (const at of lines.keys()) {
        for (const shown of [lines.with(at, ""), lines.toSpliced(at, 1), lines.toSpliced(at, 0, ""), lines.toSpliced(at, 2, "")]) {
          const saved = withFileLineEndings(shown.join("\n"));
          if (saved.replace(/\r\n?/g, "\n") !== shown.join("\n")) found.push([file, shown, saved]);
        }
      }
    }
    return found;
  });
  assert.deepEqual(wrong, []);
});

test("repeated Ctrl+S opens one dialog", async (t) => {
  const page = await edit(t, await helpDesk(t));
  await written(page).fill(`${desk}# the end\n`);
  await page.getByText("unsaved changes", { exact: true }).waitFor();
  // Counts dialogs instead of validations, which also run while typing and after a reconnect.
  await page.evaluate(() => {
    globalThis.questions = 0;
    const count = (added) => (globalThis.questions += Number(added.nodeName === "DIALOG"));
    new MutationObserver((changes) => changes.forEach(({ addedNodes }) => addedNodes.forEach(count))).observe(document.body, { childList: true });
    for (let press = 0; press < 3; press++) document.dispatchEvent(new KeyboardEvent("keydown", { key: "s", ctrlKey: true, bubbles: true, cancelable: true }));
  });
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  // Repeated, since a failed validation opens no dialog.
  await until(async () => {
    await page.keyboard.press("Control+s");
    return page.getByRole("dialog").waitFor({ timeout: 2000 }).then(() => true, () => false);
  }, "saving is asked about again");
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await page.getByText(/^Saved: /).waitFor();
  assert.equal(await page.evaluate(() => globalThis.questions), 2);
});

test("leaving the page stops retries", async (t) => {
  const page = await open(t, await helpDesk(t), { at: "#/classify/try" });
  page.expectErrors();
  let asked = 0;
  await page.route("**/mcp", (route) => {
    const { id, params } = route.request().postDataJSON();
    if (params?.name !== "classify_text") return route.continue();
    asked++;
    return route.fulfill({ status: 429, json: { jsonrpc: "2.0", id, error: { code: -32000, message: "too many requests" } } });
  });
  await text(page).fill("where is my parcel");
  await until(() => asked >= 2, "it is tried again while the page is shown");
  await page.getByRole("link", { name: "Categories" }).click();
  await page.getByRole("heading", { name: "billing" }).waitFor();
  const before = asked;
  await page.waitForTimeout(2_500);
  assert.equal(asked, before);
});

test("the default taxonomy becomes the user's own file, and stays in use after a restart", async (t) => {
  // The copy has thousands of examples; the method `rules` needs no training.
  const server = await corbie(t, { config: "classification: { method: rules }\n" });
  const page = await edit(t, server);
  await page.getByText("unmodified").waitFor();
  await page.getByRole("button", { name: "Make it mine" }).click();
  const box = page.getByRole("dialog");
  await accessible(page);
  await box.getByRole("button", { name: "Make it mine" }).click();
  await page.getByText("Saved: 5 categories in use.").waitFor();
  await page.getByText("taxonomy.yaml", { exact: true }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Make it mine" }).count(), 0);
  const file = join(server.home, ".config/corbie/taxonomy.yaml");
  assert.match(await readFile(file, "utf8"), /name: math/);
  await written(page).fill(desk);
  await save(page);
  await page.getByText("Saved: 4 categories in use.").waitFor();
  assert.equal(await readFile(file, "utf8"), desk);
  page.expectErrors();
  await server.stop();
  await server.start();
  assert.deepEqual((await server.call("list_categories")).categories, ["billing", "delivery", "technical", "other"]);
});

test("edits of the default taxonomy are saved as the user's own file", async (t) => {
  const server = await corbie(t);
  const page = await edit(t, server);
  await written(page).fill(desk);
  await page.getByRole("button", { name: "Save…" }).click();
  await page.getByRole("dialog").getByText("saved as your own taxonomy file").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved: 4 categories in use.").waitFor();
  assert.equal(await readFile(join(server.home, ".config/corbie/taxonomy.yaml"), "utf8"), desk);
});

test("without a place for a taxonomy file, setup steps and a download are offered", async (t) => {
  const page = await edit(t, await corbie(t, { config: "knowledge: { storage_path: $HOME/store }\n", env: { HOME: "none" } }));
  await page.getByRole("button", { name: "Make it mine" }).click();
  await page.getByRole("dialog").getByText("taxonomy: taxonomy.yaml").waitFor();
  await accessible(page);
  await page.getByRole("button", { name: "Close" }).click();
  await written(page).focus();
  await page.keyboard.press("Control+End");
  await page.keyboard.type("# mine\n");
  await page.getByText("unsaved changes", { exact: true }).waitFor();
  await page.keyboard.press("Control+s");
  const [given] = await Promise.all([page.waitForEvent("download"), page.getByRole("dialog").getByRole("button", { name: "Download taxonomy.yaml" }).click()]);
  assert.equal(given.suggestedFilename(), "taxonomy.yaml");
  assert.match(await readFile(await given.path(), "utf8"), /# mine\n$/);
});

test("an evaluation shows metrics, reliability diagram, confusion matrix and errors", async (t) => {
  const page = await open(t, await helpDesk(t), { at: "#/classify/evaluate" });
  await page.getByText("No evaluation yet").waitFor();
  await page.getByRole("button", { name: "Cross-validate examples" }).click();
  await page.getByText("78 texts evaluated.").waitFor();
  await page.getByText("classified by a model trained without it").waitFor();
  await page.getByRole("img", { name: /^Reliability diagram/ }).waitFor();
  assert.ok((await page.locator(".reliability .count").count()) > 1);
  const matrix = page.getByRole("region", { name: "Confusion matrix" });
  assert.deepEqual(await matrix.getByRole("columnheader").allInnerTexts(), ["billing", "delivery", "technical", "other"]);
  const counts = (await matrix.locator("tbody td").allInnerTexts()).map(Number);
  assert.equal(counts.reduce((sum, each) => sum + each, 0), 78);
  await page.getByRole("region", { name: "Misclassified texts" }).getByText("is there a pick-up point near me").waitFor();
  await page.evaluate(() => document.querySelector(".figures").scrollIntoView());
  await picture(page, "console-evaluation");
  await accessible(page);
});

test("labelled texts are read from JSON Lines, CSV and files, with error messages", async (t) => {
  const page = await open(t, await helpDesk(t), { at: "#/classify/evaluate" });
  const field = page.getByRole("textbox");
  const run = () => page.getByRole("button", { name: "Evaluate texts" }).click();
  const told = page.locator(".said");
  await run();
  await told.getByText("No texts.").waitFor();
  await field.fill('{"text": "a", "category": "billing"}\n{"text": ');
  await run();
  await told.getByText("Line 2: invalid JSON").waitFor();
  await field.fill("question,answer\na,b\n");
  await run();
  await told.getByText("The CSV header must have").waitFor();
  await field.fill('{"text": "a", "category": "<b>gone</b>"}');
  await run();
  await told.getByText("Unknown category “<b>gone</b>” in text 1.").waitFor();
  await field.fill('text,category\n"where, oh where, is my ""parcel""",delivery\nhow do i get a refund,billing\n');
  await run();
  await told.getByText("2 texts evaluated.").waitFor();
  // The alternative column names of the hint work.
  await page.locator(".labelled .hint").getByText("(or label, class)").waitFor();
  for (const labelled of ['{"text": "where is my parcel", "label": "delivery"}\n{"text": "how do i get a refund", "class": "billing"}\n{"text": "invoice 4711", "category": "billing"}', "text,label\nwhere is my parcel,delivery\nhow do i get a refund,billing\ninvoice 4711,billing\n"]) {
    await field.fill("");
    await run();
    await told.getByText("No texts.").waitFor();
    await field.fill(labelled);
    await run();
    await told.getByText("3 texts evaluated.").waitFor();
  }
  await page.getByText("None. All texts were classified correctly.").waitFor();
  await page.locator("input[type=file]").setInputFiles({ name: "unseen.jsonl", mimeType: "application/jsonl", buffer: Buffer.from(unseen) });
  await told.getByText("32 texts evaluated. 8 without a category skipped.").waitFor();
});

test("untrusted names and texts are shown as text", async (t) => {
  const name = "<img src=x onerror=alert(1)>";
  const hostile = `categories:\n  - name: "${name}"\n    description: "<script>alert(2)</script>"\n    system_prompt: "<b>bold</b>"\n    examples: ["<i>one</i> two", "<u>three</u> four", "five <s>six</s>"]\n  - name: constructor\n    examples: [build it, raise the walls, pour the concrete]\n`;
  const server = await helpDesk(t, { files: { "taxonomy.yaml": hostile } });
  const page = await open(t, server, { at: "#/classify/try" });
  await text(page).fill("<i>one</i> two");
  await page.locator(".verdict").getByText(name).waitFor();
  await page.locator(".near").getByText("<i>one</i> two").waitFor();
  await visit(page, "#/classify/categories");
  await page.getByRole("heading", { name }).waitFor();
  await page.getByText("<script>alert(2)</script>").waitFor();
  await page.getByRole("heading", { name: "constructor" }).waitFor();
  await visit(page, "#/classify/evaluate");
  await page.getByRole("textbox").fill(JSON.stringify({ text: "<i>one</i> two", category: "constructor" }));
  await page.getByRole("button", { name: "Evaluate texts" }).click();
  await page.getByRole("region", { name: "Misclassified texts" }).getByText("<i>one</i> two").waitFor();
  assert.equal(await page.locator("main img, main i, main s, main u, main script").count(), 0);
});

test("classifying, editing and saving work with the keyboard", async (t) => {
  const server = await helpDesk(t);
  const page = await open(t, server, { at: "#/classify/try" });
  await text(page).waitFor();
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("/");
  await page.keyboard.type("where is my parcel");
  await verdict(page, "delivery").waitFor();
  const reach = async (matches, what) => {
    for (let step = 0; step < 40; step++) {
      await page.keyboard.press("Tab");
      if (await page.evaluate(matches)) return;
    }
    assert.fail(`the keyboard does not reach ${what}`);
  };
  await page.reload();
  await text(page).waitFor();
  await reach(() => document.activeElement.textContent === "Edit", "the tab Edit");
  await page.keyboard.press("Enter");
  await findings(page).getByText("Valid:").waitFor();
  await reach(() => document.activeElement.getAttribute("aria-label") === "Taxonomy", "the text");
  await page.keyboard.press("Control+End");
  await page.keyboard.type("# the end\n");
  await findings(page).getByText("Valid:").waitFor();
  await page.keyboard.press("Tab");
  assert.notEqual(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Taxonomy", "Tab leaves the text");
  await page.keyboard.type("how do i get a refund");
  await page.keyboard.press("Control+Enter");
  await page.getByText("No category changes.").waitFor();
  await page.keyboard.press("Control+s");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Enter");
  await page.getByText(/^Saved: /).waitFor();
  assert.equal(await readFile(join(server.home, "taxonomy.yaml"), "utf8"), `${desk}# the end\n`);
});

test("every tab fits a phone, and is accessible in dark mode", async (t) => {
  const server = await helpDesk(t);
  for (const look of [{ viewport: PHONE }, { dark: true }]) {
    const page = await open(t, server, { at: "#/classify", ...look });
    for (const tab of TABS) {
      await visit(page, `#/classify/${tab}`);
      if (tab === "try") {
        await text(page).fill("the courier charged me twice and the box was empty");
        await verdict(page, "delivery").waitFor();
        await page.locator(".near").getByText("the courier left it in the rain").waitFor();
        if (look.dark) await picture(page, "console-classify-dark");
      } else if (tab === "categories") await page.getByText("System prompt").first().click();
      else if (tab === "edit") await findings(page).getByText("Valid:").waitFor();
      else {
        await page.getByRole("textbox").fill(unseen);
        await page.getByRole("button", { name: "Evaluate texts" }).click();
        await page.getByText("32 texts evaluated.").waitFor();
      }
      await fits(page);
      await accessible(page);
    }
  }
});

test("many categories fit the layout", async (t) => {
  const many = Array.from({ length: 40 }, (_, at) => `  - name: a-rather-long-name-of-a-category-${at}\n    examples: [apples number ${at}, pears of kind ${at}, a question about ${at}]\n`);
  const server = await helpDesk(t, { files: { "taxonomy.yaml": `categories:\n${many.join("")}` } });
  const page = await open(t, server, { at: "#/classify/try", viewport: PHONE });
  await text(page).fill("apples number 7");
  await page.locator(".verdict strong").waitFor();
  assert.equal(await page.locator(".trying .bars .bar").count(), 12);
  await page.getByText("28 more categories, total").waitFor();
  await fits(page);
  await visit(page, "#/classify/evaluate");
  await page.getByRole("textbox").fill('{"text": "apples number 7", "category": "a-rather-long-name-of-a-category-7"}');
  await page.getByRole("button", { name: "Evaluate texts" }).click();
  const matrix = page.getByRole("region", { name: "Confusion matrix" });
  await matrix.waitFor();
  assert.ok(await matrix.evaluate((box) => box.scrollWidth > box.clientWidth), "it scrolls inside of its own box");
  await fits(page);
});

test("untrusted clients see why the taxonomy is hidden", async (t) => {
  const server = await helpDesk(t, { config: `${CONFIG}trust: { all: untrusted }\n` });
  const page = await open(t, server, { at: "#/classify/edit" });
  await page.getByText("Taxonomy text not available").waitFor();
  await page.locator(".empty").getByText("the operator can raise the trust level").waitFor();
  assert.equal(await written(page).count(), 0);
  await visit(page, "#/classify/try");
  await text(page).fill("where is my parcel");
  await verdict(page, "delivery").waitFor();
  await page.locator(".near").getByText("requires trust level trusted").waitFor();
  await visit(page, "#/classify/categories");
  await page.getByRole("heading", { name: "billing" }).waitFor();
  await visit(page, "#/classify/evaluate");
  await page.locator(".empty").getByText("requires trust level verified; this page has untrusted").waitFor();
  assert.equal(await page.getByRole("button", { name: /^Evaluate/ }).count(), 0, "no button that would be refused");
  await accessible(page);
  await page.route("**/mcp", async (route) => {
    if (JSON.parse(route.request().postData()).method !== "tools/list") return route.continue();
    const reply = await route.fetch();
    const body = await reply.json();
    body.result.tools = body.result.tools.filter(({ name }) => !/taxonomy|evaluate/.test(name));
    await route.fulfill({ response: reply, json: body });
  });
  for (const tab of ["edit", "evaluate"]) {
    await visit(page, `#/classify/${tab}`);
    await page.getByText("Not available", { exact: true }).waitFor();
    await accessible(page);
  }
});

test("a read-only taxonomy is shown without denied actions", async (t) => {
  for (const [trust, level] of [["untrusted", "verified"], ["verified", "trusted"]]) {
    const page = await open(t, await corbie(t, { config: `trust: { all: ${trust} }\n` }), { at: "#/classify" });
    const refused = refusals(page);
    await visit(page, "#/classify/categories");
    await page.getByRole("heading", { name: "math" }).waitFor();
    await visit(page, "#/classify/edit");
    await page.getByText(`requires trust level ${level}; this page has ${trust}`).waitFor();
    assert.match(await written(page).inputValue(), /categories:/);
    assert.equal(await page.getByRole("button", { name: "Save…" }).count(), 0);
    assert.equal(await page.getByRole("button", { name: "Compare" }).count(), trust === "verified" ? 1 : 0);
    assert.equal(await written(page).evaluate((field) => field.readOnly), trust === "untrusted");
    await page.keyboard.press("Control+s");
    await accessible(page);
    assert.equal(await refused(), 0, trust);
  }
});

test("an evaluation can be stopped, and a dropped file is evaluated", async (t) => {
  const page = await open(t, await helpDesk(t), { at: "#/classify/evaluate" });
  let held;
  await page.route("**/mcp", (route) => {
    if (held || !/"evaluate_/.test(route.request().postData())) return route.continue();
    held = route;
  });
  await page.getByRole("button", { name: "Cross-validate examples" }).click();
  await page.getByRole("progressbar").waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("Stopped.").waitFor();
  await drop(page);
  await page.getByText("32 texts evaluated.").waitFor();
});

test("a file dropped during an evaluation replaces it", async (t) => {
  const page = await open(t, await helpDesk(t), { at: "#/classify/evaluate" });
  const held = [];
  await page.route("**/mcp", (route) => (/"evaluate_/.test(route.request().postData()) ? void held.push(route) : route.continue()));
  let given = 0;
  page.on("requestfailed", () => given++);
  await page.getByRole("button", { name: "Cross-validate examples" }).click();
  await until(() => held.length === 1, "the first one runs");
  await drop(page);
  await until(() => held.length === 2 && given === 1, "the second one runs, and the first was given up");
  await page.getByText("Classifying 32 texts…").waitFor();
  assert.ok(await page.getByRole("button", { name: "Stop" }).isVisible());
  assert.ok(await page.getByRole("button", { name: "Evaluate texts" }).isDisabled());
  await held[1].continue();
  await page.getByText("32 texts evaluated.").waitFor();
  await page.getByRole("button", { name: "Stop" }).waitFor({ state: "hidden" });
});

test("an evaluation continues while other pages are shown", async (t) => {
  const server = await helpDesk(t);
  const page = await open(t, server, { at: "#/classify/evaluate" });
  let held;
  await page.route("**/mcp", (route) => (/"evaluate_/.test(route.request().postData()) ? void (held = route) : route.continue()));
  let probes = 0;
  page.on("request", (request) => (probes += Number(request.url().endsWith("/live"))));
  await page.getByRole("button", { name: "Cross-validate examples" }).click();
  await until(() => held, "the evaluation runs");
  await visit(page, "#/overview");
  await page.locator(".part").first().waitFor();
  await page.locator('[data-stat="Errors"] .number').filter({ hasText: /^0$/ }).waitFor();
  assert.equal(await page.locator(".toast, main .problem, #connection:not([hidden])").count(), 0);
  await visit(page, "#/classify/evaluate");
  await page.getByText("Cross-validating…").waitFor();
  assert.ok(await page.getByRole("button", { name: "Stop" }).isVisible());
  await visit(page, "#/classify/try");
  await held.continue();
  await visit(page, "#/classify/evaluate");
  await page.getByText("78 texts evaluated.").waitFor();
  await page.getByRole("region", { name: "Confusion matrix" }).waitFor();
  const { audit } = await server.call("inspect_server", { audit: 100 });
  assert.deepEqual(audit.latest.filter(({ tool }) => tool === "evaluate_categories").map(({ outcome }) => outcome), ["success"]);
  // Stopping it does not make the page suspect that the server is unreachable.
  const before = probes;
  held = undefined;
  await page.getByRole("button", { name: "Cross-validate examples" }).click();
  await until(() => held, "the evaluation runs again");
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("Stopped.").waitFor();
  await page.waitForTimeout(500);
  assert.ok(probes - before <= 1, "only the heartbeat");
});

test("Enter submits, and fields with one text per line take Ctrl+Enter", async (t) => {
  const page = await open(t, await helpDesk(t), { at: "#/classify/try" });
  await text(page).fill("where is my parcel");
  await text(page).press("Enter");
  await verdict(page, "delivery").waitFor();
  assert.equal(await text(page).inputValue(), "where is my parcel");
  await text(page).press("Shift+Enter");
  assert.equal(await text(page).inputValue(), "where is my parcel\n");
  await visit(page, "#/classify/evaluate");
  await page.getByRole("textbox").fill('{"text": "where is my parcel", "category": "delivery"}');
  await page.keyboard.press("Enter");
  assert.match(await page.getByRole("textbox").inputValue(), /\n$/);
  await page.keyboard.press("Control+Enter");
  await page.getByText("1 text evaluated.").waitFor();
});

/** Drops a file with labelled texts. */
const drop = (page) => page.locator(".labelled").evaluate((area, lines) => {
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([lines], "unseen.jsonl"));
  area.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
}, unseen);
