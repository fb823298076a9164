// Starts Pyodide, imports gradform and all that it needs, and writes the memory down, so that a
// page begins where this ends:
//     node snapshot.js LIBRARY OUT
// LIBRARY is a folder of Python packages. OUT gets snapshot.bin.gz, and files.json.gz: the texts
// that may still be read, by their path.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { gzipSync } from "node:zlib";
import { loadPyodide } from "pyodide";
import { FOLDER } from "./place.js";

const [library, out] = process.argv.slice(2);

// Files that are read when they are not imported: forwards by their text, templates.
const READ = /^gradform\/derive\/math\/|\.jinja$/;

const started = `
import gc, json, sys
sys.path.insert(0, "${FOLDER}")
from gradform.codegen.playground import answer, gallery
shelf = {forward["called"]: forward["text"] for forward in gallery()}
def asked(**question):
    answer(json.dumps(question), lambda message: None)

# What is imported, compiled or filled at the first use is so already: with other forwards than
# those that anybody measures.
asked(ask="derive", text=shelf["softmax_nll"], order=2)
asked(ask="derive", text=shelf["layer_norm"])
asked(ask="check", text=shelf["tanh"], backward="dx = dy*(1 + y*y)")
loaded = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
del shelf, asked
gc.collect()
gc.freeze()  # what is here stays: it is not searched for garbage again and again
gc.set_threshold(20_000, 20, 20)
json.dumps(loaded)
`;

function* filesIn(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* filesIn(path);
    else yield path;
  }
}

const texts = new Map();
for (const path of filesIn(library)) {
  texts.set(relative(library, path), readFileSync(path, "utf8"));
}
const python = await loadPyodide({ _makeSnapshot: true, env: { PYTHONHASHSEED: "0" } });
for (const [name, text] of texts) {
  const path = `${FOLDER}/${name}`;
  python.FS.mkdirTree(dirname(path));
  python.FS.writeFile(path, text);
}
const loaded = new Set(JSON.parse(python.runPython(started)));
const left = [...texts].filter(([name]) => READ.test(name) || !loaded.has(`${FOLDER}/${name}`));
const memory = gzipSync(python.makeMemorySnapshot());
writeFileSync(join(out, "snapshot.bin.gz"), memory);
writeFileSync(join(out, "files.json.gz"), gzipSync(JSON.stringify(Object.fromEntries(left))));
console.log(
  `${texts.size} files, ${left.length} of them left; memory ${(memory.length / 1e6).toFixed(1)} MB, ` +
    createHash("sha256").update(memory).digest("hex").slice(0, 12),
);
