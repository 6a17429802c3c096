"""The interface in other languages: every text has its phrase, and phrases say what they should.

Belongs here: the phrase books and how texts are told. What a visitor of a page in another language sees: browser/test_chinese_page.py.
"""

import re
import tomllib
from pathlib import Path

import pytest

from phrases import phrases
from vramplan import language
from vramplan.units import counted
from vramplan_site import translated
from vramplan_site.runtime import page_modules

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "app" / "vramplan" / "data"
CODES = sorted(language.LANGUAGES.keys() - {language.ENGLISH})
MODULES = [
    *(path for name, path in page_modules().items() if not name.endswith("document") and name != "vramplan.documents"),
    ROOT / "app" / "vramplan" / "evidence.py", *(ROOT / "app" / "vramplan_site" / name for name in ("evidence.py", "explain.py")),
]

DATA_SHOWN = {
    "claims": {"what", "assumes"}, "examples": {"title", "text"}, "hardware": {"direction", "seen"}, "questions": {"question", "answer", "claim"},
    "reasons": {"text"}, "stacks": {"label"}, "cards": {"label"}, "unsloth_studio": {"row"},
    **{f"formulas_{name}": {"title", "text", "label", "unit", "source", "meaning"} for name in ("planning", "rules", "unsloth")},
    **{f"tool_{name}": {"why"} for name in ("accelerate", "axolotl", "deepspeed", "llama_factory", "swift", "torchtune", "transformers", "trl")},
}
"""What a visitor reads of the data, by file and key."""

NOT_SHOWN = {
    "Estimate", "Imported", "English", "None.", "(max-width: 40rem)", "Setting", "Plane", "Reward", "field line", "number wide-only",  # names in code, classes of elements
    "## Settings that are not as the calculator opens with", "## What fills the memory", "**Peak per GPU**", "[Open this run in VRAM Plan](<{}>)",
    "module {} has no attribute {}",  # for who uses the package
    "{} {}: {}. Written by VRAM Plan.", "full_shard auto_wrap offload",  # lines of exported files
    "is unlikely to fit", "{} {} {} at {} × {}", "{} {} {} at {}", "Full fine-tuning", "Inference in {}", "ijlI|!.,:;'’()[] ft",  # a badge, which is a file
    "border: 0", 'style="text-align: left"', 'style="text-align: right"',  # markup for other pages and for notebooks
    "1:64, 512:131072:*2 or 8,16,32", "0:1:0.25, 1:64:*2 or 0,0.1", "{} takes at most {} values in a sweep; {}. Take larger steps.",
    "A range of {} must be first:last, first:last:step or first:last:*factor, upwards, such as {}; {}. Correct it.",
    "A range of {} must be first:last:step or first:last:*factor, upwards, such as {}; {}. Correct it.",
    "A sweep takes at most {} points; these are {}. Take larger steps.",
    'A sweep needs numpy, which is not installed: pip install "vramplan[sweep]".',
    "A sweep needs a setting with several values, such as 1:64, 8,16,32 or lora,qlora. Give one.",  # the terminal's
    "Access to model", "Invalid username", "Entry not found", "Repository Not Found", "Unauthorized", "Invalid credentials",  # answers of the Hub
    "{} is not part of the language of families.toml", "({}) and ({})", "formula {} cites {}, which is not in references.toml",
}
"""Texts of these modules that no visitor reads."""

CODE = re.compile("|".join((
    r"[\w.:/+,-]*\{\}[\w.:/+,-]*", r"[a-z]+-\{\}(-\{\})*(-[a-z]+)?",  # identifiers and addresses
    r"[a-z-]+ \d+\.\d+\.\d+, .*",  # places in the source of a package
    r".*(accelerate launch|axolotl train|llamafactory-cli|load_dataset|\bimport\b|Trainer\(|\bpython \{\}|vramplan estimate).*",  # commands and scripts
    r"\(\?:.*", r".*\{width:,\}.*",  # patterns
)))
"""Texts that are code: identifiers, places in a package's source, commands, patterns."""


def book(code: str) -> dict[str, str]:
    return language.book(code)


def plain(english: str) -> str:
    """A phrase whose holes are all alike."""
    return english.replace("{#}", "{}")


@pytest.fixture(scope="module")
def said() -> dict[str, str]:
    """Every phrase of the modules that a page has, with the place it is said first."""
    found: dict[str, str] = {}
    for path in MODULES:
        for line, phrase in phrases(path):
            found.setdefault(phrase, f"{path.name}:{line}")
    return found


@pytest.fixture(scope="module", params=CODES)
def code(request) -> str:
    return request.param


@pytest.fixture
def spoken(code):
    language.use(code)
    yield language.told
    language.use(language.ENGLISH)


def test_every_text_of_the_interface_has_a_phrase(code, said):
    known = {plain(english) for english in book(code)}
    missing = {phrase: place for phrase, place in said.items() if phrase not in known | NOT_SHOWN and not CODE.fullmatch(phrase)}
    assert not missing, "\n".join(f"{place}: {phrase}" for phrase, place in missing.items())


def test_what_is_left_out_on_purpose_is_still_said(said):
    assert NOT_SHOWN <= said.keys()


def test_texts_of_the_data_that_a_visitor_reads_have_phrases(code):
    told = language.PhraseBook(book(code)).told
    left = [f"{name}: {text}" for name, keys in DATA_SHOWN.items() for text in texts_of(DATA / f"{name}.toml", keys) if told(text).left]
    assert not left, "\n".join(left)


