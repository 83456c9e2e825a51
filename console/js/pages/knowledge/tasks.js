// What is being added: files on their way to the server, and tasks of the server. It goes on while other pages are shown.

import { call, request } from "../../mcp.js";
import { poll } from "../../connection.js";
import { loadCapabilities } from "./capabilities.js";
import { sanitizeName } from "./formats.js";

/** How often running tasks are asked about, and how often it is looked for tasks of others, in milliseconds. */
const BEAT = 600;
const IDLE = 2_000;
/** How many tasks are asked about one by one in a round. */
const ASKED = 10;
const LISTED = 200;
/** How many that have ended are kept: imports and folders have thousands, and a tab stays open for weeks. */
const KEPT = 300;

/** By key, oldest first: { key, name, state, share, step, message, task, stop, file, since, lost, listed } with state one of
 *  waiting, sending, queued, running, completed, failed, cancelled. A file of this page has `file`, its name for the server,
 *  and `since` once it was sent, in milliseconds of the server's clock; `lost` is what was said when its answer was lost.
 *  What only the list of the server told of has `listed`: what is told of it there. */
const jobs = new Map();
const listeners = new Set();
let next = 1;
let ending;
let shown = 0;
let told = false;
let gone = 0;
let goneBadly = 0;

export const isFinished = (job) => ["completed", "failed", "cancelled"].includes(job.state);
export const allJobs = () => [...jobs.values()];
/** How many have ended and are no longer kept. */
export const droppedJobs = () => gone;
export const droppedFailedJobs = () => goneBadly;
export const activeJobs = () => allJobs().filter((job) => !isFinished(job));

/** A new piece of work. */
export function begin(name, values = {}) {
  const job = { key: next++, name: sanitizeName(name), state: "waiting", share: 0, step: "Waiting to upload", ...values };
  jobs.set(job.key, job);
  change(job, {});
  return job;
}

export function change(job, values) {
  const ended = !isFinished(job) && isFinished(values);
  // The list of the server may have told of a task before the call that began it was answered.
  if (values.task && !job.task) for (const other of allJobs()) if (other !== job && other.task === values.task) release(other);
  Object.assign(job, values);
  if (job.task && !isFinished(job)) follow();
  tell(ended);
}

/** Takes a task away from what it turned out not to be of. A file whose answer was lost is where it was before. */
function release(job) {
  if (job.lost === undefined) jobs.delete(job.key);
  else Object.assign(job, { task: undefined, state: "failed", message: job.lost, files: undefined, document: undefined });
}

/** The answer about a file was lost on its way, so nobody knows whether the server took it; if it did, its task is listed. */
export function lose(job, message) {
  change(job, { state: "failed", message, lost: message });
  const row = allJobs().find(({ listed }) => listed && lostFile(listed) === job);
  if (!row) return;
  const { key, name, listed, ...task } = row;
  change(job, task);
}

/**
 * The file whose sending only seemed to fail and that a listed task is of: the task is of this caller, it was made after the
 * file was sent, and no other file of that name may be meant.
 */
function lostFile({ filename, kind, created, isOwn }) {
  if (!isOwn || kind === "import") return undefined;
  const meant = allJobs().filter((job) => job.file === sanitizeName(filename ?? "") && !job.task && (!isFinished(job) || job.since !== undefined));
  const [only] = meant;
  return meant.length === 1 && only.lost !== undefined && created >= only.since ? only : undefined;
}

/** Takes what has ended off the list. */
export function clearFinished() {
  for (const job of allJobs()) if (isFinished(job)) jobs.delete(job.key);
  gone = goneBadly = 0;
  tell(false);
}

/** Takes the oldest that have ended off the list where there are too many; what failed goes last, it is looked for. */
function dropOldest() {
  const over = allJobs().filter(isFinished);
  if (over.length <= KEPT) return;
  const isGood = (job) => job.state === "completed";
  const order = [...over.filter(isGood), ...over.filter((job) => !isGood(job))];
  for (const job of order.slice(0, over.length - KEPT)) {
    jobs.delete(job.key);
    gone++;
    if (job.state === "failed") goneBadly++;
  }
}

