// Files from this machine, or paths of the server, on their way into the knowledge base.

import { h, icon } from "../../dom.js";
import { call, upload } from "../../mcp.js";
import { connect } from "../../connection.js";
import { dialog } from "../../components/dialog.js";
import { inlineCode } from "../../components/inline-code.js";
import { toast } from "../../components/toast.js";
import { number, plural } from "../../format.js";
import { ACCEPTED, extension, isReadable, rejectionReason, sanitizeName } from "./formats.js";
import { activeJobs, begin, change, lose } from "./tasks.js";

/** How many files of folders are taken at once; more are better imported from a path of the server. */
const MOST = 2_000;
/** How many are sent at a time, and how many tasks may wait at the server before more is sent. */
const AT_ONCE = 3;
const AHEAD = 24;
/** How often a server that is too busy is tried again, and how long is waited in between, in milliseconds. */
const TRIES = 8;
const PAUSE = 1_500;

const queue = [];
let sending = 0;
let maxMegabytes;
let tags = "";

/** What the server says is the largest file it takes. */
export const setMaxFileSize = (megabytes) => (maxMegabytes = megabytes);

/** Said where files would be dropped, by those who may not add any: `why`. With `paths`, those of the server may be. */
export function uploadsUnavailable(page, why, { paths }) {
  for (const name of ["dragover", "drop"]) page.addEventListener(name, (event) => event.dataTransfer?.types.includes("Files") && event.preventDefault());
  return h("div.card.no-drop", h("h2", "Adding files is not permitted"), h("p.quiet.small", inlineCode(why)), paths ? pathButton() : null);
}

const pathButton = () => h("button.plain", { onclick: addPath }, "Server path…");

/** The place files are dropped on, which is also where they are chosen. With `paths`, those of the server are offered too. */
export function dropZone(page, { paths }) {
  const files = h("input", { type: "file", multiple: true, accept: ACCEPTED, hidden: true, "aria-label": "Files to add" });
  const folder = h("input", { type: "file", multiple: true, webkitdirectory: true, hidden: true, "aria-label": "Folder to add" });
  for (const input of [files, folder]) {
    input.addEventListener("change", () => {
      const chosen = [...input.files].map((file) => ({ file, path: file.webkitRelativePath || file.name, inFolder: input === folder }));
      input.value = "";
      take(chosen);
    });
  }
  const tagged = h("input", { value: tags, placeholder: "Tags for new files, e.g. work, 2026", "aria-label": "Tags for new files, comma-separated", oninput: () => (tags = tagged.value) });
  const zone = h("div.drop-zone.card", { onclick: (event) => event.target.closest("button, input") || files.click() },
    icon("upload"), h("h2", "Drop files or folders here"),
    h("p.quiet.small", "PDF, Office, HTML, Markdown, text, CSV and images"),
    h("div.row", h("button.main", { onclick: () => files.click() }, "Choose files"), h("button", { onclick: () => folder.click() }, "Choose folder"), paths ? pathButton() : null),
    tagged, files, folder);
  let inside = 0;
  const isFiles = (event) => event.dataTransfer?.types.includes("Files");
  const mark = (by) => zone.classList.toggle("dragging", (inside = Math.max(0, inside + by)) > 0);
  // The whole page takes what is dropped: a file that misses the zone would otherwise be opened by the browser.
  page.addEventListener("dragenter", (event) => isFiles(event) && (event.preventDefault(), mark(1)));
  page.addEventListener("dragleave", (event) => isFiles(event) && mark(-1));
  page.addEventListener("dragover", (event) => isFiles(event) && event.preventDefault());
  page.addEventListener("drop", async (event) => {
    if (!isFiles(event)) return;
    event.preventDefault();
    mark(-inside);
    take(await dropped(event.dataTransfer));
  });
  return zone;
}