def texts_of(path: Path, keys: set[str]) -> list[str]:
    found: list[str] = []

    def look(content: object, key: str) -> None:
        if isinstance(content, dict):
            for inner, value in content.items():
                look(value, inner)
        elif isinstance(content, list):
            for value in content:
                look(value, key)
        elif isinstance(content, str) and key in keys:
            found.append(" ".join(re.sub(r"\{\w+\}", "7", content).split()))

    look(tomllib.loads(path.read_text("utf-8")), "")
    return found


def test_the_markup_of_the_page_has_phrases(code):
    told = language.PhraseBook(book(code))
    left = [text for text in texts_of_the_page() if told.told(text).left]
    assert not left, "\n".join(left)


def texts_of_the_page() -> list[str]:
    """What index.html says, with every element within a text as a hole."""
    heard = Listening({})
    language.use("zh", heard)
    try:
        translated.read(re.sub(r"<!--(?:with|end|slot) [\w-]+-->", "", (ROOT / "index.html").read_text("utf-8")))
    finally:
        language.use(language.ENGLISH)
    return [language.MARK.sub("{}", text) for text in heard.texts]


class Listening(language.PhraseBook):
    """A phrase book that only notes what it is asked for."""

    def __init__(self, phrases: dict[str, str]):
        super().__init__(phrases)
        self.texts: list[str] = []

    def told(self, text: str) -> language.Told:
        self.texts.append(text)
        return language.Told(text, 0)


def test_no_phrase_is_for_nothing(code, said):
    sources, of_the_page = spoken_anywhere(), "\n".join(texts_of_the_page())
    unused = [english for english in book(code) if plain(english) not in said and longest(english) not in sources + of_the_page]
    assert not unused, "\n".join(unused)


def spoken_anywhere() -> str:
    """All that the sources of the interface hold, in one text, with white space made even."""
    files = [*MODULES, *(ROOT / "app" / "vramplan").rglob("*.py"), *DATA.glob("*.toml"), *DATA.glob("*.json"), ROOT / "index.html"]
    text = "\n".join(dict.fromkeys(path.read_text("utf-8") for path in files))
    return " ".join(re.sub(r"<[^<>]*>|[\"']\s*f?[\"']|\\\s*\n", "", text).split())


def longest(english: str) -> str:
    """The longest literal part of a phrase."""
    return max((part.strip(" .,;:“”") for part in re.split(r"\{#?\}|\((?:s|es)\)", english)), key=len)


def test_translations_are_filled_with_what_the_english_is_filled_with(code):
    for english, other in book(code).items():
        holes = len(language.HOLE.findall(english))
        assert {int(number) for number in language.NUMBERED.findall(other)} <= set(range(1, holes + 1)), english
        assert "{}" not in other, english


def test_chinese_is_written_with_its_own_punctuation():
    for english, other in book("zh").items():
        assert not re.search(r"[\u4e00-\u9fff][,;:?!](?:\s|$)|[\u4e00-\u9fff]\.$", other), f"{english}: {other}"
        assert not re.search(r"[\u4e00-\u9fff](?:GiB|GB|GPU|token|LoRA|Hub)|(?:GiB|GB|GPU|token|LoRA|Hub)[\u4e00-\u9fff]", other), f"{english}: {other}"


def test_a_text_is_told_with_what_it_is_filled_with(code):
    tiny = language.PhraseBook({"saves {}": "省 {1}", "{} of {}": "{2} 的 {1}", "headroom": "余量", "a {} b": "{1}"})
    assert tiny.told("saves 0.23 GiB").text == "省 0.23 GiB"
    assert tiny.told("Headroom of 7") == language.Told("7 的余量", 0)
    assert tiny.told("saves the day").left == 2


def test_a_plural_is_one_phrase_with_its_singular():
    tiny = language.PhraseBook({"{} byte(s)": "{1} 字节", "{} match": "{1} 个匹配", "{} matches": "{1} 个匹配"})
    told = [tiny.told(counted(number, "byte")).text for number in (0, 1, 2, 1_234)]
    assert told == ["0 字节", "1 字节", "2 字节", "1,234 字节"]
    assert [tiny.told(counted(number, "match", "matches")).text for number in (1, 2)] == ["1 个匹配", "2 个匹配"]


def test_a_number_hole_takes_numbers_only():
    tiny = language.PhraseBook({"{} {#} GiB": "{2} GiB：{1}", "Does not fit": "放不下"})
    assert tiny.told("Does not fit 24.00 GiB").text == "24.00 GiB：放不下"


def test_elements_move_with_the_words_around_them(spoken):
    language.use("zh", language.PhraseBook({"{} of {}": "{2} 的 {1}"}))
    first, second = object(), object()
    assert language.told_around((first, " of ", second)) == (second, " 的 ", first)


def test_sentences_and_lists_are_told_part_by_part():
    tiny = language.PhraseBook({"One.": "一。", "Two.": "二。", "{}, {}": "{1}，{2}", "three": "三", "four, five": "四五"})
    assert tiny.told("One. Two. One.").text == "一。二。一。"
    assert tiny.told("three, four, five, 6").text == "三，四五，6"


def test_english_is_left_alone():
    text, children = "Anything at all", ("one ", object())
    assert language.current() == "en" and language.told(text) is text and language.told_around(children) is children


def test_a_language_that_there_is_not_is_refused():
    with pytest.raises(KeyError):
        language.use("xx")
    assert language.current() == "en"


def test_every_language_has_a_book(code):
    assert book(code) and language.LANGUAGES[code]
