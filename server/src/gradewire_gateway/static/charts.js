// Small SVG charts. Each chart also shows its numbers in text.

import { el, svg } from "./dom.js";

const WIDTH = 320;
const HEIGHT = 120;
const LEFT = 6;
const BOTTOM = 2;
const TOP = 6;

function ceiling(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= value);
}

/** Returns a drawing that is stretched to its container's width; texts are outside of it, to keep their size. */
function stretched(label, ...drawn) {
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": label }, ...drawn);
}

function scaleOf(...texts) {
  return el("div", { class: "scale", "aria-hidden": "true" }, texts.map((text) => el("span", {}, text)));
}

const signed = (number) => String(number).replace("-", "−");

/** Returns a bar chart of the number of scores in each part of the range. */
export function histogram(bins, { label, minimum, maximum }) {
  const most = Math.max(1, ...bins);
  const width = (WIDTH - 2 * LEFT) / bins.length;
  const bars = bins.map((count, at) => {
    const height = (count / most) * (HEIGHT - TOP - BOTTOM);
    return svg("rect", { class: "bar", x: LEFT + at * width + 1, y: HEIGHT - BOTTOM - height, width: width - 2, height });
  });
  const axis = svg("line", { class: "axis", x1: LEFT, x2: WIDTH - LEFT, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM });
  return [stretched(label, bars, axis), scaleOf(signed(minimum), `highest bar: ${most}`, signed(maximum))];
}

/**
 * Returns a line chart of the last minutes, with the latest numbers in text: {node, show(series)}.
 * `series` is [{name, values}], with the newest value last; NaN leaves a gap.
 */
export function lineChart(title, format, most) {
  const drawing = stretched(title);
  const scale = scaleOf("older", "", "now");
  const said = el("p", { class: "now" });
  const node = el("figure", { class: "card" }, el("figcaption", {}, title), said, drawing, scale);
  const show = (series, points) => {
    const values = series.flatMap((one) => one.values).filter(Number.isFinite);
    const top = most ?? ceiling(Math.max(0, ...values));
    const x = (at) => LEFT + (at / Math.max(1, points - 1)) * (WIDTH - 2 * LEFT);
    const y = (value) => HEIGHT - BOTTOM - (Math.min(top, value) / top) * (HEIGHT - TOP - BOTTOM);
    const latest = series.map((one) => `${one.name} ${format(one.values.at(-1) ?? NaN)}`).join(", ");
    drawing.setAttribute("aria-label", `${title}: ${latest}`);
    said.replaceChildren(...series.map((one, at) => el("span", { class: `key key-${at}` }, `${one.name} `, el("strong", {}, format(one.values.at(-1) ?? NaN)))));
    scale.children[1].textContent = `dashed line: ${format(top)}`;
    drawing.replaceChildren(
      svg("line", { class: "grid", x1: LEFT, x2: WIDTH - LEFT, y1: y(top), y2: y(top) }),
      svg("line", { class: "axis", x1: LEFT, x2: WIDTH - LEFT, y1: y(0), y2: y(0) }),
      ...series.map((one, at) => svg("path", { class: `line line-${at}`, d: path(one.values, points, x, y) })));
  };
  return { node, show };
}

function path(values, points, x, y) {
  let drawn = "";
  let pen = "M";
  const offset = points - values.length;
  values.forEach((value, at) => {
    if (!Number.isFinite(value)) { pen = "M"; return; }
    drawn += `${pen}${x(at + offset).toFixed(1)} ${y(value).toFixed(1)}`;
    pen = "L";
  });
  return drawn;
}
