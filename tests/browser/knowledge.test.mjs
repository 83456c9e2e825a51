// The Knowledge page: adding, listing, searching, reading, questions and removal.

import test from "node:test";
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { accessible, corbie, fits, open, picture, refusals, until, PHONE, visit } from "./harness.mjs";

/** Without detection of local model servers. */
const CONFIG = "providers: { mock: {}, detect_ports: [] }\nknowledge: { storage_path: $HOME/store }\n";
const SILENT = "providers: { detect_ports: [] }\nknowledge: { storage_path: $HOME/store }\n";

/** Documents of a fictional organisation, for the screenshots. */
const OBSERVATORY = {
  "holidays.md": "# Holidays\n\nNew colleagues of the Larkfield Observatory have 26 days of holiday in their first year, and 30 days from the second year on.\n\n## Carrying days over\n\nUp to five days can be carried over; they are taken by the end of March.\n",
  "night-shifts.md": "# Night shifts\n\nWhoever observes at night is paid a quarter more between ten in the evening and six in the morning. After three nights in a row a free day follows.\n",
  "expenses.html": "<!doctype html><title>Travel expenses</title><h1>Travel expenses</h1><p>Travel by train is paid in second class. Receipts are handed in within four weeks, and the money comes with the next salary.</p>",
  "dome-rules.md": "# Opening the dome\n\nThe dome is opened only when the humidity is below 85 percent and the wind below 40 kilometres an hour. Whoever opens it writes the time into the log.\n",
  "visitors.txt": "Visitors may use the small telescope on the first Friday of each month. Groups of more than twelve people write to the office two weeks before.\n",
  "instruments.csv": "instrument,year,keeper\nsmall telescope,1987,Imke Vries\nspectrograph,2019,Jonas Adeyemi\nall-sky camera,2024,Imke Vries\n",
};

/** Starts a server and imports files. */
async function filled(t, files = OBSERVATORY, config = CONFIG) {
  const server = await corbie(t, { config });
  const folder = join(server.home, "papers");
  await mkdir(folder);
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  const done = await server.call("knowledge-import", { paths: [folder], async: false });
  assert.equal(done.failed, 0, JSON.stringify(done).slice(0, 500));
  return server;
}

/** A folder whose import takes some seconds. */
async function longWork(server) {
  const folder = join(server.home, "many");
  await mkdir(folder);
  const text = (at) => `# Note ${at}\n\n${Array.from({ length: 60 }, (_, line) => `Paragraph ${line} of note ${at} tells what was seen in the garden number ${at * line}.`).join("\n\n")}`;
  await Promise.all(Array.from({ length: 400 }, (_, at) => writeFile(join(folder, `note-${at}.md`), text(at))));
  return folder;
}

/** A PDF with one page per text. */
function pdf(...texts) {
  const kids = texts.map((_, at) => `${4 + at * 2} 0 R`).join(" ");
  const objects = ["<< /Type /Catalog /Pages 2 0 R >>", `<< /Type /Pages /Kids [${kids}] /Count ${texts.length} >>`, "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"];
  texts.forEach((text, at) => {
    const lines = text.match(/.{1,80}(?:\s|$)/g).map((line) => `(${line.trim().replace(/[()\\]/g, "\\$&")}) Tj T*`).join(" ");
    const stream = `BT /F1 12 Tf 14 TL 72 720 Td ${lines} ET`;
    objects.push(`<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents ${5 + at * 2} 0 R >>`, `<< /Length ${stream.length} >>\nstream\n${stream}\nendstream`);
  });
  let file = "%PDF-1.4\n";
  const places = objects.map((body, at) => {
    const place = file.length;
    file += `${at + 1} 0 obj\n${body}\nendobj\n`;
    return place;
  });
  const table = places.map((place) => `${String(place).padStart(10, "0")} 00000 n \n`).join("");
  return Buffer.from(`${file}xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${table}trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${file.length}\n%%EOF\n`, "latin1");
}

const files = (page) => page.getByLabel("Files to add");
const names = (page) => page.locator(".rows .name").allInnerTexts();
/** Waits until the list is loaded. */
const listed = (page) => page.locator('.vtable[aria-busy="false"]').waitFor();

test("a PDF is added, becomes searchable, and its passage is opened on its page", async (t) => {
  const server = await corbie(t, { config: CONFIG });
  const page = await open(t, server, { at: "#/knowledge" });
  await page.getByText("No documents yet").waitFor();
  await accessible(page);
  // The first page is long enough for several passages.
  const ships = Array.from({ length: 40 }, (_, at) => `Ship number ${at + 1} pays its dues at the harbour office before noon and leaves with the tide.`).join(" ");
  const bytes = pdf(ships, "Lighthouse keepers polish the great lens every Tuesday with vinegar and a linen cloth.");
  await files(page).setInputFiles({ name: "westerholm.pdf", mimeType: "application/pdf", buffer: bytes });
  await page.locator('.job[data-state="completed"]').getByText("Added").waitFor();
  await page.locator(".rows").getByRole("link", { name: "westerholm.pdf" }).waitFor();
  await page.locator(".rows").getByText("Ready").waitFor();

  await page.getByRole("link", { name: "Search", exact: true }).click();
  await page.getByRole("searchbox").fill("with what do keepers polish the lens of the lighthouse");
  await page.keyboard.press("Enter");
  const passage = page.locator(".passage").first();
  await passage.locator("mark", { hasText: "polish" }).waitFor();
  assert.match(await passage.locator(".score").innerText(), /0\.\d\d|1\.00/);
  assert.match(await passage.innerText(), /page \d/);
  await accessible(page);

  await passage.getByRole("link", { name: "westerholm.pdf" }).click();
  // The passage starts on the first page; the words of the query are on the second, which is scrolled into view.
  const word = page.locator('[data-page="2"] mark.found mark', { hasText: "lens" });
  await word.waitFor();
  assert.ok(await word.evaluate((mark) => {
    const { top, bottom } = mark.getBoundingClientRect();
    return top >= 0 && bottom <= innerHeight && document.activeElement.matches("mark.found");
  }), "the words are in sight and the keyboard is at the passage");
  await accessible(page);
  await page.getByRole("link", { name: "Back to search" }).click();
  await page.locator(".passage").first().waitFor();
  assert.equal(await page.getByRole("searchbox").inputValue(), "with what do keepers polish the lens of the lighthouse");
});

