// A worker that unpacks and compiles Python's engine, while the page has its own to do. It hears of the packed bytes, piece by
// piece, and last of nothing; it tells { module }, or { error } in words.

let pieces;
const packed = new ReadableStream({ start(controller) { pieces = controller; } });
addEventListener("message", ({ data }) => (data ? pieces.enqueue(data) : pieces.close()));

try {
  const wasm = packed.pipeThrough(new DecompressionStream("gzip"));
  postMessage({ module: await WebAssembly.compileStreaming(new Response(wasm, { headers: { "Content-Type": "application/wasm" } })) });
} catch (error) {
  postMessage({ error: error.message });
}
close();
