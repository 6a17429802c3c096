"""What hosts are told about the files of dist/: a header file for Netlify and Cloudflare Pages, and one that nginx includes."""

from pathlib import Path

from vramplan_site.headers import ASKED_ANEW, FIXED_NAME, KEPT_FOR_GOOD, caching, for_every_file

NETLIFY, NGINX = "_headers", "nginx.conf"
"""Files in dist/. Netlify and Cloudflare Pages read theirs where it lies; the other one is included, see README.md."""

KINDS = {
    "text/html": "html", "text/css": "css", "text/javascript": "mjs", "application/json": "json", "image/svg+xml": "svg", "image/png": "png",
    "font/woff2": "woff2", "application/wasm": "wasm", "application/zip": "zip whl", "text/plain": "txt",
}
"""Endings of names by their type; anything else is bytes."""

ASKED_FOR = (".html", ".mjs", ".js")
"""How the paths end of what a browser asks for anew at every visit, unless they are kept for good: pages, and scripts with a name for good."""

PACKED = ("text/css", "text/javascript", "application/json", "image/svg+xml", "text/plain")
"""What a host gains by compressing, beside HTML; all else that is large comes compressed."""


def write(dist: Path, hub: str) -> None:
    """Write both files. hub: the origin that the page may fetch models from; empty for none."""
    names = sorted(file.relative_to(dist).as_posix() for file in dist.rglob("*") if file.is_file())
    (dist / NETLIFY).write_text(netlify([f"/{name}" for name in names], hub), "utf-8")
    (dist / NGINX).write_text(nginx(hub), "utf-8")


def netlify(paths: list[str], hub: str) -> str:
    """A rule for every file, and one for each that is kept for good or must not be: these hosts join what several rules say of one header."""
    kept = [path for path in paths if caching(path) == KEPT_FOR_GOOD]
    anew = ["/", *(path for path in paths if path.endswith(ASKED_FOR) and path not in kept)]
    rules = {"/*": for_every_file(hub), **{path: {"Cache-Control": caching(path)} for path in (*anew, *kept)}}
    return "".join(f"{path}\n" + "".join(f"  {name}: {value}\n" for name, value in headers.items()) for path, headers in rules.items())


def nginx(hub: str) -> str:
    """What a `location` that shows dist/ includes."""
    lines = [
        "# For the location that shows this folder, such as",
        "#   location /docs/vram/ { alias /srv/vramplan/; include /srv/vramplan/nginx.conf; }",
        "index index.html;",
        f"types {{ {' '.join(f'{kind} {endings};' for kind, endings in KINDS.items())} }}",
        "default_type application/octet-stream;",
        "charset utf-8;",
        f"charset_types {' '.join(kind for kind in KINDS if kind.startswith('text/') and kind != 'text/html')};",
        "gzip on;",
        f"gzip_types {' '.join(PACKED)};",
        "gzip_vary on;",
        f'set $vramplan_cache "{ASKED_ANEW}";',
        f'if ($uri ~ "{FIXED_NAME.pattern}") {{ set $vramplan_cache "{KEPT_FOR_GOOD}"; }}',
        "add_header Cache-Control $vramplan_cache;",
        *(f'add_header {name} "{value}" always;' for name, value in for_every_file(hub).items()),
    ]
    return "\n".join(lines) + "\n"