test("unsupported files are reported and not uploaded", async (t) => {
  const server = await corbie(t, { config: CONFIG });
  const page = await open(t, server, { at: "#/knowledge" });
  let sent = 0;
  page.on("request", (request) => (sent += request.url().includes("/files?")));
  await files(page).setInputFiles([
    { name: "setup.exe", mimeType: "application/octet-stream", buffer: Buffer.from("MZ") },
    { name: "empty.md", mimeType: "text/markdown", buffer: Buffer.alloc(0) },
  ]);
  await page.locator(".job", { hasText: "setup.exe" }).getByText(".exe files are not supported").waitFor();
  await page.locator(".job", { hasText: "empty.md" }).getByText("The file is empty").waitFor();
  assert.equal(sent, 0);
  await page.getByRole("button", { name: "Clear" }).click();
  await page.getByText("No running tasks").waitFor();
});

test("a dropped folder is added without unsupported files", async (t) => {
  const server = await corbie(t, { config: CONFIG });
  const page = await open(t, server, { at: "#/knowledge" });
  await page.locator(".drop-zone").waitFor();
  // Browsers create no folder entries for synthetic events.
  await page.evaluate(() => {
    const file = (path, text) => ({ isFile: true, fullPath: path, file: (done) => done(new File([text], path.split("/").pop())) });
    const folder = (path, inside) => ({ isFile: false, fullPath: path, createReader: () => ({ rest: [inside, []], readEntries(done) { done(this.rest.shift()); } }) });
    const tree = folder("/papers", [file("/papers/one.md", "# One\n\nThe first of them."), file("/papers/run.py", "pass"), folder("/papers/deep", [file("/papers/deep/two.txt", "The second of them.")])]);
    const event = new Event("drop", { bubbles: true, cancelable: true });
    Object.defineProperty(event, "dataTransfer", { value: { types: ["Files"], items: [{ webkitGetAsEntry: () => tree }], files: [] } });
    document.querySelector(".drop-zone").dispatchEvent(event);
  });
  await page.getByText("1 unsupported file skipped: 1 .py").waitFor();
  await until(async () => (await names(page)).sort().join() === "one.md,two.txt", "both are listed");
});

test("a task shows progress and can be cancelled", async (t) => {
  const server = await corbie(t, { config: CONFIG });
  const folder = await longWork(server);
  const page = await open(t, server, { at: "#/knowledge" });
  await page.getByRole("button", { name: "Server path…" }).click();
  await page.getByRole("dialog").getByLabel("Path").fill(folder);
  await accessible(page);
  await page.keyboard.press("Enter");
  const job = page.locator(".job", { hasText: folder });
  await job.getByText(/of 400 files done/).waitFor();
  await accessible(page);
  await until(async () => (await job.locator("progress").evaluate((bar) => bar.value)) > 0, "the bar moves");
  await job.getByRole("button", { name: "Cancel" }).click();
  await page.locator('.job[data-state="cancelled"]').getByText("Cancelled").waitFor();
  assert.ok((await server.call("knowledge-status")).knowledge_base.document_count < 400);
  await until(async () => (await server.call("knowledge-status")).tasks.running === 0, "the task has stopped");
});

