"""The host library, loaded once; its errors as exceptions; its structs."""

import ctypes
import os

HERE = os.path.dirname(os.path.abspath(__file__))


def _load():
    # A wheel brings it. In a tree it is the linker's to find: LD_LIBRARY_PATH, or what is installed.
    own = os.path.join(HERE, "libringfence.so.0")
    # Its functions are there for libraries that need libringfence.so.0, such as compiled bindings.
    return ctypes.CDLL(own if os.path.exists(own) else "libringfence.so.0", mode=ctypes.RTLD_GLOBAL)


class Frame(ctypes.Structure):
    _fields_ = [
        ("address", ctypes.c_uint64),
        ("function", ctypes.c_char_p),
        ("file", ctypes.c_char_p),
        ("line", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    ]


class ErrorInfo(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("status", ctypes.c_int),
        ("code", ctypes.c_int32),
        ("message", ctypes.c_char_p),
        ("address", ctypes.c_uint64),
        ("instruction", ctypes.c_uint64),
        ("function", ctypes.c_char_p),
        ("file", ctypes.c_char_p),
        ("line", ctypes.c_uint32),
        ("frame_count", ctypes.c_uint32),
        ("frames", ctypes.POINTER(Frame)),
        ("public_message", ctypes.c_char_p),
    ]


class Import(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("callback", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
    ]


# The fields of rf_domain_options that are numbers: what `open` takes by name.
LIMITS = (
    "time_limit processor_time call_limit fault_limit memory_limit code_limit module_limit max_lanes data_stack control_stack "
    "thread_local_reserve processors extensible backend addressing x87 idle_heap"
).split()


class DomainOptions(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("imports", ctypes.POINTER(Import)),
        ("import_count", ctypes.c_size_t),
        ("slots", ctypes.c_void_p),
        ("slot_count", ctypes.c_size_t),
        ("policy", ctypes.c_void_p),
        ("on_limit", ctypes.c_void_p),
        ("on_limit_context", ctypes.c_void_p),
        *((name, ctypes.c_uint64) for name in LIMITS),
        ("cancel", ctypes.c_void_p),
        ("arena", ctypes.c_void_p),
    ]


# Function: result, arguments. What is not here is a ctypes function of `library` all the same.
_pointer = ctypes.c_void_p
_text = ctypes.c_char_p
_size = ctypes.c_size_t
_status = ctypes.c_int
_SIGNATURES = {
    "rf_error": (ctypes.POINTER(ErrorInfo), []),
    "rf_error_clear": (None, []),
    "rf_status_name": (_text, [_status]),
    "rf_version": (_text, []),
    "rf_dlopen_with": (_pointer, [_text, ctypes.c_int, ctypes.POINTER(DomainOptions)]),
    "rf_dlsym": (_pointer, [_pointer, _text]),
    "rf_dlclose": (ctypes.c_int, [_pointer]),
    "rf_domain_reset": (_status, [_pointer]),
    "rf_domain_run_program": (_status, [_pointer, ctypes.POINTER(ctypes.c_int)]),
    "rf_domain_take_captured": (_size, [_pointer, ctypes.c_int, _pointer, _size]),
    "rf_memory_alloc": (_pointer, [_pointer, _size]),
    "rf_memory_free": (_status, [_pointer, _pointer]),
    "rf_memory_read": (_status, [_pointer, _pointer, _pointer, _size]),
    "rf_memory_write": (_status, [_pointer, _pointer, _pointer, _size]),
    "rf_memory_read_string": (_status, [_pointer, _pointer, _pointer, _size, ctypes.POINTER(_size)]),
    "rf_policy_create": (_status, [ctypes.POINTER(_pointer)]),
    "rf_policy_destroy": (_status, [_pointer]),
    "rf_policy_dir": (_status, [_pointer, _text, _text, ctypes.c_int]),
    "rf_policy_cwd": (_status, [_pointer, _text]),
    "rf_policy_stdin": (_status, [_pointer, ctypes.c_int]),
    "rf_policy_stdin_bytes": (_status, [_pointer, _text, _size]),
    "rf_policy_stdout": (_status, [_pointer, ctypes.c_int]),
    "rf_policy_stderr": (_status, [_pointer, ctypes.c_int]),
    "rf_policy_args": (_status, [_pointer, ctypes.POINTER(_text), _size]),
    "rf_policy_env": (_status, [_pointer, _text, _text]),
    "rf_policy_clocks": (_status, [_pointer, ctypes.c_int]),
    "rf_policy_randomness": (_status, [_pointer, ctypes.c_int]),
    "rf_policy_descriptors": (_status, [_pointer, ctypes.c_uint]),
    "rf_policy_threads": (_status, [_pointer, ctypes.c_uint]),
    "rf_policy_connect": (_status, [_pointer, _text]),
}

library = _load()
for _name, (_result, _arguments) in _SIGNATURES.items():
    _function = getattr(library, _name)
    _function.restype, _function.argtypes = _result, _arguments


class Error(Exception):
    """What the library refused, or how the domain's code failed.

    `status` is the rf_status as a number, `name` as a word ("RF_FAULT_DIVIDE"). Of faults `function`, `file`, `line` and `frames`
    (of the same three each, innermost first) tell where, as far as the module's debug information does.
    """

    def __init__(self, info):
        super().__init__((info.message or b"").decode(errors="replace"))
        self.status, self.code = info.status, info.code
        self.name = library.rf_status_name(info.status).decode()
        self.function, self.file, self.line = _place(info)
        self.frames = [_place(info.frames[i]) for i in range(info.frame_count)]


def _place(where):
    words = [w.decode(errors="replace") if w else None for w in (where.function, where.file)]
    return *words, where.line or None


def failed():
    """The calling thread's pending error, taken from it; None if there is none."""
    pending = library.rf_error()
    if not pending:
        return None
    error = Error(pending.contents)
    library.rf_error_clear()
    return error


def check(status):
    """Raises the pending error if a function of the library failed."""
    if status:
        raise failed() or RuntimeError(f"status {status}, and no error is pending")
