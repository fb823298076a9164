// The tab Derive: what was derived, piece by piece.
import { clean } from "./clean.js";
import { coloured } from "./editor.js";
import { byId, copied, downloaded, made } from "./page.js";

export class Derived {
  constructor() {
    this.parts = {};
    this.opened = new Set();
    byId("copy-latex").onclick = () => copied(this.parts.latex, "The closed form in LaTeX");
    byId("copy-torch").onclick = () => copied(this.parts.torch, "The module");
    byId("copy-markdown").onclick = () => copied(this.parts.markdown, "The derivation in Markdown");
    byId("download").onclick = () => downloaded(this.parts.file, this.parts.torch);
    this.#enable();
  }

  get said() {
    return "Derived and proved";
  }

  get kind() {
    return "good";
  }

  clear() {
    this.parts = {};
    byId("derived-body").hidden = true;
    byId("derived-empty").hidden = false;
  }

  begin() {
    this.fresh = {};
    byId("derived").classList.add("old");
  }

  // What is shown is of one text: nothing of the one before stays beside it.
  show(parts) {
    Object.assign(this.fresh, parts);
    if (!this.fresh.closed) return;
    this.parts = { ...this.fresh };
    byId("derived").classList.remove("old");
    byId("derived-empty").hidden = true;
    byId("derived-body").hidden = false;
    if (parts.closed) this.#closed(parts);
    if (parts.closed || "torch" in parts) this.#code();
    if (parts.sections) this.#steps(parts);
    if (parts.second !== undefined) {
      byId("second-proof").hidden = !parts.second;
      byId("second-proof").textContent = String(parts.second);
    }
    this.#enable();
  }

  end(failed) {
    if (failed && failed.outcome !== "stopped") this.clear();
    else byId("derived").classList.remove("old");
    this.#enable();
  }

  #closed({ closed, proof, every_size, note, said }) {
    byId("closed").replaceChildren(clean(closed));
    const mark = made("strong", "chip", every_size ? "proved for every size" : "proved for small sizes");
    byId("proof").replaceChildren(mark, ` ${proof}${note ? ` ${note}.` : ""}`);
    byId("not-run").textContent = String(said);
  }

  #code() {
    const { torch = "", backward = "", refused = "", saved = [], costs = [] } = this.parts;
    byId("backward-lines").replaceChildren(coloured(String(refused || backward)));
    byId("module").replaceChildren(coloured(String(torch)));
    const rows = [["saved for the backward", saved.join(", ") || "nothing"], ...costs];
    byId("costs").replaceChildren(
      ...(torch ? rows : []).flatMap(([what, value]) => [made("dt", "", String(what)), made("dd", "", String(value))]),
    );
  }

  #steps({ picture, sections }) {
    if (picture !== undefined) byId("picture").replaceChildren(clean(picture));
    const shown = byId("sections");
    for (const part of shown.children) {
      if (part.open) this.opened.add(part.dataset.title);
      else this.opened.delete(part.dataset.title);
    }
    const parts = sections.map(([title, html]) => {
      const part = made("details", "part");
      part.dataset.title = title;
      part.open = this.opened.has(title);
      const summary = made("summary");
      summary.append(made("h3", "", String(title)));
      const content = made("div", "content derivation-page");
      content.append(clean(html));
      part.append(summary, content);
      return part;
    });
    shown.replaceChildren(...parts);
  }

  #enable() {
    byId("copy-latex").disabled = !this.parts.latex;
    byId("copy-torch").disabled = byId("download").disabled = !this.parts.torch;
    byId("copy-markdown").disabled = !this.parts.markdown;
  }
}
