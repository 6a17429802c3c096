// Put a snapshot of Python's heap into a runtime that has not started yet. The file is made by
// app/vramplan_site/inside/snapshot.mjs, which says what is in it.

/** Unpack a Zstandard frame to an address, by the decoder that the runtime has. */
function unpack(inner, decoder, frame, at, length) {
  const found = inner._ZSTD_decompressDCtx(decoder, at, length, frame.at, frame.bytes);
  if (found !== length) throw new Error("the snapshot is damaged");
}

/** Where the runtime keeps the address of a function that it makes anew in every engine; zero in the snapshot. */
function trampoline(inner) {
  return (inner.__PyRuntime + inner.HEAP32[inner.__PyEM_EMSCRIPTEN_TRAMPOLINE_OFFSET >> 2]) >> 2;
}

/** Restore `bytes` (Uint8Array) into the runtime, or throw; after that it is of no use. told: the manifest's numbers. */
export function restore(inner, { low, heap, checked }, bytes) {
  if (bytes.length !== low.bytes + heap.bytes) throw new Error("the snapshot has another length");
  const aligned = (number) => (number + 15) & ~15;
  const room = inner._ZSTD_estimateDCtxSize();
  const packed = aligned(heap.at + heap.length);
  const decoder = aligned(packed + bytes.length);
  const changed = aligned(decoder + room);
  const end = changed + low.length;
  if (inner.HEAPU8.length < end && !inner._emscripten_resize_heap(end)) throw new Error("no room for the snapshot");

  inner.HEAPU8.set(bytes, packed);
  const made = inner._ZSTD_initStaticDCtx(decoder, room);
  unpack(inner, made, { at: packed, bytes: low.bytes }, changed, low.length);
  unpack(inner, made, { at: packed + low.bytes, bytes: heap.bytes }, heap.at, heap.length);

  const { HEAPU8, HEAP32, HEAPU32 } = inner;
  const own = HEAP32[trampoline(inner)];
  const [count] = HEAPU32.subarray(changed >> 2);
  const pieces = HEAPU32.slice((changed >> 2) + 1, (changed >> 2) + 1 + 2 * count);
  let from = changed + 4 * (1 + pieces.length);
  for (let piece = 0; piece < pieces.length; piece += 2) {
    HEAPU8.copyWithin(pieces[piece], from, from + pieces[piece + 1]);
    from += pieces[piece + 1];
  }
  HEAP32[trampoline(inner)] = 0;
  let sum = 0;
  for (let at = 0; at < checked.end >> 2; at++) sum = (sum + HEAPU32[at]) | 0;
  if (sum !== checked.sum) throw new Error("the snapshot is of another runtime");
  HEAP32[trampoline(inner)] = own;
  HEAPU8.fill(0, packed, end);
}
