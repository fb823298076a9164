// The workers: one that answers, and one in reserve, so that what is stopped costs no waiting.

const GRACE = 3000; // milliseconds beyond the limit, in which Python may still end by itself
const RESERVE_AFTER = 700; // milliseconds of rest before a worker is started in reserve
const LEAST_MEMORY = 4; // gigabytes of a device that holds two workers

class Slot {
  constructor(base) {
    // From a blob: such a worker stands under the Content-Security-Policy of this page.
    const program = new Blob([`import ${JSON.stringify(`${base}worker.js`)};`], {
      type: "text/javascript",
    });
    const address = URL.createObjectURL(program);
    this.worker = new Worker(address, { type: "module" });
    this.asked = false;
    this.listener = null;
    this.ready = new Promise((resolve, reject) => {
      this.worker.onmessage = ({ data }) => {
        const message = understood(data);
        if (message.kind === "ready") {
          URL.revokeObjectURL(address);
          resolve();
        } else if (message.kind === "broken") {
          reject(new Error(String(message.problem)));
          this.listener?.(message);
        } else this.listener?.(message);
      };
      this.worker.onerror = (event) => {
        event.preventDefault();
        reject(new Error(event.message || "the worker did not start"));
        this.listener?.({ kind: "broken", problem: event.message || "the worker has ended" });
      };
    });
    this.ready.catch(() => {});
    this.worker.postMessage({ base });
  }

  end() {
    this.listener = null;
    this.worker.terminate();
  }
}

// What a worker says may be said by the text that runs in it.
function understood(data) {
  try {
    const message = JSON.parse(data);
    return message && typeof message.kind === "string" ? message : { kind: "unknown" };
  } catch {
    return { kind: "unknown" };
  }
}

export class Engine {
  constructor(base) {
    this.base = base;
    this.current = new Slot(base);
    this.reserve = null;
  }

  get ready() {
    return this.current.ready;
  }

  get isBusy() {
    return this.current.asked;
  }

  // Ask a question; `listen` gets every message of the answer and of no other. A worker that is
  // busy is ended. With `afresh` it is ended anyway: nothing of one text reaches the next.
  async ask(question, listen, afresh = false) {
    if (this.current.asked || (afresh && this.current.used)) this.#replace();
    const slot = this.current;
    slot.asked = slot.used = true;
    clearTimeout(this.waiting);
    const finished = () => {
      clearTimeout(slot.timer);
      slot.asked = false;
      slot.listener = null;
      this.waiting = setTimeout(() => this.#fill(), RESERVE_AFTER);
    };
    slot.listener = (message) => {
      if (message.kind === "broken") {
        this.#replace();
        listen({ kind: "trouble", outcome: "failed", problem: message.problem });
        listen({ kind: "done" });
      } else {
        if (message.kind === "done") finished();
        listen(message);
      }
    };
    try {
      await slot.ready;
    } catch (error) {
      slot.listener?.({ kind: "broken", problem: String(error.message ?? error) });
      return;
    }
    if (slot !== this.current || !slot.asked) return;
    listen({ kind: "started" });
    slot.worker.postMessage({ question: JSON.stringify(question) });
    slot.timer = setTimeout(() => {
      this.#replace();
      listen({ kind: "trouble", outcome: "stopped", problem: `The limit of ${question.limit} s was over.` });
      listen({ kind: "done" });
    }, question.limit * 1000 + GRACE);
  }

  // End what is being done.
  stop() {
    if (this.current.asked) this.#replace();
  }

  #replace() {
    clearTimeout(this.current.timer);
    this.current.end();
    this.current = this.reserve ?? new Slot(this.base);
    this.reserve = null;
  }

  #fill() {
    if (this.reserve || this.isBusy || (navigator.deviceMemory ?? LEAST_MEMORY) < LEAST_MEMORY) return;
    this.reserve = new Slot(this.base);
    this.reserve.ready.catch(() => (this.reserve = null));
  }
}
