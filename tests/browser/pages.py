"""The calculator as a person finds it: locators by role and label, and what one can do there.

Belongs here: where things are and how they are used. Not here: what a test expects of a run, servers, browsers.
"""

import re

from playwright.sync_api import expect

from answers import by_each
from vramplan import accounts, chronicle, report
from vramplan.catalogue import TRAITS
from vramplan.fields import BY_NAME
from vramplan.kinds import Choice, Measured, Targets

READY_MS = 120_000
DRAWN = """() => new Promise(done => {
    setTimeout(() => done(false), 10_000);
    requestAnimationFrame(() => requestAnimationFrame(() => done(true)));
})"""
NAMED_PROBLEMS = 3
LISTED_FROM, SEARCHED_FROM = 5, 60


def told_as(*texts):
    """These texts one after the other, whatever white space lies within and between them."""
    return re.compile(r"\s*".join(re.escape(word) for text in texts for word in text.split()))


class Calculator:
    """The page in a tab, or in a frame of another page (`root` is then the frame)."""

    def __init__(self, root, address=""):
        self.root = root
        self.address = address
        self.page = getattr(root, "page", root)

    # Opening

    def open(self, query=""):
        """Load the page with this query string and wait until it is live."""
        self.root.goto(self.address + query)
        self.wait_ready()

    def wait_ready(self):
        """Wait until the calculator has taken over from the built markup."""
        expect(self.root.locator("html")).to_have_attribute("data-boot", "ready", timeout=READY_MS)

    def travel(self, query):
        """Arrive at another query string of the page as Back and Forward do, without loading it again."""
        self.root.evaluate(
            "query => { history.pushState(null, '', location.pathname + query); dispatchEvent(new PopStateEvent('popstate')); }", query
        )

    def draws(self):
        """Whether the browser still draws this tab; Chromium without a window can stop, and then nothing can be clicked."""
        return self.root.evaluate(DRAWN)

    def start_again(self, size):
        """Back to how the page opens, from whatever an earlier test left."""
        self.page.set_viewport_size(size)
        self.page.emulate_media(color_scheme="light")
        if self.dialog.is_visible():
            self.page.keyboard.press("Escape")
        self.button("Reset").click()
        if self.notices.is_visible():
            self.notices.get_by_role("button", name="Dismiss").click()
        self.root.evaluate("document.querySelectorAll('details').forEach(each => { each.open = false; }); scrollTo(0, 0)")

    @property
    def query(self):
        """The query string in the address bar."""
        return self.root.evaluate("location.search")

    # Parts

    def button(self, name):
        """A button of the page."""
        return self.root.get_by_role("button", name=name, exact=True)

    def region(self, name):
        """A titled part of the page."""
        return self.root.get_by_role("region", name=name, exact=True)

    @property
    def form(self):
        """The settings."""
        return self.root.get_by_role("form", name="Training run")

    @property
    def answer(self):
        """The headline card."""
        return self.region("Estimated peak")

    @property
    def dialog(self):
        """The Share dialog."""
        return self.root.get_by_role("dialog", name="Share this run")

    @property
    def problems(self):
        """The summary of bad input."""
        return self.root.get_by_role("heading", name="Check training inputs").locator("..")

    def expect_problems(self, sentences):
        """The summary names the first three of these, each a link, and counts the others."""
        patterns = [re.compile(r"^\s*" + r"\s+".join(map(re.escape, text.split())) + r"\s*$") for text in sentences]
        expect(self.problems.get_by_role("link")).to_have_text(patterns[:NAMED_PROBLEMS])
        if len(patterns) > NAMED_PROBLEMS:
            expect(self.problems).to_contain_text(f"{len(patterns) - NAMED_PROBLEMS} more are marked in the form.")

    @property
    def notices(self):
        """What of a link was not used."""
        return self.root.get_by_role("heading", name="About this link").locator("..")

    def status(self, text):
        """A live region that says this."""
        return self.root.get_by_role("status").filter(has_text=text)

    # Settings

    def control(self, name):
        """The control of a setting; of a row of radio buttons, the group."""
        field = BY_NAME[name]
        if isinstance(field.kind, Measured):
            return self.own_run_text
        if self._is_row(field) or isinstance(field.kind, Targets):
            return self.form.get_by_role("group", name=field.label, exact=True)
        role = "combobox" if isinstance(field.kind, Choice) else "textbox"
        return self.form.get_by_role(role, name=field.label, exact=True)

    def radio(self, name, value):
        """One button of a row."""
        return self.control(name).get_by_role("radio", name=re.compile(rf"^{re.escape(self._option(name, value))}(\s|$)"))

    @property
    def own_targets(self):
        """The box for adapter targets that are named one by one."""
        return self.form.get_by_role("textbox", name="Adapter targets, one by one", exact=True)

    def list_targets(self, text):
        """Name adapter targets one by one, and stay in the box."""
        self.control("adapter_targets").get_by_role("radio", name=re.compile("^A list")).check()
        self.own_targets.fill(text)

    def open_traits(self):
        """Unfold what few custom decoders have."""
        if not self.control("query_key_norms").is_visible():
            self.form.get_by_text("What else it has", exact=True).click()

    def by_component(self):
        """The accountings component by component, unfolded."""
        part = self.region("How others count this run").get_by_role("group").filter(has=self.root.get_by_text("Component by component", exact=True))
        if part.count() and part.is_visible() and part.get_attribute("open") is None:
            part.get_by_text("Component by component", exact=True).click()
        return part

    def open_advanced(self):
        """Unfold the settings that are rarely changed."""
        if not self.control("gradient_accumulation_steps").is_visible():
            self.form.get_by_text("Advanced", exact=True).click()

    def type_number(self, name, text):
        """Type over a number, and stay in the field."""
        self._reveal(name)
        self.control(name).fill(text)

    def set_number(self, name, text):
        """Type over a number and leave the field."""
        self.type_number(name, text)
        self.control(name).blur()

    def choose(self, name, value):
        """Choose an option of a list or a row, named by its value in a link and found by its label."""
        self._reveal(name)
        if self._is_row(BY_NAME[name]) or self._is_named_set(name, value):
            self.radio(name, value).check()
            return
        option = next(option for option in BY_NAME[name].kind.options if option.value == value)
        if self._is_searched(BY_NAME[name]):
            self.find(name, option.label)
            self.matches(name).get_by_role("option", name=option.label, exact=True).click()
            return
        self.control(name).select_option(label=f"{option.label}, {option.hint}" if option.hint else option.label)

    def find(self, name, text):
        """Type into the box in front of a long list."""
        self.control(name).fill(text)
        expect(self.matches(name)).to_be_visible()

    def matches(self, name):
        """What a search has found."""
        return self.root.get_by_role("listbox", name=BY_NAME[name].label)

    def set(self, **texts):
        """Set settings in the order given, each as a person would."""
        for name, text in texts.items():
            if isinstance(BY_NAME[name].kind, Choice) or self._is_named_set(name, text):
                self.choose(name, text)
            elif isinstance(BY_NAME[name].kind, Targets):
                self.list_targets(text)
                self.own_targets.blur()
            else:
                self.set_number(name, text)

    def expect_setting(self, name, text):
        """The control shows this value."""
        if self._is_row(BY_NAME[name]) or self._is_named_set(name, text):
            expect(self.radio(name, text)).to_be_checked()
        elif isinstance(BY_NAME[name].kind, Targets):
            expect(self.own_targets).to_have_value(text)
        elif self._is_searched(BY_NAME[name]):
            labels = {option.value: option.label for option in BY_NAME[name].kind.options}
            shown = labels.get(text, f"{text} (not available)")  # the search box; before any script has run, the list itself
            expect(self.control(name)).to_have_value(re.compile(rf"^({re.escape(shown)}|{re.escape(text)})$"))
        else:
            expect(self.control(name)).to_have_value(text)

    def _reveal(self, name):
        if BY_NAME[name].section == "advanced":
            self.open_advanced()
        if name in TRAITS:
            self.open_traits()

    @staticmethod
    def _is_row(field):
        return isinstance(field.kind, Choice) and len(field.kind.options) < LISTED_FROM

    @staticmethod
    def _is_searched(field):
        return isinstance(field.kind, Choice) and len(field.kind.options) >= SEARCHED_FROM

    @staticmethod
    def _is_named_set(name, text):
        kind = BY_NAME[name].kind
        return isinstance(kind, Targets) and text in [option.value for option in kind.options]

    @staticmethod
    def _option(name, value):
        return next(option.label for option in BY_NAME[name].kind.options if option.value == value)

    # Bringing models and adapters

    def open_bring(self):
        """Unfold where models and adapters are brought."""
        if not self.brought_text.is_visible():
            self.form.get_by_text("Bring a model, an adapter or a training file", exact=True).click()

    @property
    def brought_text(self):
        """The box a file is pasted into."""
        return self.form.get_by_role("textbox", name="Paste the file", exact=True)

    @property
    def hub_id(self):
        """The box a model's id is typed into."""
        return self.form.get_by_role("textbox", name="Or name it on the Hugging Face Hub", exact=True)

    @property
    def brought(self):
        """What was made of it."""
        return self.form.get_by_role("group", name="What was brought")

    def bring(self, text):
        """Paste a file's text and read it."""
        self.open_bring()
        self.brought_text.fill(text)
        self.button("Read it").click()

    def choose_file(self, name, content):
        """Choose a file with this content."""
        self.open_bring()
        self.form.get_by_label("Choose a file").set_input_files({"name": name, "mimeType": "application/json", "buffer": content})

    def drop_file(self, name, content):
        """Drop a file somewhere on the page."""
        transfer = self.root.evaluate_handle("([name, text]) => { const files = new DataTransfer(); files.items.add(new File([text], name)); return files; }", [name, content])
        for event in ("dragenter", "dragover", "drop"):
            self.root.locator("main").dispatch_event(event, {"dataTransfer": transfer})

    @property
    def own_run_text(self):
        """The box for what a run printed."""
        return self.root.get_by_role("textbox", name="Paste what your run printed")

    @property
    def own_run(self):
        """What was measured, against the estimate."""
        return self.root.get_by_role("group", name="Your run against the estimate")

    @property
    def explained(self):
        """What may explain it."""
        return self.root.get_by_role("group", name="What may explain it")

    def measured(self, text):
        """Bring what a run printed, and read it."""
        self.own_run_text.fill(text)
        self.button("Read what was measured").click()

    def choose_snapshot(self, name, content):
        """Choose a snapshot file."""
        self.root.get_by_label("Choose a snapshot").set_input_files({"name": name, "mimeType": "application/octet-stream", "buffer": content})

    def fetch(self, name):
        """Ask the Hub for a model."""
        self.open_bring()
        self.hub_id.fill(name)
        self.button("Fetch").click()

    # Results

    def figure(self, label):
        """A labelled number of the headline."""
        return self.answer.get_by_text(label, exact=True).locator("..")

    def expect_headline(self, estimate):
        """The headline tells this estimate, in the words CPython has for it, and so do the accountings and what the number is."""
        self.expect_headline_alone(estimate)
        self.expect_accountings(by_each(estimate))
        told = report.headline(estimate)
        expect(self.about).to_have_text(told_as(told.counted, *filter(None, [told.beside])))

    def expect_headline_alone(self, estimate):
        """The headline tells this estimate; a frame may show nothing else."""
        told = report.headline(estimate)
        figures = [f"{label} {amount} GiB" for label, amount in (
            ("Estimated peak per GPU", told.peak), ("Budget", told.budget), (told.headroom_label, told.headroom))]
        figures.insert(1, f"{told.verdict} {told.budget_label}")
        expect(self.answer).to_have_text(told_as(told.run, *figures, *filter(None, [told.line])))

    @property
    def about(self):
        """What the number is."""
        return self.region("About this number")

    def accounting(self, label):
        """The run by one accounting, a link that opens it counted that way."""
        return self.answer.get_by_role("list", name="By accounting").get_by_role("link", name=re.compile(f"^{label}"))

    def expect_accountings(self, counted):
        """Each accounting's peak and verdict, or why it has none; the chosen one is marked."""
        rows = []
        for each in counted:
            told = f"{each.peak} GiB {each.verdict}" if each.peak else "no number" if each.current else each.reason
            rows.append(f"{each.label} (chosen) {told}" if each.current else f"{each.label} {told}")
        shown = self.answer.get_by_role("list", name="By accounting")
        expect(shown).to_have_text(re.compile(f"^{told_as(*rows).pattern}$"))
        (chosen,) = [row for each, row in zip(counted, rows, strict=True) if each.current]
        expect(shown.locator("[aria-current=true]")).to_have_text(told_as(chosen))

    def expect_no_number(self, settings, reason):
        """The accounting's sentence stands in place of a number; others say theirs."""
        expect(self.answer).to_contain_text(accounts.uncounted_text(settings))
        expect(self.answer.get_by_role("link", name=reason.message, exact=True)).to_be_visible()
        self.expect_accountings(accounts.counted_by_each(settings, {settings.accounting: reason}))
        expect(self.answer).not_to_contain_text("Estimated peak per GPU", use_inner_text=True)

    def fact(self, label):
        """A labelled count about the run."""
        return self.root.get_by_role("main").get_by_role("term").filter(has_text=label).locator("..")

    def table(self, region, number=0):
        """A table of a part of the page."""
        return self.region(region).get_by_role("table").nth(number)

    def expect_rows(self, table, rows):
        """The rows under the table's head say this, cell by cell, to somebody who looks at them."""
        table.scroll_into_view_if_needed()
        body = table.get_by_role("row").filter(has=self.root.get_by_role("rowheader"))
        patterns = [re.compile(r"^\s*" + r"\s*".join(map(re.escape, row)) + r"\s*$") for row in rows]
        expect(body).to_have_text(patterns, use_inner_text=True)

    def apply(self, region, name):
        """Follow a link in a part of the results, once it is about the run as it is."""
        self.expect_renewed()
        self.region(region).get_by_role("link", name=name).click()

    def expect_renewed(self):
        """No part shows the run before any more."""
        expect(self.root.locator("#panels")).to_have_attribute("aria-busy", "false")

    def tile(self, title):
        """One answer of 'What fits'."""
        return self.region("What fits").get_by_role("listitem").filter(has=self.root.get_by_role("heading", name=title))

    @property
    def curve_slider(self):
        """The control that reads the curve."""
        return self.region("Memory against sequence length").get_by_role("slider")

    @property
    def curve_reading(self):
        """What the curve says at the slider."""
        return self.region("Memory against sequence length").get_by_role("status")

    # The step over time

    @property
    def map(self):
        """What fits, by micro-batch and sequence length."""
        return self.region("What fits, by micro-batch and sequence length")

    @property
    def map_link(self):
        """The drawing of it, which opens the run that is read."""
        return self.map.get_by_role("link", name=re.compile("^Open Micro-batch"))

    def expect_map_at(self, drawn, row, column):
        """The map is read at this cell, which its link names."""
        reading = report.map_reading(drawn.cell(row, column))
        expect(self.map).to_contain_text(reading)
        expect(self.map_link).to_have_accessible_name(f"Open {reading}")

    @property
    def step(self):
        """The part with the timeline, in sight, for it is worked out only there."""
        part = self.region("The step, moment by moment")
        if part.is_visible():
            part.scroll_into_view_if_needed()
        return part

    def moments(self):
        """The table of moments, unfolded."""
        table = self.step.get_by_role("table", name="What is alive at each moment of a step")
        if not table.is_visible():
            self.step.get_by_text("The moments as a table", exact=True).click()
        return table

    @property
    def step_drawing(self):
        """The drawing of the step."""
        return self.step.get_by_role("img", name=re.compile("^Memory over a training step"))

    @property
    def step_slider(self):
        """The control that reads the step."""
        return self.step.get_by_role("slider", name="Read it at")

    @property
    def step_reading(self):
        """What the step says at the slider."""
        return self.step.get_by_role("status")

    def expect_step_at(self, shown, index):
        """The step is read at this frame: in words, by component, and with what is alive."""
        expect(self.step_reading).to_have_text(chronicle.reading(shown, index))
        expect(self.step_slider).to_have_attribute("aria-valuetext", chronicle.reading(shown, index))
        expect(self.step.get_by_role("listitem").filter(visible=True)).to_have_text(
            [re.compile(rf"^\s*{re.escape(row.label)}\s*{re.escape(row.gib)}\s*$") for row in chronicle.legend(shown, index)]
        )
        rows = [(each.label, each.gib, each.shape, each.dtype, each.count, each.why) for each in chronicle.alive(shown, index)]
        self.expect_rows(self.step.get_by_role("table", name=chronicle.reading(shown, index)), rows)

    # Sharing

    def share(self):
        """Open the Share dialog."""
        self.button("Share").click()
        expect(self.dialog).to_be_visible()

    def shared(self, label):
        """A text of the Share dialog."""
        return self.dialog.get_by_label(label, exact=True).input_value()
