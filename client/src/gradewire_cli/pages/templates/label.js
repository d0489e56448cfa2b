(() => {
  const element = (id) => document.getElementById(id);
  const fixed = [...document.querySelectorAll("button[data-key]")];
  const flags = fixed.filter((each) => each.dataset.flag);
  const classes = element("error-classes").querySelector("div");
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
  const showFlags = (next) => {
    for (const { name, isSet } of next.flags) {
      flags.find((each) => each.dataset.flag === name).setAttribute("aria-pressed", String(isSet));
    }
    const reasons = next.flags.filter(({ isSet, reason }) => isSet && reason && !next.areFlagsStored);
    put("reasons", reasons.map(({ name, reason }) => `${name} is proposed, because ${reason}.`).join(" "));
  };
  const showError = ({ error }) => {
    element("error-classes").hidden = !error;
    classes.replaceChildren(...(error?.classes ?? []).map(({ name, text }, place) => {
      const button = document.createElement("button");
      const key = document.createElement("kbd");
      key.textContent = place + 1;
      Object.assign(button, { type: "button", title: text });
      Object.assign(button.dataset, { errorClass: name, key: place + 1 });
      button.setAttribute("aria-pressed", String(error.given === name));
      button.append(`${name}: ${text} `, key);
      button.addEventListener("click", () => act(button));
      return button;
    }));
    element("error-title").textContent = error
      ? `The metric called this answer ${error.calledRight ? "right" : "wrong"}. What misled it? (S: none of these)`
      : "";
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
    showFlags(next);
    showError(next);
    for (const button of fixed.filter((each) => each.dataset.label)) {
      button.setAttribute("aria-pressed", String(next.label === Number(button.dataset.label)));
    }
    element("back").disabled = !seen.length;
    element("skip").disabled = next.next === null;
    element("clear").disabled = next.label === null;
    const uncertain = next.uncertain ? ` (${next.uncertainLabelled} of the ${next.uncertain} uncertain ones)` : "";
    element("progress").textContent = next.labelled === next.total
      ? `All ${next.total} rows are labelled.`
      : `${next.labelled} of ${next.total} rows are labelled${uncertain}${next.flagged ? `, and ${next.flagged} flagged` : ""}.`;
    element("agreement").textContent = agreementOf(next.agreement);
    document.body.dataset.position = next.position;
    document.body.dataset.labelled = next.labelled;
    document.body.dataset.flagged = next.flagged;
  };
  const request = async (address, options) => {
    const response = await fetch(address, { cache: "no-store", ...options });
    if (!response.ok) throw new Error(await response.text());
    return response.json();
  };
  const load = (position) => request(position === null ? "state" : `state?at=${position}`);
  const store = (given) => request("label", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ position: state.position, ...given }),
  });
  const setFlags = (changed) => flags
    .filter((each) => (each.getAttribute("aria-pressed") === "true") !== (each === changed))
    .map((each) => each.dataset.flag);
  // Proposed flags that the annotator leaves set are stored with the label.
  const proposed = () => (state.areFlagsStored || !setFlags().length ? {} : { flags: setFlags() });
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
    if (button.id === "skip") {
      return goOn("flags" in proposed() ? await store(proposed()) : state);
    }
    if (button.id === "clear") return store({ label: null });
    if (button.dataset.flag) return store({ flags: setFlags(button) });
    if (button.dataset.errorClass) return goOn(await store({ errorClass: button.dataset.errorClass }));
    const stored = await store({ label: Number(button.dataset.label), ...proposed() });
    // The metric erred: its class is asked for on the same row.
    return stored.error && !stored.error.given ? stored : goOn(stored);
  });

  for (const button of fixed) button.addEventListener("click", () => act(button));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    // Where classes are shown, digits choose among them.
    const button = [...classes.children, ...fixed].find((each) => each.dataset.key.split(" ").includes(event.key.length === 1 ? event.key.toLowerCase() : event.key));
    if (!button || button.disabled) return;
    event.preventDefault();
    act(button);
  });
  // Another annotator may have stored labels meanwhile.
  addEventListener("focus", () => { if (state) step(() => load(state.position)); });
  step(() => load(null));
})();
