// Code for the same scores in a shell and in Python.

import { SCORE } from "./api.js";
import { copyButton, el, visible } from "./dom.js";

const shellQuoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** Returns a curl command that repeats the request. It reads the token from a variable, and never contains it. */
export function curlCommand(request, withToken) {
  const lines = [
    `curl -s ${shellQuoted(`${location.origin}${SCORE}`)}`,
    "-H 'content-type: application/json'",
    ...(withToken ? ['-H "authorization: Bearer $GRADEWIRE_TOKEN"'] : []),
    `-d ${shellQuoted(JSON.stringify(request))}`,
  ];
  return lines.join(" \\\n  ");
}

/** Returns a program that asks the server over gRPC for the same metrics, by their identifiers. */
export function pythonProgram(request, provenance, withToken) {
  const items = request.items.map((item) => `    ${pythonValue(item)},`).join("\n");
  const lines = provenance.map((one) => `    ${JSON.stringify(one.line)},`).join("\n");
  return `${withToken ? "import os\n\n" : ""}from gradewire import Client

items = [
${items}
]
lines = [
${lines}
]
with Client("HOST:50051"${withToken ? ', token=os.environ["GRADEWIRE_TOKEN"]' : ""}) as client:
    for item in client.score(items, lines):
        print(item.id, {label: result.score for label, result in item.scores.items()})
`;
}

function pythonValue(item) {
  const given = Object.entries(item).filter(([, value]) => value !== "" && value !== undefined);
  return `{${given.map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`).join(", ")}}`;
}

/** Returns an element with both snippets, folded at first. */
export function snippets(request, provenance, withToken) {
  const shown = [
    ["curl", curlCommand(request, withToken)],
    ["Python", pythonProgram(request, provenance.filter((one) => one.line), withToken)],
  ];
  return el("section", { class: "card", "aria-label": "The same scores from a program" },
    el("h3", {}, "The same scores from a program"),
    shown.map(([name, text]) => el("details", {}, el("summary", {}, name),
      el("pre", { tabindex: "0", role: "region", "aria-label": `${name} snippet` }, el("code", {}, visible(text))), copyButton(`the ${name} snippet`, () => text))));
}
