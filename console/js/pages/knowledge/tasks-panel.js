// The panel of jobs: progress and a cancel button for each.

import { h, fill, icon } from "../../dom.js";
import { messageDialog } from "../../components/dialog.js";
import { toastError } from "../../components/toast.js";
import { number, seconds } from "../../format.js";
import { allJobs, cancel, clearFinished, droppedFailedJobs, droppedJobs, isFinished, onJobs } from "./tasks.js";

/** Maximum number of rows; the rest is counted. */
const MAX_ROWS = 40;
/** Longer messages do not fit into a row; a button shows them. */
const MAX_INLINE_MESSAGE = 80;
const ORDER = { sending: 0, running: 1, failed: 2, queued: 3, waiting: 4, cancelled: 5, completed: 6 };

/** Files of a task that failed. The task itself is completed if others were added. */
const failedFiles = (job) => (job.files ?? []).filter((file) => file.status === "failed");
const isBad = (job) => job.state === "failed" || failedFiles(job).length > 0;
/** Whether at least one file was added. */
const isGood = (job) => job.state === "completed" && !(job.files?.length && failedFiles(job).length === job.files.length);
const order = (job) => ORDER[isBad(job) ? "failed" : job.state];

/** Draws into `place` and returns a cleanup function. `changed` is called when a job has finished. */
export function showTasks(place, changed) {
  const rows = new Map();
  const summary = h("p.quiet.small", { role: "status" });
  const list = h("ul.jobs", { "aria-label": "Tasks", tabindex: "0" });
  const all = h("button.plain.small", { onclick: () => Promise.all(allJobs().filter((job) => !isFinished(job) && !job.fixed).map((job) => cancel(job).catch(toastError))) }, "Cancel all");
  const clear = h("button.plain.small", { onclick: clearFinished }, "Clear");
  const title = h("h2");
  fill(place, h("header", title, summary, h("span.push", all, clear)), list);

  const draw = () => {
    const jobs = allJobs();
    const over = jobs.filter(isFinished);
    // The most relevant jobs, in the order they were added: rows do not move when their state changes.
    const chosen = [...jobs].sort((a, b) => order(a) - order(b) || (isFinished(a) ? b.key - a.key : a.key - b.key)).slice(0, MAX_ROWS);
    const drawn = chosen.sort((a, b) => a.key - b.key);
    all.hidden = jobs.length - over.length < 2;
    clear.hidden = !over.length;
    const failed = over.filter(isBad).length + droppedFailedJobs();
    const added = over.some(isGood) || droppedJobs() > droppedFailedJobs();
    fill(title, over.length < jobs.length || !jobs.length ? "Tasks" : added ? "Added" : "Failed");
    fill(summary, jobs.length ? `${number(over.length + droppedJobs())} of ${number(jobs.length + droppedJobs())} done${failed ? `, ${number(failed)} failed` : ""}` : "");
    const keys = new Set(drawn.map((job) => job.key));
    for (const [key, row] of rows) if (!keys.has(key)) (row.element.remove(), rows.delete(key));
    list.querySelector(".job-none")?.remove();
    drawn.forEach((job, at) => {
      if (!rows.has(job.key)) rows.set(job.key, makeRow(job));
      const row = rows.get(job.key);
      row.update();
      if (list.children[at] !== row.element) list.insertBefore(row.element, list.children[at] ?? null);
    });
    if (!jobs.length) list.append(h("li.job-none", "No running tasks. Files are processed in the background."));
    else if (jobs.length > MAX_ROWS) list.append(h("li.job-none", `${number(jobs.length + droppedJobs() - MAX_ROWS)} more`));
  };
  draw();
  return onJobs((ended) => {
    draw();
    if (ended) changed();
  });
}

function makeRow(job) {
  const bar = h("progress", { max: "1", "aria-label": `Progress of ${job.name}` });
  const step = h("span.step.quiet.small");
  const stop = h("button.plain", { "aria-label": `Cancel ${job.name}`, title: "Cancel", onclick: cancelJob }, icon("close"));
  function cancelJob() {
    // The button with the focus is removed.
    element.parentElement?.focus();
    cancel(job).catch(toastError);
  }
  const name = h("span.name", { title: job.name, dir: "auto" }, job.name);
  const element = h("li.job", name, stop, bar, step);
  let drawnText;
  const update = () => {
    const over = isFinished(job);
    const failed = failedFiles(job);
    // A task without any added file is shown as failed.
    element.dataset.state = failed.length && !isGood(job) ? "failed" : job.state;
    element.classList.toggle("partly", failed.length > 0);
    bar.value = job.state === "failed" || job.state === "cancelled" ? 0 : job.share ?? 0;
    bar.hidden = over;
    stop.hidden = over || job.fixed;
    const left = job.state === "running" && job.left >= 1 ? `about ${job.left < 60 ? `${Math.ceil(job.left)} s` : seconds(job.left)} left` : "";
    const text = (over ? job.message : job.step) ?? "";
    if (drawnText === text + left) return;
    drawnText = text + left;
    fill(step, over ? icon(isBad(job) ? "warn" : job.state === "completed" ? "check" : "close") : null, h("span.break", { title: text }, text), left ? h("span.left", left) : null,
      over && text.length > MAX_INLINE_MESSAGE ? h("button.plain.small", { onclick: () => messageDialog(job.name, h("p.break", text)) }, "Show message") : null,
      failed.length ? h("button.plain.small", { onclick: () => showFailed(failed) }, "Show failed files") : null,
      job.document ? h("a", { href: `#/knowledge/document/${encodeURIComponent(job.document)}` }, "Open") : null);
  };
  return { element, update };
}

const showFailed = (files) => messageDialog("Failed files",
  h("ul.reasons", files.slice(0, 200).map((file) => h("li", h("strong.break", file.file_path), h("br"), h("span.break", file.message)))));