test("tasks of other clients are shown with progress", async (t) => {
  const server = await corbie(t, { config: CONFIG });
  const folder = await longWork(server);
  const page = await open(t, server, { at: "#/knowledge" });
  await page.getByText("No running tasks").waitFor();
  const { task_id: task } = await server.call("knowledge-import", { paths: [folder] });
  await page.locator('.job[data-state="running"]', { hasText: folder }).locator("progress").waitFor();
  const headers = { "content-type": "application/json" };
  await fetch(`${server.url}/mcp`, { method: "POST", headers, body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/cancel", params: { taskId: task } }) });
  await page.locator('.job[data-state="cancelled"]').waitFor();
});

test("the layout does not shift while documents are added", async (t) => {
  const server = await filled(t);
  const page = await open(t, server, { at: "#/knowledge/documents" });
  await page.addInitScript(() => {
    globalThis.moved = [];
    const heard = (list) => list.getEntries().forEach((entry) => entry.hadRecentInput || globalThis.moved.push([entry.value, ...entry.sources.map((source) => source.node?.className ?? "")]));
    new PerformanceObserver(heard).observe({ type: "layout-shift", buffered: true });
  });
  await page.reload();
  await listed(page);
  await files(page).setInputFiles(Array.from({ length: 6 }, (_, at) => ({ name: `minutes-${at}.md`, mimeType: "text/markdown", buffer: Buffer.from(`# Minutes ${at}\n\nWhat was said in week ${at}.`) })));
  await page.getByText("6 of 6 done").waitFor();
  await page.getByText(/of 12$/).waitFor();
  const moved = await page.evaluate(() => globalThis.moved);
  assert.ok(moved.reduce((sum, [value]) => sum + value, 0) < 0.05, JSON.stringify(moved));
});

test("the job panel has a heading for its state, and no row is cut", async (t) => {
  for (const viewport of [undefined, PHONE]) {
    const page = await open(t, await corbie(t, { config: CONFIG }), { at: "#/knowledge", ...(viewport ? { viewport } : {}) });
    await page.getByText("No running tasks").waitFor();
    const heading = page.locator(".tasks h2");
    const work = (states) => page.evaluate(async (wanted) => {
      const { begin, clearFinished } = await import("/console/js/pages/knowledge/tasks.js");
      clearFinished();
      globalThis.jobs = wanted.map((state, at) => begin(`a-note-with-a-rather-long-name-${at}.md`, { state, fixed: true, step: "Being read", share: 0.4, message: state === "failed" ? "The file is corrupt: it has no pages; open it in the application that created it and save it again. ".repeat(2) : "Added" }));
    }, states);
    const headed = (text) => until(async () => (await heading.innerText()) === text, `the heading is ${text}`);
    await work(["completed", "running"]);
    await headed("Tasks");
    await page.evaluate(async () => (await import("/console/js/pages/knowledge/tasks.js")).change(globalThis.jobs[1], { state: "completed", message: "Added" }));
    await headed("Added");
    await work(["failed"]);
    await headed("Failed");
    await work(["failed", "completed", "running", "failed", "completed", "queued", "failed", "completed"]);
    await page.getByText("6 of 8 done, 3 failed").waitFor();
    const list = page.locator(".jobs");
    for (const by of [0, 50, 90, 130, 10_000]) {
      await list.evaluate((element, top) => (element.scrollTop = top), by);
      await until(() => list.evaluate((element) => {
        const { top, bottom } = element.getBoundingClientRect();
        const seen = [...element.children].map((row) => row.getBoundingClientRect()).map((row) => [Math.min(row.bottom, bottom) - Math.max(row.top, top), row.height]);
        return seen.every(([shown, height]) => shown <= 1 || shown >= height - 1) && seen.filter(([shown]) => shown > 1).length >= 2;
      }), `rows are whole after scrolling to ${by}`);
    }
    // Rows do not overflow, and long messages open in a dialog.
    const inside = await list.locator(".job").evaluateAll((rows) => rows.filter((row) => row.scrollHeight > row.clientHeight + 1).map((row) => row.innerText));
    assert.deepEqual(inside, []);
    await page.locator('.job[data-state="failed"]').first().getByRole("button", { name: "Show message" }).click();
    await page.getByRole("dialog").getByText("save it again. The file is corrupt").waitFor();
    await accessible(page);
    await page.keyboard.press("Escape");
    await fits(page);
  }
});

test("a failed file is listed once, also if the task list is late or a response is lost", async (t) => {
  const page = await open(t, await corbie(t, { config: CONFIG }), { at: "#/knowledge" });
  page.expectErrors();
  await page.getByText("No running tasks").waitFor();
  const task = (id, filename) => ({ task_id: id, status: "running", progress: 0.1, current_step: "Reading", kind: "add", filename, created: new Date().toISOString(), can_cancel: true });
  const answer = (route, told) => route.fulfill({ json: { jsonrpc: "2.0", id: route.request().postDataJSON().id, result: { content: [], structuredContent: { success: true, ...told }, isError: false } } });
  let holding = true;
  let held;
  let active = [];
  await page.route("**/mcp", (route) => {
    const { params } = route.request().postDataJSON();
    if (params?.name === "knowledge-tasks") return holding && !held ? void (held = route) : answer(route, { tasks: active });
    if (params?.name === "knowledge-task-status") return answer(route, { success: false, task_id: params.arguments.task_id, status: "failed", error: "corrupted_file", message: "the file is corrupt" });
    if (params?.name !== "knowledge-add") return route.continue();
    if (!params.arguments.file_path.endsWith("lost.pdf")) return answer(route, { task_id: "task-1" });
    active = [task("task-2", "lost.pdf")];
    return route.abort("connectionreset");
  });
  const broken = (name) => ({ name, mimeType: "application/pdf", buffer: Buffer.from("%PDF-1.4 and then nothing of use") });
  // The task list is requested before the upload, and returned after the server has created the task.
  await until(() => held, "the list is asked for");
  await files(page).setInputFiles(broken("broken.pdf"));
  await page.locator(".job", { hasText: "broken.pdf" }).getByText("Queued").waitFor();
  holding = false;
  await answer(held, { tasks: [task("task-1", "broken.pdf")] });
  await page.locator('.job[data-state="failed"]', { hasText: "broken.pdf" }).waitFor();
  assert.equal(await page.locator(".job").count(), 1);
  await page.getByText("1 of 1 done, 1 failed").waitFor();
  // The server accepts a file, but the response is lost: its task is matched with the upload.
  await files(page).setInputFiles(broken("lost.pdf"));
  await page.locator('.job[data-state="running"]', { hasText: "lost.pdf" }).waitFor();
  active = [];
  await page.locator('.job[data-state="failed"]', { hasText: "lost.pdf" }).getByText("The file is corrupt").waitFor();
  assert.equal(await page.locator(".job").count(), 2);
});

test("an upload with a lost response is matched only with its own task", async (t) => {
  const page = await open(t, await corbie(t, { config: CONFIG }), { at: "#/knowledge" });
  page.expectErrors();
  await page.getByText("No running tasks").waitFor();
  const task = (id, filename, more) => ({ task_id: id, status: "running", progress: 0.1, current_step: "Reading", kind: "add", filename, created: new Date().toISOString(), can_cancel: true, ...more });
  const answer = (route, told) => route.fulfill({ json: { jsonrpc: "2.0", id: route.request().postDataJSON().id, result: { content: [], structuredContent: { success: true, ...told }, isError: false } } });
  let active = [];
  let lists = 0;
  let adds = 0;
  let held;
  await page.route("**/mcp", async (route) => {
    const { params } = route.request().postDataJSON();
    if (params?.name === "knowledge-tasks") return lists++, answer(route, { tasks: active });
    if (params?.name === "knowledge-task-status") return answer(route, { task_id: params.arguments.task_id, status: "completed", progress: 1, result: {} });
    if (params?.name !== "knowledge-add") return route.continue();
    if (++adds === 5) return void (held = route);
    return route.abort("connectionreset");
  });
  const note = (name, text = "# A note") => ({ name, mimeType: "text/markdown", buffer: Buffer.from(text) });
  const rows = (name, state) => page.locator(`.job[data-state="${state}"]`, { hasText: name });
  const another = async () => {
    const seen = lists;
    await until(() => lists > seen + 1, "the tasks are listed again");
  };
  // Tasks of other callers, listed before and after the lost response, and an older one of this caller.
  const later = { created: new Date(Date.now() + 60_000).toISOString(), can_cancel: false };
  active = [task("task-1", "README.md", later)];
  await rows("README.md", "running").waitFor();
  await files(page).setInputFiles(note("README.md"));
  await rows("README.md", "failed").waitFor();
  for (const [name, more] of [["after.md", later], ["earlier.md", { created: "2020-01-01T00:00:00Z" }]]) {
    await files(page).setInputFiles(note(name));
    await rows(name, "failed").waitFor();
    active = [...active, task(`task-of-${name}`, name, more)];
    await rows(name, "running").waitFor();
    await another();
    assert.equal(await rows(name, "failed").count(), 1, name);
  }
  active = [];
  await rows("README.md", "completed").waitFor();
  await rows("README.md", "failed").getByText("unreachable").waitFor();

  // Two files with the same name: the response to the first is lost, the task of the second is listed before its response.
  await files(page).setInputFiles(note("twice.md", "# The one that is lost"));
  await rows("twice.md", "failed").waitFor();
  await files(page).setInputFiles(note("twice.md", "# The one that is held"));
  await until(() => held, "it waits for its answer");
  active = [task("task-twice", "twice.md")];
  await rows("twice.md", "running").waitFor();
  await another();
  assert.equal(await rows("twice.md", "failed").count(), 1, "nobody knows whose task it is");
  await answer(held, { task_id: "task-twice" });
  await rows("twice.md", "sending").waitFor({ state: "detached" });
  await another();
  assert.equal(await rows("twice.md", "failed").count(), 1, "the failure stays");
  assert.equal(await page.locator(".job", { hasText: "twice.md" }).count(), 2);

  // An upload that was matched with a task of another job returns to its failed state.
  const back = await page.evaluate(async () => {
    const { allJobs, begin, change, lose } = await import("/console/js/pages/knowledge/tasks.js");
    const lost = begin("taken.md", { file: "taken.md", since: 0, state: "sending" });
    lose(lost, "The server cannot be reached.");
    change(lost, { task: "task-taken", state: "completed", message: "Added" });
    change(begin("/srv/taken.md"), { task: "task-taken", state: "queued" });
    return { isThere: allJobs().includes(lost), state: lost.state, message: lost.message, hasTask: Boolean(lost.task) };
  });
  assert.deepEqual(back, { isThere: true, state: "failed", message: "The server cannot be reached.", hasTask: false });
});

test("read-only clients see why actions are missing", async (t) => {
  const server = await filled(t, OBSERVATORY, `${CONFIG}trust: { loopback: trusted }\n`);
  await writeFile(join(server.home, "settings.yaml"), `${CONFIG.replace("$HOME", server.home)}trust: { all: untrusted }\n`);
  await server.stop();
  await server.start();
  const page = await open(t, server, { at: "#/classify" });
  const refused = refusals(page);
  await visit(page, "#/knowledge");
  await page.getByText("Adding files is not permitted").waitFor();
  await page.getByText("Adding files requires trust level verified; this page has untrusted").waitFor();
  await page.getByText("Removing a document requires trust level trusted").waitFor();
  await page.locator(".rows").getByRole("link", { name: "holidays.md" }).waitFor();
  for (const name of ["Choose files", "Choose folder", "Server path…"]) assert.equal(await page.getByRole("button", { name }).count(), 0, name);
  assert.equal(await page.getByRole("button", { name: /^Remove / }).count(), 0);
  await check(page);
  await page.locator(".rows").getByRole("link", { name: "holidays.md" }).click();
  await page.getByText("26 days of holiday").waitFor();
  await page.getByText("Removing a document requires trust level trusted").waitFor();
  assert.equal(await page.getByRole("button", { name: "Remove" }).count(), 0);
  await check(page);
  await visit(page, "#/knowledge/ask");
  await page.getByText("Asking questions requires trust level verified").waitFor();
  assert.equal(await page.getByRole("button", { name: "Ask", exact: true }).count(), 0);
  await check(page);
  await page.getByRole("link", { name: "search the documents" }).click();
  await page.getByRole("searchbox").fill("how many days of holiday");
  await page.keyboard.press("Enter");
  await page.locator(".passage", { hasText: "holidays.md" }).waitFor();
  assert.equal(await refused(), 0);
});

test("a missing path is reported", async (t) => {
  const server = await corbie(t, { config: CONFIG });
  const page = await open(t, server, { at: "#/knowledge" });
  await page.getByRole("button", { name: "Server path…" }).click();
  await page.getByRole("dialog").getByLabel("Path").fill("/no/such/folder");
  await page.keyboard.press("Enter");
  const job = page.locator(".job", { hasText: "/no/such/folder" });
  await until(async () => /failed|not found|Check/i.test(await job.innerText()), "the job says so");
});

test("the table sorts and filters, and removal needs confirmation", async (t) => {
  const server = await filled(t);
  const page = await open(t, server, { at: "#/knowledge/documents" });
  await listed(page);
  const table = page.getByRole("table", { name: "Documents" });
  assert.equal(await table.getAttribute("aria-rowcount"), "7");
  await table.getByRole("button", { name: "Name" }).click();
  await until(async () => (await names(page)).join() === Object.keys(OBSERVATORY).sort().join(), "sorted by name");
  await table.getByRole("button", { name: "Name" }).click();
  await until(async () => (await names(page))[0] === "visitors.txt", "sorted the other way");
  assert.equal(await table.getByRole("columnheader", { name: "Name" }).getAttribute("aria-sort"), "descending");
  await table.getByRole("button", { name: "Size" }).click();
  await until(async () => (await names(page))[0] === "holidays.md", "the largest first");
  const filter = page.getByLabel("Filter by name");
  await filter.fill("HOLI");
  await until(async () => (await names(page)).join() === "holidays.md", "one is left");
  await filter.fill("nothing like that");
  await page.getByText("No matching documents").waitFor();
  await page.getByRole("button", { name: "Clear filters" }).click();
  await page.getByLabel("All formats").selectOption("csv");
  await until(async () => (await names(page)).join() === "instruments.csv", "those of one format");
  await page.getByLabel("All formats").selectOption("");
  await table.getByRole("button", { name: "Remove visitors.txt" }).click();
  const box = page.getByRole("dialog");
  await box.getByText("visitors.txt").waitFor();
  await page.keyboard.press("Escape");
  assert.equal((await server.call("knowledge-status")).knowledge_base.document_count, 6);
  await table.getByRole("button", { name: "Remove visitors.txt" }).click();
  await box.getByRole("button", { name: "Remove" }).click();
  await until(async () => (await names(page)).length === 5, "it is gone");
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("role")), "table", "the keyboard stays at the table");
  await page.getByText("1–5 of 5").waitFor();
});

