// Tabs: chosen by a click or by the arrow keys, as the ARIA practices have it.
import { byId } from "./page.js";

export class Tabs {
  constructor(names, turned) {
    Object.assign(this, { names, turned, chosen: names[0] });
    for (const name of names) {
      const tab = byId(`tab-${name}`);
      tab.onclick = () => this.choose(name);
      tab.onkeydown = (event) => this.#key(event, name);
    }
  }

  choose(name) {
    this.chosen = name;
    for (const other of this.names) {
      const tab = byId(`tab-${other}`);
      tab.setAttribute("aria-selected", String(other === name));
      tab.tabIndex = other === name ? 0 : -1;
      byId(`panel-${other}`).hidden = other !== name;
    }
    this.turned(name);
  }

  #key(event, name) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const count = this.names.length;
    const place = this.names.indexOf(name);
    const next = { Home: 0, End: count - 1 }[event.key] ?? (step && (place + step + count) % count);
    if (next === undefined) return;
    event.preventDefault();
    this.choose(this.names[next]);
    byId(`tab-${this.names[next]}`).focus();
  }
}
