// The light and the dark theme: the system's choice, until the user changes it.

import { byId } from "./dom.js";

const KEY = "gradewire-theme";
const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");

function isDark() {
  return (root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
}

/** Applies the saved theme, and starts the button that changes it. */
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
