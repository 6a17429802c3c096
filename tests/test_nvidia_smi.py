"""What is read out of pasted nvidia-smi output, with and without the line breaks that a one-line box drops.

Belongs here: pastes and what they amount to. Where the page uses it: browser/test_journeys.py.
"""

from decimal import Decimal, localcontext

import pytest

from vramplan.nvidia_smi import read_used

TABLE = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 570.86.10              Driver Version: 570.86.10      CUDA Version: 12.8     |
|-----------------------------------------+------------------------+----------------------+
|   0  NVIDIA GeForce RTX 4090        On  |   00000000:01:00.0  On |                  Off |
|  0%   41C    P8             21W /  450W |    1234MiB /  24564MiB |      2%      Default |
|   1  NVIDIA GeForce RTX 4090        On  |   00000000:02:00.0 Off |                  Off |
|  0%   35C    P8             12W /  450W |       2MiB /  24564MiB |      0%      Default |
+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|    0   N/A  N/A            2190      G   /usr/lib/xorg/Xorg                     20480MiB |
+-----------------------------------------------------------------------------------------+
"""
QUERY = """\
index, memory.total [MiB], memory.used [MiB], memory.free [MiB]
0, 24564 MiB, 512 MiB, 23559 MiB
1, 24564 MiB, 1 MiB, 24070 MiB
"""
OTHER_ORDER = "memory.used [MiB], name, memory.total [MiB]\n768 MiB, NVIDIA L4, 23034 MiB\n"


@pytest.mark.parametrize(
    ("pasted", "mib", "cards"),
    [
        ("1234MiB / 24564MiB", 1234, 1),
        ("  0MiB /  24564MiB ", 0, 1),
        ("1234 MiB", 1234, 1),
        ("1234MiB", 1234, 1),
        (TABLE, 1234, 2),
        (QUERY, 512, 2),
        (QUERY.splitlines()[1], 512, 1),
        (OTHER_ORDER, 768, 1),
    ],
)
@pytest.mark.parametrize("line_break", ["\n", "", " "], ids=("lines", "dropped", "spaces"))
def test_used_memory_is_read(pasted, mib, cards, line_break):
    used = read_used(pasted.replace("\n", line_break))
    assert used is not None or (pasted is OTHER_ORDER and line_break != "\n")
    if used:
        assert (used.mib, used.cards) == (mib, cards)


@pytest.mark.parametrize(
    "typed", ["", "0", "1.5", "1234", "1,234 MiB", "1.5 GiB", "a MiB", "MiB", "-5 MiB", "12 MiB of 13 MiB", "0, 1, 2, 3", "x" * 100_000, "1" * 5_000]
)
def test_what_is_typed_as_a_number_or_is_not_of_nvidia_smi_stays(typed):
    assert read_used(typed) is None


@pytest.mark.parametrize("mib", [0, 1, 512, 1023, 1024, 1234, 24_564, 999_999_999])
def test_gib_are_exact_in_any_decimal_context(mib):
    with localcontext(prec=3):
        text = read_used(f"{mib} MiB").gib
    assert Decimal(text) * 1024 == mib
    assert set(text) <= set("0123456789.") and not text.endswith(".")
