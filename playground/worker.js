// Python in a worker: boots from the memory that snapshot.js wrote down, then answers questions.
//
// A text that is answered is a program that runs here, and it may be anybody's. So before the first
// one the worker loses everything by which it could reach further than its own memory: the network,
// what the browser keeps for this site, other workers. What it says is checked by the page.
import { loadPyodide } from "pyodide";
import { info } from "pyodide/pyodide-lock.json";
import { FOLDER } from "./place.js";

const REACHING = [
  "fetch", "XMLHttpRequest", "WebSocket", "WebSocketStream", "WebTransport", "EventSource",
  "importScripts", "Worker", "SharedWorker", "BroadcastChannel", "caches", "indexedDB",
  "cookieStore", "navigator", "Notification", "RTCPeerConnection", "FontFace", "fonts",
  "webkitRequestFileSystem", "webkitRequestFileSystemSync", "webkitResolveLocalFileSystemURL",
  "webkitResolveLocalFileSystemSyncURL", "storageBuckets", "trustedTypes", "scheduler",
];

function shut() {
  for (let scope = globalThis; scope; scope = Object.getPrototypeOf(scope)) {
    for (const name of REACHING) delete scope[name];
  }
  const open = REACHING.filter((name) => name in globalThis);
  if (open.length) throw new Error(`cannot be shut: ${open.join(", ")}`);
}

async function unpacked(address) {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${address}: ${response.status}`);
  // A host may have unpacked it on the way, as it does with what it calls gzip.
  const bytes = new Uint8Array(await response.arrayBuffer());
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes;
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function boot(base) {
  const memory = unpacked(`${base}snapshot.bin.gz`);
  const files = unpacked(`${base}files.json.gz`);
  const { default: create } = await import(`${base}pyodide.asm.js`);
  const python = await loadPyodide({
    indexURL: base,
    lockFileContents: { info, packages: {} },
    env: { PYTHONHASHSEED: "0" },
    _loadSnapshot: memory,
    async createPyodideModule(settings) {
      const module = await create(settings);
      module.growMemory((await memory).length); // else what was written down does not fit
      return module;
    },
  });
  const made = new Set();
  for (const [name, text] of Object.entries(JSON.parse(new TextDecoder().decode(await files)))) {
    const path = `${FOLDER}/${name}`;
    const folder = path.slice(0, path.lastIndexOf("/"));
    if (!made.has(folder)) python.FS.mkdirTree(folder);
    made.add(folder);
    python.FS.writeFile(path, text);
  }
  return python.globals.get("answer");
}

let answer;
onmessage = async ({ data }) => {
  try {
    if (data.base) {
      answer = await boot(data.base);
      shut();
      postMessage('{"kind": "ready"}');
    } else {
      answer(data.question, (message) => postMessage(message));
    }
  } catch (error) {
    postMessage(JSON.stringify({ kind: "broken", problem: String(error) }));
  }
};
