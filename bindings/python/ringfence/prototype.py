"""Prototypes of C, "int add(int, int)", as types of ctypes."""

import ctypes
import re

# Pointers are addresses: numbers, into the domain.
POINTER = ctypes.c_void_p
TYPES = {
    "bool": ctypes.c_bool,
    "_Bool": ctypes.c_bool,
    "char": ctypes.c_byte,
    "signed char": ctypes.c_byte,
    "unsigned char": ctypes.c_ubyte,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "long double": ctypes.c_longdouble,
    "size_t": ctypes.c_size_t,
    "ssize_t": ctypes.c_ssize_t,
    "ptrdiff_t": ctypes.c_ssize_t,
    "intptr_t": ctypes.c_ssize_t,
    "uintptr_t": ctypes.c_size_t,
    **{f"int{bits}_t": getattr(ctypes, f"c_int{bits}") for bits in (8, 16, 32, 64)},
    **{f"uint{bits}_t": getattr(ctypes, f"c_uint{bits}") for bits in (8, 16, 32, 64)},
}
LENGTHS = {(): "int", ("short",): "short", ("long",): "long", ("long", "long"): "longlong"}
WORDS = {"short", "int", "long", "signed", "unsigned"}


def _type(text, prototype):
    """A type, with or without a parameter's name."""
    if "*" in text or "[" in text:
        return POINTER
    words = [w for w in text.split() if w not in ("const", "volatile", "register", "restrict")]
    if words[:1] == ["enum"]:
        return ctypes.c_int if len(words) <= 3 else _unknown(text, prototype)
    if words == ["void"]:
        return None
    # The longest beginning that is a type; one word more may be a name.
    for end in (len(words), len(words) - 1):
        known = TYPES.get(" ".join(words[:end]))
        if end and known:
            return known
        if end and set(words[:end]) <= WORDS:
            length = tuple(w for w in words[:end] if w in ("short", "long"))
            if length in LENGTHS:
                return getattr(ctypes, f"c_{'u' if 'unsigned' in words else ''}{LENGTHS[length]}")
    return _unknown(text, prototype)


def _unknown(text, prototype):
    raise TypeError(f"{prototype!r}: no type that can be passed: {text.strip()!r}")


def parse(prototype):
    """(name, result, arguments). TypeError for what is no prototype of numbers and pointers."""
    found = re.fullmatch(r"\s*(.+?)(\w+)\s*\((.*)\)\s*;?\s*", prototype, re.S)
    if not found or "(" in found[3]:
        raise TypeError(f"{prototype!r} is no prototype; write one as 'int add(int, int)'")
    inside = found[3].strip()
    arguments = [] if inside in ("", "void") else [_type(a, prototype) for a in inside.split(",")]
    if None in arguments:
        raise TypeError(f"{prototype!r}: an argument is void")
    return found[2], _type(found[1], prototype), arguments
