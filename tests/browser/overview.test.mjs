// The Overview page: request figures, components and setup checks.

import test from "node:test";
import assert from "node:assert/strict";
import { accessible, corbie, fits, open, picture, PHONE, visit } from "./harness.mjs";

const MOCK = "providers: { mock: { type: mock } }\n";

test("the overview shows figures, components and setup checks", async (t) => {
  const server = await corbie(t);
  for (let call = 0; call < 12; call++) await server.call("classify_text", { text: `Why is the sky blue, part ${call}?` });
  const page = await open(t, server);
  await page.locator('[data-stat="Requests"] .number').filter({ hasText: /[1-9]\d* \/ min/ }).waitFor();
  await page.locator('[data-stat="Requests"] path.line').waitFor({ state: "attached" });
  await page.locator('[data-stat="Latency"] .number').filter({ hasText: /µs|ms|s/ }).waitFor();
  const part = (name) => page.locator(".part", { has: page.getByRole("heading", { name }) });
  await part("Classifier").getByText("5 categories").waitFor();
  await part("Knowledge").getByText("No documents yet.").waitFor();
  await part("Providers").getByText("none configured").waitFor();
  await part("Providers").getByText("OPENAI_API_KEY").waitFor();
  await page.locator(".setup li, .setup .row").first().waitFor();
  await accessible(page);
  await fits(page);
});

test("untrusted clients see the missing trust level, and denied tools are not called", async (t) => {
  for (const [trust, asks] of [["untrusted", false], ["verified", false], ["trusted", true]]) {
    const page = await open(t, await corbie(t, { config: `trust: { all: ${trust} }\n` }), { at: "#/tools" });
    let asked = 0;
    page.on("request", (request) => (asked += Number(request.postData()?.includes('"name":"check_setup"') ?? false)));
    await visit(page, "#/overview");
    if (asks) {
      await page.locator(".setup li, .setup .row").first().waitFor();
    } else {
      await page.locator(".setup").getByText(`requires trust level trusted; this page has ${trust}`).waitFor();
      await page.locator(".setup").getByText("raise it with trust in the settings.").waitFor();
      assert.doesNotMatch(await page.locator(".setup").innerText(), /token/, "none is asked for, and none would help");
      await page.locator(".part").first().waitFor();
      await accessible(page);
    }
    assert.equal(asked > 0, asks, `${trust}: asked ${asked} times`);
  }
});

test("a token with too low a trust level gets the command for another one", async (t) => {
  const token = "d4c3e8a11256ab82a4fc72560eb4a2b0e87bad82";
  const page = await open(t, await corbie(t, { config: `server: { auth: bearer, token: ${token} }\ntrust: { token: verified }\n` }), { token });
  await page.locator(".setup").getByText("requires trust level trusted; this page has verified").waitFor();
  await page.locator(".setup").getByText("corbie tokens create console --trust trusted").waitFor();
});

test("errors are counted and providers listed", async (t) => {
  const server = await corbie(t, { config: MOCK });
  await fetch(`${server.url}/mcp`, { method: "POST", headers: { "content-type": "application/json" }, body: '{"jsonrpc":"2.0","id":1,"method":"no/such","params":{}}' });
  const page = await open(t, server);
  await page.locator('[data-stat="Errors"] .number').filter({ hasText: /^[1-9]/ }).waitFor();
  await page.locator(".part").getByText("1 configured").waitFor();
});

test("classification method and device are shown with authentication too", async (t) => {
  const token = "d4c3e8a11256ab82a4fc72560eb4a2b0e87bad82";
  const page = await open(t, await corbie(t, { config: `server: { auth: bearer, token: ${token} }\n` }), { token });
  await page.locator(".part").getByText(/^Method: /).waitFor();
  await page.locator(".part").getByText(/^Device: /).waitFor();
});

test("requests of the console itself are not in its figures", async (t) => {
  const server = await corbie(t);
  const page = await open(t, server);
  const stat = (name, part) => page.locator(`[data-stat="${name}"] ${part}`);
  await page.locator(".part").first().waitFor();
  // Reloaded: by then the console has made a dozen requests, and another poll has read the history.
  await page.reload();
  await page.locator(".part").first().waitFor();
  await visit(page, "#/tools");
  await visit(page, "#/overview");
  await stat("Requests", ".number").filter({ hasText: /^0 \/ min$/ }).waitFor();
  await stat("Latency", ".of").filter({ hasText: "No requests" }).waitFor();
  await page.getByText("without requests from this console").waitFor();
  await server.call("list_categories");
  await stat("Requests", ".number").filter({ hasText: /^1 \/ min$/ }).waitFor();
});

