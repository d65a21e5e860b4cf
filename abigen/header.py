"""The ABI header as data: every enum, struct, slot, parameter and mark of `ort_abi.h`.

Two readers share the work. pycparser knows C types but not our marks (`ABI_SINCE(23)`, `ABI_IN`, ...), so the
marks are collected here from the text of each declaration and taken out before pycparser sees it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pycparser import c_ast, c_generator, c_parser

POINTER_SIZE = 8
SCALAR_SIZES = {
    "bool": 1,
    "char": 1,
    "unsigned char": 1,
    "int8_t": 1,
    "uint8_t": 1,
    "int16_t": 2,
    "uint16_t": 2,
    "int": 4,
    "unsigned int": 4,
    "float": 4,
    "int32_t": 4,
    "uint32_t": 4,
    "double": 8,
    "int64_t": 8,
    "uint64_t": 8,
    "size_t": 8,
    "intptr_t": 8,
    "uintptr_t": 8,
}
HOST_TABLES = {
    "OrtApi": "ort_api_table",
    "OrtEpApi": "ort_ep_api_table",
    "OrtModelEditorApi": "ort_model_editor_api_table",
    "OrtCompileApi": "ort_compile_api_table",
    "OrtInteropApi": "ort_interop_api_table",
}
"""Struct of every host table and the name of the one constant that the host defines for it."""

PLUGIN_EXPORTS = ("CreateEpFactories", "ReleaseEpFactory")
"""The functions that a plugin library exports."""

_GENERATOR = c_generator.CGenerator()
_MARK = re.compile(r"\bABI_([A-Z_]+)\b(?:\s*\(\s*(\*?\w+)\s*\))?")
_PARAMETER_MARKS = re.compile(r"\s*((?:ABI_[A-Z_]+(?:\(\*?\w+\))?\s+)*)")


class HeaderError(ValueError):
    """The header is outside the subset of C that abigen reads."""


@dataclass(frozen=True)
class Param:
    """One parameter. `marks` are lower case without `ABI_`, such as `in` or `out_writes(count)`."""

    name: str
    type: str
    marks: tuple[str, ...]

    @property
    def declaration(self) -> str:
        """The parameter as C declares it."""
        if "(*)" in self.type:
            return self.type.replace("(*)", f"(*{self.name})")
        return f"{self.type} {self.name}"


@dataclass(frozen=True)
class Function:
    """A slot, a function type or an exported function."""

    name: str
    returns: str
    params: tuple[Param, ...]
    since: int | None = None
    optional: bool = False
    returns_maybe_null: bool = False

    @property
    def returns_status(self) -> bool:
        """True if failure is reported by the result."""
        return self.returns == "OrtStatus*"

    def prototype(self, name: str) -> str:
        """The C prototype of a function called `name` with this signature."""
        params = ", ".join(param.declaration for param in self.params) or "void"
        return f"{self.returns} {name}({params})"


@dataclass(frozen=True)
class Member:
    """One member of a struct; `function` is set if it is a slot."""

    name: str
    type: str
    offset: int
    size: int
    since: int | None
    optional: bool
    function: Function | None = None


@dataclass(frozen=True)
class Struct:
    """A struct or table with its layout on LP64."""

    name: str
    since: int | None
    members: tuple[Member, ...]
    size: int

    @property
    def slots(self) -> list[Function]:
        """The members that are functions, in table order."""
        return [member.function for member in self.members if member.function is not None]


@dataclass(frozen=True)
class EnumValue:
    """One value of an enum; `since` is the API version that brought it, if the header says one."""

    name: str
    value: int
    since: int | None


@dataclass(frozen=True)
class Enum:
    """An enum, `typedef enum X {...} X` or `enum X {...}`."""

    name: str
    is_typedef: bool
    values: tuple[EnumValue, ...]
    since: int | None


@dataclass
class Abi:
    """Everything the header declares, each kind in the header's order."""

    version: int = 0
    opaque: list[str] = field(default_factory=list)
    enums: dict[str, Enum] = field(default_factory=dict)
    function_types: dict[str, Function] = field(default_factory=dict)
    structs: dict[str, Struct] = field(default_factory=dict)
    exports: dict[str, Function] = field(default_factory=dict)
    variables: list[str] = field(default_factory=list)

    def host_exports(self) -> list[Function]:
        """The functions that libort_abi.so exports."""
        return [export for name, export in self.exports.items() if name not in PLUGIN_EXPORTS]

    def host_tables(self) -> Iterator[tuple[Struct, str]]:
        """Each host table with the name of its constant."""
        for name, constant in HOST_TABLES.items():
            if name in self.structs:
                yield self.structs[name], constant