test("older servers without task list and passage positions work", async (t) => {
  const server = await filled(t);
  const page = await open(t, server, { at: "#/knowledge/documents" });
  await page.route("**/mcp", async (route) => {
    if (route.request().postDataJSON().method !== "tools/list") return route.continue();
    const response = await route.fetch();
    const answer = await response.json();
    answer.result.tools = answer.result.tools.filter((tool) => tool.name !== "knowledge-tasks");
    const takes = (name) => answer.result.tools.find((tool) => tool.name === name).inputSchema.properties;
    for (const name of ["filter", "format", "status"]) delete takes("knowledge-show")[name];
    delete takes("knowledge-get").chunks;
    return route.fulfill({ response, json: answer });
  });
  await page.reload();
  await page.getByText("cannot filter the list").waitFor();
  assert.ok(await page.getByLabel("Filter by name").isDisabled());
  await files(page).setInputFiles({ name: "late.md", mimeType: "text/markdown", buffer: Buffer.from("# Late\n\nThe last bus leaves the observatory at half past eleven.") });
  await page.locator('.job[data-state="completed"]').getByText("Added").waitFor();
  await page.evaluate(() => (location.hash = "#/knowledge/search/last%20bus"));
  await page.locator(".passage a", { hasText: "late.md" }).click();
  await page.locator("mark.found", { hasText: "half past eleven" }).waitFor();
});

