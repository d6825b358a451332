#!/usr/bin/env python3
"""Makes a copy of the library that knows nothing of the mark by which copies find each other: it has places of its own.

  unmark.py LIBRARY COPY

As an older version would be, or one that somebody has changed: for the attack by two copies (copies.c)."""
import re
import sys

source = open("crates/runtime/src/os/mark.rs", encoding="utf-8").read()
places = re.search(r"const PLACES: \[u64; \d+\] = \[(.*?)\];", source, re.S).group(1)
library = open(sys.argv[1], "rb").read()
for place in places.replace("_", "").split(","):
    place = int(place, 16)
    # 16 MiB further, wherever the compiler has put it, in a table or in an instruction.
    width = 8 if place >> 32 else 4
    old, new = (n.to_bytes(width, "little") for n in (place, place + (1 << 24)))
    if old not in library:
        sys.exit(f"unmark.py: the library does not have the place {place:#x}")
    library = library.replace(old, new)
open(sys.argv[2], "wb").write(library)
