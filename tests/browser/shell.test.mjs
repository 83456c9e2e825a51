// The shell: navigation, color scheme, tokens and reconnecting.

import test from "node:test";
import assert from "node:assert/strict";
import { accessible, corbie, fits, open, PHONE, refusals, until, visit } from "./harness.mjs";

const PAGES = ["overview", "knowledge", "classify", "routing", "tools"];

test("every page fits desktop and phone, light and dark, and is accessible", async (t) => {
  const server = await corbie(t);
  for (const look of [{}, { dark: true }, { viewport: PHONE }]) {
    const page = await open(t, server, look);
    for (const name of PAGES) {
      await page.evaluate((at) => (location.hash = at), `#/${name}`);
      await page.locator(`main[data-shown="#/${name}"] h1`).waitFor();
      await fits(page);
      await accessible(page);
    }
  }
});

test("every page is reachable with the keyboard", async (t) => {
  const page = await open(t, await corbie(t));
  await page.locator("main h1").waitFor();
  for (const [key, name] of [["k", "knowledge"], ["c", "classify"], ["r", "routing"], ["t", "tools"], ["o", "overview"]]) {
    await page.keyboard.press("Escape");
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press("g");
    await page.keyboard.press(key);
    await page.waitForFunction((wanted) => document.querySelector("main").dataset.page === wanted && document.querySelector("main h1"), name);
  }
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("?");
  await page.getByRole("dialog").getByText("Overview").waitFor();
  await page.keyboard.press("Escape");
  await page.reload();
  await page.locator("main h1").waitFor();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to content");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.activeElement?.id === "main");
});

test("the color scheme follows the system until the user chooses one", async (t) => {
  const page = await open(t, await corbie(t), { dark: true });
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await paper();
  await page.getByRole("button", { name: "Toggle dark mode" }).click();
  const light = await paper();
  assert.notEqual(dark, light);
  await page.reload();
  await page.getByRole("button", { name: "Toggle dark mode" }).waitFor();
  assert.equal(await paper(), light);
});

test("a server restart shows a notice and needs no reload", async (t) => {
  const server = await corbie(t);
  const page = await open(t, server);
  page.expectErrors();
  await page.locator("main h1").waitFor();
  await server.stop();
  await page.getByText("Server unreachable.").waitFor();
  await server.start();
  await page.getByText("Reconnected.").waitFor();
  await page.locator("#connection").waitFor({ state: "hidden" });
});

test("a required token is prompted for, kept in the tab, and never in a URL", async (t) => {
  const secret = "d4c3e8a11256ab82a4fc72560eb4a2b0e87bad82";
  const server = await corbie(t, { config: `server: { auth: bearer, token: ${secret} }\n` });
  const page = await open(t, server);
  page.expectErrors();
  const addresses = [];
  page.on("request", (request) => addresses.push(request.url()));
  const box = page.getByRole("dialog");
  await box.getByText("Token required").waitFor();
  await accessible(page);
  await page.keyboard.press("Escape");
  await box.getByLabel("Token").fill("not-the-one");
  await page.keyboard.press("Enter");
  await box.locator(".problem").waitFor();
  assert.match(await box.locator(".problem").innerText(), /^[A-Z].*\.$/, "a sentence");
  // The instructions are shown after a rejected token too.
  await box.getByText("corbie tokens create console").waitFor();
  await accessible(page);
  // The token dialog stays open on navigation.
  await page.evaluate(() => (location.hash = "#/tools"));
  await page.waitForTimeout(300);
  assert.equal(await box.count(), 1);
  await box.getByLabel("Token").fill(secret);
  await page.keyboard.press("Enter");
  await page.locator("main h1").waitFor();
  await page.reload();
  await page.locator("main h1").waitFor();
  assert.ok(addresses.length > 0 && addresses.every((address) => !address.includes(secret)));
  assert.ok(!page.url().includes(secret));
  assert.equal(await page.evaluate((held) => Object.values(localStorage).includes(held), secret), false);
});

