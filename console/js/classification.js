// Texts about classifications that several pages show: names of methods, and what an entropy means.

const METHODS = { rules: "rule", lexical: "keywords", embedding: "nearest examples", model: "trained classifier", external: "external server" };
export const methodName = (method) => METHODS[method] ?? method;

/** "Entropy 0.02 bits (very certain)". The entropy is highest if all categories are equally probable. */
export const describeEntropy = (bits, categories) => `Entropy ${bits.toFixed(2)} bits (${certainty(bits, categories)})`;

export function certainty(bits, categories) {
  const share = bits / Math.log2(Math.max(categories ?? 2, 2));
  if (share < 0.1) return "very certain";
  if (share < 0.35) return "fairly certain";
  if (share < 0.7) return "uncertain";
  return "very uncertain";
}
