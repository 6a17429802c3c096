"""Bringing a model, an adapter or a training file: where to paste, drop, choose or name it."""

from pyscript.tree import Element, h

PANEL, TEXT, FILE, HUB, RESULT, TOLD = "bring", "bring-text", "bring-file", "bring-hub", "bring-result", "bring-told"
"""Ids of the panel's parts."""


def panel(hub: str) -> Element:
    """The folded part of the form. hub: the origin that models are fetched from by name; empty for none."""
    return h(
        "details",
        h("summary", "Bring a model, an adapter or a training file"),
        h("p", f"A model’s config.json, a PEFT adapter_config.json, or a training file of {tools()}: its YAML, or the command line. Drop it anywhere on this page, choose it or paste it; it stays in your browser.", class_="hint"),
        h("label", "Paste the file", for_=TEXT, class_="label"),
        h("textarea", id=TEXT, rows=3, spellcheck="false", autocomplete="off", autocapitalize="off", placeholder='{ "model_type": … }  or  base_model: …'),
        h(
            "div",
            h("button", "Read it", type="button", class_="plain", data_action="bring-read", disabled=True),
            h("label", "Choose a file", h("input", type="file", id=FILE, accept=".json,.yaml,.yml,.sh,.txt,application/json,text/plain", class_="visually-hidden"), class_="file"),
            class_="bring-actions",
        ),
        _hub(hub) if hub else None,
        h("p", id=TOLD, role="status", class_="visually-hidden"),
        h("div", id=RESULT, tabindex=-1, role="group", aria_label="What was brought", hidden=True),
        class_="bring",
        id=PANEL,
    )


def tools() -> str:
    """The tools whose training files are read, as words. The build writes them; the page imports nothing that reads before it reads."""
    from vramplan.training_files.tools import TOOLS, tool

    labels = [tool(name).label for name in TOOLS]
    return f"{', '.join(labels[:-1])} or {labels[-1]}"


def _hub(origin: str) -> Element:
    host = origin.partition("://")[2]
    return h(
        "div",
        h("label", "Or name it on the Hugging Face Hub", for_=HUB, class_="label"),
        h("p", f"Asks {host} for its config.json, once, when you press Fetch, and nothing else.", class_="hint", id=f"{HUB}-hint"),
        h(
            "div",
            h("input", type="text", id=HUB, placeholder="Qwen/Qwen3-8B", spellcheck="false", autocomplete="off", autocapitalize="off", inputmode="url",
              data_origin=origin, aria_describedby=f"{HUB}-hint"),
            h("button", "Fetch", type="button", class_="plain", data_action="bring-fetch", disabled=True),
            class_="bring-hub",
        ),
        class_="bring-part",
    )
