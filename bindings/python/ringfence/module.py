"""Modules: opening one, calling its functions, its memory."""

import ctypes
import os
import threading

from .host import LIMITS, DomainOptions, Import, check, failed, library
from .prototype import parse

# What a host function raised during the thread's call into a domain.
_raised = threading.local()


class Function:
    """A function of a module, called like one of Python's. Pointers are numbers: addresses in the domain."""

    def __init__(self, module, prototype):
        self.name, result, arguments = parse(prototype)
        self.prototype = prototype
        # Ends after its last function.
        self._module = module
        address = library.rf_dlsym(module._handle, prototype.encode())
        if not address:
            raise failed()
        self._call = ctypes.CFUNCTYPE(result, *arguments)(address)

    def __call__(self, *arguments):
        if not self._module._handle:
            raise ValueError(f"{self.name}: its module is closed")
        library.rf_error_clear()
        _raised.error = None
        result = self._call(*arguments)
        # What a host function raised comes before what became of the module by that.
        error, _raised.error = _raised.error or failed(), None
        library.rf_error_clear()
        if error:
            raise error
        return result

    def __repr__(self):
        return f"<ringfence function {self.prototype}>"


def _host(prototype, function):
    """A host function for ctypes, and its name. What it raises ends up at the caller of the module; the module gets 0."""
    name, result, arguments = parse(prototype)

    def run(*values):
        try:
            value = function(*values)
            return value if result is None or value is not None else 0
        except BaseException as error:
            if getattr(_raised, "error", None) is None:
                _raised.error = error
            return 0 if result else None

    return name, ctypes.CFUNCTYPE(result, *arguments)(run)


class Module:
    """A module in a domain of its own; `with` closes it. Any thread may use it."""

    def __init__(self, path, *, imports=None, policy=None, integrity=False, **limits):
        options = DomainOptions(size=ctypes.sizeof(DomainOptions))
        for name, value in limits.items():
            if name not in LIMITS:
                raise TypeError(f"open has no option {name}; there are {', '.join(LIMITS)}")
            setattr(options, name, value)
        # They live as long as the domain.
        self._imports = [(p.encode(), _host(p, f)[1]) for p, f in (imports or {}).items()]
        table = (Import * max(1, len(self._imports)))(
            *(Import(p, ctypes.cast(f, ctypes.c_void_p).value, None, None) for p, f in self._imports)
        )
        options.imports, options.import_count = table, len(self._imports)
        options.policy = policy._handle if policy else None
        self._handle = library.rf_dlopen_with(os.fsencode(path), int(integrity), ctypes.byref(options))
        if not self._handle:
            raise failed()

    def function(self, prototype):
        """The exported function, by its prototype in C: function("int add(int, int)")."""
        return Function(self, prototype)

    def run(self):
        """Runs the program that the module is; its exit status."""
        status = ctypes.c_int()
        check(library.rf_domain_run_program(self._handle, ctypes.byref(status)))
        return status.value

    def captured(self, stream=1):
        """What was captured of the standard output (1) or error (2), and not taken yet."""
        parts, room = [], ctypes.create_string_buffer(1 << 16)
        while got := library.rf_domain_take_captured(self._handle, stream, room, len(room)):
            parts.append(room.raw[:got])
        return b"".join(parts)

    def alloc(self, data):
        """The address of memory in the domain: a copy of bytes, or as many zeros as the number says. Ends by `free` or `reset`."""
        size = data if isinstance(data, int) else len(data)
        address = library.rf_memory_alloc(self._handle, size)
        if not address:
            raise failed()
        if not isinstance(data, int):
            self.write(address, data)
        return address

    def text(self, text):
        """The address of a copy of a text in the domain, with a NUL behind it."""
        return self.alloc((text if isinstance(text, bytes) else text.encode()) + b"\0")

    def free(self, address):
        check(library.rf_memory_free(self._handle, address))

    def read(self, address, size):
        """Bytes of the domain's memory. An address that is not the domain's raises Error."""
        into = ctypes.create_string_buffer(size)
        check(library.rf_memory_read(self._handle, address, into, size))
        return into.raw

    def read_text(self, address, most=1 << 16):
        """The text that begins there, at most so many bytes with its NUL."""
        into = ctypes.create_string_buffer(most)
        check(library.rf_memory_read_string(self._handle, address, into, most, None))
        return into.value

    def write(self, address, data):
        check(library.rf_memory_write(self._handle, address, bytes(data), len(data)))

    def reset(self):
        """Puts the domain back to its start, after a fault too; its memory and what was allocated are gone."""
        check(library.rf_domain_reset(self._handle))

    def close(self):
        """Runs the module's destructors and ends the domain."""
        handle, self._handle = self._handle, None
        if handle and library.rf_dlclose(handle):
            raise failed()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_handle", None):
            library.rf_dlclose(self._handle)
            library.rf_error_clear()
