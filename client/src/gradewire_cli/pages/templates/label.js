(() => {
  const element = (id) => document.getElementById(id);
  const buttons = [...document.querySelectorAll("button[data-key]")];
  const seen = [];
  let state = null;
  let isBusy = false;

  const put = (id, text) => {
    const shown = element(id);
    shown.textContent = text;
    shown.hidden = !text;
    if (shown.previousElementSibling?.tagName === "DT") shown.previousElementSibling.hidden = !text;
  };
  const picture = ({ name, source, note }) => {
    const figure = document.createElement("figure");
    figure.className = "picture";
    if (source) {
      const image = document.createElement("img");
      image.src = source;
      image.alt = name;
      figure.append(image);
    }
    const caption = document.createElement("figcaption");
    caption.textContent = note ? `${name} (${note})` : name;
    figure.append(caption);
    return figure;
  };
  const agreementOf = ({ items, alpha, pairs }) => {
    if (!items) return "No row has labels by two annotators yet.";
    const kappas = pairs.map(({ names, items: both, kappa }) => `Cohen's κ of ${names.join(" and ")} ${kappa} (${both} rows)`);
    return [`Krippendorff's α ${alpha} (${items} rows)`, ...kappas].join("; ");
  };
  const show = (next) => {
    state = next;
    const { row } = next;
    put("row-id", `Row ${next.position + 1} of ${next.total}, id ${row.id}`);
    put("question", row.question);
    put("caption", row.caption);
    put("prediction", row.prediction);
    element("pictures").replaceChildren(...row.pictures.map(picture));
    element("references").replaceChildren(...row.references.map((text) => {
      const entry = document.createElement("li");
      entry.dir = "auto";
      entry.textContent = text;
      return entry;
    }));
    for (const button of buttons.filter((each) => each.dataset.label)) {
      button.setAttribute("aria-pressed", String(next.label === Number(button.dataset.label)));
    }
    element("back").disabled = !seen.length;
    element("skip").disabled = next.next === null;
    element("clear").disabled = next.label === null;
    const uncertain = next.uncertain ? ` (${next.uncertainLabelled} of the ${next.uncertain} uncertain ones)` : "";
    element("progress").textContent = next.labelled === next.total
      ? `All ${next.total} rows are labelled.`
      : `${next.labelled} of ${next.total} rows are labelled${uncertain}.`;
    element("agreement").textContent = agreementOf(next.agreement);
    document.body.dataset.position = next.position;
    document.body.dataset.labelled = next.labelled;
  };
  const request = async (address, options) => {
    const response = await fetch(address, { cache: "no-store", ...options });
    if (!response.ok) throw new Error(await response.text());
    return response.json();
  };
  const load = (position) => request(position === null ? "state" : `state?at=${position}`);
  const store = (label) => request("label", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ position: state.position, label }),
  });
  // One step at a time: a key that is pressed before the last label is stored does nothing.
  const step = async (work) => {
    if (isBusy) return;
    isBusy = true;
    document.body.setAttribute("aria-busy", "true");
    try {
      show(await work());
      put("error", "");
    } catch (error) {
      put("error", error instanceof TypeError ? "gradewire label does not answer. Start it again, and open its new address." : error.message);
    } finally {
      isBusy = false;
      document.body.removeAttribute("aria-busy");
    }
  };
  const goOn = (after) => {
    if (after.next === null) return after;
    seen.push(after.position);
    return load(after.next);
  };
  const act = (button) => step(async () => {
    if (button.id === "back") return load(seen.pop());
    if (button.id === "skip") return goOn(state);
    if (button.id === "clear") return store(null);
    return goOn(await store(Number(button.dataset.label)));
  });

  for (const button of buttons) button.addEventListener("click", () => act(button));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    const button = buttons.find((each) => each.dataset.key.split(" ").includes(event.key.length === 1 ? event.key.toLowerCase() : event.key));
    if (!button || button.disabled) return;
    event.preventDefault();
    act(button);
  });
  // Another annotator may have stored labels meanwhile.
  addEventListener("focus", () => { if (state) step(() => load(state.position)); });
  step(() => load(null));
})();
