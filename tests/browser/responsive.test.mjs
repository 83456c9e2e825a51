// Layout at many widths: texts are legible, and pages do not scroll horizontally.

import test from "node:test";
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { accessible, corbie, fits, open, until, visit, DESKTOP, PHONE } from "./harness.mjs";

/** Without detection of local model servers. */
const CONFIG = "providers: { mock: { type: mock }, detect_ports: [] }\nknowledge: { storage_path: $HOME/store }\n";
const WIDTHS = [320, 390, 600, 700, 768, 820, 900, 1000, 1100, 1280, 1600];
const PAGES = ["overview", "knowledge", "knowledge/search", "knowledge/ask", "classify", "classify/categories", "classify/edit", "classify/evaluate", "routing", "routing/explain", "routing/providers", "tools", "tools/call/knowledge-clear", "tools/audit"];
/** Minimum width of a legible name, in pixels. */
const READABLE = 120;

const at = (width) => ({ width, height: 844 });

/** A server with documents, a decision and calls. */
async function used(t) {
  const server = await corbie(t, { config: CONFIG });
  const folder = join(server.home, "papers");
  await mkdir(folder);
  for (const name of ["holidays-of-the-observatory-2026.md", "night-shifts.md", "visitors.txt"]) await writeFile(join(folder, name), `What ${name} says is that the dome is opened at night.\n`);
  await server.call("knowledge-import", { paths: [folder], async: false });
  await server.call("chat_completion", { prompt: "Why is the sky blue?" });
  await server.call("batch_categorize", { texts: ["What is 2 + 2?"] });
  return server;
}

test("every page fits every width", async (t) => {
  const page = await open(t, await used(t));
  for (const name of PAGES) {
    await visit(page, `#/${name}`);
    await page.locator("main h1").waitFor();
    await page.waitForFunction(() => !/Loading…|Loading models…|Running checks…/.test(document.getElementById("main").innerText));
    for (const width of WIDTHS) {
      await page.setViewportSize(at(width));
      await fits(page).catch((error) => assert.fail(`${name} at ${width}: ${error.message}`));
    }
  }
});

test("no labels overlap at any width", async (t) => {
  const page = await open(t, await used(t));
  for (const name of [...PAGES, "knowledge/search/dome", "routing/explain/"]) {
    await visit(page, `#/${name}`);
    await page.waitForFunction(() => !/Loading…|Loading models…|Running checks…/.test(document.getElementById("main").innerText));
    if (name === "classify") {
      await page.locator("#classify-text").fill("the sky at night and the tsar");
      await page.locator(".verdict strong").waitFor();
    } else if (name === "classify/evaluate") {
      await page.getByRole("textbox").fill('{"text":"What is 2+2","category":"math"}\n{"text":"who was the last tsar","category":"history"}\n{"text":"why is the sky blue","category":"technology"}');
      await page.getByRole("button", { name: "Evaluate texts" }).click();
      await page.getByText("3 texts evaluated.").waitFor();
    } else if (name === "routing") {
      await page.locator("table.decisions tbody tr button").first().click();
    } else if (name === "routing/explain/") {
      await page.getByRole("textbox", { name: "Prompt", exact: true }).fill("Why is the sky blue?");
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: "science" }).waitFor();
    }
    for (const width of [320, 360, ...WIDTHS.slice(1)]) {
      await page.setViewportSize(at(width));
      assert.deepEqual(await page.evaluate(overlaps), [], `${name} at ${width}`);
    }
  }
});

