// The list of documents, and adding files.

import { h, fill, icon, debounce } from "../../dom.js";
import { call } from "../../mcp.js";
import { poll } from "../../connection.js";
import { dialog } from "../../components/dialog.js";
import { toast, toastError } from "../../components/toast.js";
import { badge, copyable, empty, problem } from "../../components/widgets.js";
import { sentence, inlineCode } from "../../components/inline-code.js";
import { bytes, number, plural, relativeTime } from "../../format.js";
import { loadCapabilities } from "./capabilities.js";
import { dropZone, uploadsUnavailable, setMaxFileSize } from "./uploads.js";
import { FORMATS, sanitizeName, STATES } from "./formats.js";
import { showTasks } from "./tasks-panel.js";
import { virtualTable } from "./virtual-table.js";

/** Interval at which the list is refreshed, in milliseconds: other clients change it too. */
const REFRESH_INTERVAL = 3_000;

/** On a phone files cannot be dropped. */
const isPhone = () => matchMedia("(max-width: 760px), (hover: none) and (pointer: coarse)").matches;

const filters = { filter: "", format: "", status: "" };

export function showDocuments(place) {
  const tasks = h("section.card.tasks");
  const range = h("p.quiet.small.range");
  // Screen readers announce the number of documents, but not each scroll position.
  const announcement = h("p.visually-hidden", { role: "status" });
  const filterDebounced = debounce(() => setFilter("filter", nameField.value.trim()), 200);
  const nameField = h("input", { type: "search", value: filters.filter, placeholder: "Filter by name", "aria-label": "Filter by name", maxlength: "200", dataset: { search: "" }, oninput: filterDebounced });
  const formats = choice("format", "All formats", FORMATS.map((name) => [name, name.toUpperCase()]));
  const states = choice("status", "All states", Object.entries(STATES).map(([name, [text]]) => [name, text]));
  const hint = h("p.quiet.small", { hidden: true }, "This version of the server cannot filter the list. Use search instead.");
  const removalHint = h("p.quiet.small", { hidden: true });
  const stage = h("div.stage");
  const adding = h("div.adding", h("div.card", { "aria-busy": "true" }), tasks);
  fill(place, adding, h("div.toolbar", nameField, formats, states, range), announcement, hint, removalHint, stage);

  function choice(name, none, options) {
    return h("select", { "aria-label": none, onchange: (event) => setFilter(name, event.target.value) },
      h("option", { value: "" }, none), options.map(([value, text]) => h("option", { value, selected: filters[name] === value }, text)));
  }
  function setFilter(name, value) {
    if (filters[name] === value) return;
    filters[name] = value;
    table?.reset();
  }
  const isFiltered = () => Object.values(filters).some(Boolean);

  let table;
  let mayRemove = true;
  let ended = false;
  const nothing = h("div", { hidden: true });
  const start = () => loadCapabilities().then((can) => {
    if (ended || !can.knowledge) return;
    for (const [field, name] of [[nameField, "filter"], [formats, "format"], [states, "status"]]) field.disabled = !can.show.has(name);
    hint.hidden = can.show.has("filter");
    const [addDenied, importDenied] = [can.denialReason("knowledge-add", "Adding files"), can.denialReason("knowledge-import", "Adding from a path")];
    const zone = addDenied ? uploadsUnavailable(place, addDenied, { paths: !importDenied }) : dropZone(place, { paths: !importDenied });
    if (!addDenied && isPhone()) fill(zone.querySelector("h2"), "Choose files to add");
    adding.firstElementChild.replaceWith(zone);
    mayRemove = !can.denialReason("knowledge-remove", "");
    removalHint.hidden = mayRemove;
    fill(removalHint, mayRemove ? null : inlineCode(can.denialReason("knowledge-remove", "Removing a document")));
    const sortable = (name) => (can.sorts.has(name) ? name : undefined);
    table = virtualTable({
      label: "Documents",
      columns: [
        { name: "name", text: "Name", sort: "filename" },
        { name: "format", text: "Format" },
        { name: "size", text: "Size", sort: "size" },
        { name: "chunks", text: "Passages", sort: sortable("chunks") },
        { name: "state", text: "State" },
        { name: "added", text: "Added", sort: "date_added" },
        { name: "removal", text: "Remove", hidden: true },
      ],
      sort: "date_added",
      order: "desc",
      cells,
      async load({ offset, limit, sort, order }) {
        const wanted = Object.fromEntries(Object.entries(filters).filter(([name, value]) => value && can.show.has(name)));
        const reply = await call("knowledge-show", { limit, offset, sort_by: sort, sort_order: order, ...wanted }, { quiet: true });
        stage.querySelector(".problem")?.remove();
        return { items: reply.documents.map((item) => ({ ...item, filename: sanitizeName(item.filename) })), total: reply.total_count };
      },
      onview({ first, last, total }) {
        const text = total ? `${number(first)}–${number(last)} of ${number(total)}` : "";
        if (range.textContent !== text) range.textContent = text;
        const sum = plural(total, "document");
        if (announcement.textContent !== sum) announcement.textContent = sum;
        table.element.hidden = !total;
        nothing.hidden = Boolean(total);
        if (!total) fill(nothing, isFiltered() ? empty("No matching documents", "Change or clear the filters.", h("button", { onclick: all }, "Clear filters")) : firstSteps(!can.denialReason("knowledge-add", "")));
      },
      onfailure(error) {
        if (error.kind === "offline") return;
        stage.querySelector(".problem")?.remove();
        stage.prepend(problem(error, () => table.refresh(), { autoRetry: true }));
      },
    });
    fill(stage, table.element, nothing);
  }).catch((error) => ended || fill(stage, problem(error, start, { autoRetry: true })));
  start();

  function all() {
    Object.assign(filters, { filter: "", format: "", status: "" });
    nameField.value = formats.value = states.value = "";
    table.reset();
  }

  function cells(item) {
    const [state, kind] = STATES[item.processing_status] ?? [item.processing_status, ""];
    const name = ["pending", "processing"].includes(item.processing_status) ? h("span", item.filename)
      : h("a", { href: `#/knowledge/document/${encodeURIComponent(item.id)}` }, item.filename);
    set(name, item.filename);
    return [
      name, item.format?.toUpperCase() ?? "", bytes(item.size_bytes ?? 0), item.chunk_count ? number(item.chunk_count) : "–",
      item.warning ? h("button.why", { onclick: () => explain(item), "aria-label": `${state}, details: ${item.filename}` }, badge(`${state} – details`, kind)) : badge(state, kind),
      relativeTime(item.date_added),
      mayRemove && h("button.plain", { onclick: () => remove(item), "aria-label": `Remove ${item.filename}`, title: "Remove" }, icon("trash")),
    ];
  }

  function set(element, name) {
    element.title = name;
    element.dir = "auto";
  }

  async function remove(item) {
    if (!(await confirmRemoval(item))) return;
    // The row with the focus is removed.
    table.element.focus({ preventScroll: true });
    table.refresh();
  }

  async function explain(item) {
    // The file was added again without success; the earlier version is still there.
    const isFailed = item.processing_status === "failed";
    await dialog({
      title: isFailed ? "New version could not be read" : "Document was read in part",
      body: [h("p.break", h("strong", item.filename)), h("p.problem", { class: isFailed ? "" : "warn" }, sentence(item.warning ?? "")),
        h("p.quiet", isFailed ? "Fix the file and add it again. Until then, searches find the earlier version." : "The readable parts can be searched.")],
      confirm: "OK",
      cancel: "Close",
    });
  }

  const endTasks = showTasks(tasks, () => table?.refresh());
  const endPoll = poll(async () => {
    await table?.refresh();
  }, REFRESH_INTERVAL);
  call("knowledge-status", {}, { quiet: true }).then((status) => setMaxFileSize(status.configuration?.max_file_size_mb), () => {});
  return () => {
    ended = true;
    endTasks();
    endPoll();
    table?.end();
  };
}

/** Removes a document after confirmation. Returns whether it was removed. */
export async function confirmRemoval(item) {
  const sure = await dialog({
    title: "Remove document?",
    body: [h("p.break", h("strong", { dir: "auto" }, item.filename)), h("p", "The document is removed from the knowledge base and from search. The file itself is not deleted.")],
    confirm: "Remove",
    danger: true,
  });
  if (!sure) return false;
  try {
    await call("knowledge-remove", { document_id: item.id, confirm: true });
    toast(`${item.filename} removed.`);
    return true;
  } catch (error) {
    toastError(error);
    return false;
  }
}

const firstSteps = (mayAdd) => (mayAdd
  ? empty("No documents yet", `${isPhone() ? "Choose files" : "Drop files or a folder"} above. On the command line:`, copyable("corbie add ~/Documents"))
  : empty("No documents yet", "Documents are listed here once they are added."));
