"""Runs inside Pyodide: pack a file by Zstandard, for static/unpacker.mjs.

ARGUMENTS: [source, target]. Equal input gives equal output, byte for byte.
"""

from compression import zstd

OPTIONS = {
    zstd.CompressionParameter.compression_level: 19,
    zstd.CompressionParameter.window_log: 24,
    zstd.CompressionParameter.checksum_flag: 1,
}


def pack(source: str, target: str) -> None:
    """Write `target`, the packed content of `source`."""
    with open(source, "rb") as plain, open(target, "wb") as packed:
        packed.write(zstd.compress(plain.read(), options=OPTIONS))


pack(*ARGUMENTS)  # noqa: F821 (given by run.mjs)
