// Jobs: uploads of this page and tasks of the server. They continue while other pages are shown.

import { call, request } from "../../mcp.js";
import { poll } from "../../connection.js";
import { loadCapabilities } from "./capabilities.js";
import { sanitizeName } from "./formats.js";

/** Poll intervals while jobs are active and while none is, in milliseconds. */
const POLL_INTERVAL = 600;
const IDLE_POLL_INTERVAL = 2_000;
/** Maximum number of tasks queried individually per poll. */
const MAX_STATUS_CALLS = 10;
const MAX_LISTED = 200;
/** Maximum number of finished jobs: folders have thousands of files, and tabs stay open for weeks. */
const MAX_FINISHED = 300;

/** By key, oldest first: { key, name, state, share, step, message, task, stop, file, since, lost, listed } with state one of
 *  waiting, sending, queued, running, completed, failed, cancelled. An upload of this page has `file`, its name on the server,
 *  and `since` once it was sent, in milliseconds of the server's clock; `lost` is the error if its response was lost. A job that
 *  is only known from the task list of the server has `listed`, its entry there. */
const jobs = new Map();
const listeners = new Set();
let next = 1;
let stopPolling;
let visiblePanels = 0;
let isNotifyScheduled = false;
let dropped = 0;
let droppedFailed = 0;

export const isFinished = (job) => ["completed", "failed", "cancelled"].includes(job.state);
export const allJobs = () => [...jobs.values()];
/** Number of finished jobs that were dropped. */
export const droppedJobs = () => dropped;
export const droppedFailedJobs = () => droppedFailed;
export const activeJobs = () => allJobs().filter((job) => !isFinished(job));

/** Adds a job. */
export function begin(name, values = {}) {
  const job = { key: next++, name: sanitizeName(name), state: "waiting", share: 0, step: "Waiting to upload", ...values };
  jobs.set(job.key, job);
  change(job, {});
  return job;
}

export function change(job, values) {
  const ended = !isFinished(job) && isFinished(values);
  // The task list can contain a task before the call that started it has returned.
  if (values.task && !job.task) for (const other of allJobs()) if (other !== job && other.task === values.task) release(other);
  Object.assign(job, values);
  if (job.task && !isFinished(job)) startPolling();
  notify(ended);
}

/** Detaches a task from a job it does not belong to. An upload whose response was lost returns to its failed state. */
function release(job) {
  if (job.lost === undefined) jobs.delete(job.key);
  else Object.assign(job, { task: undefined, state: "failed", message: job.lost, files: undefined, document: undefined });
}

/** The response to an upload was lost. If the server has accepted the file, its task is in the task list. */
export function lose(job, message) {
  change(job, { state: "failed", message, lost: message });
  const row = allJobs().find(({ listed }) => listed && lostFile(listed) === job);
  if (!row) return;
  const { key, name, listed, ...task } = row;
  change(job, task);
}

/**
 * The upload with a lost response that a listed task belongs to: the task has the same caller, was created after the upload,
 * and no other upload has this file name.
 */
function lostFile({ filename, kind, created, isOwn }) {
  if (!isOwn || kind === "import") return undefined;
  const meant = allJobs().filter((job) => job.file === sanitizeName(filename ?? "") && !job.task && (!isFinished(job) || job.since !== undefined));
  const [only] = meant;
  return meant.length === 1 && only.lost !== undefined && created >= only.since ? only : undefined;
}

/** Removes finished jobs. */
export function clearFinished() {
  for (const job of allJobs()) if (isFinished(job)) jobs.delete(job.key);
  dropped = droppedFailed = 0;
  notify(false);
}

/** Drops the oldest finished jobs above the limit, failed ones last. */
function dropOldest() {
  const over = allJobs().filter(isFinished);
  if (over.length <= MAX_FINISHED) return;
  const isGood = (job) => job.state === "completed";
  const order = [...over.filter(isGood), ...over.filter((job) => !isGood(job))];
  for (const job of order.slice(0, over.length - MAX_FINISHED)) {
    jobs.delete(job.key);
    dropped++;
    if (job.state === "failed") droppedFailed++;
  }
}

