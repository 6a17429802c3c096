"""The browser side, in Python.

`tree`, `panels` and `views` are pure: they turn reports into a tree of elements, which the build writes as markup and
the page paints. `page` is the entry; it and `results`, `controls`, `dom`, `address`, `clipboard` and `events` speak to
the browser. Nothing else imports js or pyodide.
"""
