// The Routing page: decisions, route preview and providers.

import test from "node:test";
import assert from "node:assert/strict";
import { accessible, corbie, fits, open, picture, PHONE } from "./harness.mjs";

const MOCK = "providers: { mock: { type: mock } }\n";

test("decisions appear live with reason, attempts and tokens", async (t) => {
  const server = await corbie(t, { config: MOCK });
  const page = await open(t, server, { at: "#/routing" });
  await page.getByText("No decisions yet").waitFor();
  await server.call("chat_completion", { prompt: "Why is the sky blue?" });
  const row = page.locator("table.decisions tbody tr").first();
  await row.getByText("science").waitFor();
  await row.getByText("mock/mock").waitFor();
  await row.getByText("answered").waitFor();
  await row.getByRole("button").click();
  await page.getByText(/\d+ input, \d+ output/).first().waitFor();
  await page.getByRole("cell", { name: "ok", exact: true }).waitFor();
  await server.call("chat_completion", { prompt: "Integrate x squared from 0 to 3" });
  await page.locator("table.decisions tbody tr").first().getByText("math").waitFor();
  assert.equal(await page.locator("table.decisions tr.more:visible").count(), 1, "what was opened stays open");
  await accessible(page);
  for (const [dark, name] of [[false, "console-routing"], [true, "console-routing-dark"]]) {
    const shown = await open(t, server, { at: "#/routing", dark });
    await shown.locator("table.decisions tbody tr button").nth(1).click();
    await picture(shown, name);
  }
});

test("a decision names the model that was requested if none answered, and the classifier's confidence", async (t) => {
  const server = await corbie(t, { config: "providers: { mock: { type: mock }, away: { type: openai, api_key: key-of-nobody, base_url: 'http://127.0.0.1:9/v1', default_model: lost-model } }\n" });
  const ask = (model) => fetch(`${server.url}/v1/chat/completions`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ model, messages: [{ role: "user", content: "Why is the sky blue?" }] }) });
  for (const model of ["auto", "no-such-model", "away/lost-model"]) await ask(model);
  const page = await open(t, server, { at: "#/routing" });
  const rows = page.locator("table.decisions tbody tr.opens");
  const cell = (row, column) => rows.nth(row).locator("td").nth(column);
  await rows.nth(2).waitFor();
  assert.match(await cell(0, 2).innerText(), /^away\/lost-model\nrequested by the caller$/);
  assert.match(await cell(1, 2).innerText(), /^no-such-model\nrequested by the caller$/);
  for (const row of [0, 1]) await rows.nth(row).getByText("failed").waitFor();
  assert.match(await cell(2, 1).innerText(), /^science\n[\d.]+ % confidence$/);
  await rows.nth(2).click();
  const detail = page.locator(".decisions .detail:visible");
  await detail.getByText("Classified by").waitFor();
  assert.doesNotMatch(await detail.locator("dl").innerText(), /by model|·\s*model/);
});

test("a prompt is explained without being sent", async (t) => {
  const server = await corbie(t, { config: MOCK });
  const page = await open(t, server, { at: "#/routing/explain" });
  await page.getByRole("textbox", { name: "Prompt", exact: true }).fill("Who was the last tsar of Russia?");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "history" }).waitFor();
  await page.getByText("mock/mock").waitFor();
  await page.getByText("You are a history expert").waitFor();
  await accessible(page);
  await picture(page, "console-explain");
  const { decisions } = JSON.parse((await read(server, "corbie://decisions")).contents[0].text);
  assert.equal(decisions.length, 0, "nobody was asked");
});

test("an unavailable model is reported with a link to the available ones", async (t) => {
  const page = await open(t, await corbie(t, { config: MOCK }), { at: "#/routing/explain" });
  await page.getByRole("textbox", { name: "Prompt", exact: true }).fill("Why is the sky blue?");
  await page.getByRole("textbox", { name: /^Model/ }).fill("a-model-of-nobody");
  await page.getByRole("button", { name: "Explain", exact: true }).click();
  await page.getByText("No provider offers a-model-of-nobody").waitFor();
  assert.equal(await page.getByText("How to add one").count(), 0, "there is a provider");
  await accessible(page);
  await page.locator("main section").getByRole("link", { name: "Providers" }).click();
  await page.getByRole("cell", { name: "mock-reasoner" }).waitFor();
  const bare = await open(t, await corbie(t, { config: "providers: { detect_ports: [] }\n" }), { at: "#/routing/explain" });
  await bare.getByRole("textbox", { name: "Prompt", exact: true }).fill("Why is the sky blue?");
  await bare.getByRole("button", { name: "Explain", exact: true }).click();
  await bare.getByText("No provider is configured").waitFor();
  await bare.getByRole("link", { name: "How to add one" }).waitFor();
});

