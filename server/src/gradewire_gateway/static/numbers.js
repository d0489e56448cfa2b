// Formats for the page's numbers.

/** Returns a score with three decimals and a true minus sign; a dash if it is missing. */
export function score(value) {
  return value === null || value === undefined || !Number.isFinite(value) ? "–" : value.toFixed(3).replace("-", "−");
}

/** Returns a duration in a suitable unit. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  if (seconds < 0.0995) return `${(seconds * 1000).toFixed(1)} ms`;
  return seconds < 1 ? `${Math.round(seconds * 1000)} ms` : `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
}

/** Returns a whole number with thousands separators. */
export function count(value) {
  return Math.round(value).toLocaleString("en-US");
}

/** Returns a rate or an amount with few digits. */
export function amount(value) {
  if (!Number.isFinite(value)) return "–";
  return value >= 100 || Number.isInteger(value) ? count(value) : value.toFixed(value < 10 ? 2 : 1);
}

/** Returns a share of 1 in percent. */
export function percent(value) {
  return Number.isFinite(value) ? `${(100 * value).toFixed(1)} %` : "–";
}

/** Returns a size in bytes in a readable unit. */
export function size(bytes) {
  const units = ["bytes", "kB", "MB", "GB"];
  let at = 0;
  let left = bytes;
  while (left >= 1000 && at < units.length - 1) { left /= 1000; at += 1; }
  return `${at && left < 100 ? left.toFixed(1) : Math.round(left)} ${units[at]}`;
}
