// The tab Check: the verdict on every line of a backward.
import { byId, made } from "./page.js";

const WORDS = {
  right: "Right",
  wrong: "Wrong",
  undecided: "Neither proved nor refuted",
  narrower: "Right on a part of the data",
};

export class Checked {
  get said() {
    return WORDS[this.outcome] ?? "Checked";
  }

  get kind() {
    return { right: "good", wrong: "bad" }[this.outcome] ?? "doubt";
  }

  clear() {
    byId("verdict").hidden = true;
  }

  begin() {
    byId("checked").classList.add("old");
  }

  show(parts) {
    if (!parts.outcome && !parts.verdict) return;
    byId("checked").classList.remove("old");
    byId("verdict").hidden = false;
    if (parts.outcome) {
      this.outcome = parts.outcome;
      byId("outcome").textContent = this.said;
      byId("outcome").dataset.outcome = String(parts.outcome);
      byId("lines").replaceChildren(...parts.lines.map(line));
      byId("report").textContent = "";
    }
    if (parts.verdict) byId("report").textContent = String(parts.verdict);
    byId("report").hidden = !parts.verdict;
  }

  end(failed) {
    if (failed && failed.outcome !== "stopped") this.clear();
    byId("checked").classList.remove("old");
  }
}

function line({ name, line, outcome, inherits }) {
  const item = made("li", `verdict ${WORDS[outcome] ? outcome : ""}`);
  item.append(made("span", "chip", inherits && outcome === "right" ? "follows" : String(outcome)));
  item.append(made("code", "", String(name)), made("span", "line-number", `line ${Number(line)}`));
  return item;
}
