// Starts the page: checks the token, loads the server's catalog and shows a view.

import { get, signedIn, useToken } from "./api.js";
import { Catalog } from "./catalog.js";
import { Chooser } from "./chooser.js";
import { announce, byId } from "./dom.js";
import { FileView } from "./file-view.js";
import { LiveView } from "./live-view.js";
import { ScoreView } from "./score-view.js";
import { startTheme } from "./theme.js";

const VIEWS = ["score", "file", "live"];
const REFUSALS = {
  needed: "This server requires a token. Ask the server's operator for one.",
  unknown: "The server does not know this token (401): the token is misspelt or no longer valid.",
};
// Characters that a header may contain. For others, browsers throw the same error as for a server that is down.
const TOKEN = /^[\x20-\x7e]+$/;
let live = null;
let entering = false;

function showView() {
  const asked = location.hash.slice(1);
  const view = VIEWS.includes(asked) ? asked : "score";
  for (const name of VIEWS) byId(`view-${name}`).hidden = name !== view;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const place = document.querySelector(`.metrics-place[data-for="${view}"]`);
  byId("metrics").hidden = !place;
  place?.append(byId("metrics"));
  document.title = `${view[0].toUpperCase()}${view.slice(1)} – gradewire`;
  live?.show(view === "live");
}

function askForToken(why) {
  byId("work").hidden = true;
  byId("metrics").hidden = true;
  byId("sign-out").hidden = true;
  byId("sign-in").hidden = false;
  byId("sign-in-why").textContent = REFUSALS.needed;
  byId("sign-in-error").textContent = why;
  byId("server").textContent = "not signed in";
  byId("token").value = "";
  byId("token").focus();
}

async function enter() {
  if (entering) return;  // pressing Enter twice must open only one page
  entering = true;
  try {
    await look();
  } finally {
    entering = false;
  }
}

async function look() {
  const trouble = byId("trouble");
  trouble.hidden = true;
  let access;
  try {
    access = await get("/page/access");
  } catch (error) {
    byId("server").textContent = "no server";
    trouble.hidden = false;
    trouble.textContent = `The page cannot reach the server: ${error.said ?? error.message} Reload the page to try again.`;
    return;
  }
  if (access.token === "needed" || access.token === "unknown") {
    useToken("", false);
    askForToken(access.token === "unknown" ? REFUSALS.unknown : "");
    return;
  }
  byId("sign-in").hidden = true;
  byId("sign-out").hidden = !signedIn();
  await open(access);
}

async function open(access) {
  try {
    const catalog = await Catalog.load();
    byId("server").textContent = `gradewire ${catalog.version} at ${location.host}`;
    const chooser = new Chooser(catalog);
    new ScoreView(chooser);
    new FileView(chooser, access);
    live = new LiveView(access);
  } catch (error) {
    byId("trouble").hidden = false;
    byId("trouble").textContent = `The page cannot load the server's metrics and models: ${error.said ?? error.message}`;
    return;
  }
  if (access.scoring) {
    byId("trouble").hidden = false;
    byId("trouble").textContent = `This token cannot score (403): ${access.scoring}`;
  }
  byId("work").hidden = false;
  byId("views").hidden = false;
  showView();
  announce("ready");
}

startTheme();
byId("sign-in-form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (entering) return;
  const given = byId("token").value.trim();
  if (!TOKEN.test(given)) {
    askForToken(REFUSALS.unknown);
    return;
  }
  useToken(given, byId("keep-token").checked);
  enter();
});
// Reloading the page removes the last user's data from it.
byId("sign-out").addEventListener("click", () => { useToken("", false); location.reload(); });
window.addEventListener("hashchange", () => { showView(); byId("main").focus(); });
byId("metrics").hidden = true;
enter();