test("a document whose new version could not be read says why and what to do", async (t) => {
  const server = await corbie(t, { config: CONFIG });
  const notes = join(server.home, "notes.md");
  await writeFile(notes, "The last bus leaves at half past eleven.");
  await server.call("knowledge-add", { file_path: notes, async: false });
  await writeFile(notes, "%PDF-1.4 and then nothing of use");
  await server.call("knowledge-add", { file_path: notes });
  const page = await open(t, server, { at: "#/knowledge" });
  await page.getByRole("button", { name: /^Failed, details/ }).click();
  const box = page.getByRole("dialog");
  await box.getByText("The file is corrupt").waitFor();
  await accessible(page);
  await box.getByRole("button", { name: "OK" }).click();
  await page.getByRole("link", { name: "notes.md" }).waitFor();
});

test("ten thousand documents scroll smoothly with few rows in the page", async (t) => {
  const server = await corbie(t, { config: CONFIG });
  const page = await open(t, server, { at: "#/knowledge/documents" });
  const TOTAL = 10_000;
  await page.route("**/mcp", async (route) => {
    const { id, params } = route.request().postDataJSON();
    if (params?.name !== "knowledge-show") return route.continue();
    const { offset = 0, limit = 100 } = params.arguments;
    const documents = Array.from({ length: Math.min(limit, TOTAL - offset) }, (_, at) => ({
      id: `id-${offset + at}`, filename: `report-${offset + at + 1}.pdf`, format: "pdf", size_bytes: 1000 + at, date_added: "2026-03-01T10:00:00Z", chunk_count: 3, processing_status: "completed",
    }));
    const structuredContent = { success: true, documents, total_count: TOTAL, limit, offset };
    return route.fulfill({ json: { jsonrpc: "2.0", id, result: { content: [], structuredContent, isError: false } } });
  });
  await page.reload();
  await page.getByText("report-1.pdf", { exact: true }).waitFor();
  const table = page.getByRole("table", { name: "Documents" });
  assert.equal(await table.getAttribute("aria-rowcount"), String(TOTAL + 1));

  const frames = await table.evaluate(async (element) => {
    const deltas = [];
    let last = performance.now();
    for (let round = 0; round < 90; round++) {
      element.scrollTop += 1_700;
      await new Promise(requestAnimationFrame);
      deltas.push(performance.now() - last);
      last = performance.now();
    }
    return deltas;
  });
  const slow = frames.filter((delta) => delta > 50).length;
  assert.ok(slow < frames.length / 2, `${slow} of ${frames.length} frames took more than 50 ms`);
  assert.ok((await page.locator(".rows .vrow").count()) < 60);

  await table.evaluate((element) => (element.scrollTop = element.scrollHeight));
  await page.getByText(`report-${TOTAL}.pdf`, { exact: true }).waitFor();
  assert.ok((await page.locator(".rows .vrow").count()) < 60);
  assert.equal(await page.locator(".rows .vrow", { hasText: `report-${TOTAL}.pdf` }).getAttribute("aria-rowindex"), String(TOTAL + 1));
  await page.getByText(/–10,000 of 10,000/).waitFor();

  await table.focus();
  await page.keyboard.press("Home");
  await page.waitForFunction(() => document.activeElement?.textContent === "report-1.pdf");
  await page.keyboard.press("ArrowDown");
  await page.waitForFunction(() => document.activeElement?.textContent === "report-2.pdf");
  await page.keyboard.press("End");
  await page.waitForFunction(() => document.activeElement?.textContent === "report-10000.pdf");
  await page.keyboard.press("PageUp");
  await page.waitForFunction(() => /^report-99\d\d\.pdf$/.test(document.activeElement?.textContent));
  await accessible(page);
});