/** Pairs of texts that are drawn over each other, and texts that stick out of their card. Runs in the page. */
function overlaps() {
  const main = document.getElementById("main");
  const walk = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
  const boxes = [];
  while (walk.nextNode()) {
    const node = walk.currentNode;
    const element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility({ visibilityProperty: true }) || element.closest(".visually-hidden, .vtable, textarea, select")) continue;
    // What scrolls or is cut off inside of its box is clipped there.
    let clip = { left: -Infinity, right: Infinity, top: -Infinity, bottom: Infinity };
    for (let box = element; box !== main; box = box.parentElement) {
      if (getComputedStyle(box).overflowX === "visible") continue;
      const { left, right, top, bottom } = box.getBoundingClientRect();
      clip = { left: Math.max(clip.left, left), right: Math.min(clip.right, right), top: Math.max(clip.top, top), bottom: Math.min(clip.bottom, bottom) };
    }
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const rect of range.getClientRects()) {
      const box = { left: Math.max(rect.left, clip.left), right: Math.min(rect.right, clip.right), top: Math.max(rect.top, clip.top), bottom: Math.min(rect.bottom, clip.bottom), text: node.data.trim().slice(0, 30), element };
      if (box.right - box.left > 1 && box.bottom - box.top > 1) boxes.push(box);
    }
  }
  const found = [];
  boxes.forEach((one, index) => {
    const card = one.element.closest(".card")?.getBoundingClientRect();
    if (card && (one.right > card.right + 1 || one.left < card.left - 1)) found.push(`${one.text} sticks out of its card`);
    for (const other of boxes.slice(index + 1)) {
      const [width, height] = [Math.min(one.right, other.right) - Math.max(one.left, other.left), Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top)];
      // Line boxes of neighbouring lines may touch.
      if (one.element !== other.element && width > 2 && height > 4) found.push(`${one.text} × ${other.text}`);
    }
  });
  return [...new Set(found)];
}

test("document names are legible at every width, and no cell is cut", async (t) => {
  const page = await open(t, await used(t), { at: "#/knowledge" });
  await page.locator(".rows").getByText("visitors.txt").waitFor();
  const table = page.getByRole("table", { name: "Documents" });
  for (const width of WIDTHS) {
    await page.setViewportSize(at(width));
    // The row height is updated after a change of the width.
    await until(() => table.evaluate((element) => parseFloat(getComputedStyle(element).getPropertyValue("--row")) * 3 === element.querySelector(".rows").offsetHeight), `the rows have their height at ${width}`);
    const seen = await table.evaluate((element) => {
      const place = element.getBoundingClientRect();
      const row = element.querySelector(".rows .vrow");
      const boxes = (cells) => [...cells].map((cell) => [cell.className, cell.getBoundingClientRect()]).filter(([, box]) => box.width);
      const within = row.getBoundingClientRect();
      const heads = boxes(element.querySelectorAll(".heads .cell"));
      return {
        name: row.querySelector(".name").getBoundingClientRect().width,
        outside: boxes(row.children).filter(([, box]) => box.left < place.left || box.right > place.right).map(([name]) => name),
        // Texts have a distance from the row borders.
        high: boxes(row.querySelectorAll(".cell:not(.removal)")).filter(([, box]) => box.top < within.top + 4 || box.bottom > within.bottom - 4).map(([name]) => name),
        over: heads.slice(1).filter(([, box], at) => box.left < heads[at][1].right - 1).map(([name]) => name),
        removal: row.querySelector(".removal button").getBoundingClientRect().width,
      };
    });
    assert.ok(seen.name >= READABLE, `at ${width} a name has ${seen.name} pixels`);
    assert.deepEqual([seen.outside, seen.high, seen.over], [[], [], []], `at ${width}`);
    assert.ok(seen.removal > 0, `at ${width} a document can be removed`);
  }
});

test("wide tables scroll in their box with a shadow, and break no words", async (t) => {
  const server = await used(t);
  for (const [name, cell, width] of [["tools/audit", "batch_categorize", 390], ["routing/providers", "mock-reasoner", 390], ["routing", "mock/mock", 390], ["routing", "mock/mock", 800]]) {
    const page = await open(t, server, { at: `#/${name}`, viewport: at(width) });
    const region = page.locator(".table").first();
    const found = region.getByRole("cell", { name: cell }).first();
    await found.waitFor();
    await fits(page);
    const seen = await region.evaluate((element) => {
      const shades = getComputedStyle(element).backgroundAttachment.split(", ");
      element.scrollLeft = 10_000;
      const last = element.querySelector("th:last-child").getBoundingClientRect();
      return { wide: element.scrollWidth > element.clientWidth, shades, whole: last.right <= element.getBoundingClientRect().right + 1, tabindex: element.tabIndex };
    });
    assert.deepEqual([seen.wide, seen.whole, seen.tabindex], [true, true, 0], `${name} at ${width} scrolls to its last column`);
    assert.ok(seen.shades.includes("local") && seen.shades.includes("scroll"), `${name} has a shade where there is more: ${seen.shades}`);
    // No word is broken.
    const broken = await found.evaluate((element) => {
      const walk = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
      const torn = [];
      while (walk.nextNode()) {
        for (const word of walk.currentNode.data.matchAll(/[\p{L}\p{N}_]+/gu)) {
          const range = document.createRange();
          range.setStart(walk.currentNode, word.index);
          range.setEnd(walk.currentNode, word.index + word[0].length);
          if (new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size > 1) torn.push(word[0]);
        }
      }
      return torn;
    });
    assert.deepEqual(broken, [], `words of ${name} at ${width}`);
  }
  const page = await open(t, server, { at: "#/routing", viewport: PHONE });
  await page.locator("table.decisions tbody tr button").first().click();
  const detail = await page.locator(".decisions .detail").boundingBox();
  assert.ok(detail.x >= 0 && detail.x + detail.width <= PHONE.width, `what is told of a decision is in sight: ${JSON.stringify(detail)}`);
  await accessible(page);
});

