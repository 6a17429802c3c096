"""Which linear maps get an adapter: the two common sets by name, or any list."""

ATTENTION = ("q", "k", "v", "o")
"""Projections of attention, in the order in which a layer runs them."""

ALL_LINEAR = (*ATTENTION, "gate", "up", "down")
"""Every linear map of a layer: what PEFT's "all-linear" selects. Source: peft 0.21.2, tuners/tuners_utils.py."""

EVERYTHING = (*ALL_LINEAR, "lm_head", "embed")
"""Everything that can be named: also the output head and the embedding."""

NAMED = {"attention": ATTENTION, "all-linear": ALL_LINEAR}
"""Sets that have a name of their own."""


def named_parts(text: str) -> tuple[str, ...]:
    """The projections a text names, in the order of EVERYTHING; empty if it names anything else, or one twice."""
    if text in NAMED:
        return NAMED[text]
    parts = [part.strip() for part in text.split(",")]
    if len(set(parts)) < len(parts) or not set(parts) <= set(EVERYTHING):
        return ()
    return tuple(part for part in EVERYTHING if part in parts)


def normal_text(text: str) -> str:
    """The same targets as they stand in a link: a name, or a comma list in the order of EVERYTHING."""
    return text if text in NAMED else ",".join(named_parts(text))
