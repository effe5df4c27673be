"""Where in a bash script a character stands: in a word, in quotes, in a comment …

Enough of bash's grammar to say whether a quoted word put there stays one inert word. It errs
towards "unsafe": an author can always move the value into a variable of its own.
"""

import re
from dataclasses import dataclass

VALUE = "\ue000"  # stands for a value that the renderer will put in as quoted words
BLOCK = "\ue001"  # stands for a statement of the template language

# Contexts in which a quoted word is just a word.
_PLAIN = frozenset({"script", "$(", "("})
_NAMES = {
    "'": "single quotes",
    '"': "double quotes",
    "$'": "$'…' quotes",
    "`": "backticks",
    "((": "arithmetic",
    "${": "a ${…} expansion",
    "[[": "a [[ … ]] test",
    "#": "a comment",
    "<<": "a here-document",
    "\\": "an escape: the backslash takes away the opening quote",
    "$": "$ and a quote, which bash reads as $'…'",
}
_HEREDOC = re.compile(r"<<(-?)[ \t]*(['\"\\]?)([A-Za-z_][A-Za-z0-9_]*)['\"]?")
_SEPARATOR = re.compile(r"[;&|(){\n`]|\b(?:then|do|else)\b")
_RUNS_TEXT = re.compile(r"(?:^|\s)(?:eval|trap|let|alias|ssh|xargs)\s")
_RUNS_OPTION = re.compile(
    r"(?:^|[\s/])(?:(?:ba|da|z|k)?sh|su|python[\d.]*|perl|ruby|node)\s.*?(?<=\s)-[a-zA-Z]*[ce]\s*$"
)


@dataclass(frozen=True, slots=True)
class Place:
    """One VALUE or BLOCK of the text. `unsafe` names where it stands, or is None."""

    offset: int
    character: str
    unsafe: str | None


@dataclass(frozen=True, slots=True)
class Scan:
    places: tuple[Place, ...]
    unclosed: tuple[int, str] | None  # offset and name of a quote that never ends


def scan(text: str) -> Scan:
    """Find every VALUE and BLOCK and say where it stands."""
    scanner = _Scanner(text)
    scanner.run()
    unclosed = None
    if len(scanner.stack) > 1:
        opened, offset = scanner.stack[1]
        unclosed = (offset, _NAMES.get(opened, opened))
    return Scan(tuple(scanner.places), unclosed)


class _Scanner:
    """A stack of what is open, and one step a character (or a few)."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.stack: list[tuple[str, int]] = [("script", 0)]
        self.places: list[Place] = []
        self._heredocs: list[tuple[bool, str]] = []

    @property
    def top(self) -> str:
        return self.stack[-1][0]

    def run(self) -> None:
        while self.at < len(self.text):
            character = self.text[self.at]
            if character in (VALUE, BLOCK):
                self._place(self._unsafe())
                self.at += 1
            elif self.top in ("#", "'"):
                self._until_close(character)
            elif character == "\\":
                self._escape()
            elif self.top == "$'":
                self._until_close(character)
            else:
                self._step(character)
        if self.top == "#":
            self.stack.pop()

    def _place(self, unsafe: str | None) -> None:
        self.places.append(Place(self.at, self.text[self.at], unsafe))

    def _unsafe(self) -> str | None:
        for opened, _ in reversed(self.stack):
            if opened not in _PLAIN:
                return _NAMES[opened]
        if self.text[self.at] == BLOCK:
            return None
        if self.text[: self.at].endswith("$"):
            return _NAMES["$"]
        before = self.text[: self.at].replace("\\\n", "  ").replace(BLOCK, ";")
        starts = [match.end() for match in _SEPARATOR.finditer(before)]
        command = before[starts[-1] if starts else 0 :]
        if _RUNS_TEXT.search(command) or _RUNS_OPTION.search(command):
            return "a text that another program runs as code"
        return None

    def _until_close(self, character: str) -> None:
        closes = "\n" if self.top == "#" else "'"
        if character == closes:
            self.stack.pop()
        if character != "\n" or closes != "\n":
            self.at += 1  # the newline after a comment is looked at again

    def _escape(self) -> None:
        self.at += 1
        if self.at < len(self.text) and self.text[self.at] in (VALUE, BLOCK):
            self._place(_NAMES["\\"])
        self.at += 1

    def _step(self, character: str) -> None:
        quoted = self.top == '"'
        if character == "\n" and not quoted:
            self.at += 1
            self._heredoc_bodies()
            return
        if self._close() or self._open(character, quoted=quoted):
            return
        self.at += 1

    def _close(self) -> bool:
        closers = {'"': '"', "`": "`", "$(": ")", "(": ")", "${": "}", "((": "))", "[[": "]]"}
        closer = closers.get(self.top)
        if closer is None or not self.text.startswith(closer, self.at):
            return False
        self.stack.pop()
        self.at += len(closer)
        return True

    def _open(self, character: str, *, quoted: bool) -> bool:
        for opener, context in (("$((", "(("), ("$(", "$("), ("${", "${")):
            if self.text.startswith(opener, self.at):
                return self._push(context, len(opener))
        if character == "`":
            return self._push("`", 1)
        if quoted:
            return False
        if character == '"':
            return self._push('"', 1)
        if self.top == "((":
            return character == "(" and self._push("(", 1)
        if character == "'" and not self._inside_double_quotes():
            return self._push("'", 1)
        if self.text.startswith("$'", self.at):
            return self._push("$'", 2)
        return self._open_command(character)

    def _open_command(self, character: str) -> bool:
        if self.top == "${":
            return False
        if self.text.startswith("<<<", self.at):
            self.at += 3
            return True
        heredoc = _HEREDOC.match(self.text, self.at)
        if heredoc and self.top != "[[":
            self._heredocs.append((heredoc[1] == "-", heredoc[3]))
            self.at = heredoc.end()
            return True
        if self._starts_word():
            if character == "#":
                return self._push("#", 1)
            if self.text.startswith("((", self.at):
                return self._push("((", 2)
            if re.match(r"\[\[\s", self.text[self.at : self.at + 3]):
                return self._push("[[", 2)
        return character == "(" and self._push("(", 1)

    def _push(self, context: str, length: int) -> bool:
        self.stack.append((context, self.at))
        self.at += length
        return True

    def _starts_word(self) -> bool:
        return self.at == 0 or self.text[self.at - 1] in " \t\n;&|()" + BLOCK

    def _inside_double_quotes(self) -> bool:
        """Inside "${x:-'y'}" a single quote is an ordinary character."""
        return self.top == "${" and any(opened == '"' for opened, _ in self.stack)

    def _heredoc_bodies(self) -> None:
        for strip_tabs, delimiter in self._heredocs:
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                line = self.text[self.at : end]
                if (line.lstrip("\t") if strip_tabs else line) == delimiter:
                    self.at = end + 1
                    break
                self._heredoc_line(end)
        self._heredocs.clear()

    def _heredoc_line(self, end: int) -> None:
        while self.at < end:
            if self.text[self.at] in (VALUE, BLOCK):
                self._place(_NAMES["<<"])
            self.at += 1
        self.at = end + 1
