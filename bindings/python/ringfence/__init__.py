"""Ringfence for Python: native modules that nobody has to trust, in this process.

    import ringfence

    with ringfence.open("readme.rf") as module:
        add = module.function("int add(int, int)")
        print(add(2, 3))
        divide = module.function("int divide(int, int)")
        try:
            divide(1, 0)                 # would have killed the process
        except ringfence.Error as error:
            print(error, error.line)
        module.reset()
        print(divide(7, 2))

A module is made by `ringfence cc`, and verified when it is opened. Whole libraries get typed functions from `ringfence bind --lang
python`; such a binding finds the host library once this package is imported.
"""

import os

from .host import HERE, Error, library
from .module import Function, Module
from .policy import Policy

__all__ = ["Error", "Function", "Module", "Policy", "include", "library", "open", "version"]

#: The version of the host library.
version = library.rf_version().decode()

#: The directory of the headers that came with the package, for `cc -I`.
include = os.path.join(HERE, "include")


def open(path, *, imports=None, policy=None, integrity=False, **limits):  # noqa: A001, as dlopen is called
    """Opens a module in a domain of its own.

    `imports`    host functions by their prototypes: {"int host_add(int, int)": lambda a, b: a + b}
    `policy`     a Policy; without one the module has memory and nothing else
    `integrity`  whether modules may be opened whose loads are not confined
    `limits`     the numbers of rf_domain_options by name, in its units: time_limit=2_000_000_000, memory_limit=64 << 20

    Raises Error.
    """
    return Module(path, imports=imports, policy=policy, integrity=integrity, **limits)
