"""Hypothesis strategies: every valid configuration, and every query string a stranger could send.

Belongs here: generation only, from the limits in configurations.py. Not here: assertions.
"""

from urllib.parse import quote

from hypothesis import settings as hypothesis_settings, strategies as st

from configurations import CARDS, CHOICES, COUNTED, COUNTS, FIELD_ORDER, NO_EXPERTS, OPENINGS, SMALL_DECODER, WHOLE, countable, possible
from oracle import KINDS, PRESETS, TRAITS

PROFILE = "vramplan"
hypothesis_settings.register_profile(PROFILE, deadline=None, derandomize=True, max_examples=80)


def whole(name, upto=None):
    low, high = WHOLE[name]
    high = min(high, upto or high)
    return st.one_of(st.integers(low, min(high, 40)), st.integers(low, high), st.sampled_from((low, high))).map(str)


def decimals(low, high, places):
    return st.decimals(low, high, allow_nan=False, allow_infinity=False, places=places).map(lambda d: format(d, "f"))


@st.composite
def configurations(draw, accounting=None, model=None, small=False):
    """A valid configuration that its accounting can count, as typed strings, for one accounting or for any.

    `small` keeps the peak near the budgets so that both outcomes occur.
    """
    accounting = accounting or draw(st.sampled_from(list(COUNTED)))
    of_a_custom_one = ("tied_embeddings", *TRAITS, *KINDS, *NO_EXPERTS)
    options = {name: values for name, values in COUNTED[accounting].items() if name not in ("model", "budget_unit", *of_a_custom_one)}
    chosen = {name: draw(st.sampled_from(values)) for name, values in options.items()}
    chosen["model"] = model or draw(st.one_of(st.sampled_from(COUNTED[accounting]["model"]), st.just("custom")))
    if chosen["model"] == "custom":
        dimensions = ("hidden_size", "num_layers", "num_attention_heads", "head_dim", "intermediate_size", "vocab_size")
        chosen |= {name: draw(whole(name, upto=64 if small else None)) for name in dimensions}
        heads = int(chosen["num_attention_heads"])
        divisors = [k for k in range(1, heads + 1) if heads % k == 0]
        chosen["num_kv_heads"] = str(draw(st.sampled_from(divisors)))
        chosen |= {name: draw(st.sampled_from(options_of)) for name, options_of in ((name, COUNTED[accounting].get(name) or NO_EXPERTS.get(name, CHOICES[name])) for name in of_a_custom_one)}
        chosen |= {name: draw(whole(name)) for name in COUNTS}
        chosen = possible(chosen)
    cap = PRESETS[chosen["model"]]["cap"] if chosen["model"] in PRESETS else 131_072
    chosen["sequence_length"] = draw(whole("sequence_length", upto=min(cap, 4096) if small else cap))
    chosen["micro_batch"] = draw(whole("micro_batch", upto=8 if small else None))
    for name in ("rank", "replicas", "sharded_over", "gradient_accumulation_steps"):
        chosen[name] = draw(whole(name))
    if chosen["gpu"] == "custom":
        chosen["budget_unit"] = draw(st.sampled_from(CHOICES["budget_unit"]))
        low, high = {"gib": (1, 2048), "gb": (2, 2199)}[chosen["budget_unit"]]
        chosen["budget"] = draw(decimals(low, high, places=draw(st.integers(0, 9))))
    if chosen["gpu"] in CARDS:
        chosen["other_processes"] = draw(decimals(0, 12, places=draw(st.integers(0, 6))))
    if accounting == "step":
        chosen["lora_dropout"] = draw(st.sampled_from(("0", "0.1")))
        return countable(chosen)
    if accounting == "unsloth":
        chosen["floor_fraction"] = draw(decimals(0, 1, places=draw(st.integers(0, 6))))
        return chosen
    if accounting == "rules":
        return chosen
    chosen["activation_multiplier"] = draw(decimals("0.25", "4", places=draw(st.integers(2, 6))))
    chosen["extra_allowance"] = draw(decimals(0, 128, places=draw(st.integers(0, 6))))
    return chosen


HOSTILE_VALUES = (
    "", " ", "0", "-1", "-0", "1.5", "1e3", "1e999999999", "-1e-999999999", "NaN", "sNaN", "nan", "inf", "-Infinity",
    "9" * 10_000, "0." + "0" * 10_000 + "1", "1/3", "0x10", "1_000", "1,000", "١٢٣", "²", "Ⅷ", "१६", "𝟙𝟞", "\x00", "1\x00",
    "\n16\n", "\u202e16", "\ud7ff", "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "javascript:alert(1)",
    "{{7*7}}", "${7*7}", "'; --", "../../etc/passwd", "__import__('os')", "None", "True", "true", "null", "[]", "{}", "%",
    "%00", "%zz", "%ff%fe", "+", "&", "=", ";", "#", "?", "x" * 10_000, "é" * 3_000, "😀", "custom", "24", "full",
    "q,,v", ",", "q,q", "attention,q", ",".join("qkvo" * 1_000),
)
HOSTILE_KEYS = (
    *FIELD_ORDER, "v", "", " ", "rank ", "RANK", "rank[]", "__class__", "__proto__", "constructor", "errors", "replace",
    "self", "<b>", "\x00", "ключ", "k" * 5_000, "%", "%00", "utm_source",
)

values = st.one_of(st.sampled_from(HOSTILE_VALUES), st.text(max_size=30), st.integers().map(str), st.floats().map(str))
keys = st.one_of(st.sampled_from(HOSTILE_KEYS), st.text(max_size=12))
encoded = st.one_of(values.map(quote), values)
joints = st.sampled_from(("=", "=", "=", "==", ""))
pairs = st.builds(lambda key, joint, value: key + joint + value, st.one_of(keys.map(quote), keys), joints, encoded)
queries = st.builds(
    lambda start, parts, joint: start + joint.join(parts),
    st.sampled_from(("", "?", "v=1&", "v=2&", "v=0&", "v=99&", "v=x&", "v=1&v=1&", "model=custom&")),
    st.lists(pairs, max_size=8),
    st.sampled_from(("&", "&", "&", ";", "&&")),
)

SMALL_CUSTOM = {name: {**opening, **SMALL_DECODER, "gpu": "8"} for name, opening in OPENINGS.items()}
