"""The browser side, in Python.

`tree` and `views` are pure: they turn reports into a tree of elements, which the build writes as markup and the page
paints. `dom`, `address`, `form` and `page` speak to the browser; nothing else imports js or pyodide.
"""