test("clients that may not send prompts see the missing trust level and no command", async (t) => {
  const config = `${MOCK}trust: { all: TRUST }\n`;
  const page = await open(t, await corbie(t, { config: config.replace("TRUST", "untrusted") }), { at: "#/routing" });
  await page.getByText("Sending prompts requires trust level verified; this page has untrusted").waitFor();
  assert.equal(await page.getByText("curl").count(), 0);
  await accessible(page);
  const other = await open(t, await corbie(t, { config: config.replace("TRUST", "verified") }), { at: "#/routing" });
  await other.getByText("curl").waitFor();
  const token = "d4c3e8a11256ab82a4fc72560eb4a2b0e87bad82";
  const guarded = await open(t, await corbie(t, { config: `${MOCK}server: { auth: bearer, token: ${token} }\n` }), { at: "#/routing", token });
  await guarded.getByText("authorization: Bearer YOUR-TOKEN").waitFor();
});

test("a retry is offered after transient errors only", async (t) => {
  const page = await open(t, await corbie(t, { config: MOCK }), { at: "#/routing/explain" });
  page.expectErrors();
  const failures = [
    ["an error of the server itself", true, { status: 200, error: { code: -32603, message: "something broke", data: { error_type: "InternalError" } } }],
    ["too slow", true, { status: 200, error: { code: -31007, message: "it took too long", data: { error_type: "TimeoutError" } } }],
    ["busy", true, { status: 429, error: { code: -32002, message: "too many requests" } }],
    ["503", true, { status: 503, error: { code: -32012, message: "going down" } }],
    ["too little trust", false, { status: 200, error: { code: -31010, message: "needs trust `verified`", data: { error_type: "TrustDenied" } } }],
    ["forbidden", false, { status: 403, error: { code: -32010, message: "not allowed here" } }],
    ["not granted", false, { status: 200, error: { code: -31010, message: "your token does not allow it", data: { error_type: "PermissionDenied" } } }],
    ["a wrong argument", false, { status: 200, error: { code: -32602, message: "no such model", data: { error_type: "InvalidParams" } } }],
  ];
  let answer;
  await page.route("**/mcp", (route) => {
    const { id, params } = route.request().postDataJSON();
    if (params?.name !== "explain_route") return route.continue();
    if (!answer) return route.abort("connectionreset");
    return route.fulfill({ status: answer.status, json: { jsonrpc: "2.0", id, error: answer.error } });
  });
  await page.getByRole("textbox", { name: "Prompt", exact: true }).fill("Why is the sky blue?");
  for (const [name, helps, given] of [...failures, ["no answer at all", true, undefined]]) {
    answer = given;
    await page.getByRole("button", { name: "Explain", exact: true }).click();
    await page.locator(".problem", { hasText: new RegExp(given?.error.message.replaceAll("`", "") ?? "unreachable", "i") }).waitFor();
    assert.equal(await page.locator("main").getByRole("button", { name: "Try again" }).count(), helps ? 1 : 0, name);
  }
});

test("providers show their health, and the empty state shows how to add one", async (t) => {
  const server = await corbie(t, { config: "providers: { mock: { type: mock }, away: { type: openai, api_key: key-of-nobody, base_url: 'http://127.0.0.1:9/v1' } }\n" });
  const page = await open(t, server, { at: "#/routing/providers", viewport: PHONE });
  await page.getByRole("heading", { name: "away" }).waitFor();
  await page.getByText("connection refused").first().waitFor();
  await page.getByText("mock-reasoner").waitFor();
  await fits(page);
  await accessible(page);
  const bare = await open(t, await corbie(t), { at: "#/routing/providers" });
  await bare.getByText("No providers configured").waitFor();
  await accessible(bare);
});

async function read(server, uri) {
  const body = JSON.stringify({ uri });
  return (await fetch(`${server.url}/mcp/resources/read`, { method: "POST", headers: { "content-type": "application/json" }, body })).json();
}
