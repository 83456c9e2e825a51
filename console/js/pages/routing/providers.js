// Configured providers, their health, and their models.

import { h, fill } from "../../dom.js";
import { call } from "../../mcp.js";
import { poll } from "../../connection.js";
import { badge, copyable, empty, problem } from "../../components/widgets.js";
import { milliseconds, number, plural } from "../../format.js";

/** In milliseconds. */
const POLL_INTERVAL = 5_000;

export function providers(container) {
  const cards = h("div.grid.two");
  const models = h("section.card", h("h2", "Models"), h("p.quiet", "Loading models…"));
  fill(container, h("p.quiet", "Loading…"));
  listModels(models);
  return poll(async () => {
    const { providers: list, default_model: defaultModel } = await call("list_providers", {}, { quiet: true });
    if (!list.length) return void fill(container, noProviders());
    fill(cards, list.map((provider) => card(provider, defaultModel)));
    if (!container.contains(cards)) fill(container, cards, models);
  }, POLL_INTERVAL, (error) => fill(container, problem(error)));
}

function card(provider, defaultModel) {
  const kind = { up: "good", failing: "bad", circuit_open: "warn" }[provider.status] ?? "";
  return h("article.card", h("header", h("h2.break", provider.name), badge(provider.status, kind), provider.detected ? badge("detected", "accent") : null),
    h("dl.facts",
      fact("Kind", provider.type), fact("URL", provider.url), fact("API keys", provider.keys), fact("Models", provider.models),
      fact("Default model", provider.default_model), fact("Latency", provider.latency_ms === undefined ? undefined : milliseconds(provider.latency_ms)), fact("Last error", provider.error)),
    defaultModel?.startsWith(`${provider.name}/`) ? h("p.quiet.small", "Default provider for prompts without a model of their category.") : null);
}

const fact = (name, value) => (value === undefined || value === null ? null : [h("dt", name), h("dd.break", value)]);

async function listModels(container) {
  try {
    const { models, failed = [] } = await call("list_models", {}, { quiet: true });
    fill(container, h("h2", plural(models.length, "model")),
      failed.map(({ provider, error }) => h("p.problem.warn", `${provider}: ${error}`)),
      models.length ? h("div.table", { tabindex: "0", role: "region", "aria-label": "Models" }, h("table", h("thead", h("tr", ["Model", "Provider", "Context", "Capabilities"].map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", models.map((model) => h("tr", h("td.whole", model.id), h("td", model.provider), h("td", model.context ? number(model.context) : "–"),
          h("td.capabilities", Object.entries(model.capabilities ?? {}).filter(([, supported]) => supported === true).map(([name]) => h("span.badge", name.replaceAll("_", " ")))))))) ) : null);
  } catch (error) {
    fill(container, h("h2", "Models"), problem(error, () => listModels(container), { autoRetry: true }));
  }
}

const noProviders = () => empty("No providers configured", "Classification and search work without a provider. To answer prompts, set an API key or start a local model server.",
  copyable("export OPENAI_API_KEY=…   # or ANTHROPIC_API_KEY, GOOGLE_API_KEY\ncorbie serve"),
  "Ollama, vLLM, llama.cpp and LM Studio on this machine are detected automatically. To try routing without a provider, configure the mock provider:",
  copyable("providers:\n  mock: { type: mock }"));
