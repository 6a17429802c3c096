"""Why something that was brought cannot be read."""


class ImportProblem(ValueError):
    """A file that cannot be used: a code for programs, one sentence of what it is or lacks, and what to do."""

    def __init__(self, code: str, message: str, hint: str):
        super().__init__(code, message, hint)
        self.code = code
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()
