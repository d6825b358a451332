"""python -m ringfence --cflags --libs: what a C compiler needs to build against the package, as pkg-config says it."""

import sys

from . import include, version
from .host import HERE

FLAGS = {"--cflags": f"-I{include}", "--libs": f"{HERE}/libringfence.so.0 -Wl,-rpath,{HERE}", "--version": version}

if not sys.argv[1:] or set(sys.argv[1:]) - set(FLAGS):
    sys.exit(f"usage: python -m ringfence [{'] ['.join(FLAGS)}]")
print(*(FLAGS[word] for word in sys.argv[1:]))