/** Cancels a job in any state. */
export async function cancel(job) {
  job.stop?.abort();
  if (!job.task) return change(job, { state: "cancelled", message: "Cancelled before upload." });
  change(job, { step: "Cancelling" });
  try {
    await request("tools/cancel", { taskId: job.task });
    change(job, { state: "cancelled", message: "Cancelled. Documents added so far are kept." });
  } catch (error) {
    // It may have finished in the meantime.
    await refreshTask(job);
    if (!isFinished(job)) throw error;
  }
}

/** Calls `listener(ended)` after changes, at most every 30 ms; `ended` is whether a job has finished. */
export function onJobs(listener) {
  listeners.add(listener);
  visiblePanels++;
  startPolling();
  return () => {
    listeners.delete(listener);
    visiblePanels--;
  };
}

let endedSince = false;
function notify(ended) {
  endedSince ||= ended;
  if (isNotifyScheduled) return;
  isNotifyScheduled = true;
  // A timer instead of an animation frame: background tabs have no frames.
  setTimeout(() => {
    isNotifyScheduled = false;
    const hasEnded = endedSince;
    endedSince = false;
    dropOldest();
    for (const listener of listeners) listener(hasEnded);
  }, 30);
}

/** Polls the server while there are active jobs or the panel is shown. */
function startPolling() {
  if (stopPolling) return;
  let last = 0;
  stopPolling = poll(async () => {
    const tasks = activeJobs().filter((job) => job.task);
    if (!tasks.length && !visiblePanels) {
      stopPolling?.();
      stopPolling = undefined;
      return;
    }
    if (!tasks.length && performance.now() - last < IDLE_POLL_INTERVAL) return;
    last = performance.now();
    await pollTasks();
  }, POLL_INTERVAL);
}

async function pollTasks() {
  const seen = new Set();
  if ((await loadCapabilities()).tasks) {
    const { tasks } = await call("knowledge-tasks", { limit: MAX_LISTED, active_only: true }, { quiet: true });
    // Read after the response: an upload may have become a task in the meantime.
    const known = new Map(allJobs().filter((job) => job.task).map((job) => [job.task, job]));
    for (const task of tasks) {
      seen.add(task.task_id);
      const row = known.get(task.task_id);
      const listed = { filename: task.filename, kind: task.kind, created: Date.parse(task.created), isOwn: task.can_cancel !== false };
      const values = { task: task.task_id, fixed: !listed.isOwn, ...toJobFields(task) };
      const lost = !row || row.listed ? lostFile(listed) : undefined;
      if (lost) change(lost, values);
      else if (!row) begin(task.filename ?? "Server import", { ...values, listed });
      else if (!isFinished(row)) change(row, values);
    }
  }
  // Tasks that are not listed have finished, or the server has no task list.
  await Promise.all(activeJobs().filter((job) => job.task && !seen.has(job.task)).slice(0, MAX_STATUS_CALLS).map(refreshTask));
}

async function refreshTask(job) {
  try {
    change(job, toJobFields(await call("knowledge-task-status", { task_id: job.task }, { quiet: true })));
  } catch (error) {
    const details = error.structured;
    if (details?.status === "failed") change(job, { state: "failed", message: error.message });
    else if (details?.error === "task_not_found") change(job, { state: "completed", share: 1, message: "Finished; the server has no details." });
    else throw error;
  }
}

/** Converts a task of the server to the fields of a job. */
function toJobFields(task) {
  const values = { state: task.status, share: task.progress ?? 0, step: task.current_step, left: task.estimated_remaining_seconds };
  if (task.status === "completed") Object.assign(values, { share: 1, message: outcome(task.result ?? {}), files: task.result?.files, document: task.result?.document_id });
  if (task.status === "failed" || task.status === "cancelled") values.message = task.message;
  return values;
}

function outcome(result) {
  if (result.duplicate) return "Already added, content unchanged.";
  if (result.files_total === undefined) return "Added";
  const counts = ["added", "updated", "unchanged", "failed", "skipped"].filter((name) => result[name]).map((name) => `${result[name]} ${name}`);
  return counts.length ? capitalize(counts.join(", ")) : "No files found. Check the path.";
}

const capitalize = (text) => text.charAt(0).toUpperCase() + text.slice(1);
