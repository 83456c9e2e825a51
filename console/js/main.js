// Entry point: connects, routes the URL fragment to a page, and draws the status area of the sidebar.

import { h, fill, icon } from "./dom.js";
import { connect, onReconnect, onTokenChange, promptForToken, server as currentServer } from "./connection.js";
import { token } from "./mcp.js";
import { installShortcuts } from "./keyboard-shortcuts.js";
import { saveFormState } from "./form-state.js";
import { problem } from "./components/widgets.js";
import { toastError } from "./components/toast.js";

/** A page is a module with `title` and `show(container, parts)`, which may return a cleanup function. */
const PAGES = {
  overview: () => import("./pages/overview.js"),
  knowledge: () => import("./pages/knowledge.js"),
  classify: () => import("./pages/classify.js"),
  routing: () => import("./pages/routing.js"),
  tools: () => import("./pages/tools.js"),
};

const main = document.getElementById("main");
let cleanUp;
let navigations = 0;

/** The decoded path segments of the URL fragment: `#/knowledge/document/abc` is ["knowledge", "document", "abc"]. */
function pathSegments() {
  const parts = location.hash.replace(/^#\/?/, "").split("?")[0].split("/").filter(Boolean);
  try { return parts.map(decodeURIComponent); } catch { return parts; }
}

async function show({ focus = true } = {}) {
  const [name = "overview", ...parts] = pathSegments();
  const load = PAGES[name] ?? PAGES.overview;
  const navigation = ++navigations;
  for (const link of document.querySelectorAll("#nav a")) {
    if (link.dataset.page === (PAGES[name] ? name : "overview")) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  try {
    const page = await load();
    if (navigation !== navigations) return;
    cleanUp?.();
    cleanUp = undefined;
    document.title = `${page.title} · corbie`;
    fill(main);
    main.dataset.page = name;
    const pageCleanUp = await page.show(main, parts);
    if (navigation === navigations) main.dataset.shown = location.hash;
    if (navigation === navigations) cleanUp = typeof pageCleanUp === "function" ? pageCleanUp : undefined;
    else pageCleanUp?.();
    // The new page gets the focus, unless it has set the focus itself.
    if (focus && !main.contains(document.activeElement)) main.focus({ preventScroll: true });
    if (focus) scrollTo(0, 0);
  } catch (error) {
    if (navigation === navigations) fill(main, problem(error, () => show(), { autoRetry: true }));
  }
}

function drawStatus(server) {
  const isDark = () => document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const theme = h("button.plain", { "aria-label": "Toggle dark mode", title: "Toggle dark mode", onclick: toggle });
  function toggle() {
    const next = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    localStorage.setItem("corbie.theme", next);
    draw();
  }
  const draw = () => fill(theme, icon(isDark() ? "light" : "dark"));
  draw();
  const key = h("button.plain", { "aria-label": "Token", title: "Change token", onclick: async () => (await promptForToken({ dismissible: true })) && connect().catch(toastError) }, icon("key"));
  fill(document.getElementById("status"),
    h("span.who", { title: "Trust level of this page" }, h("span.badge", { class: server.trust === "TRUSTED" ? "good" : "" }, server.trust?.toLowerCase() ?? "")),
    h("span.version", `${server.name} ${server.version}`),
    h("div.row", theme, token.get() ? key : null));
}

async function start() {
  installShortcuts();
  fill(main, h("p.quiet", "Loading…"));
  try {
    drawStatus(await connect());
  } catch (error) {
    fill(main, problem(error, start));
    return;
  }
  addEventListener("hashchange", () => show());
  // Another token is another caller: the page is redrawn with new data. It is not reloaded, since that would lose uploads
  // in progress and unsaved input.
  onTokenChange(async () => {
    drawStatus(currentServer());
    const restoreFormState = saveFormState(main);
    await show({ focus: false });
    restoreFormState();
  });
  await show({ focus: false });
  // After a restart the server can have other settings and another trust level for this client. Input stays; failed read
  // requests are retried, and only those: a request to a model costs money.
  onReconnect(async () => {
    drawStatus(await connect());
    for (const button of main.querySelectorAll(".problem button[data-auto-retry]")) button.click();
  });
}

start();
