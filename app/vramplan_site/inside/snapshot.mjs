// Make the snapshot that the page starts from, in Node: node snapshot.mjs JOB.json
// The job: pyodide (folder), start (zip), script, arguments, rest (file that the script writes), out (folder). Writes there:
//   rest.zip        what the script wrote
//   snapshot.plain  what differs in the low part, then Python's heap as it is
//   snapshot.json   head     Pyodide's own head of a snapshot, in base64
//                   low      bytes of what differs in the low part
//                   heap     where the heap goes, and how long it is
//                   checked  end of the part that is summed after the restoring, and the sum
// The low part: number of pieces, their places and lengths, then the pieces; all numbers are 32 bits wide.
import { readFile, writeFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";

const job = JSON.parse(await readFile(process.argv[2], "utf8"));
const { loadPyodide, version } = await import(pathToFileURL(`${job.pyodide}/pyodide.mjs`));
const { default: createModule } = await import(pathToFileURL(`${job.pyodide}/pyodide.asm.mjs`));
const { info } = JSON.parse(await readFile(`${job.pyodide}/pyodide-lock.json`, "utf8"));
const HEAD = 48; // bytes of Pyodide's head before its JSON
const PIECE = 64; // bytes that are compared at once

const options = (more) => ({
  indexURL: job.pyodide, stdLibURL: job.start, packageBaseUrl: job.pyodide,
  lockFileContents: { info: { version, ...info }, packages: {} },
  env: { PYTHONHASHSEED: "0" }, args: ["-X", "no_debug_ranges"], _sysExecutable: "./this.program", ...more,
});

/** The heap of a runtime in which Python has not started yet, in surroundings of our choice. */
async function untouched(head, surroundings) {
  let found;
  const taken = new Error("taken");
  const createPyodideModule = async (settings) => {
    found = (await createModule(settings)).HEAPU8.slice();
    throw taken;
  };
  await loadPyodide(options({ _loadSnapshot: head, createPyodideModule, ...surroundings })).catch((error) => { if (error !== taken) throw error; });
  return found;
}

/** The places where one of the others differs, joined into pieces [place, length]. */
function differing(snapshot, others, from, to) {
  const pieces = [];
  for (let at = from; at < to; at += PIECE) {
    const end = Math.min(at + PIECE, to);
    if (others.every((other) => Buffer.compare(snapshot.subarray(at, end), other.subarray(at, end)) === 0)) continue;
    const last = pieces.at(-1);
    if (last && last[0] + last[1] === at) last[1] += end - at;
    else pieces.push([at, end - at]);
  }
  return pieces;
}

/** The sum of 32-bit words, as static/snapshot.mjs makes it. */
function sum(words) {
  let total = 0;
  for (let at = 0; at < words.length; at++) total = (total + words[at]) | 0;
  return total;
}

async function main() {
  const pyodide = await loadPyodide(options({ _makeSnapshot: true }));
  const inner = pyodide._module;
  const globals = pyodide.toPy({ __name__: "__main__", ARGUMENTS: job.arguments });
  const zeroFreed = pyodide.runPython(await readFile(job.script, "utf8"), { globals, filename: "snapshot.py" });
  globals.destroy();
  await writeFile(`${job.out}/rest.zip`, pyodide.FS.readFile(job.rest));
  zeroFreed(inner.HEAPU32[inner._emscripten_get_sbrk_ptr() >> 2]);
  zeroFreed.destroy();
  const whole = pyodide.makeMemorySnapshot();
  const [, headLength, textLength] = new Uint32Array(whole.buffer, 0, 3);
  const { hiwireKeys, immortalKeys } = JSON.parse(new TextDecoder().decode(whole.subarray(HEAD, HEAD + textLength)));
  if (hiwireKeys.some(Boolean) || immortalKeys.length) throw new Error("a JavaScript object is held by a Python module; it cannot be in a snapshot");
  const head = whole.slice(0, headLength);
  const snapshot = whole.slice(headLength);
  new Uint32Array(snapshot.buffer)[(inner.__PyRuntime + inner.HEAP32[inner.__PyEM_EMSCRIPTEN_TRAMPOLINE_OFFSET >> 2]) >> 2] = 0; // the engine's own
  const end = inner.HEAPU32[inner._emscripten_get_sbrk_ptr() >> 2];
  const [stackEnd, stackNow, heapStart] = [inner._emscripten_stack_get_end(), inner._emscripten_stack_get_current(), inner._emscripten_stack_get_base()];

  const others = [ // which places depend on the surroundings shows in two that differ
    await untouched(head, {}),
    await untouched(head, {
      _sysExecutable: "/a/path/that/is/longer/program.mjs",
      env: { PYTHONHASHSEED: "0", HOME: "/a/place/with/a/name/of/another/length", LANG: "pt-BR", MORE: "x".repeat(3000) },
    }),
  ];
  const pieces = [...differing(snapshot, others, 0, stackEnd), ...differing(snapshot, others, stackNow, heapStart)];
  const parts = [new Uint8Array(Uint32Array.of(pieces.length, ...pieces.flat()).buffer), ...pieces.map(([at, length]) => snapshot.subarray(at, at + length))];
  const low = Buffer.concat(parts);

  await writeFile(`${job.out}/snapshot.plain`, Buffer.concat([low, snapshot.subarray(heapStart, end)]));
  await writeFile(`${job.out}/snapshot.json`, JSON.stringify({
    head: Buffer.from(head).toString("base64"),
    low: low.length,
    heap: { at: heapStart, length: end - heapStart },
    checked: { end: stackEnd, sum: sum(new Uint32Array(snapshot.buffer, snapshot.byteOffset, stackEnd >> 2)) },
  }));
}

main().then(() => process.exit(0), (error) => {
  console.error(String(error.message ?? error).slice(-2000));
  process.exit(1);
});
