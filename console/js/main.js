// Starts the console: who we are, which page is wanted, and what stands beside every page.

import { h, fill, icon } from "./dom.js";
import { enter, onReturn, onToken, askForToken, server as known } from "./connection.js";
import { token } from "./mcp.js";
import { listen } from "./keys.js";
import { gather } from "./written.js";
import { problem } from "./components/parts.js";
import { tellFailure } from "./components/toast.js";

/** A page is a module with `title` and `show(place, parts)`, which may give a function that ends it. */
const PAGES = {
  overview: () => import("./pages/overview.js"),
  knowledge: () => import("./pages/knowledge.js"),
  classify: () => import("./pages/classify.js"),
  routing: () => import("./pages/routing.js"),
  tools: () => import("./pages/tools.js"),
};

const main = document.getElementById("main");
let leave;
let showing = 0;

/** The parts of the address after `#/`, each decoded: `#/knowledge/document/abc` is ["knowledge", "document", "abc"]. */
function place() {
  const parts = location.hash.replace(/^#\/?/, "").split("?")[0].split("/").filter(Boolean);
  try { return parts.map(decodeURIComponent); } catch { return parts; }
}

async function show({ focus = true } = {}) {
  const [name = "overview", ...parts] = place();
  const load = PAGES[name] ?? PAGES.overview;
  const turn = ++showing;
  for (const link of document.querySelectorAll("#nav a")) {
    if (link.dataset.page === (PAGES[name] ? name : "overview")) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  try {
    const page = await load();
    if (turn !== showing) return;
    leave?.();
    leave = undefined;
    document.title = `${page.title} · corbie`;
    fill(main);
    main.dataset.page = name;
    const end = await page.show(main, parts);
    if (turn === showing) main.dataset.shown = location.hash;
    if (turn === showing) leave = typeof end === "function" ? end : undefined;
    else end?.();
    // The keyboard goes on at the new page, unless the page has put it somewhere already.
    if (focus && !main.contains(document.activeElement)) main.focus({ preventScroll: true });
    if (focus) scrollTo(0, 0);
  } catch (error) {
    if (turn === showing) fill(main, problem(error, () => show(), { alone: true }));
  }
}

function standing(server) {
  const dark = () => document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const theme = h("button.plain", { "aria-label": "Light or dark", title: "Light or dark", onclick: turn });
  function turn() {
    const next = dark() ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    localStorage.setItem("corbie.theme", next);
    draw();
  }
  const draw = () => fill(theme, icon(dark() ? "light" : "dark"));
  draw();
  const key = h("button.plain", { "aria-label": "Token", title: "Use another token", onclick: async () => (await askForToken({ dismissible: true })) && enter().catch(tellFailure) }, icon("key"));
  fill(document.getElementById("standing"),
    h("span.who", { title: "How far this server trusts this page" }, h("span.badge", { class: server.trust === "TRUSTED" ? "good" : "" }, server.trust?.toLowerCase() ?? "")),
    h("span.version", `${server.name} ${server.version}`),
    h("div.row", theme, token.get() ? key : null));
}

async function start() {
  listen();
  fill(main, h("p.quiet", "One moment…"));
  try {
    standing(await enter());
  } catch (error) {
    fill(main, problem(error, start));
    return;
  }
  addEventListener("hashchange", () => show());
  // Another token is another caller: everything is asked for anew. The page is not loaded anew, since files may be on
  // their way and much that was written is nowhere else.
  onToken(async () => {
    standing(known());
    const putBack = gather(main);
    await show({ focus: false });
    putBack();
  });
  await show({ focus: false });
  // A server that was away may be another one now, with another idea of who we are. What the reader was writing stays;
  // what could not be shown meanwhile is asked for again, and only that: a question to a model costs money.
  onReturn(async () => {
    standing(await enter());
    for (const again of main.querySelectorAll(".problem button[data-again]")) again.click();
  });
}

start();
