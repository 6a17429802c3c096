// Put a snapshot of Python's heap into a runtime that has not started yet. It is made by app/vramplan_site/inside/snapshot.mjs,
// which says what is in it.

/** Where the runtime keeps the address of a function that it makes anew in every engine; zero in the snapshot. */
function trampoline(inner) {
  return (inner.__PyRuntime + inner.HEAP32[inner.__PyEM_EMSCRIPTEN_TRAMPOLINE_OFFSET >> 2]) >> 2;
}

/** Restore `content` (ArrayBuffer) into the runtime, or throw; after that it is of no use. The numbers are the manifest's. */
export function restore(inner, { low, heap, checked }, content) {
  if (content.byteLength !== low + heap.length) throw new Error("the snapshot has another length");
  const end = heap.at + heap.length;
  if (inner.HEAPU8.length < end && !inner._emscripten_resize_heap(end)) throw new Error("no room for the snapshot");

  const { HEAPU8, HEAP32, HEAPU32 } = inner;
  const own = HEAP32[trampoline(inner)];
  const [count] = new Uint32Array(content, 0, 1);
  const pieces = new Uint32Array(content, 4, 2 * count);
  let from = 4 + pieces.byteLength;
  for (let piece = 0; piece < pieces.length; piece += 2) {
    HEAPU8.set(new Uint8Array(content, from, pieces[piece + 1]), pieces[piece]);
    from += pieces[piece + 1];
  }
  HEAPU8.set(new Uint8Array(content, low), heap.at);
  HEAP32[trampoline(inner)] = 0;
  let sum = 0;
  for (let at = 0; at < checked.end >> 2; at++) sum = (sum + HEAPU32[at]) | 0;
  if (sum !== checked.sum) throw new Error("the snapshot is of another runtime");
  HEAP32[trampoline(inner)] = own;
}
