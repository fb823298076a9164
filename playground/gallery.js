// The tab Gallery: every forward, which opens in the editor.
import { byId, made } from "./page.js";

export class Gallery {
  constructor(opened) {
    Object.assign(this, { opened, forwards: [] });
    byId("find").oninput = () => this.#show();
  }

  async load(base) {
    const response = await fetch(`${base}gallery.json`);
    this.forwards = response.ok ? await response.json() : [];
    this.#show();
  }

  named(name) {
    return this.forwards.find((forward) => forward.called === name);
  }

  #show() {
    const wanted = byId("find").value.trim().toLowerCase();
    const has = (text) => text.toLowerCase().includes(wanted);
    const byName = this.forwards.filter((f) => has(f.called) || has(f.name));
    const byWords = this.forwards.filter((f) => !byName.includes(f) && has(f.about));
    const shown = [...byName, ...byWords];
    byId("shelf").replaceChildren(...shown.map((forward) => this.#entry(forward)));
    byId("found").textContent = `${shown.length} of ${this.forwards.length}`;
  }

  #entry(forward) {
    const item = made("li");
    const button = made("button", "open", forward.called);
    button.type = "button";
    button.onclick = () => this.opened(forward);
    item.append(button, made("p", "", forward.about));
    return item;
  }
}
