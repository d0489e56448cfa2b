"use strict";
(() => {
  const STEP = 25;
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

  const chosen = (form) => [...form.querySelectorAll("select")].filter((select) => select.value !== "");
  const cellFilter = document.querySelector("form[data-for='t-cells']");
  cellFilter.hidden = false;
  cellFilter.addEventListener("submit", (event) => event.preventDefault());
  cellFilter.addEventListener("input", () => {
    for (const row of document.getElementById("t-cells").tBodies[0].rows) {
      row.hidden = !chosen(cellFilter).every((select) => row.dataset[select.name] === select.value);
    }
  });

  const form = document.querySelector("form[data-for='case-list']");
  if (!form) return;
  const list = document.getElementById("case-list");
  const more = document.getElementById("more");
  const all = [...list.children].map((element) => ({
    element,
    found: element.dataset.found.trim().split(" ").map((one) => /^(\d+)([hl])(\d+)$/.exec(one).slice(1)),
    text: null,
  }));
  let limit = STEP;
  const placeOf = (one, metric, direction) => Math.min(Infinity, ...one.found
    .filter(([number, way]) => (metric === "" || number === metric) && (direction === "" || way === direction[0]))
    .map(([, , place]) => Number(place)));
  const holds = (one, words) => {
    one.text ??= one.element.textContent.toLowerCase();
    return one.text.includes(words);
  };
  const show = () => {
    const { metric, direction } = form.elements;
    const words = form.elements.text.value.trim().toLowerCase();
    const columns = chosen(form).filter((select) => select !== metric && select !== direction);
    const places = new Map(all.map((one) => [one, placeOf(one, metric.value, direction.value)]));
    const matching = all.filter((one) => places.get(one) < Infinity
      && columns.every((select) => one.element.dataset[select.name] === select.value)
      && (words === "" || holds(one, words)));
    if (metric.value !== "") matching.sort((one, other) => places.get(one) - places.get(other));
    for (const one of all) one.element.hidden = true;
    matching.forEach((one, place) => { one.element.hidden = place >= limit; });
    list.append(...matching.map((one) => one.element));
    more.hidden = matching.length <= limit;
    document.getElementById("case-count").textContent = `${matching.length} of ${all.length} answers`
      + (matching.length > limit ? `, the first ${limit} shown` : "");
  };
  const restart = () => { limit = STEP; show(); };
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", restart);
  form.addEventListener("reset", () => setTimeout(restart));
  more.addEventListener("click", () => {
    const first = list.children[limit];
    limit += STEP;
    show();
    first.tabIndex = -1;
    first.focus();
  });
  addEventListener("beforeprint", () => { limit = Infinity; show(); });
  addEventListener("afterprint", restart);
  show();
})();