def plain_c(text: str) -> str:
    """The header's declarations without comments, preprocessor lines and host-side macros. Marks stay."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL)
    text = re.sub(
        r"^[ \t]*#[ \t]*ifdef __cplusplus.*?^[ \t]*#[ \t]*endif", "", text, flags=re.DOTALL | re.MULTILINE
    )
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.MULTILINE)
    text = re.sub(r"\bORT_API_CALL\b|\bORT_ABI_EXPORT\b", "", text)
    return re.sub(r"\bORTCHAR_T\b", "char", text)


def strip_marks(text: str) -> str:
    """The same text without marks: what a C parser reads."""
    text = _MARK.sub("", text)
    text = re.sub(r"[ \t]+([;,)])", r"\1", text)
    return re.sub(r"\n{3,}", "\n\n", text)


def _split(text: str, separator: str) -> list[str]:
    """Splits at separators that are inside no bracket; blank pieces are dropped."""
    pieces, depth, start = [], 0, 0
    for index, char in enumerate(text):
        if char in "({":
            depth += 1
        elif char in ")}":
            depth -= 1
        elif char == separator and depth == 0:
            pieces.append(text[start:index].strip())
            start = index + 1
    pieces.append(text[start:].strip())
    return [piece for piece in pieces if piece]


def _since(text: str) -> int | None:
    found = re.findall(r"ABI_SINCE\((\d+)\)", text)
    return int(found[-1]) if found else None


def _params_text(declaration: str) -> str:
    """The text between the brackets of a function's parameter list."""
    start = declaration.find(")(")
    start = start + 2 if start >= 0 else declaration.index("(") + 1
    depth = 1
    for index in range(start, len(declaration)):
        depth += {"(": 1, ")": -1}.get(declaration[index], 0)
        if depth == 0:
            return declaration[start:index]
    raise HeaderError(f"unbalanced brackets: {declaration}")


def _param_marks(declaration: str) -> list[tuple[str, ...]]:
    result = []
    for param in _split(_params_text(declaration), ","):
        match = _PARAMETER_MARKS.match(param)
        prefix = match.group(1) if match else ""
        marks = [name.lower() + (f"({count})" if count else "") for name, count in _MARK.findall(prefix)]
        result.append(tuple(marks))
    return result


def _type_text(node: c_ast.Node) -> str:
    """A type as the header writes it: `const char* const*`."""
    if isinstance(node, (c_ast.Decl, c_ast.Typename)):
        node = node.type
    text: str = _GENERATOR.visit(node)
    return re.sub(r"\s*\*\s*", "*", text).replace("*const", "* const").strip()


def _param(node: c_ast.Node, index: int, marks: tuple[str, ...]) -> Param:
    name = node.name or f"arg{index}"
    text = _type_text(node)
    if "[" in text or text.count("(*)") > 1:
        raise HeaderError(f"parameter {name}: write a typedef for {text}")
    return Param(name, text, marks)


def _function(name: str, node: c_ast.FuncDecl, text: str) -> Function:
    """Joins what pycparser knows of a function with the marks in its text."""
    nodes = list(node.args.params) if node.args else []
    marks = _param_marks(text)
    if len(nodes) == 1 and _type_text(nodes[0]) == "void":
        nodes, marks = [], []
    if len(nodes) != len(marks):
        raise HeaderError(f"{name}: {len(nodes)} parameters but marks for {len(marks)}")
    params = [_param(param, index, marks[index]) for index, param in enumerate(nodes)]
    return Function(
        name=name,
        returns=_type_text(node.type),
        params=tuple(params),
        since=_since(text),
        optional="ABI_OPTIONAL" in text,
        returns_maybe_null="ABI_RET_MAYBENULL" in text,
    )


def _function_pointer(node: c_ast.Node) -> c_ast.FuncDecl | None:
    if isinstance(node, c_ast.PtrDecl) and isinstance(node.type, c_ast.FuncDecl):
        return node.type
    return None


