// What several parts of the page use.

export const byId = (id) => document.getElementById(id);

export function made(tag, classes = "", text = "") {
  const element = document.createElement(tag);
  if (classes) element.className = classes;
  if (text) element.textContent = text;
  return element;
}

const SELDOM = 4000; // milliseconds between two stages that are read out
let announced = 0;

// The one line that says what is going on. Who listens to it hears what stands, and of what passes
// something now and then.
export function say(words, kind = "busy") {
  const status = byId("status");
  if (status.textContent !== words) status.textContent = words;
  status.dataset.kind = kind;
  if (kind === "busy" && performance.now() < announced + SELDOM) return;
  announced = performance.now();
  byId("announced").textContent = words;
}

export async function copied(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    say(`${what} is copied`, "good");
  } catch {
    say("The browser does not let this page copy", "bad");
  }
}

export function downloaded(name, text) {
  const link = made("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/x-python" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// What is wrong, at its line and below the editor, and in view: a long text may reach further than
// the window.
export function showTroubles(troubles, editors) {
  for (const [where, editor] of Object.entries(editors)) {
    const own = troubles.filter((t) => (t.where ?? "forward") === where && t.problem);
    const severity = (trouble) => (trouble.kind === "warning" ? "warning" : "error");
    const placed = own.filter((trouble) => trouble.line > 0);
    editor.mark(placed.map((t) => ({ line: t.line, severity: severity(t), message: words(t) })));
    const list = byId(`${where}-troubles`);
    list.replaceChildren(...own.map((trouble) => told(trouble, severity(trouble))));
    list.hidden = !own.length;
  }
  document.querySelector(".troubles .error")?.scrollIntoView({ block: "nearest" });
}

const words = (trouble) => [trouble.problem, trouble.remedy].filter(Boolean).join("\n");

function told(trouble, severity) {
  const item = made("li", severity);
  if (trouble.line > 0) item.append(made("span", "line-number", `line ${trouble.line}`));
  item.append(made("span", "problem", String(trouble.problem)));
  if (trouble.remedy) item.append(made("span", "remedy", String(trouble.remedy)));
  return item;
}