test("searching and opening results work with the keyboard", async (t) => {
  const server = await filled(t);
  const page = await open(t, server, { at: "#/knowledge/search" });
  await page.getByText("Search your documents").waitFor();
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("/");
  await page.keyboard.type("when is the dome opened");
  await page.keyboard.press("Enter");
  const link = page.locator(".passage").first().getByRole("link", { name: "dome-rules.md" });
  await link.waitFor();
  await picture(page, "console-search");
  for (let presses = 0; presses < 15; presses++) {
    await page.keyboard.press("Tab");
    if (await link.evaluate((element) => element === document.activeElement)) break;
  }
  await page.keyboard.press("Enter");
  await page.locator("mark.found", { hasText: "humidity" }).waitFor();
  await page.keyboard.press("Shift+Tab");
  for (let presses = 0; presses < 10 && !(await page.evaluate(() => document.activeElement.textContent.includes("Back"))); presses++) await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.activeElement?.textContent === "dome-rules.md");
});

test("search filters work, and an empty result offers to clear them", async (t) => {
  const server = await filled(t);
  const page = await open(t, server, { at: "#/knowledge" });
  await page.getByLabel("Tags for new files").fill("repairs, 2026");
  await files(page).setInputFiles({ name: "mirror.md", mimeType: "text/markdown", buffer: Buffer.from("# The mirror\n\nThe mirror of the small telescope is cleaned in June.") });
  await page.locator('.job[data-state="completed"]').waitFor();
  await visit(page, `#/knowledge/search/${encodeURIComponent("small telescope")}`);
  await page.locator(".passage", { hasText: "visitors.txt" }).waitFor();
  await page.getByLabel("Format").selectOption("csv");
  await until(async () => (await page.locator(".passage h2").allInnerTexts()).join() === "instruments.csv", "only the table is left");
  await page.getByLabel("Format").selectOption("");
  await page.getByLabel("Tags").fill("repairs, something");
  await page.keyboard.press("Enter");
  await until(async () => (await page.locator(".passage h2").allInnerTexts()).join() === "mirror.md", "only what has the tag is left");
  await page.getByLabel("Tags").fill("no-such-tag");
  await page.keyboard.press("Enter");
  await page.getByText("No results").waitFor();
  await page.getByRole("button", { name: "Clear filters" }).click();
  await page.locator(".passage", { hasText: "visitors.txt" }).waitFor();
  await page.getByLabel("Added to").fill("2001-01-01");
  await page.getByText("No results").waitFor();
});

test("weak matches are folded away, and a tiny relevance is not shown as zero", async (t) => {
  const server = await filled(t);
  const page = await open(t, server, { at: "#/knowledge" });
  await page.route("**/mcp", async (route) => {
    if (route.request().postDataJSON().params?.name !== "knowledge-search") return route.continue();
    const response = await route.fetch();
    const answer = await response.json();
    answer.result.structuredContent.results.forEach((found, at) => (found.relevance_score = at ? 0.0031 : 0.8));
    return route.fulfill({ response, json: answer });
  });
  await visit(page, `#/knowledge/search/${encodeURIComponent("small telescope")}`);
  await page.locator(".passage").first().waitFor();
  assert.equal(await page.locator(".passage:visible").count(), 1);
  await page.locator(".found-count").getByText(/^1 passage in /).waitFor();
  await page.getByText(/^\d+ weak match(es)? \(relevance below 0\.1\)$/).click();
  await page.locator(".passage:visible").nth(1).getByText("Weak match").waitFor();
  await accessible(page);
  const scores = (await page.locator(".passage .score").allInnerTexts()).map((text) => text.replace(/\s+/g, " ").replace("Relevance ", ""));
  assert.equal(scores[0], "0.80");
  assert.ok(scores.slice(1).every((text) => text === "< 0.01"), scores.join());
  // A weak match that was opened is visible when the user comes back.
  await page.locator(".passage:visible a").nth(1).click();
  await page.locator("mark.found").first().waitFor();
  await page.getByRole("link", { name: "Back to search" }).click();
  await page.locator(".passage:visible").nth(1).waitFor();
});

test("if all matches are weak, a message offers to show them", async (t) => {
  const server = await filled(t);
  const page = await open(t, server, { at: "#/knowledge" });
  await page.route("**/mcp", async (route) => {
    if (route.request().postDataJSON().params?.name !== "knowledge-search") return route.continue();
    const response = await route.fetch();
    const answer = await response.json();
    answer.result.structuredContent.results.forEach((found) => (found.relevance_score = 0.05));
    return route.fulfill({ response, json: answer });
  });
  await visit(page, `#/knowledge/search/${encodeURIComponent("small telescope")}`);
  await page.getByText("No relevant passage").waitFor();
  assert.equal(await page.locator(".passage:visible").count(), 0);
  await page.locator("details.weak summary").click();
  await page.locator(".passage:visible").first().waitFor();
});

test("an answer cites passages that can be opened", async (t) => {
  const server = await filled(t);
  const page = await open(t, server, { at: "#/knowledge/ask" });
  await page.getByText("Answers with sources").waitFor();
  await accessible(page);
  // The mock provider echoes the question, including the number.
  await page.getByLabel("Question").fill("Who is paid more at night [1]?");
  await page.keyboard.press("Enter");
  await page.getByText("mock/mock").waitFor();
  await accessible(page);
  await page.locator(".answer").getByRole("link", { name: /^Source 1: / }).click();
  await page.locator("mark.found", { hasText: "paid a quarter more" }).waitFor();
  await page.getByRole("link", { name: "Back to answer" }).click();
  await page.getByText("mock/mock").waitFor();
});

