// The page: what is written is asked about, and what is answered is shown.
import { Checked } from "./checked.js";
import { Derived } from "./derived.js";
import { editor } from "./editor.js";
import { Engine } from "./engine.js";
import { Gallery } from "./gallery.js";
import { read, written } from "./link.js";
import { byId, copied, say, showTroubles } from "./page.js";
import { Tabs } from "./tabs.js";

byId("unserved").remove();
const BASE = new URL(".", location.href).href;
const PAUSE = 450; // milliseconds without a key before an edit is derived
const BACKWARD = "dx = gain*inv_std/N * (N*dy - dy.sum(0) - xhat*(dy*xhat).sum(0))\n";
const FIRST = "batch_norm";

const engine = new Engine(BASE);
const derived = new Derived();
const checked = new Checked();
let kept = false;
let troubles = [];
let begun = 0;
let answered = 0; // when the answer to the question stood on the page
let pause = 0;
let afresh = false; // the text is not an edit of the one before
let setting = false; // texts are being replaced by the page, and not by a person

const forward = editor(byId("forward"), { label: "The forward, in Python", onChange: edited, onRun: ask });
const backward = editor(byId("backward"), { label: "Your backward, as torch code", onChange: edited, onRun: ask });
const tabs = new Tabs(["derive", "check", "gallery"], turned);
const gallery = new Gallery((chosen) => {
  open({ text: chosen.text, name: chosen.name, backward: "", tab: "derive" });
  byId("tab-derive").focus();
});

// What is shown is of another text from the first key on.
function edited() {
  if (setting) return;
  clearTimeout(pause);
  byId("derived").classList.add("old");
  byId("checked").classList.add("old");
  say("Edited: what is shown is of the text before", "edited");
  pause = setTimeout(ask, PAUSE);
}

function turned(tab) {
  byId("bar").hidden = tab === "gallery";
  if (tab === "gallery") return;
  byId(`panel-${tab}`).prepend(byId("forward-column"));
  if (!setting) ask();
}

function state() {
  const kept = { v: 1, tab: tabs.chosen === "check" ? "check" : "derive", text: forward.text };
  if (byId("forwards").value) kept.name = byId("forwards").value;
  if (byId("second").checked) kept.order = 2;
  if (kept.tab === "check") {
    kept.backward = backward.text;
    kept.of = byId("of").value;
    kept.let = byId("let").value;
  }
  return kept;
}

// Show a state from a link: every field is taken for a text, and nothing more.
function open(state) {
  const text = (value) => (typeof value === "string" ? value : "");
  setting = true;
  afresh = true;
  forward.text = text(state.text);
  options(byId("forwards"), [text(state.name)], text(state.name));
  backward.text = text(state.backward);
  options(byId("of"), [text(state.of)], text(state.of));
  byId("let").value = text(state.let);
  byId("second").checked = state.order === 2;
  derived.clear();
  checked.clear();
  tabs.choose(state.tab === "check" ? "check" : "derive");
  setting = false;
  ask();
}

function options(select, values, chosen) {
  if (values.join() !== [...select.options].map((o) => o.value).join()) {
    select.replaceChildren(...values.map((value) => new Option(value, value)));
  }
  if (values.includes(chosen)) select.value = chosen;
}

function question() {
  const kept = state();
  const limit = Math.min(Math.max(Number(byId("limit").value) || 60, 1), 600);
  const asked = { ask: kept.tab, text: kept.text, name: kept.name ?? "", order: kept.order ?? 1, limit };
  if (kept.tab === "check") Object.assign(asked, { backward: kept.backward, of: kept.of, let: kept.let });
  return asked;
}

async function ask() {
  clearTimeout(pause);
  if (tabs.chosen === "gallery") return;
  const view = tabs.chosen === "check" ? checked : derived;
  const asked = question();
  troubles = [];
  answered = 0;
  view.begin(asked);
  byId("stop").hidden = false;
  say("Loading Python");
  const fresh = afresh;
  afresh = false;
  remember();
  await engine.ask(asked, (message) => heard(message, view), fresh);
}