/** Everything that was dropped, folders with what is in them. */
async function dropped(data) {
  const entries = [...data.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return [...data.files].map((file) => ({ file, path: file.name }));
  const found = [];
  const walk = async (entry, inFolder) => {
    if (found.length > MOST) return;
    if (entry.isFile) {
      const file = await new Promise((resolve) => entry.file(resolve, () => resolve()));
      if (file) found.push({ file, path: entry.fullPath.replace(/^\//, ""), inFolder });
      return;
    }
    const reader = entry.createReader();
    for (;;) {
      const some = await new Promise((resolve) => reader.readEntries(resolve, () => resolve([])));
      if (!some.length) return;
      for (const inner of some) await walk(inner, true);
    }
  };
  for (const entry of entries) await walk(entry, false);
  return found;
}

/** Queues what can be read, and says of the rest why not. */
export function take(items) {
  const others = {};
  const wanted = items.filter(({ file, path, inFolder }) => {
    if (!inFolder || isReadable(file.name)) return true;
    // Folders hold much that nobody meant; that is counted and not told one by one.
    const kind = extension(file.name) ? `.${extension(file.name)}` : "without an extension";
    if (!path.split("/").some((part) => part.startsWith("."))) others[kind] = (others[kind] ?? 0) + 1;
    return false;
  });
  const metadata = tagged(tags);
  for (const { file, path } of wanted.slice(0, MOST)) {
    const message = rejectionReason(file, maxMegabytes);
    const job = begin(path, message ? { state: "failed", message } : { stop: new AbortController(), file: sanitizeName(file.name) });
    if (!message) queue.push({ job, file, metadata });
  }
  if (wanted.length > MOST) toast(`Only the first ${number(MOST)} files are added. Use “Server path” for larger folders.`, { bad: true });
  const left = Object.entries(others);
  if (left.length) toast(`${plural(left.reduce((sum, [, count]) => sum + count, 0), "unsupported file")} skipped: ${left.slice(0, 5).map(([kind, count]) => `${count} ${kind}`).join(", ")}`);
  pump();
}

function pump() {
  while (sending < AT_ONCE && queue.length && activeJobs().filter((job) => job.task).length < AHEAD) {
    const item = queue.shift();
    if (item.job.state === "cancelled") continue;
    sending++;
    send(item).finally(() => {
      sending--;
      pump();
    });
  }
  // The server has enough to do for now; it is looked again when it may have less.
  if (queue.length && !sending) setTimeout(pump, PAUSE);
}

async function send({ job, file, metadata }) {
  const { signal } = job.stop;
  try {
    change(job, { state: "sending", step: "Uploading" });
    const sent = await patiently(() => upload(file, file.name, { signal, onprogress: (share) => change(job, { share: share * 0.99 }) }), job);
    change(job, { since: sent.at });
    const begun = await patiently(() => call("knowledge-add", { file_path: sent.file_path, async: true, ...metadata }, { signal }), job);
    change(job, { task: begun.task_id, state: "queued", share: 0, step: "Queued" });
  } catch (error) {
    if (error.kind === "cancelled") change(job, { state: "cancelled", message: "Cancelled." });
    else if (job.since !== undefined && (error.kind === "offline" || error.timedOut)) lose(job, error.message);
    // The server has said that it did not take it, so no task is of it.
    else change(job, { state: "failed", message: error.message, since: undefined });
  }
}

/** Tries again where the server only has too much to do, or once the reader has given another token. */
async function patiently(work, job) {
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (!["rate", "token"].includes(error.kind) || tries >= TRIES || job.stop.signal.aborted) throw error;
      if (error.kind === "token") {
        await connect();
        continue;
      }
      change(job, { step: "Server busy, retrying" });
      await new Promise((done) => setTimeout(done, PAUSE * tries));
    }
  }
}

async function addPath() {
  const path = h("input", { required: true, placeholder: "/home/ada/papers or notes/**/*.md", spellcheck: "false" });
  const named = h("input", { value: tags });
  const chosen = await dialog({
    title: "Add files on the server",
    body: [
      h("label", "Path", path, h("span.hint", "A file, a folder (recursive) or a glob pattern on the server.")),
      h("label", "Tags", named, h("span.hint", "Optional, for filtering searches.")),
    ],
    confirm: "Add",
    value: () => ({ path: path.value.trim(), tags: named.value }),
  });
  if (!chosen?.path) return;
  const job = begin(chosen.path, { step: "Requesting", state: "queued" });
  try {
    const begun = await call("knowledge-import", { paths: [chosen.path], ...tagged(chosen.tags) });
    change(job, { task: begun.task_id, state: "queued", step: "Queued" });
  } catch (error) {
    change(job, { state: "failed", message: error.message });
  }
}

/** The tags as an argument of the tools, where there are any. */
function tagged(text) {
  const list = text.split(",").map((tag) => tag.trim()).filter(Boolean);
  return list.length ? { metadata: { tags: list } } : {};
}

// What is being sent is lost with the tab; what was sent is not.
addEventListener("beforeunload", (event) => (sending || queue.length) && event.preventDefault());
