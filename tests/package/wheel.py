#!/usr/bin/env python3
"""The Python package from its wheel.

    wheel.py --structs               prints a program in C that fails if a struct of the package is not as in the headers
    wheel.py GUEST_MODULE DIRECTORY  calls the module; DIRECTORY has a file `letter` whose first is x
"""

import ctypes
import pathlib
import sys
import threading

import ringfence
from ringfence import host

STRUCTS = {
    "rf_domain_options": host.DomainOptions,
    "rf_error_info": host.ErrorInfo,
    "rf_import": host.Import,
    "rf_frame": host.Frame,
}
if sys.argv[1:] == ["--structs"]:
    print("#include <ringfence.h>\n#include <stddef.h>")
    for name, kind in STRUCTS.items():
        print(f'_Static_assert(sizeof({name}) == {ctypes.sizeof(kind)}, "{name}");')
        for field, _ in kind._fields_:
            print(f'_Static_assert(offsetof({name}, {field}) == {getattr(kind, field).offset}, "{name}.{field}");')
    print("int main(void) { return rf_version() == NULL; }")
    sys.exit()

guest, directory = sys.argv[1], pathlib.Path(sys.argv[2])


def same(got, want):
    if got != want:
        sys.exit(f"{got!r} is not {want!r}")


def raises(kind, call, *arguments):
    try:
        call(*arguments)
    except kind as error:
        return error
    sys.exit(f"no {kind.__name__}")


asked = []


def host_next(value, text):
    if value < 0:
        raise KeyError(value)
    asked.append(module.read_text(text))
    return value + 1


imports = {"int host_next(int value, const char *text)": host_next}
with ringfence.open(guest, imports=imports, time_limit=200_000_000) as module:
    same(module.function("int add(int, int)")(2, 3), 5)
    same(module.function("double mix(float a, signed char b, unsigned long long c, _Bool d)")(1.5, -4, 1 << 40, True), 1.5 - 4 + (1 << 40) + 1)
    values = module.alloc(b"".join(n.to_bytes(4, "little") for n in (1, 2, 39)))
    same(module.function("int sum(const int *values, unsigned count)")(values, 3), 42)
    same(module.read(values, 4), b"\1\0\0\0")
    module.free(values)
    same(module.read_text(module.function("const char *name(void)")()), b"guest")
    same(raises(ringfence.Error, module.read, 4096, 4).name, "RF_ERROR_RANGE")

    ask = module.function("int ask(int)")
    same((ask(5), asked), (7, [b"asked"]))
    raises(KeyError, ask, -1)
    same(ask(6), 8)

    divide = module.function("int divide(int, int)")
    failure = raises(ringfence.Error, divide, 1, 0)
    same((failure.name, failure.function, failure.line), ("RF_FAULT_DIVIDE", "divide", 9))
    same(failure.frames[0][0], "divide")
    same(raises(ringfence.Error, divide, 7, 2).name, "RF_ERROR_FAULTED")
    module.reset()
    same(divide(7, 2), 3)
    same(raises(ringfence.Error, module.function("void spin(void)")).name, "RF_FAULT_TIME")
    module.reset()
    # Errors are a thread's own.
    said = []
    thread = threading.Thread(target=lambda: said.append(raises(ringfence.Error, divide, 1, 0).name))
    thread.start()
    thread.join()
    same(said, ["RF_FAULT_DIVIDE"])
raises(ValueError, divide, 7, 2)

policy = ringfence.Policy().stdout("capture").dir(directory, "/data")
with ringfence.open(guest, imports=imports, policy=policy) as module:
    same(module.function("int say(int)")(7), 9)
    same((module.captured(), module.captured()), (b"number 7\n", b""))
    same(module.function("int look(const char *)")(module.text("/data/letter")), ord("x"))
with ringfence.open(guest, imports=imports) as module:
    same(module.function("int look(const char *)")(module.text("/data/letter")), -1)
    for wrong in ("int add", "int nobody(int)", "struct s add(int)", "int add(void, int)"):
        raises((TypeError, ringfence.Error), module.function, wrong)
same(raises(ringfence.Error, ringfence.open, guest).name, "RF_ERROR_IMPORT")
same(raises(ringfence.Error, ringfence.open, directory / "none.rf").name, "RF_ERROR_FILE")
raises(TypeError, lambda: ringfence.open(guest, imports=imports, time=1))
print("wheel.py: ok")
