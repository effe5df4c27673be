"""What can be said of a template's script without running anything.

The template language is cut down to values, if, for and include: a filter or a set block could
take a value's quotes off again.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator

from jinja2 import Environment, TemplateSyntaxError, nodes

from gateway.core.manifest import CONTEXT
from gateway.core.manifest_reader import Fault
from gateway.core.shellscan import BLOCK, VALUE, scan

_ALLOWED = (
    nodes.Template,
    nodes.Output,
    nodes.TemplateData,
    nodes.Name,
    nodes.Const,
    nodes.If,
    nodes.For,
    nodes.Include,
    nodes.Compare,
    nodes.Operand,
    nodes.And,
    nodes.Or,
    nodes.Not,
)
_DIRECTIVE = re.compile(r"\s*#\s?SBATCH\b")


def lint(
    language: Environment, name: str, source: str, fields: set[str] | None
) -> tuple[Fault, ...]:
    """Every fault of one file. `fields` None: unknown, so no name is called undefined."""
    try:
        tree = language.parse(source)
    except TemplateSyntaxError as error:
        return (Fault(error.lineno, "template_syntax", error.message or "syntax error"),)
    faults = [*_constructs(tree), *_undefined(tree, fields), *_script(language, source)]
    if not name.startswith("_") and not source.startswith("#!"):
        faults.append(Fault(1, "shebang_missing", "the first line must be a shebang: #!/bin/bash"))
    return tuple(sorted(faults, key=lambda fault: fault.line or 0))


def variables(language: Environment, source: str) -> set[str]:
    """The names a file uses; for a field that nothing reads."""
    return {node.name for node in language.parse(source).find_all(nodes.Name)}


def includes(language: Environment, source: str) -> list[tuple[int, str]]:
    """Line and name of each included file."""
    found = []
    for node in language.parse(source).find_all(nodes.Include):
        if isinstance(node.template, nodes.Const):
            found.append((node.lineno, str(node.template.value)))
    return found


def _constructs(tree: nodes.Template) -> Iterator[Fault]:
    for node in _walk(tree):
        word = type(node).__name__.lower()
        if not isinstance(node, _ALLOWED):
            text = f"{word}: only values, if, for and include may be used"
            yield Fault(node.lineno, "template_construct", text)
        if isinstance(node, nodes.Output):
            for part in node.nodes:
                if not isinstance(part, nodes.TemplateData | nodes.Name):
                    text = "only a plain variable may be printed: {{ name }}"
                    yield Fault(part.lineno, "template_expression", text)
        if isinstance(node, nodes.Include) and not isinstance(node.template, nodes.Const):
            yield Fault(node.lineno, "template_construct", "include needs a fixed file name")


def _walk(node: nodes.Node) -> Iterator[nodes.Node]:
    yield node
    for child in node.iter_child_nodes():
        yield from _walk(child)


def _undefined(tree: nodes.Template, fields: set[str] | None) -> Iterator[Fault]:
    if fields is None:
        return
    own = {node.name for node in tree.find_all(nodes.Name) if node.ctx == "store"}
    known = CONTEXT | fields | own
    for node in tree.find_all(nodes.Name):
        if node.name not in known:
            text = f"undefined variable {node.name!r}: neither a field nor built in"
            yield Fault(node.lineno, "undefined_variable", text)


def _script(language: Environment, source: str) -> Iterator[Fault]:
    for number, line in enumerate(source.split("\n"), start=1):
        if VALUE in line or BLOCK in line:
            yield Fault(number, "template_character", "U+E000 and U+E001 are reserved")
            return
    shell, lines, names = _as_shell(language, source)
    yield from _literal_directives(shell, lines)
    yield from _positions(shell, lines, names)


def _as_shell(
    language: Environment, source: str
) -> tuple[str, list[tuple[int, int]], dict[int, str]]:
    """The script with VALUE and BLOCK in place of the template language; (offset, line) of each
    piece of it; and the name that each VALUE prints."""
    text = ""
    lines: list[tuple[int, int]] = []
    names: dict[int, str] = {}
    for line, kind, value in language.lex(source):
        lines.append((len(text), line))
        if kind == "data":
            text += value
        elif kind in ("variable_begin", "block_begin"):
            text += VALUE if kind == "variable_begin" else BLOCK
        elif kind == "name" and text.endswith(VALUE):
            names.setdefault(len(text) - 1, value)
    return text, lines, names


def _line(shell: str, lines: list[tuple[int, int]], offset: int) -> int:
    start, line = lines[bisect_right(lines, (offset, 10**9)) - 1]
    return line + shell.count("\n", start, offset)


def _literal_directives(shell: str, lines: list[tuple[int, int]]) -> Iterator[Fault]:
    offset, command = 0, False
    for text in shell.split("\n"):
        bare = text.replace(BLOCK, "").strip()
        if _DIRECTIVE.match(bare):
            line = _line(shell, lines, offset + text.index("#"))
            if command:
                why = "after the first command: sbatch does not read it, and Slurm never sees it"
                yield Fault(line, "directive_after_command", f"#SBATCH {why}")
            else:
                why = "the portal sends structured fields; use [sbatch] of the manifest"
                yield Fault(line, "directive_literal", f"#SBATCH in a template: {why}")
        elif bare and not bare.startswith("#"):
            command = True
        offset += len(text) + 1


def _positions(shell: str, lines: list[tuple[int, int]], names: dict[int, str]) -> Iterator[Fault]:
    found = scan(shell)
    for place in found.places:
        line = _line(shell, lines, place.offset)
        name = names.get(place.offset, "")
        if place.character == VALUE and place.unsafe:
            text = f"{{{{ {name} }}}} stands in {place.unsafe}: it must be a word of its own"
            yield Fault(line, "unsafe_value", text)
        elif place.character == VALUE and name == "setup" and not _alone(shell, place.offset):
            yield Fault(line, "unsafe_value", "{{ setup }} is whole lines: it stands alone on one")
        elif place.character == BLOCK and place.unsafe:
            text = f"a statement of the template stands in {place.unsafe}"
            yield Fault(line, "unsafe_block", text)
    if found.unclosed:
        offset, what = found.unclosed
        yield Fault(_line(shell, lines, offset), "shell_unclosed", f"{what} opened, never closed")


def _alone(shell: str, offset: int) -> bool:
    start = shell.rfind("\n", 0, offset) + 1
    end = shell.find("\n", offset)
    return shell[start : end if end >= 0 else None].strip() == VALUE