test("without a provider the passages and the setup are shown", async (t) => {
  const server = await filled(t, { "holidays.md": OBSERVATORY["holidays.md"] }, SILENT);
  const page = await open(t, server, { at: "#/knowledge/ask" });
  await page.getByLabel("Question").fill("how many days of holiday");
  await page.getByRole("button", { name: "Ask", exact: true }).click();
  await page.getByText("No provider is configured").waitFor();
  await page.getByText("OPENAI_API_KEY=").first().waitFor();
  await page.locator(".passage", { hasText: "26 days" }).waitFor();
});

test("after a reconnect searches are repeated, and questions to a model are not", async (t) => {
  const server = await filled(t);
  const asking = await open(t, server, { at: "#/knowledge/ask" });
  const searching = await open(t, server, { at: "#/knowledge/search" });
  let sent = 0;
  asking.on("request", (request) => (sent += Number(request.postData()?.includes('"knowledge-ask"') ?? false)));
  for (const page of [asking, searching]) page.expectErrors();
  await asking.getByLabel("Question").fill("Who is paid more at night?");
  await searching.getByText("Search your documents").waitFor();
  await server.stop();
  await searching.keyboard.type("when is the dome opened");
  await searching.keyboard.press("Enter");
  await searching.locator(".problem").waitFor();
  await asking.keyboard.press("Enter");
  await asking.getByRole("button", { name: "Try again" }).waitFor();
  await server.start();
  await searching.locator(".passage", { hasText: "dome-rules.md" }).waitFor();
  await asking.getByText("Reconnected.").waitFor();
  await asking.locator("#connection").waitFor({ state: "hidden" });
  assert.equal(sent, 1);
  await asking.getByRole("button", { name: "Try again" }).click();
  await asking.getByText("mock/mock").waitFor();
});

test("finished jobs are limited, and all are counted", async (t) => {
  const page = await open(t, await corbie(t, { config: CONFIG }), { at: "#/knowledge" });
  await page.getByText("No running tasks").waitFor();
  await page.evaluate(async () => {
    const { begin, change } = await import("/console/js/pages/knowledge/tasks.js");
    for (let at = 0; at < 1_000; at++) change(begin(`note-${at}.md`), at ? { state: "completed", message: "Added" } : { state: "failed", message: "It is broken." });
  });
  await page.getByText("1,000 of 1,000 done").waitFor();
  assert.equal(await page.evaluate(async () => (await import("/console/js/pages/knowledge/tasks.js")).allJobs().length), 300);
  await page.getByText("It is broken.").waitFor();
});

test("a cancelled upload is not sent", async (t) => {
  const page = await open(t, await corbie(t, { config: CONFIG }), { at: "#/knowledge" });
  let sent = 0;
  page.on("request", (request) => (sent += Number(request.url().includes("/files"))));
  const kind = await page.evaluate(async () => {
    const { upload } = await import("/console/js/mcp.js");
    return upload(new File(["a"], "a.txt"), "a.txt", { signal: AbortSignal.abort() }).then(() => "sent", (error) => error.kind);
  });
  assert.equal(kind, "cancelled");
  assert.equal(sent, 0);
});

test("names and texts that look like markup are shown as text", async (t) => {
  const hostile = "<img src=x onerror=alert(1)>";
  const turned = "invoice\u202Efdp.md";
  const long = `${"very-long-name-".repeat(14)}.md`;
  const server = await filled(t, {
    [`${hostile}.txt`]: `The zebra said <script>alert(1)</script> and ${hostile} and went home.\n`,
    [turned]: "# Turned\n\nA name that reads backwards.\n",
    [long]: `# Long\n\n${"unbroken".repeat(400)}\n`,
  });
  for (const look of [{}, { viewport: PHONE }]) {
    const page = await open(t, server, { at: "#/knowledge", ...look });
    page.on("dialog", () => assert.fail("something of a document was run"));
    await page.locator(".rows").getByText(hostile).waitFor();
    // Bidirectional control characters are replaced.
    assert.ok((await names(page)).includes("invoice\uFFFDfdp.md"));
    await fits(page);
    await accessible(page);
    await visit(page, "#/knowledge/search/zebra");
    await page.locator(".passage", { hasText: "<script>alert(1)</script>" }).waitFor();
    await visit(page, "#/knowledge/search/unbroken");
    await fits(page);
    await visit(page, "#/knowledge/search/zebra");
    await page.locator(".passage a").first().click();
    await page.locator("mark.found", { hasText: hostile }).waitFor();
    await fits(page);
    assert.equal(await page.locator("main img, main script").count(), 0);
  }
});

