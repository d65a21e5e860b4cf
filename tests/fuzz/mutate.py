"""Damaged models: deterministic mutations of valid ones, of their bytes and of their fields."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
MAX_DEPTH = 8
EDGES = [0, 1, 2, 3, 7, 8, 127, 128, 2**31 - 1, 2**31, 2**32, 2**40, 2**63 - 1, 2**63, 2**64 - 1]
BYTE_EDGES = [0, 1, 2, 7, 8, 16, 0x7F, 0x80, 0xFF]
LONG_LENGTHS = [b"\xff\xff\xff\xff\x0f", b"\xff" * 9 + b"\x01", b"\x80\x80\x80\x80\x80\x00"]


@dataclass
class Field:
    """One field of a message: a number, bytes, or a message of its own (then `data` is not used)."""

    number: int
    kind: int
    value: int = 0
    data: bytes = b""
    children: list[Field] | None = None


class Malformed(ValueError):
    """The bytes are no message."""


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Malformed
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def parse(data: bytes, depth: int = 0) -> list[Field]:
    """The fields of a message; bytes that look like a message become one. Raises `Malformed`."""
    fields = []
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        item = Field(tag >> 3, tag & 7)
        if not 0 < item.number < 64:
            raise Malformed
        if item.kind == VARINT:
            item.value, at = _varint(data, at)
        elif item.kind == BYTES:
            length, at = _varint(data, at)
            item.data = data[at : at + length]
            at += length
            item.children = _children(item.data, depth)
        elif item.kind in (FIXED64, FIXED32):
            length = 8 if item.kind == FIXED64 else 4
            item.data = data[at : at + length]
            at += length
        else:
            raise Malformed
        if at > len(data):
            raise Malformed
        fields.append(item)
    return fields


def _children(data: bytes, depth: int) -> list[Field] | None:
    if len(data) < 2 or depth == MAX_DEPTH:
        return None
    try:
        return parse(data, depth + 1)
    except Malformed:
        return None


def _encode_varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def serialize(fields: Sequence[Field]) -> bytes:
    """The bytes of a message; lengths are right."""
    out = bytearray()
    for item in fields:
        out += _encode_varint(item.number << 3 | item.kind)
        if item.kind == VARINT:
            out += _encode_varint(item.value % 2**64)
        elif item.kind == BYTES:
            data = item.data if item.children is None else serialize(item.children)
            out += _encode_varint(len(data)) + data
        else:
            out += item.data
    return bytes(out)


# ---- Damage to fields: the result is well formed, but no longer a sensible model ----


def messages(fields: list[Field]) -> list[list[Field]]:
    """The message and all messages in it."""
    found = [fields]
    for item in fields:
        if item.children is not None:
            found += messages(item.children)
    return found


def change_value(message: list[Field], other: list[Field], rng: random.Random) -> None:
    """Gives one field another value."""
    item = rng.choice(message)
    if item.kind == VARINT:
        item.value = rng.choice([rng.choice(EDGES), item.value + 1, item.value - 1, rng.randrange(40)])
    else:
        data = bytearray(item.data)
        if data:
            data[rng.randrange(len(data))] = rng.choice(BYTE_EDGES)
        item.data, item.children = bytes(data), None


def change_size(message: list[Field], other: list[Field], rng: random.Random) -> None:
    """Makes a text, list or tensor longer or shorter."""
    item = rng.choice(message)
    if item.kind == BYTES:
        cut = rng.randrange(len(item.data) + 1)
        item.data, item.children = rng.choice([item.data[:cut], item.data * 2, item.data + b"\1"]), None


def drop(message: list[Field], other: list[Field], rng: random.Random) -> None:
    """Removes a field."""
    del message[rng.randrange(len(message))]


def duplicate(message: list[Field], other: list[Field], rng: random.Random) -> None:
    """Repeats a field elsewhere in its message."""
    message.insert(rng.randrange(len(message) + 1), deepcopy(rng.choice(message)))


def swap(message: list[Field], other: list[Field], rng: random.Random) -> None:
    """Exchanges two fields: nodes out of order, inputs exchanged."""
    a, b = rng.randrange(len(message)), rng.randrange(len(message))
    message[a], message[b] = message[b], message[a]


def renumber(message: list[Field], other: list[Field], rng: random.Random) -> None:
    """Makes a field mean something else."""
    rng.choice(message).number = rng.randint(1, 30)


def transplant(message: list[Field], other: list[Field], rng: random.Random) -> None:
    """Takes a field of another model's message."""
    message[rng.randrange(len(message))] = deepcopy(rng.choice(rng.choice([m for m in messages(other) if m])))


# ---- Damage to bytes ----


def truncate(data: bytearray, other: bytes, rng: random.Random) -> None:
    """Cuts the end off."""
    del data[rng.randrange(len(data)) :]


def flip_bits(data: bytearray, other: bytes, rng: random.Random) -> None:
    """Flips 1 to 4 bits."""
    for _ in range(rng.randint(1, 4)):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def set_byte(data: bytearray, other: bytes, rng: random.Random) -> None:
    """Sets a byte to a value that is the edge of something."""
    data[rng.randrange(len(data))] = rng.choice(BYTE_EDGES)


def long_number(data: bytearray, other: bytes, rng: random.Random) -> None:
    """Puts a number of many bytes where one byte was: an absurd length or value."""
    at = rng.randrange(len(data))
    data[at : at + 1] = rng.choice(LONG_LENGTHS)


def splice(data: bytearray, other: bytes, rng: random.Random) -> None:
    """Puts a piece of another model in, over what was there or between."""
    start = rng.randrange(len(other))
    piece = other[start : start + rng.randint(1, 200)]
    at = rng.randrange(len(data))
    data[at : at + (len(piece) if rng.random() < 0.5 else 0)] = piece


FIELD_DAMAGE: list[Callable[[list[Field], list[Field], random.Random], None]] = [
    change_value,
    change_size,
    drop,
    duplicate,
    swap,
    renumber,
    transplant,
]
BYTE_DAMAGE: list[Callable[[bytearray, bytes, random.Random], None]] = [
    truncate,
    flip_bits,
    set_byte,
    long_number,
    splice,
]


@dataclass
class Mutator:
    """Gives the `n`th damaged model of a list of valid ones."""

    models: Sequence[bytes]

    def make(self, n: int) -> bytes:
        """Deterministic: the same bytes for the same `n`."""
        rng = random.Random(n)
        data = self.models[n % len(self.models)]
        other = rng.choice(self.models)
        damage = self._damage_fields if n // len(self.models) % 2 else self._damage_bytes
        return damage(data, other, rng)

    def _damage_fields(self, data: bytes, other: bytes, rng: random.Random) -> bytes:
        fields, others = parse(data), parse(other)
        for _ in range(rng.choice([1, 1, 1, 2, 4])):
            message = rng.choice([m for m in messages(fields) if m] or [fields])
            if message:
                rng.choice(FIELD_DAMAGE)(message, others, rng)
        return serialize(fields)

    def _damage_bytes(self, data: bytes, other: bytes, rng: random.Random) -> bytes:
        damaged = bytearray(data)
        for _ in range(rng.choice([1, 1, 1, 2, 4])):
            if damaged:
                rng.choice(BYTE_DAMAGE)(damaged, other, rng)
        return bytes(damaged)
