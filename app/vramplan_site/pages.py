"""Writes what a visitor opens: index.html with every number already in it, and the JSON Schemas."""

import json
import re
from pathlib import Path

from vramplan.accountings import estimate
from vramplan.catalogue import defaults
from vramplan.calculation import EXPLAINED
from vramplan.compare import counted_by
from vramplan.documents import DOCUMENTS, ProblemDocument
from vramplan.fields import applying
from vramplan.language import ENGLISH, LANGUAGES, TAGS
from vramplan.levers import lockable
from vramplan.settings import Settings
from vramplan.view import USUAL_PANELS
from vramplan_site import evidence, explain
from vramplan_site.headers import policy
from vramplan_site.toolchain import ROOT
from vramplan_site.translated import DOCTYPE, translated
from pyscript import answer, panels
from pyscript.tree import Child, Element, h, markup
from pyscript.views.form import form, own_run_panel
from pyscript.views.lengths import panel as lengths_panel
from pyscript.views.make_fit import asked as make_fit_asked
from pyscript.views.pins import by_the_headline
from pyscript.views.placement import panel as placement_panel

SLOT = re.compile(r"<!--slot ([\w-]+)-->")
"""A place in index.html that is filled in here."""

PART = re.compile(r"<!--with ([\w-]+)-->(.*?)<!--end \1-->", re.DOTALL)
"""A part of index.html that is left out where nothing fills the slot of that name."""

ENGLISH_PAGE, SCHEMA_FOLDER = "index.html", "schema"


def write_pages(dist: Path, assets: dict, hub: str) -> None:
    """Write the page in every language and the schemas into dist/. `assets` names the files a page needs, as write_assets gives them.

    hub: the origin that the page may fetch a model's config.json from; empty for none.
    """
    contents = slots(assets, hub)
    for code in LANGUAGES:
        own = {"head": head(assets, hub, code), "languages": languages(code), "evidence": evidence.section(assets["runs"][code])}
        (dist / page_name(code)).write_text(_in_language(filled(contents | own), code), "utf-8")
    write_schemas(dist / SCHEMA_FOLDER)


def page_name(code: str) -> str:
    """The file of the page in a language."""
    return ENGLISH_PAGE if code == ENGLISH else f"{code}.html"


def filled(contents: dict[str, Child]) -> str:
    """index.html with its slots filled."""
    template = PART.sub(lambda match: match[2] if match[1] in contents else "", (ROOT / "index.html").read_text("utf-8"))
    unfilled = set(contents)

    def fill(match: re.Match) -> str:
        unfilled.discard(match[1])
        return _markup(contents[match[1]])

    page = SLOT.sub(fill, template)
    if unfilled:
        raise ValueError(f"index.html has no slot for {', '.join(sorted(unfilled))}")
    return page


def slots(assets: dict, hub: str) -> dict[str, Child]:
    """The content of every slot that is the same in all languages before it is translated, for the opening configuration."""
    opening = estimate(Settings())
    shown, film = panels.results(opening), panels.films(opening)
    return {
        "logo": h("img", src=assets["files"]["icon.svg"], alt="", width=36, height=36),
        "form": form(defaults(), applying(defaults()), hub=hub),
        "headline": answer.headline(opening),
        "printed": panels.printed(opening),
        "accountings": panels.accountings(opening.settings, opening),
        "about": panels.about(opening),
        "components": panels.components(opening),
        "moments": panels.moments(opening),
        "timeline": panels.timeline(film, film.shown.peak_index),
        "lay-over": panels.lay_over(film, live=False),
        "alive": panels.alive(film, film.shown.peak_index),
        "timeline-remarks": panels.timeline_remarks(film),
        "make-fit-asked": make_fit_asked(lockable()),
        "make-fit": panels.opening_make_fit(opening),
        "front": panels.opening_front(opening),
        "maxima": panels.maxima(shown),
        "alternatives": panels.alternatives(shown),
        "methods": panels.methods(opening),
        **{name: make(opening) for name, make in panels.SELDOM.items()},
        "rules-of-thumb": panels.rules_of_thumb(),
        "links-between-gpus": panels.links_between_gpus(),
        "curve": panels.curve_drawing(shown, shown.chart.current_index),
        "curve-table": panels.curve_table(shown),
        **dict(zip(("map", "map-table"), panels.opening_map(opening), strict=True)),
        **dict.fromkeys(("gpus", "gpus-table", "host"), ()),  # the opening run fits, on one GPU
        "assumptions": panels.assumptions(opening),
        "others": panels.others(opening),
        "differences": panels.differences(opening),
        "lengths": lengths_panel(),
        "pins-bar": by_the_headline(live=False),
        "own-run": own_run_panel(),
        "placement": placement_panel(),
        "verdicts": explain.verdicts(),
        **{f"calculation-{name}": explain.calculation(counted_by(opening.settings, name)) for name in EXPLAINED},
        "own-names": panels.own_names(opening.settings),
        "recorded-studio": panels.recorded_studio(),
        "examples": explain.examples(),
        "references": explain.references(),
        **({"hub": hub.partition("://")[2]} if hub else {}),
    }