test("a dialog closes on navigation", async (t) => {
  const page = await open(t, await corbie(t), { at: "#/tools/call/knowledge-clear" });
  const box = page.getByRole("dialog");
  await page.getByLabel(/^confirm\b/).check();
  await page.getByLabel(/^confirmation_phrase/).fill("DELETE ALL");
  await page.getByRole("button", { name: "Call", exact: true }).click();
  await box.getByText("cannot be undone").waitFor();
  let called = 0;
  page.on("request", (request) => (called += Number(request.postData()?.includes('"knowledge-clear"') ?? false)));
  await visit(page, "#/overview");
  assert.equal(await box.count(), 0, "the question is gone");
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("?");
  await box.getByText("Overview").waitFor();
  await visit(page, "#/routing");
  assert.equal(await box.count(), 0, "so is what was only to be read");
  assert.equal(called, 0, "and nothing was done");
});

test("all tabs are visible on a narrow screen", async (t) => {
  const server = await corbie(t);
  for (const width of [390, 320]) {
    const page = await open(t, server, { at: "#/routing", viewport: { width, height: 844 } });
    for (const name of ["routing", "knowledge", "classify", "tools"]) {
      await visit(page, `#/${name}`);
      const cut = await page.locator(".tabs a").evaluateAll((links) => links.filter((link) => {
        const { left, right } = link.getBoundingClientRect();
        return left < 0 || right > innerWidth;
      }).map((link) => link.textContent));
      assert.deepEqual(cut, [], `${name} at ${width}`);
      await fits(page);
    }
  }
});

test("several rejected requests open one token dialog, and changing the token can be cancelled", async (t) => {
  const secret = "d4c3e8a11256ab82a4fc72560eb4a2b0e87bad82";
  const server = await corbie(t, { config: `server: { auth: bearer, token: ${secret} }\n` });
  const page = await open(t, server);
  page.expectErrors();
  const box = page.getByRole("dialog");
  const held = () => page.evaluate(() => sessionStorage.getItem("corbie.token"));
  await box.getByLabel("Token").fill(secret);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Token" }).click();
  await box.getByText("Change token").waitFor();
  assert.equal(await held(), secret);
  await page.keyboard.press("Escape");
  await box.waitFor({ state: "detached" });
  assert.equal(await held(), secret);

  await page.evaluate(async () => {
    const { connect } = await import("/console/js/connection.js");
    sessionStorage.setItem("corbie.token", "one-that-was-taken-back");
    globalThis.entered = Promise.all([connect(), connect(), connect()]).then((all) => all.length);
  });
  await box.locator(".problem").waitFor();
  await box.getByLabel("Token").fill(secret);
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => globalThis.entered), 3);
  assert.equal(await box.count(), 0);
});

/** Creates and revokes tokens, and waits until the server has reloaded them. */
async function make(server, name, ...flags) {
  const token = await server.command("tokens", "create", name, ...flags);
  await until(() => isKnown(server, token), `${name} is known`);
  return token;
}
async function takeBack(server, name, token) {
  await server.command("tokens", "revoke", name);
  await until(async () => !(await isKnown(server, token)), `${name} is forgotten`);
}
const isKnown = (server, token) => server.call("list_categories", {}, token).then(() => true, () => false);

