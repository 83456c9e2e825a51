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
    return `${kind ? `Files of the kind .${kind}` : "Files without an extension"} cannot be read. Save it as PDF, DOCX, HTML or text and add that.`;
  }
  if (!file.size) return "The file is empty. Check that it was saved.";
  if (maxMegabytes && file.size > maxMegabytes * 1024 * 1024) {
    return `The file is larger than ${maxMegabytes} MB. Split it, or raise \`knowledge.max_file_size_mb\` in the settings.`;
  }
}

/** A name as it is shown: signs that turn the direction of writing would let `exe.fdp` read as another kind of file. */
export const sanitizeName = (name = "") => name.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");

/** The documents' states as people say them. */
export const STATES = {
  completed: ["Ready", "good"],
  partial: ["Partly read", "warn"],
  processing: ["Being read", "accent"],
  pending: ["Waiting", ""],
  failed: ["Failed", "bad"],
};
