// Numbers as the page writes them.

/** Three decimals with a true minus sign; a dash where there is none. */
export function score(value) {
  return value === null || value === undefined || !Number.isFinite(value) ? "–" : value.toFixed(3).replace("-", "−");
}

/** A duration with the unit that suits it. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  if (seconds < 0.0995) return `${(seconds * 1000).toFixed(1)} ms`;
  return seconds < 1 ? `${Math.round(seconds * 1000)} ms` : `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
}

/** A whole number with its thousands apart. */
export function count(value) {
  return Math.round(value).toLocaleString("en-US");
}

/** A rate or an amount in few digits. */
export function amount(value) {
  if (!Number.isFinite(value)) return "–";
  return value >= 100 || Number.isInteger(value) ? count(value) : value.toFixed(value < 10 ? 2 : 1);
}

/** A share of 1, as percent. */
export function percent(value) {
  return Number.isFinite(value) ? `${(100 * value).toFixed(1)} %` : "–";
}

/** A size in bytes, for people. */
export function size(bytes) {
  const units = ["bytes", "kB", "MB", "GB"];
  let at = 0;
  let left = bytes;
  while (left >= 1000 && at < units.length - 1) { left /= 1000; at += 1; }
  return `${at && left < 100 ? left.toFixed(1) : Math.round(left)} ${units[at]}`;
}