test("after a revoked token, another one applies its permissions and input is kept", async (t) => {
  const server = await corbie(t, { config: "server: { auth: bearer, token: d4c3e8a11256ab82a4fc72560eb4a2b0e87bad82 }\nproviders: { mock: {}, detect_ports: [] }\nknowledge: { storage_path: $HOME/store }\n" });
  const page = await open(t, server, { at: "#/knowledge" });
  page.expectErrors();
  const box = page.getByRole("dialog");
  const give = async (token) => {
    await box.getByLabel("Token").fill(token);
    await page.keyboard.press("Enter");
    await box.waitFor({ state: "detached" });
  };
  const trusted = (level) => page.locator("#status .badge", { hasText: new RegExp(`^${level}$`) }).waitFor();
  const first = await make(server, "first", "--trust", "trusted");
  await give(first);
  await page.getByRole("button", { name: "Choose files" }).waitFor();
  await trusted("trusted");

  // The next request notices it: here a search.
  await visit(page, "#/knowledge/search");
  const second = await make(server, "second", "--trust", "untrusted");
  await takeBack(server, "first", first);
  const search = page.getByRole("searchbox");
  await search.fill("how many days of holiday");
  await page.keyboard.press("Enter");
  await box.waitFor();
  await give(second);
  await trusted("untrusted");
  await page.getByText("No documents yet").waitFor();
  assert.equal(await search.inputValue(), "how many days of holiday");
  await visit(page, "#/knowledge/documents");
  await page.getByText("Adding files requires trust level verified; this page has untrusted").waitFor();
  assert.equal(await page.getByRole("button", { name: "Choose files" }).count(), 0);

  // Form input is kept too: a prompt, and arguments of a tool.
  await visit(page, "#/routing/explain");
  const prompt = page.getByRole("textbox", { name: "Prompt", exact: true });
  await prompt.fill("Why is the sky blue?");
  const third = await make(server, "third", "--trust", "trusted");
  await takeBack(server, "second", second);
  await page.getByRole("button", { name: "Explain", exact: true }).click();
  await give(third);
  await trusted("trusted");
  assert.equal(await prompt.inputValue(), "Why is the sky blue?");
  await page.locator("main .problem").waitFor({ state: "detached" });
  await visit(page, "#/tools/call/classify_text");
  await page.getByLabel(/^text\b/).fill("a text for the tool");
  await page.getByLabel("Edit as JSON").check();
  await page.getByLabel("Arguments as JSON", { exact: true }).fill('{"text": "written by hand"}');
  await page.getByRole("button", { name: "Token" }).click();
  await give(await make(server, "fourth", "--trust", "verified"));
  await trusted("verified");
  assert.equal(await page.getByLabel("Arguments as JSON", { exact: true }).inputValue(), '{"text": "written by hand"}');

  // The list of tools is reloaded too.
  await visit(page, "#/knowledge");
  await page.getByRole("button", { name: "Choose files" }).waitFor();
  await page.getByRole("button", { name: "Token" }).click();
  await give(await make(server, "fifth", "--tool", "list_*", "--tool", "inspect_server"));
  await page.getByText("No knowledge base").waitFor();
});

test("an upload with a revoked token is repeated with the next one", async (t) => {
  const server = await corbie(t, { config: "server: { auth: bearer, token: d4c3e8a11256ab82a4fc72560eb4a2b0e87bad82 }\nknowledge: { storage_path: $HOME/store }\n" });
  const [first, second] = [await make(server, "first"), await make(server, "second")];
  const page = await open(t, server, { at: "#/knowledge" });
  page.expectErrors();
  const box = page.getByRole("dialog");
  await box.getByLabel("Token").fill(first);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Choose files" }).waitFor();
  await takeBack(server, "first", first);
  await page.getByLabel("Files to add").setInputFiles({ name: "note.md", mimeType: "text/markdown", buffer: Buffer.from("# A note\n\nThe dome is opened at night.") });
  await box.getByLabel("Token").fill(second);
  await page.keyboard.press("Enter");
  await page.locator('.job[data-state="completed"]', { hasText: "note.md" }).waitFor();
});

test("the helper counts concurrent refusals", async (t) => {
  const page = await open(t, await corbie(t), { at: "#/tools" });
  await page.route("**/refused/*", (route) => route.fulfill({ body: route.request().url().endsWith("2") ? "all is well" : "TrustDenied" }));
  const refused = refusals(page);
  await page.evaluate(() => Promise.all([0, 1, 2, 3].map((at) => fetch(`/refused/${at}`).then((answer) => answer.text()))));
  assert.equal(await refused(), 3);
});