class _Reader:
    def __init__(self, version: int) -> None:
        self.abi = Abi(version=version)
        self.constants: dict[str, int] = {}

    def read(self, declaration: c_ast.Node, text: str) -> None:
        kind = declaration.type
        if isinstance(declaration, c_ast.Typedef):
            self._typedef(declaration, text)
        elif isinstance(kind, c_ast.Enum):
            self._enum(kind, text, is_typedef=False)
        elif isinstance(kind, c_ast.Struct) and kind.decls:
            self._struct(kind, text)
        elif isinstance(kind, c_ast.FuncDecl):
            self.abi.exports[declaration.name] = _function(declaration.name, kind, text)
        elif "extern" in declaration.storage:
            self.abi.variables.append(declaration.name)
        else:
            raise HeaderError(f"declaration of a kind that abigen does not read: {text}")

    def _typedef(self, declaration: c_ast.Typedef, text: str) -> None:
        function = _function_pointer(declaration.type)
        inner = declaration.type.type
        if function is not None:
            self.abi.function_types[declaration.name] = _function(declaration.name, function, text)
        elif isinstance(inner, c_ast.Enum):
            self._enum(inner, text, is_typedef=True)
        elif isinstance(inner, c_ast.Struct) and isinstance(declaration.type, c_ast.TypeDecl):
            if inner.decls:
                self._struct(inner, text)
            else:
                self.abi.opaque.append(declaration.name)

    def _enum(self, node: c_ast.Enum, text: str, *, is_typedef: bool) -> None:
        texts = _split(text[text.index("{") + 1 : text.rindex("}")], ",")
        values, following = [], 0
        for item, item_text in zip(node.values.enumerators, texts, strict=True):
            value = self._value(item.value) if item.value is not None else following
            following = value + 1
            self.constants[item.name] = value
            values.append(EnumValue(item.name, value, _since(item_text)))
        since = _since(text[text.rindex("}") :])
        self.abi.enums[node.name] = Enum(node.name, is_typedef, tuple(values), since)

    def _value(self, node: c_ast.Node) -> int:
        if isinstance(node, c_ast.Constant):
            return int(node.value, 0)
        if isinstance(node, c_ast.UnaryOp) and node.op == "-":
            return -self._value(node.expr)
        if isinstance(node, c_ast.ID):
            return self.constants[node.name]
        raise HeaderError(f"enum value of a kind that abigen does not read: {node}")

    def _struct(self, node: c_ast.Struct, text: str) -> None:
        texts = _split(text[text.index("{") + 1 : text.rindex("}")], ";")
        members, offset, alignment = [], 0, 1
        for decl, member_text in zip(node.decls, texts, strict=True):
            size, align = self._layout(decl.type)
            offset = -(-offset // align) * align
            function = _function_pointer(decl.type)
            slot = _function(decl.name, function, member_text) if function is not None else None
            optional = slot.optional if slot else "ABI_OPTIONAL" in member_text
            type_text = re.sub(r"\s+", " ", _type_text(decl))
            members.append(Member(decl.name, type_text, offset, size, _since(member_text), optional, slot))
            offset += size
            alignment = max(alignment, align)
        size = -(-offset // alignment) * alignment
        since = _since(text[text.rindex("}") :])
        self.abi.structs[node.name] = Struct(node.name, since, tuple(members), size)
        if node.name in self.abi.opaque:
            self.abi.opaque.remove(node.name)

    def _layout(self, node: c_ast.Node) -> tuple[int, int]:
        """Size and alignment of a type on LP64."""
        if isinstance(node, c_ast.PtrDecl):
            return POINTER_SIZE, POINTER_SIZE
        if isinstance(node, c_ast.ArrayDecl):
            size, align = self._layout(node.type)
            return size * self._value(node.dim), align
        inner = node.type
        if isinstance(inner, c_ast.Union):
            parts = [self._layout(decl.type) for decl in inner.decls]
            return max(size for size, _ in parts), max(align for _, align in parts)
        name = " ".join(inner.names)
        if name in SCALAR_SIZES:
            return SCALAR_SIZES[name], SCALAR_SIZES[name]
        if name in self.abi.enums:
            return 4, 4
        if name in self.abi.function_types:
            return POINTER_SIZE, POINTER_SIZE
        if name in self.abi.structs:
            struct = self.abi.structs[name]
            align = max(min(member.size, POINTER_SIZE) for member in struct.members)
            return struct.size, align
        raise HeaderError(f"size of {name} is not known")


def parse(text: str) -> Abi:
    """Reads a header's text.

    Raises `HeaderError` if the text is outside the subset, and pycparser's `ParseError` if it is not C.
    """
    match = re.search(r"#define ORT_API_VERSION (\d+)", text)
    reader = _Reader(int(match.group(1)) if match else 0)
    marked = plain_c(text)
    names = [
        name for name in SCALAR_SIZES if " " not in name and name not in ("char", "int", "float", "double")
    ]
    prelude = "".join(f"typedef int {name};" for name in names)
    parsed = c_parser.CParser().parse(prelude + strip_marks(marked), "ort_abi.h")
    texts = _split(marked, ";")
    for declaration, declaration_text in zip(parsed.ext[len(names) :], texts, strict=True):
        reader.read(declaration, declaration_text)
    slots = [slot.name for table, _ in reader.abi.host_tables() for slot in table.slots]
    twice = {name for name in slots if slots.count(name) > 1}
    if twice:
        raise HeaderError(f"slot names must be unique over all host tables: {sorted(twice)}")
    return reader.abi


def read(*paths: Path) -> Abi:
    """Reads header files as one text, in the given order; raises as `parse` does."""
    return parse("\n".join(path.read_text(encoding="utf-8") for path in paths))
