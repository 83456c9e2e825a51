// Which files can be read, known before they are sent.

export const FORMATS = ["pdf", "docx", "pptx", "xlsx", "html", "md", "txt", "csv", "jpg", "png", "svg"];
const EXTENSIONS = new Set([...FORMATS, "htm", "jpeg"]);
/** What the file chooser of the browser offers. */
export const ACCEPTED = [...EXTENSIONS].map((name) => `.${name}`).join(",");

export const extension = (name) => /\.([^./\\]+)$/.exec(name)?.[1].toLowerCase() ?? "";
export const isReadable = (name) => EXTENSIONS.has(extension(name));

/** Why a file is not sent, with what to do; nothing where it can be. */
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

/** A name as it is shown: signs that turn the direction of writing would let `exe.fdp` read as another kind of file. */
export const sanitizeName = (name = "") => name.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");

/** The documents' states as people say them. */
export const STATES = {
  completed: ["Ready", "good"],
  partial: ["Partial", "warn"],
  processing: ["Processing", "accent"],
  pending: ["Queued", ""],
  failed: ["Failed", "bad"],
};
