#!/usr/bin/env python3
"""A binding in Python: host.py DIRECTORY MODULE. DIRECTORY has kinds_fenced.py and libkinds_fenced.so."""

import ctypes
import sys

directory, module = sys.argv[1:]
sys.path.insert(0, directory)
import kinds_fenced  # noqa: E402


def same(got, want):
    if got != want:
        sys.exit(f"{got!r} is not {want!r}")


kinds = kinds_fenced.open(f"{directory}/libkinds_fenced.so", module)
same((kinds_fenced.KINDS_MOST, kinds_fenced.KINDS_VERSION, kinds_fenced.KINDS_NONE), (16, b"1.2", -1))
k = kinds.kinds_create(b"ring", kinds_fenced.KINDS_GREEN)
same(kinds.kinds_name(k), b"ring")
values = (ctypes.c_int32 * 3)(1, 2, 39)
same(kinds.kinds_sum(values, 3), 42)
tens, ones = ctypes.c_int32(9), ctypes.c_int32(0)
same(kinds.kinds_split(42, tens, ones), 9)
same((tens.value, ones.value), (4, 2))
point = kinds_fenced.kinds_point(1, 2, 1.5)
kinds.kinds_move(point, 10, 20)
same((point.x, point.y, point.weight), (11, 22, 3.0))
seen = []
visit = kinds.kinds_visit_all.argtypes[1](lambda context, name, data, length: seen.append(name) or length)
same(kinds.kinds_visit_all(k, visit, None), 3)
same(seen, [b"one", b"ring"])
same(round(kinds.kinds_mix(1.5, 2.25, 3.0, -4, 65000), 2), 65002.75)
try:
    kinds.kinds_crash(tens)
    sys.exit("no Failure")
except kinds_fenced.Failure as failure:
    same("kinds_crash" in str(failure) and failure.status, 32)
kinds.reset()
same(kinds.kinds_name(kinds.kinds_create(None, 0)), b"nobody")
kinds.close()
print("host.py: ok")