def runs_page(assets: dict, hub: str, code: str) -> str:
    """The page with every recorded run, in a language."""
    page = h(
        "html",
        h(
            "head",
            h("meta", charset="utf-8"),
            h("meta", name="viewport", content="width=device-width, initial-scale=1"),
            h("meta", name="color-scheme", content="light dark"),
            h("title", f"{evidence.ALL_RUNS} | VRAM Plan"),
            allowed(hub),
            *looks(assets),
        ),
        h("body", evidence.all_runs(page_name(code))),
        lang=TAGS[code],
    )
    return _in_language(DOCTYPE + markup(page), code)


def languages(current: str) -> list[Element]:
    """The way to the page in the other languages, each named in its own; `lang` in the address holds it against the browser's choice."""
    return [
        h("a", name, href=f"{page_name(code)}?lang={code}", hreflang=TAGS[code], lang=TAGS[code], rel="alternate", data_language=code)
        for code, name in LANGUAGES.items()
        if code != current
    ]


def head(assets: dict, hub: str, code: str) -> list[Element]:
    """What the page may load, what it loads early, the phrases of its language among that, the scripts that run first, style, icon and the boot script.

    Downloads stand before the scripts: Chromium does not look beyond a script that it waits for where a tag says what may be loaded.
    """
    files, phrases = assets["files"], assets["phrases"].get(code, {})
    return [
        allowed(hub),
        *(h("link", **link) for link in assets["links"]),
        h("link", rel="preload", as_="fetch", crossorigin="anonymous", href=phrases["data-phrases"]) if phrases else None,
        h("script", **assets["early"]),
        *looks(assets),
        h("meta", property="og:image", content=files["preview.png"]),
        h("script", **assets["boot"], **phrases),
    ]


def allowed(hub: str) -> Element:
    """What a page may do and load; it stands before anything else that does."""
    return h("meta", http_equiv="Content-Security-Policy", content=policy(hub))


def looks(assets: dict) -> list[Element]:
    """A page's style, the script that says how it is shown, and its icon."""
    return [
        h("link", rel="stylesheet", **assets["style"]),
        h("script", **assets["view"], data_panels=" ".join(USUAL_PANELS)),
        h("link", rel="icon", type="image/svg+xml", href=assets["files"]["icon.svg"]),
    ]


def write_schemas(folder: Path) -> None:
    """Publish the JSON Schema of every document the command prints."""
    folder.mkdir()
    for name, document in {**DOCUMENTS, "problem": ProblemDocument}.items():
        schema = document.model_json_schema(mode="serialization")
        (folder / f"{name}.json").write_text(json.dumps(schema, indent=2) + "\n", "utf-8")


def _in_language(page: str, code: str) -> str:
    return page if code == ENGLISH else translated(page, code)


def _markup(content: Child) -> str:
    if content is None:
        return ""
    if isinstance(content, (str, Element)):
        return markup(content)
    return "".join(_markup(part) for part in content)