test("the dialog backdrop reaches the edge of the window", async (t) => {
  const server = await corbie(t, { config: CONFIG });
  // The browser of the other tests hides scrollbars.
  for (const [hidden, viewport] of [[true, DESKTOP], [true, PHONE], [false, DESKTOP]]) {
    const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-dev-shm-usage"], ignoreDefaultArgs: hidden ? [] : ["--hide-scrollbars"] });
    t.after(() => browser.close());
    const page = await browser.newPage({ viewport, colorScheme: "light" });
    await page.goto(`${server.url}/#/knowledge`);
    await page.getByRole("button", { name: "Server path…" }).click();
    await page.getByRole("dialog").waitFor();
    const picture = (await page.screenshot()).toString("base64");
    const blank = await browser.newPage();
    const brightest = await blank.evaluate(async ({ data, width }) => {
      const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${data}`)).blob());
      const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
      canvas.drawImage(image, 0, 0);
      const strip = canvas.getImageData(width - 6, 30, 4, 60).data;
      return Math.max(...strip.filter((_, place) => place % 4 !== 3));
    }, { data: picture, width: viewport.width });
    assert.ok(brightest < 200, `at ${viewport.width}, ${hidden ? "without" : "with"} bars, the edge has ${brightest} of 255`);
    if (hidden && viewport === PHONE) assert.equal((await page.locator("#nav").boundingBox()).width, PHONE.width, "the bar with the pages is as wide as the window");
  }
});

test("an import with failed files is shown as failed", async (t) => {
  const server = await used(t);
  const page = await open(t, server, { at: "#/knowledge" });
  const importing = async (path) => {
    await page.getByRole("button", { name: "Server path…" }).click();
    await page.getByRole("dialog").getByLabel("Path").fill(path);
    await page.keyboard.press("Enter");
    return page.locator(".job", { hasText: path });
  };
  const sign = (job) => job.locator(".step .icon use").getAttribute("href");
  const gone = await importing("/nope/nothing");
  await gone.getByText("1 failed").waitFor();
  await page.getByRole("heading", { name: "Failed" }).waitFor();
  await page.getByText("1 of 1 done, 1 failed").waitFor();
  assert.match(await sign(gone), /#warn$/);
  assert.equal(await gone.getAttribute("data-state"), "failed");
  await writeFile(join(server.home, "papers", "broken.pdf"), "no pages at all");
  await writeFile(join(server.home, "papers", "new.md"), "# A new note\n");
  const partly = await importing(join(server.home, "papers"));
  await partly.getByText("1 added, 3 unchanged, 1 failed").waitFor();
  await page.getByRole("heading", { name: "Added", exact: true }).waitFor();
  await page.getByText("2 of 2 done, 2 failed").waitFor();
  assert.match(await sign(partly), /#warn$/);
  await partly.getByRole("button", { name: "Show failed files" }).click();
  await page.getByRole("dialog").getByText("broken.pdf").waitFor();
});

test("on a phone nothing is cut, and no drag and drop is offered", async (t) => {
  const server = await corbie(t, { config: CONFIG });
  const page = await open(t, server, { at: "#/knowledge", viewport: PHONE });
  await page.getByRole("heading", { name: "Choose files to add" }).waitFor();
  await page.getByText("No documents yet").waitFor();
  assert.equal(await page.locator("main").getByText(/\bdrop\b/i).count(), 0);
  await visit(page, "#/classify");
  const samples = page.locator(".sample:visible");
  await samples.first().waitFor();
  const cut = await samples.evaluateAll((chips) => chips.filter((chip) => chip.getBoundingClientRect().right > chip.closest(".card").getBoundingClientRect().right).map((chip) => chip.textContent));
  assert.deepEqual(cut, []);
  await page.route("**/mcp", async (route) => {
    const { id, params } = route.request().postDataJSON();
    if (params?.name !== "check_setup") return route.continue();
    const structuredContent = { checks: [{ name: "models", state: "ok", message: "they are whole" }] };
    return route.fulfill({ json: { jsonrpc: "2.0", id, result: { content: [{ type: "text", text: JSON.stringify(structuredContent) }], structuredContent } } });
  });
  await visit(page, "#/overview");
  const line = page.locator(".setup p", { hasText: "All checks passed" });
  await line.waitFor();
  const [tick, text] = await line.evaluate((element) => {
    const range = document.createRange();
    range.selectNodeContents(element.lastChild);
    return [element.querySelector("svg").getBoundingClientRect(), range.getBoundingClientRect()].map(({ top, bottom }) => ({ top, bottom }));
  });
  assert.ok(tick.bottom > text.top && tick.top < text.bottom, "the tick stands beside its sentence");
  assert.ok(tick.top < text.top + 12, "at its first line");
});

test("numbers, gaps, trust levels and destructive actions look the same everywhere", async (t) => {
  const server = await used(t);
  const page = await open(t, server, { at: "#/tools/audit" });
  await page.getByRole("cell", { name: "batch_categorize" }).first().waitFor();
  assert.equal(await page.getByRole("columnheader", { name: "Duration" }).evaluate((head) => getComputedStyle(head).textAlign), "right");
  await visit(page, "#/tools/call/knowledge-clear");
  const kind = () => page.getByRole("button", { name: "Call", exact: true }).getAttribute("class");
  assert.equal(await kind(), "danger");
  await visit(page, "#/tools/call/chat_completion");
  assert.equal(await kind(), "main");
  assert.doesNotMatch(await page.locator("form.card").innerText(), /`/);
  await visit(page, "#/overview");
  await page.locator(".part").nth(3).waitFor();
  const gaps = await page.locator("main > .stack").evaluate((stack) => {
    const cards = [...stack.querySelectorAll(".card")].map((card) => card.getBoundingClientRect());
    const above = (card) => Math.max(...cards.filter(({ bottom }) => bottom <= card.top + 1).map(({ bottom }) => bottom));
    return [...new Set(cards.map((card) => Math.round(card.top - above(card))).filter(Number.isFinite))];
  });
  assert.equal(gaps.length, 1, `the gaps between cards are ${gaps}`);
  for (const trust of ["untrusted", "verified", "trusted"]) {
    const other = await open(t, await corbie(t, { config: `${CONFIG}trust: { all: ${trust} }\n` }), { at: "#/tools/audit" });
    const badges = other.locator(".badge", { hasText: new RegExp(`^${trust}$`) });
    await badges.nth(1).waitFor();
    const colours = await badges.evaluateAll((all) => all.map((badge) => getComputedStyle(badge).color));
    assert.equal(new Set(colours).size, 1, `${trust}: ${colours}`);
  }
});

test("advice matches the permissions of the client", async (t) => {
  const page = await open(t, await corbie(t, { config: `${CONFIG}trust: { all: untrusted }\n` }), { at: "#/classify/edit" });
  await page.getByText("Editing the taxonomy requires trust level trusted; this page has untrusted").waitFor();
  // Without a home folder there is no place for an own taxonomy.
  const trusted = await open(t, await corbie(t, { config: CONFIG, env: { HOME: "none" } }), { at: "#/classify/evaluate" });
  await trusted.getByRole("textbox").fill('{"text": "a", "category": "parcels"}');
  await trusted.getByRole("button", { name: "Evaluate texts" }).click();
  const told = trusted.locator(".said .problem");
  await told.getByText("Unknown category “parcels” in text 1.").waitFor();
  assert.match(await told.innerText(), /\(math, .*\)\. Categories cannot be added: /);
  assert.doesNotMatch(await told.innerText(), /Edit tab/);
});