test("long documents are loaded in parts, and every page can be opened", async (t) => {
  const server = await corbie(t, { config: CONFIG });
  const file = join(server.home, "logbook.pdf");
  await writeFile(file, pdf(...Array.from({ length: 25 }, (_, at) => `Entry of night ${at + 1}: the sky was clear until the moon rose, and plate ${at + 101} was exposed.`)));
  const { document_id: id } = await server.call("knowledge-add", { file_path: file, async: false });
  const page = await open(t, server, { at: `#/knowledge/document/${id}` });
  const shown = async () => (await page.locator(".page").evaluateAll((pages) => pages.map((one) => Number(one.dataset.page)))).join();
  const numbers = (from, to) => Array.from({ length: to - from + 1 }, (_, at) => from + at).join();
  await page.getByText("plate 101").waitFor();
  assert.equal(await shown(), numbers(1, 10));
  assert.ok((await page.locator(".begins").count()) > 0, "it is shown where passages begin");
  // A double click loads the pages once.
  await page.getByRole("button", { name: "Later pages" }).evaluate((button) => (button.focus(), button.click(), button.click()));
  await until(async () => (await shown()) === numbers(1, 20), "twenty pages are shown");
  await page.waitForFunction(() => document.activeElement.textContent === "Later pages");
  await page.getByLabel("Page", { exact: true }).fill("25");
  await page.keyboard.press("Enter");
  await until(async () => (await shown()) === "25", "the last page is shown");
  await page.getByText("plate 125").waitFor();
  await page.getByRole("button", { name: "Earlier pages" }).click();
  await until(async () => (await shown()) === numbers(15, 25), "those before it are shown too");
  await accessible(page);

  // Dense pages: a response contains two or three, and pages are split.
  let asked = 0;
  let room = 200;
  await page.route("**/mcp", (route) => {
    const body = route.request().postDataJSON();
    if (body.params?.name !== "knowledge-get") return route.continue();
    asked++;
    body.params.arguments.max_characters = room;
    return route.continue({ postData: JSON.stringify(body) });
  });
  await visit(page, `#/knowledge/document/${id}/24`);
  await page.getByText("plate 124").waitFor();
  asked = 0;
  await page.getByRole("button", { name: "Earlier pages" }).evaluate((button) => (button.click(), button.click()));
  const inOrder = async () => [...new Set((await shown()).split(","))].join();
  await until(async () => (await inOrder()).startsWith(numbers(14, 24)), "no page is left out");
  assert.ok(asked > 3, `it took ${asked} questions`);
  assert.equal(await page.locator(".page h3").evaluateAll((heads) => heads.filter((head) => head.textContent === "Page 14").length), 1);
  const text = await page.locator(".pages").evaluate((all) => [...all.querySelectorAll(".page-text")].map((one) => {
    const copy = one.cloneNode(true);
    copy.querySelectorAll(".begins").forEach((sign) => sign.remove());
    return copy.textContent;
  }).join(""));
  for (let plate = 114; plate <= 124; plate++) assert.ok(text.includes(`plate ${plate} was`), `plate ${plate}`);

  // Denser pages: requests per click are limited, and a button loads the rest.
  room = 100;
  await visit(page, `#/knowledge/document/${id}/23`);
  await page.locator('.page[data-page="23"]').waitFor();
  asked = 0;
  await page.getByRole("button", { name: "Earlier pages" }).click();
  const rest = page.getByRole("button", { name: "Load up to page 22" });
  await rest.waitFor();
  assert.equal(asked, 8);
  for (let clicks = 0; clicks < 10 && (await rest.count()); clicks++) {
    asked = 0;
    await rest.click();
    await page.waitForFunction(() => !document.querySelector(".gap:disabled"));
    assert.ok(asked <= 8, `${asked} questions for a click`);
  }
  const whole = await page.locator(".pages").evaluate((all) => [...all.querySelectorAll(".page-text")].map((one) => {
    const copy = one.cloneNode(true);
    copy.querySelectorAll(".begins").forEach((sign) => sign.remove());
    return copy.textContent;
  }).join(""));
  let at = 0;
  for (let plate = 113; plate <= 122; plate++) assert.ok((at = whole.indexOf(`plate ${plate} was`, at)) >= 0, `plate ${plate} is there, after those before it`);
});

test("a missing document is reported", async (t) => {
  const page = await open(t, await corbie(t, { config: CONFIG }), { at: "#/knowledge/document/de10cedb-5a91-476d-8b75-529827686d28" });
  await page.getByText("Document not found.").waitFor();
  await page.getByRole("link", { name: "All documents", exact: true }).click();
  await page.getByText("No documents yet").waitFor();
});

test("every tab fits a phone and is accessible, light and dark", async (t) => {
  const model = await answering("New colleagues have 26 days of holiday in their first year and 30 days from the second year on [1]. Five of them can be carried over and are taken by the end of March [1]. Whoever has worked three nights in a row has a free day besides [2].");
  t.after(() => model.close());
  const server = await filled(t, OBSERVATORY, SILENT.replace("detect_ports: []", `detect_ports: [], lab: { base_url: "http://127.0.0.1:${model.address().port}/v1" }`));
  for (const look of [{ viewport: PHONE }, { viewport: PHONE, dark: true }, { dark: true }, {}]) {
    const page = await open(t, server, { at: "#/knowledge", ...look });
    await page.locator(".rows").getByText("visitors.txt").waitFor();
    await check(page);
    if (!look.viewport) {
      const kind = look.dark ? "dark" : "light";
      await files(page).setInputFiles([`opening-${kind}.md`, `library-${kind}.md`].map((name) => ({ name, mimeType: "text/markdown", buffer: Buffer.from(`# ${name}\n\nDecided on a ${kind} evening by those who keep the instruments.\n`) })));
      await page.getByText("2 of 2 done").waitFor();
      await until(async () => (await names(page)).filter((name) => name.endsWith(`-${kind}.md`)).length === 2, "both are listed");
      await picture(page, look.dark ? "console-knowledge-dark" : "console-knowledge");
    }
    await visit(page, `#/knowledge/search/${encodeURIComponent("holidays and free days")}`);
    await page.locator(".passage a", { hasText: "holidays.md" }).waitFor();
    await check(page);
    await page.locator(".passage a", { hasText: "holidays.md" }).click();
    await page.locator("mark.found").first().waitFor();
    await check(page);
    await visit(page, "#/knowledge/ask");
    await page.getByLabel("Question").fill("How many holidays do I get, and what about nights?");
    await page.keyboard.press("Enter");
    await page.locator(".answer a.cite").first().waitFor();
    await page.getByText("lab/larkfield-7b").waitFor();
    await check(page);
    if (!look.dark && !look.viewport) await picture(page, "console-ask");
  }
});

async function check(page) {
  await fits(page);
  await accessible(page);
}

/** A model server with a fixed answer. */
async function answering(text) {
  const server = createServer((request, response) => {
    const said = request.url.endsWith("/models")
      ? { object: "list", data: [{ id: "larkfield-7b", object: "model" }] }
      : { id: "1", object: "chat.completion", created: 1, model: "larkfield-7b", choices: [{ index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" }], usage: { prompt_tokens: 9, completion_tokens: 9, total_tokens: 18 } };
    request.resume().on("end", () => response.setHeader("content-type", "application/json").end(JSON.stringify(said)));
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return server;
}
