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
  empty("Not available", `The server has no tool to ${what}, or your token does not permit it.`);

/** The message shown if this client may not call a tool; `reason` comes from `denialReason`. */
export const notPermitted = (reason) => empty("Permission denied", h("p", inlineCode(reason)));

/** The last segment of a path. */
export const fileName = (path) => path.split(/[\\/]/).pop();
