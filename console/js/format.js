// Formats numbers, sizes and times for display.

const numberFormat = new Intl.NumberFormat("en");

export const number = (value) => numberFormat.format(value);
export const percent = (share, digits = 1) => `${(share * 100).toFixed(digits)} %`;
export const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;

export function bytes(count) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (count >= 1000 && unit < units.length - 1) {
    count /= 1000;
    unit++;
  }
  return `${unit && count < 10 ? count.toFixed(1) : Math.round(count)} ${units[unit]}`;
}

export function milliseconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 1) return `${Math.round(value * 1000)} µs`;
  if (value < 10) return `${value.toFixed(1)} ms`;
  if (value < 1000) return `${Math.round(value)} ms`;
  return seconds(value / 1000);
}

export function seconds(value) {
  if (value < 60) return `${value < 10 ? value.toFixed(1) : Math.round(value)} s`;
  const minutes = Math.floor(value / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(value % 60)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`;
}

export function dollars(value) {
  if (!value) return "$0";
  return value < 0.01 ? `$${value.toPrecision(2)}` : `$${value.toFixed(value < 1 ? 3 : 2)}`;
}

export function relativeTime(text) {
  const time = new Date(text);
  if (Number.isNaN(time.getTime())) return text ?? "";
  const age = (Date.now() - time) / 1000;
  if (age < 60 && age > -5) return "just now";
  if (age < 3600 && age > 0) return `${Math.floor(age / 60)} min ago`;
  const sameDay = new Date().toDateString() === time.toDateString();
  return sameDay ? time.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" }) : time.toLocaleDateString([], { year: "numeric", month: "short", day: "numeric" });
}
