// Unpacks what Python starts from while it comes, and compiles its engine: a worker, so that the page has its own to do meanwhile; or
// imported by the page, where there can be no worker. The worker hears of packed bytes, { file, piece }, and of nothing more,
// { file }; it tells { file, result }, or { file, error } in words. It fetches nothing: in Firefox that waits for the page's thread.
//
// Before this the build writes
//   const DECODER = the WebAssembly of the npm package zstddec (Zstandard itself, compiled), in base64. The package's own script
//   takes a file only as a whole. Browsers themselves unpack only gzip, in which the engine is a fifth larger.

const STRUCT = 12; // bytes of a C struct { data, size, position }, each 4 wide

const IMPORTS = { env: { emscripten_notify_memory_growth() {} } };

/** What it can do, by its own names. */
const made = WebAssembly.instantiate(Uint8Array.from(atob(DECODER), (character) => character.charCodeAt(0)), IMPORTS)
  .then(({ instance }) => instance.exports);
made.catch(() => {}); // the files it is for tell of it

/** A stream that gives what was packed, piece by piece. */
function unpacking() {
  let zstd, context, input, output, room, size, missing;
  const struct = (at) => new Uint32Array(zstd.memory.buffer, at, 3);
  return new TransformStream({
    async start() {
      zstd = await made;
      context = zstd.ZSTD_createDCtx();
      size = zstd.ZSTD_DStreamOutSize();
      [input, output, room] = [STRUCT, STRUCT, size].map((bytes) => zstd.malloc(bytes));
    },
    transform(piece, controller) {
      const packed = zstd.malloc(piece.length);
      new Uint8Array(zstd.memory.buffer).set(piece, packed);
      struct(input).set([packed, piece.length, 0]);
      let length;
      do {
        struct(output).set([room, size, 0]);
        missing = zstd.ZSTD_decompressStream(context, output, input);
        if (missing < 0) throw new Error("what came is not Zstandard");
        length = struct(output)[2];
        if (length) controller.enqueue(new Uint8Array(zstd.memory.buffer, room, length).slice());
      } while (length === size || struct(input)[2] < piece.length);
      zstd.free(packed);
    },
    flush() {
      zstd.ZSTD_freeDCtx(context);
      [input, output, room].forEach((at) => zstd.free(at));
      if (missing) throw new Error("what came of Zstandard has no end");
    },
  });
}

/** What is made of a packed stream, by the name of its file. */
export const unpack = {
  async engine(packed) {
    return WebAssembly.compileStreaming(new Response(packed.pipeThrough(unpacking()), { headers: { "Content-Type": "application/wasm" } }));
  },
  async snapshot(packed) {
    return new Response(packed.pipeThrough(unpacking())).arrayBuffer();
  },
};

const GONE = { enqueue() {}, close() {} };
const arriving = {};

/** Make what is to be made of a file whose first piece has come, and tell. */
async function begin(file) {
  const packed = new ReadableStream({ start(controller) { arriving[file] = controller; }, cancel() { arriving[file] = GONE; } });
  try {
    const result = await unpack[file](packed);
    postMessage({ file, result }, result instanceof ArrayBuffer ? [result] : []);
  } catch (error) {
    postMessage({ file, error: error.message });
  }
}

if (!globalThis.document) {
  addEventListener("message", ({ data: { file, piece } }) => {
    if (!arriving[file]) begin(file);
    if (piece) arriving[file].enqueue(piece);
    else arriving[file].close();
  });
}