// When the answer stood there, and when all that is told about it did.
function times() {
  const [answer, all] = [answered || performance.now(), performance.now()].map((t) => ((t - begun) / 1000).toFixed(1));
  return answer === all ? `in ${all} s` : `in ${answer} s; all is shown after ${all} s`;
}

function heard(message, view) {
  performance.mark(`answer-${message.kind}`, { detail: message.parts && Object.keys(message.parts) });
  if (message.kind === "started") {
    begun = performance.now(); // what Python takes to load is no part of the answer
    say("Reading");
  } else if (message.kind === "stage") say(sentence(message.what));
  else if (message.kind === "parts" && message.parts && typeof message.parts === "object") {
    known(message.parts);
    view.show(message.parts);
    if (message.parts.closed || message.parts.outcome) answered ||= performance.now();
  } else if (message.kind === "warning" || message.kind === "trouble") {
    troubles.push(message);
  } else if (message.kind === "done") {
    byId("stop").hidden = true;
    showTroubles(troubles, { forward, backward });
    const failed = troubles.find((trouble) => trouble.kind === "trouble");
    view.end(failed);
    say(failed ? toldOf(failed) : `${view.said} ${times()}`, failed ? "bad" : view.kind);
    keepOffline();
    document.documentElement.dataset.answered = String(Number(document.documentElement.dataset.answered ?? 0) + 1);
  }
}

const TOLD = {
  "not understood": "Not understood",
  unproved: "Not proved: nothing is shown",
  stopped: "Stopped",
  failed: "It went wrong",
};

const toldOf = ({ outcome, line }) => `${TOLD[outcome] ?? TOLD.failed}${line > 0 ? ": see the marked line" : ""}`;

// Which forwards and inputs there are, once the text has been read.
function known(parts) {
  if (!Array.isArray(parts.forwards)) return;
  options(byId("forwards"), parts.forwards.map(String), String(parts.name));
  byId("forwards-label").hidden = parts.forwards.length < 2;
  const inputs = parts.inputs.map(String);
  options(byId("of"), inputs, inputs.includes(byId("of").value) ? byId("of").value : inputs[0]);
}

const sentence = (words) => `${String(words).charAt(0).toUpperCase()}${String(words).slice(1)}`;

// The address holds what is shown: it may be reloaded, and cited.
async function remember() {
  const address = `#${await written(state())}`;
  history.replaceState(null, "", address);
}

byId("stop").onclick = () => {
  engine.stop();
  troubles.push({ kind: "trouble", outcome: "stopped", problem: "" });
  heard({ kind: "done" }, tabs.chosen === "check" ? checked : derived, performance.now());
};
for (const button of document.querySelectorAll("[data-open]")) {
  button.onclick = () => {
    const chosen = gallery.named(button.dataset.open);
    if (chosen) open({ text: chosen.text, name: chosen.name, tab: "derive" });
  };
}
byId("copy-link").onclick = async () => {
  await remember();
  copied(location.href, "The link");
};
for (const id of ["forwards", "second", "limit", "of", "let"]) byId(id).onchange = () => ask();
addEventListener("hashchange", async () => {
  const found = await read(location.hash.slice(1));
  if (found) open(found);
});

engine.ready.then(
  () => {
    document.documentElement.dataset.ready = String(Math.round(performance.now()));
  },
  (error) => say(`Python does not start here: ${error.message}`, "bad"),
);

// What was loaded is kept, so that the page works without a network from now on; not before the
// first answer, which is waited for.
async function keepOffline() {
  if (kept || !("serviceWorker" in navigator) || !isSecureContext) return;
  kept = true;
  try {
    await navigator.serviceWorker.register("service-worker.js");
    await navigator.serviceWorker.ready;
    document.documentElement.dataset.offline = "ready";
  } catch {
    // Without it the page is loaded again each time.
  }
}

const [found] = await Promise.all([read(location.hash.slice(1)), gallery.load(BASE)]);
open(found ?? { text: gallery.named(FIRST)?.text ?? "", backward: BACKWARD });