test("charts have axes, and a tooltip for the pointer and the keyboard", async (t) => {
  const server = await corbie(t);
  for (let call = 0; call < 7; call++) await server.call("list_categories");
  const page = await open(t, server);
  const chart = page.locator('[data-stat="Requests"] .time-chart');
  await chart.locator(".x-axis").getByText("now").waitFor();
  assert.deepEqual(await chart.locator(".y-axis span").allInnerTexts(), ["7", "0"]);
  assert.match(await chart.locator(".x-axis span").first().innerText(), /^\d{1,2}:\d\d/);
  const tooltip = chart.locator(".tooltip");
  assert.equal(await tooltip.isVisible(), false);
  const { x, y, width, height } = await chart.locator(".plot").boundingBox();
  const seen = new Set();
  for (let step = 0; step <= 20; step++) {
    await page.mouse.move(x + 1 + ((width - 2) * step) / 20, y + height / 2);
    seen.add((await tooltip.innerText()).replace(/ \d{1,2}:\d\d:\d\d.*/, ""));
    await fits(page);
  }
  assert.deepEqual([...seen].filter((text) => text !== "0 requests"), ["7 requests"]);
  await page.mouse.move(0, 0);
  await tooltip.waitFor({ state: "hidden" });
  await chart.locator(".plot").focus();
  for (let press = 0; press < 3; press++) await page.keyboard.press("ArrowLeft");
  await tooltip.getByText(/\d requests/).waitFor();
  await accessible(page);
  await page.keyboard.press("Escape");
  await tooltip.waitFor({ state: "hidden" });
});

test("metrics and the Grafana dashboard are linked", async (t) => {
  const server = await corbie(t);
  const page = await open(t, server);
  const target = async (name) => (await page.getByRole("link", { name }).getAttribute("href"));
  const dashboard = await fetch(server.url + await target("Grafana dashboard"));
  assert.match(dashboard.headers.get("content-type"), /^application\/json/);
  assert.equal((await dashboard.json()).uid, "corbie-overview");
  assert.match(await (await fetch(server.url + await target("Prometheus metrics"))).text(), /corbie_requests/);
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Grafana dashboard" }).click()]);
  assert.equal(file.suggestedFilename(), "corbie-grafana-dashboard.json");
});

test("the first paint is fast and the layout does not shift", async (t) => {
  const server = await corbie(t);
  const page = await open(t, server, { at: "#/tools" });
  await page.locator("main h1").waitFor();
  await page.goto("about:blank");
  await page.addInitScript(() => {
    globalThis.shifts = 0;
    new PerformanceObserver((list) => list.getEntries().forEach((entry) => (globalThis.shifts += entry.value))).observe({ type: "layout-shift", buffered: true });
  });
  await page.goto(`${server.url}/`);
  await page.locator(".part").first().waitFor();
  await page.locator('[data-stat="Requests"] path.line').waitFor({ state: "attached" });
  const { shifts, paint } = await page.evaluate(() => ({ shifts: globalThis.shifts, paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime }));
  t.diagnostic(`first contentful paint after ${Math.round(paint)} ms, layout shift ${shifts.toFixed(4)}`);
  assert.ok(shifts < 0.01, `layout shift ${shifts}`);
});

test("the whole console is small", async (t) => {
  const server = await corbie(t);
  const page = await open(t, server);
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  let bytes = 0;
  let files = 0;
  const urls = new Map();
  session.on("Network.responseReceived", ({ requestId, response }) => urls.set(requestId, response.url));
  session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    const path = new URL(urls.get(requestId) ?? "http://x/none").pathname;
    if (path !== "/" && !path.startsWith("/console/")) return;
    bytes += encodedDataLength;
    files += 1;
  });
  // As a new browser with an enabled cache.
  await page.goto("about:blank");
  await session.send("Network.clearBrowserCache");
  await page.goto(`${server.url}/`);
  for (const name of ["knowledge", "knowledge/search", "knowledge/ask", "classify", "classify/edit", "classify/evaluate", "routing", "routing/explain", "routing/providers", "tools", "tools/audit", "overview"]) {
    await page.evaluate((at) => (location.hash = at), `#/${name}`);
    await page.locator(`main[data-shown="#/${name}"] h1`).waitFor();
  }
  t.diagnostic(`${files} files, ${bytes} bytes with their heads`);
  assert.ok(files > 20 && bytes < 150_000, `${files} files, ${bytes} bytes`);
});

test("pictures for the docs", async (t) => {
  const server = await corbie(t, { config: MOCK });
  const texts = ["What is 2 + 2?", "Why is the sky blue?", "Who was the last tsar of Russia?", "My laptop will not wake", "a nice present for a friend"];
  const started = Date.now();
  const seconds = process.env.CORBIE_PICTURES ? 75 : 0;
  for (let round = 0; round < 40 || Date.now() - started < seconds * 1000; round++) {
    await server.call("classify_text", { text: `${texts[round % 5]} ${round}` });
    if (round % 150 === 149) await fetch(`${server.url}/mcp/no/such`, { method: "POST", headers: { "content-type": "application/json" }, body: "{}" });
    // Traffic in waves.
    if (round >= 40) await new Promise((done) => setTimeout(done, 40 + 35 * Math.sin(Date.now() / 6_000)));
  }
  for (const [dark, name] of [[false, "console-overview"], [true, "console-overview-dark"]]) {
    const page = await open(t, server, { dark });
    await page.locator(".part").first().waitFor();
    await page.locator(".setup li, .setup .row").first().waitFor();
    await picture(page, name);
  }
  const phone = await open(t, server, { viewport: PHONE });
  await phone.locator(".part").first().waitFor();
  await fits(phone);
  await picture(phone, "console-phone");
});
