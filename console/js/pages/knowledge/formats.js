// Supported file formats, and states of documents.

export const FORMATS = ["pdf", "docx", "pptx", "xlsx", "html", "md", "txt", "csv", "jpg", "png", "svg"];
const EXTENSIONS = new Set([...FORMATS, "htm", "jpeg"]);
/** The `accept` attribute of file inputs. */
export const ACCEPTED = [...EXTENSIONS].map((name) => `.${name}`).join(",");

export const extension = (name) => /\.([^./\\]+)$/.exec(name)?.[1].toLowerCase() ?? "";
export const isReadable = (name) => EXTENSIONS.has(extension(name));

/** Why a file cannot be added, and what to do; undefined if it can. */
export function rejectionReason(file, maxMegabytes) {
  const kind = extension(file.name);
  if (!EXTENSIONS.has(kind)) {
    return `${kind ? `.${kind} files are` : "Files without an extension are"} not supported. Convert it to PDF, DOCX, HTML or text.`;
  }
  if (!file.size) return "The file is empty.";
  if (maxMegabytes && file.size > maxMegabytes * 1024 * 1024) {
    return `The file exceeds ${maxMegabytes} MB. Split it, or raise \`knowledge.max_file_size_mb\` in the settings.`;
  }
}

/** Replaces bidirectional control characters: with them, `exe.fdp` could be displayed as another extension. */
export const sanitizeName = (name = "") => name.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");

/** Display names and badge kinds of document states. */
export const STATES = {
  completed: ["Ready", "good"],
  partial: ["Partial", "warn"],
  processing: ["Processing", "accent"],
  pending: ["Queued", ""],
  failed: ["Failed", "bad"],
};
