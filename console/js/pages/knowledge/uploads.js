// Adding files: uploads from this machine, and imports of paths on the server.

import { h, icon } from "../../dom.js";
import { call, upload } from "../../mcp.js";
import { connect } from "../../connection.js";
import { dialog } from "../../components/dialog.js";
import { inlineCode } from "../../components/inline-code.js";
import { toast } from "../../components/toast.js";
import { number, plural } from "../../format.js";
import { ACCEPTED, extension, isReadable, rejectionReason, sanitizeName } from "./formats.js";
import { activeJobs, begin, change, lose } from "./tasks.js";

/** Maximum number of files per selection; larger folders are imported from a path on the server. */
const MAX_FILES = 2_000;
/** Maximum number of concurrent uploads, and of active tasks before uploads are paused. */
const MAX_CONCURRENT_UPLOADS = 3;
const MAX_ACTIVE_TASKS = 24;
/** Maximum number of attempts at a busy server, and the delay between them in milliseconds. */
const MAX_ATTEMPTS = 8;
const RETRY_DELAY = 1_500;

const queue = [];
let sending = 0;
let maxMegabytes;
let tags = "";

/** Sets the maximum file size of the server. */
export const setMaxFileSize = (megabytes) => (maxMegabytes = megabytes);

/** Replaces the drop zone if this client may not add files; `why` is the reason. With `paths`, imports are permitted. */
export function uploadsUnavailable(page, why, { paths }) {
  for (const name of ["dragover", "drop"]) page.addEventListener(name, (event) => event.dataTransfer?.types.includes("Files") && event.preventDefault());
  return h("div.card.no-drop", h("h2", "Adding files is not permitted"), h("p.quiet.small", inlineCode(why)), paths ? pathButton() : null);
}

const pathButton = () => h("button.plain", { onclick: addPath }, "Server path…");

/** The drop zone, with file inputs. With `paths`, imports from server paths are offered. */
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
  // Files are accepted on the whole page: the browser would open a file that misses the zone.
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

/** All dropped files, including those in folders. */
async function dropped(data) {
  const entries = [...data.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return [...data.files].map((file) => ({ file, path: file.name }));
  const found = [];
  const walk = async (entry, inFolder) => {
    if (found.length > MAX_FILES) return;
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

/** Queues supported files, and reports the others. */
export function take(items) {
  const others = {};
  const wanted = items.filter(({ file, path, inFolder }) => {
    if (!inFolder || isReadable(file.name)) return true;
    // Unsupported files in folders are counted instead of listed.
    const kind = extension(file.name) ? `.${extension(file.name)}` : "without an extension";
    if (!path.split("/").some((part) => part.startsWith("."))) others[kind] = (others[kind] ?? 0) + 1;
    return false;
  });
  const metadata = tagged(tags);
  for (const { file, path } of wanted.slice(0, MAX_FILES)) {
    const message = rejectionReason(file, maxMegabytes);
    const job = begin(path, message ? { state: "failed", message } : { stop: new AbortController(), file: sanitizeName(file.name) });
    if (!message) queue.push({ job, file, metadata });
  }
  if (wanted.length > MAX_FILES) toast(`Only the first ${number(MAX_FILES)} files are added. Use “Server path” for larger folders.`, { bad: true });
  const left = Object.entries(others);
  if (left.length) toast(`${plural(left.reduce((sum, [, count]) => sum + count, 0), "unsupported file")} skipped: ${left.slice(0, 5).map(([kind, count]) => `${count} ${kind}`).join(", ")}`);
  startUploads();
}

function startUploads() {
  while (sending < MAX_CONCURRENT_UPLOADS && queue.length && activeJobs().filter((job) => job.task).length < MAX_ACTIVE_TASKS) {
    const item = queue.shift();
    if (item.job.state === "cancelled") continue;
    sending++;
    send(item).finally(() => {
      sending--;
      startUploads();
    });
  }
  // The server has enough tasks; retried later.
  if (queue.length && !sending) setTimeout(startUploads, RETRY_DELAY);
}

async function send({ job, file, metadata }) {
  const { signal } = job.stop;
  try {
    change(job, { state: "sending", step: "Uploading" });
    const sent = await withRetry(() => upload(file, file.name, { signal, onprogress: (share) => change(job, { share: share * 0.99 }) }), job);
    change(job, { since: sent.at });
    const begun = await withRetry(() => call("knowledge-add", { file_path: sent.file_path, async: true, ...metadata }, { signal }), job);
    change(job, { task: begun.task_id, state: "queued", share: 0, step: "Queued" });
  } catch (error) {
    if (error.kind === "cancelled") change(job, { state: "cancelled", message: "Cancelled." });
    else if (job.since !== undefined && (error.kind === "offline" || error.timedOut)) lose(job, error.message);
    // The server has rejected the file, so it has no task.
    else change(job, { state: "failed", message: error.message, since: undefined });
  }
}

/** Retries if the server is busy, or after the user has entered another token. */
async function withRetry(work, job) {
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (!["rate", "token"].includes(error.kind) || tries >= MAX_ATTEMPTS || job.stop.signal.aborted) throw error;
      if (error.kind === "token") {
        await connect();
        continue;
      }
      change(job, { step: "Server busy, retrying" });
      await new Promise((done) => setTimeout(done, RETRY_DELAY * tries));
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

/** The tags as an argument of the tools, if there are any. */
function tagged(text) {
  const list = text.split(",").map((tag) => tag.trim()).filter(Boolean);
  return list.length ? { metadata: { tags: list } } : {};
}

// Unfinished uploads are lost when the tab is closed.
addEventListener("beforeunload", (event) => (sending || queue.length) && event.preventDefault());
