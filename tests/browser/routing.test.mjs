// The page Routing: what became of prompts, where one would go, and how the providers are doing.

import test from "node:test";
import assert from "node:assert/strict";
import { accessible, corbie, fits, open, picture, PHONE } from "./harness.mjs";

const MOCK = "providers: { mock: { type: mock } }\n";

test("decisions show as they are made, with why, attempts and tokens", async (t) => {
  const server = await corbie(t, { config: MOCK });
  const page = await open(t, server, { at: "#/routing" });
  await page.getByText("No prompt has been routed yet").waitFor();
  await server.call("chat_completion", { prompt: "Why is the sky blue?" });
  const row = page.locator("table.decisions tbody tr").first();
  await row.getByText("science").waitFor();
  await row.getByText("mock/mock").waitFor();
  await row.getByText("answered").waitFor();
  await row.getByRole("button").click();
  await page.getByText(/tokens?|in, \d+ out/).first().waitFor();
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

test("a prompt is explained without being sent", async (t) => {
  const server = await corbie(t, { config: MOCK });
  const page = await open(t, server, { at: "#/routing/explain" });
  await page.getByRole("textbox", { name: "Prompt", exact: true }).fill("Who was the last tsar of Russia?");
  await page.keyboard.press("Control+Enter");
  await page.getByRole("heading", { name: "history" }).waitFor();
  await page.getByText("mock/mock").waitFor();
  await page.getByText("You are a history expert").waitFor();
  await accessible(page);
  await picture(page, "console-explain");
  const { decisions } = JSON.parse((await read(server, "corbie://decisions")).contents[0].text);
  assert.equal(decisions.length, 0, "nobody was asked");
});

test("providers show how they are doing, and no provider shows how to add one", async (t) => {
  const server = await corbie(t, { config: "providers: { mock: { type: mock }, away: { type: openai, api_key: key-of-nobody, base_url: 'http://127.0.0.1:9/v1' } }\n" });
  const page = await open(t, server, { at: "#/routing/providers", viewport: PHONE });
  await page.getByRole("heading", { name: "away" }).waitFor();
  await page.getByText("nothing listens there").first().waitFor();
  await page.getByText("mock-reasoner").waitFor();
  await fits(page);
  await accessible(page);
  const bare = await open(t, await corbie(t), { at: "#/routing/providers" });
  await bare.getByText("No provider yet").waitFor();
  await accessible(bare);
});

async function read(server, uri) {
  const body = JSON.stringify({ uri });
  return (await fetch(`${server.url}/mcp/resources/read`, { method: "POST", headers: { "content-type": "application/json" }, body })).json();
}
