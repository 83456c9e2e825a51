// Shared by the tabs of this page: cancellation of superseded requests, and messages about unavailable tools.

import { h } from "../../dom.js";
import { empty } from "../../components/widgets.js";
import { inlineCode } from "../../components/inline-code.js";

/** Abort signals for successive requests: a new request cancels the previous one. */
export function latestRequest() {
  let current;
  return {
    signal() {
      current?.abort();
      current = new AbortController();
      return current.signal;
    },
    cancel: () => current?.abort(),
  };
}

/** The message shown if a tool does not exist. `what` completes the sentence. */
export const toolMissing = (what) =>
  empty("This server does not offer that", `It has no tool to ${what}. It may be older than this page, or its settings keep the tool from you: a newer corbie, or a token with more trust, has it.`);

/** The message shown if this client may not call a tool; `reason` comes from `denialReason`. */
export const notPermitted = (reason) => empty("This cannot be done from here", h("p", inlineCode(reason)));

/** The last segment of a path. */
export const fileName = (path) => path.split(/[\\/]/).pop();
