"use strict";
(() => {
  const root = document.documentElement;

  const theme = document.getElementById("theme");
  const isDark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const nameTheme = () => { theme.textContent = isDark() ? "Light colours" : "Dark colours"; };
  theme.hidden = false;
  theme.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; nameTheme(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", nameTheme);
  nameTheme();

  const compare = (one, other, numeric, sign) => {
    if (one === "" || other === "") return (one === "") - (other === "");
    return sign * (numeric ? Number(one) - Number(other) : one.localeCompare(other));
  };
  const sortBy = (table, column) => {
    const heads = [...table.tHead.rows[0].cells];
    const numeric = heads[column].classList.contains("n");
    const before = heads[column].getAttribute("aria-sort");
    const direction = before ? (before === "ascending" ? "descending" : "ascending") : (numeric ? "descending" : "ascending");
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    heads[column].setAttribute("aria-sort", direction);
    const sign = direction === "ascending" ? 1 : -1;
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => compare(a.cells[column].dataset.o, b.cells[column].dataset.o, numeric, sign));
    table.tBodies[0].append(...rows);
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      button.addEventListener("click", () => sortBy(table, column));
      head.replaceChildren(button);
    });
  }
})();
