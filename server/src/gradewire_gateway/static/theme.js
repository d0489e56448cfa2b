// Light and dark: what the system says, until the switch says otherwise.

import { byId } from "./dom.js";

const KEY = "gradewire-theme";
const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");

function isDark() {
  return (root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
}

/** Makes the switch work. */
export function startTheme() {
  const button = byId("theme");
  const named = () => { button.textContent = isDark() ? "Light colours" : "Dark colours"; };
  const kept = localStorage.getItem(KEY);
  if (kept === "light" || kept === "dark") root.dataset.theme = kept;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    localStorage.setItem(KEY, root.dataset.theme);
    named();
  });
  system.addEventListener("change", named);
  named();
}
