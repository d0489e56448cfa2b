// Creates elements. Strings become only text nodes, so an answer cannot add markup to the page.

const SVG = "http://www.w3.org/2000/svg";

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.setAttribute("class", value);
    else if (name === "value") node.value = value;
    else if (name === "checked" || name === "disabled" || name === "hidden" || name === "selected") node[name] = Boolean(value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Returns an HTML element: `el("p", {class: "note"}, "text", …)`; attributes such as `onclick` add listeners. */
export function el(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** Returns an SVG element. */
export function svg(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

/** Returns the element with an id; throws an Error if the page does not have it. */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found;
}

/** Lets screen readers read a sentence when they are idle. */
export function announce(text) {
  const region = byId("announcer");
  region.textContent = "";
  setTimeout(() => { region.textContent = text; }, 50);
}

// Control characters, and format characters that hide text or change its direction. Joiners are not among them,
// because scripts and emoji need joiners.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]|\p{Surrogate}/gu;

/** Returns the text with each invisible character replaced by its code, such as "[U+202E]". */
export function visible(text) {
  return text.replace(UNSEEN, (found) => `[U+${found.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}]`);
}

/** Returns an element for a user's text, isolated so that its writing direction does not affect the page. */
export function foreign(text, attributes) {
  return el("bdi", attributes, visible(text));
}

/** Returns a button that copies the result of `text`, and announces that it did. */
export function copyButton(what, text) {
  const button = el("button", { type: "button", class: "small", "aria-label": `Copy ${what}` }, "Copy");
  button.addEventListener("click", async () => {
    const copied = await navigator.clipboard.writeText(text()).then(() => true, () => false);
    button.textContent = copied ? "Copied" : "Not allowed: select the text";
    announce(copied ? `${what} copied` : "the browser does not let the page copy; select the text");
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  return button;
}

/** Lets the user save a file. */
export function save(blob, name) {
  const address = URL.createObjectURL(blob);
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
