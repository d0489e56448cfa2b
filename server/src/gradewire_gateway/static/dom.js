// Makes elements. Texts become text nodes and nothing else, so no answer can be markup.

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

/** An element of HTML: `el("p", {class: "note"}, "text", …)`; `onclick` and its kin are listeners. */
export function el(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** An element of SVG. */
export function svg(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

/** The element with an id, which the page has. */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found;
}

/** Says a sentence to those who do not see the page, when they have time. */
export function announce(text) {
  const region = byId("announcer");
  region.textContent = "";
  setTimeout(() => { region.textContent = text; }, 50);
}

// Controls, and format characters that hide or turn text; joiners stay, for scripts and emoji need them.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]|\p{Surrogate}/gu;

/** The text with every unseen character written out, such as "[U+202E]". */
export function visible(text) {
  return text.replace(UNSEEN, (found) => `[U+${found.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}]`);
}

/** A text of somebody else: isolated, so that its direction turns nothing around it. */
export function foreign(text, attributes) {
  return el("bdi", attributes, visible(text));
}

/** A button that copies what `text` gives, and says so. */
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

/** Offers a file to be saved. */
export function save(blob, name) {
  const address = URL.createObjectURL(blob);
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