/** Ends a piece of work, wherever it is. */
export async function cancel(job) {
  job.stop?.abort();
  if (!job.task) return change(job, { state: "cancelled", message: "Cancelled before upload." });
  change(job, { step: "Cancelling" });
  try {
    await request("tools/cancel", { taskId: job.task });
    change(job, { state: "cancelled", message: "Cancelled. Documents added so far are kept." });
  } catch (error) {
    // It may have ended a moment before; then that is what is shown.
    await look(job);
    if (!isFinished(job)) throw error;
  }
}

/** Calls `listener(ended)` after changes, at most once a frame; `ended` when something has come to its end. */
export function onJobs(listener) {
  listeners.add(listener);
  shown++;
  follow();
  return () => {
    listeners.delete(listener);
    shown--;
  };
}

let endedSince = false;
function tell(ended) {
  endedSince ||= ended;
  if (told) return;
  told = true;
  // A timer and not a frame: a tab in the background has no frames, but work goes on there.
  setTimeout(() => {
    told = false;
    const said = endedSince;
    endedSince = false;
    dropOldest();
    for (const listener of listeners) listener(said);
  }, 30);
}

/** Keeps asking the server while there is something to follow or somebody to show it to. */
function follow() {
  if (ending) return;
  let last = 0;
  ending = poll(async () => {
    const tasks = activeJobs().filter((job) => job.task);
    if (!tasks.length && !shown) {
      ending?.();
      ending = undefined;
      return;
    }
    if (!tasks.length && performance.now() - last < IDLE) return;
    last = performance.now();
    await round();
  }, BEAT);
}

async function round() {
  const seen = new Set();
  if ((await loadCapabilities()).tasks) {
    const { tasks } = await call("knowledge-tasks", { limit: LISTED, active_only: true }, { quiet: true });
    // Looked at only now: a file that was sent may have become a task while the list was on its way.
    const known = new Map(allJobs().filter((job) => job.task).map((job) => [job.task, job]));
    for (const task of tasks) {
      seen.add(task.task_id);
      const row = known.get(task.task_id);
      const listed = { filename: task.filename, kind: task.kind, created: Date.parse(task.created), isOwn: task.can_cancel !== false };
      const values = { task: task.task_id, fixed: !listed.isOwn, ...read(task) };
      const lost = !row || row.listed ? lostFile(listed) : undefined;
      if (lost) change(lost, values);
      else if (!row) begin(task.filename ?? "Server import", { ...values, listed });
      else if (!isFinished(row)) change(row, values);
    }
  }
  // What is not listed has ended, or the server does not list.
  await Promise.all(activeJobs().filter((job) => job.task && !seen.has(job.task)).slice(0, ASKED).map(look));
}

async function look(job) {
  try {
    change(job, read(await call("knowledge-task-status", { task_id: job.task }, { quiet: true })));
  } catch (error) {
    const said = error.structured;
    if (said?.status === "failed") change(job, { state: "failed", message: error.message });
    else if (said?.error === "task_not_found") change(job, { state: "completed", share: 1, message: "Finished; the server has no details." });
    else throw error;
  }
}

/** A task of the server as it is shown here. */
function read(task) {
  const values = { state: task.status, share: task.progress ?? 0, step: task.current_step, left: task.estimated_remaining_seconds };
  if (task.status === "completed") Object.assign(values, { share: 1, message: outcome(task.result ?? {}), files: task.result?.files, document: task.result?.document_id });
  if (task.status === "failed" || task.status === "cancelled") values.message = task.message;
  return values;
}

function outcome(result) {
  if (result.duplicate) return "Already added, content unchanged.";
  if (result.files_total === undefined) return "Added";
  const counts = ["added", "updated", "unchanged", "failed", "skipped"].filter((name) => result[name]).map((name) => `${result[name]} ${name}`);
  return counts.length ? capital(counts.join(", ")) : "No files found. Check the path.";
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
