"use strict";
(() => {
  const STEP = 25;
  const chosen = (form) => [...form.querySelectorAll("select")].filter((select) => select.value !== "");
  const cellFilter = document.querySelector("form[data-for='t-cells']");
  if (cellFilter) {
    cellFilter.hidden = false;
    cellFilter.addEventListener("submit", (event) => event.preventDefault());
    cellFilter.addEventListener("input", () => {
      for (const row of document.getElementById("t-cells").tBodies[0].rows) {
        row.hidden = !chosen(cellFilter).every((select) => row.dataset[select.name] === select.value);
      }
    });
  }

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
