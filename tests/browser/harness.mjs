// Starts the program and a browser, and checks what holds on every page: no errors in the browser console, no requests to
// other hosts, no serious accessibility problems.

import { execFile, spawn } from "node:child_process";
import { promisify } from "node:util";
import { mkdtemp, mkdir, rm, writeFile, readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { createRequire } from "node:module";
import assert from "node:assert/strict";
import { after } from "node:test";
import { chromium } from "playwright-core";

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, "../..");
const require = createRequire(import.meta.url);
const program = process.env.CORBIE ?? join(root, "target/debug/corbie");
/** Timeout of every wait in milliseconds; generous, since machines are busy. `CORBIE_TEST_TIMEOUT` overrides it. */
export const WAIT_TIMEOUT = Number(process.env.CORBIE_TEST_TIMEOUT ?? 60_000);

/** Cleanup of each test, in reverse order: a page is closed before its server. */
const cleanups = new WeakMap();
function atEnd(t, work) {
  if (!cleanups.has(t)) {
    cleanups.set(t, []);
    t.after(async () => {
      let failed;
      for (const each of cleanups.get(t).reverse()) await each().catch((error) => (failed ??= error));
      if (failed) throw failed;
    });
  }
  cleanups.get(t).push(work);
}

/** A free port. */
function freePort() {
  return new Promise((resolvePort, reject) => {
    const listener = createServer();
    listener.once("error", reject);
    listener.listen(0, "127.0.0.1", () => {
      const { port } = listener.address();
      listener.close(() => resolvePort(port));
    });
  });
}

/**
 * Starts `corbie serve` with a new home folder. { config: YAML text, files: { name: text } in the home folder, env }
 * Returns { url, home, port, stop(), start(), call(tool, args), command(...arguments) }; `stop` and `start` restart the same
 * server, `command` runs a command with the same settings and returns its output.
 */
export async function corbie(t, { config = "", files = {}, env = {} } = {}) {
  const home = await mkdtemp(join(tmpdir(), "corbie-browser-"));
  const port = await freePort();
  for (const [name, text] of Object.entries(files)) await writeFile(join(home, name), text);
  await writeFile(join(home, "settings.yaml"), config.replaceAll("$HOME", home));
  const url = `http://127.0.0.1:${port}`;
  const options = { cwd: home, env: { PATH: process.env.PATH, HOME: home, XDG_RUNTIME_DIR: home, NO_COLOR: "1", ...env } };
  const command = async (...words) => (await promisify(execFile)(program, ["--config", join(home, "settings.yaml"), ...words], options)).stdout.trim();
  let child;
  let log = "";
  const start = async () => {
    child = spawn(program, ["--config", join(home, "settings.yaml"), "serve", "--port", String(port)], {
      ...options,
      stdio: ["ignore", "ignore", "pipe"],
    });
    child.stderr.on("data", (data) => (log = (log + data).slice(-20_000)));
    await until(async () => {
      if (child.exitCode !== null) throw new Error(`corbie ended with ${child.exitCode}:\n${log}`);
      return (await fetch(`${url}/ready`).catch(() => undefined))?.ok;
    }, "the server is ready");
  };
  const stop = async (signal = "SIGKILL") => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((done) => child.once("exit", done));
    child.kill(signal);
    await ended;
  };
  const call = async (name, args = {}, token) => {
    const headers = { "content-type": "application/json", ...(token ? { authorization: `Bearer ${token}` } : {}) };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } });
    const answer = await (await fetch(`${url}/mcp`, { method: "POST", headers, body })).json();
    assert.ok(answer.result && !answer.result.isError, `${name}: ${JSON.stringify(answer).slice(0, 500)}`);
    return answer.result.structuredContent ?? JSON.parse(answer.result.content[0].text);
  };
  atEnd(t, async () => {
    await stop();
    await rm(home, { recursive: true, force: true, maxRetries: 3 });
  });
  await start();
  return { url, home, port, start, stop, call, command, log: () => log };
}

/** Waits until `check` returns a truthy value. */
export async function until(check, what, timeout = WAIT_TIMEOUT) {
  const end = Date.now() + timeout;
  for (;;) {
    const found = await check();
    if (found) return found;
    if (Date.now() > end) throw new Error(`timed out waiting until ${what}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

let shared;
function browser() {
  shared ??= chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-dev-shm-usage"] });
  return shared;
}
after(async () => (await shared)?.close());

export const PHONE = { width: 390, height: 844 };
export const DESKTOP = { width: 1280, height: 800 };

/**
 * Opens a page of the console. { at: "#/tools", viewport, dark, token }
 * At the end of the test, asserts that there were no errors in the browser console and no requests to other hosts.
 * `page.expectErrors()` permits errors, for tests that stop the server.
 */
export async function open(t, server, { at = "", viewport = DESKTOP, dark = false, token } = {}) {
  const context = await (await browser()).newContext({ viewport, colorScheme: dark ? "dark" : "light", reducedMotion: "reduce" });
  context.setDefaultTimeout(WAIT_TIMEOUT);
  if (token) await context.addInitScript((held) => sessionStorage.setItem("corbie.token", held), token);
  const page = await context.newPage();
  const errors = [];
  const foreignRequests = [];
  let tolerated = false;
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("request", (request) => new URL(request.url()).origin === server.url || foreignRequests.push(request.url()));
  page.expectErrors = () => (tolerated = true);
  atEnd(t, async () => {
    await context.close();
    if (!tolerated) assert.deepEqual(errors, [], "the console has errors");
    assert.deepEqual(foreignRequests, [], "requests left this machine");
  });
  await page.goto(`${server.url}/${at}`);
  return page;
}

/** Navigates to a page of the console, such as `#/classify/edit`, and waits until it is drawn. */
export async function visit(page, at) {
  await page.evaluate((hash) => (location.hash = hash), at);
  await page.waitForFunction(() => document.getElementById("main").dataset.shown === location.hash);
}

/** Counts denied calls from now on; returns a function that resolves to their number once all responses are read. */
export function refusals(page) {
  const read = [];
  page.on("response", (response) => read.push(response.text().then((text) => /TrustDenied|not_trusted/.test(text), () => false)));
  return async () => (await Promise.all(read)).filter(Boolean).length;
}

/** Asserts that axe-core finds no serious problem on the current page. */
export async function accessible(page) {
  const source = await readFile(require.resolve("axe-core/axe.min.js"), "utf8");
  // The content security policy forbids foreign scripts; the test injects it.
  await page.evaluate(source);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  const told = serious.map(({ id, help, nodes }) => `${id}: ${help}\n  ${nodes.slice(0, 4).map((node) => `${node.html.slice(0, 160)} (${node.failureSummary?.split("\n")[1]?.trim()})`).join("\n  ")}`);
  assert.deepEqual(told, [], "problems of accessibility");
}

/** Asserts that the page does not scroll horizontally. */
export async function fits(page) {
  const [wide, shown] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
  assert.ok(wide <= shown, `the page is ${wide} wide where ${shown} are shown`);
}

/** Takes a screenshot for the docs if CORBIE_PICTURES is set. */
export async function picture(page, name) {
  if (!process.env.CORBIE_PICTURES) return;
  const folder = join(root, "docs/images");
  await mkdir(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`) });
}
