"""The C library from Python, through ctypes: LIBRARY MODULE FILES."""
import ctypes as c
import sys


class Info(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("status", c.c_int),
        ("code", c.c_int32),
        ("message", c.c_char_p),
        ("address", c.c_uint64),
        ("instruction", c.c_uint64),
        ("function", c.c_char_p),
        ("file", c.c_char_p),
        ("line", c.c_uint32),
        ("frame_count", c.c_uint32),
        ("frames", c.c_void_p),
    ]


CALLBACK = c.CFUNCTYPE(None, c.c_void_p, c.c_void_p)


class Import(c.Structure):
    _fields_ = [("name", c.c_char_p), ("function", c.c_void_p), ("callback", CALLBACK), ("context", c.c_void_p)]


class Options(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("imports", c.POINTER(Import)),
        ("import_count", c.c_size_t),
    ]


def with_a_policy(rf, files):
    """A module whose libc writes to a stream."""
    rf.rf_dlopen.restype = c.c_void_p
    rf.rf_domain_take_captured.argtypes = [c.c_void_p, c.c_int, c.c_char_p, c.c_size_t]
    rf.rf_domain_take_captured.restype = c.c_size_t
    rf.rf_dlclose.argtypes = [c.c_void_p]
    number = c.CFUNCTYPE(c.c_int)(lambda: 7)
    assert rf.rf_dlprovide(b"int own_number(void)", number) == 0, rf.rf_error()[0].message
    policy = c.c_void_p()
    assert rf.rf_policy_create(c.byref(policy)) == 0
    assert rf.rf_policy_stdout(policy, 3) == 0 and rf.rf_dlprovide_policy(policy) == 0
    handle = rf.rf_dlopen(files.encode(), 0)
    assert handle, rf.rf_error()[0].message
    assert c.CFUNCTYPE(c.c_int, c.c_int)(rf.rf_dlsym(handle, b"int say(int)"))(5) == 9
    said = c.create_string_buffer(32)
    assert rf.rf_domain_take_captured(handle, 1, said, 32) == 9 and said.value == b"number 5\n"
    assert rf.rf_dlclose(handle) == 0


def main(library, module, files):
    rf = c.CDLL(library)
    rf.rf_error.restype = c.POINTER(Info)
    rf.rf_dlsym.restype = c.c_void_p
    rf.rf_dlsym.argtypes = [c.c_void_p, c.c_char_p]
    rf.rf_caller_arg_int.restype = c.c_uint64
    rf.rf_caller_arg_int.argtypes = [c.c_void_p, c.c_uint]
    rf.rf_caller_return_int.argtypes = [c.c_void_p, c.c_uint64]
    rf.rf_caller_return_int.restype = None
    rf.rf_memory_alloc_string.restype = c.c_void_p
    rf.rf_memory_alloc_string.argtypes = [c.c_void_p, c.c_char_p]
    rf.rf_domain_reset.argtypes = [c.c_void_p]
    rf.rf_domain_destroy.argtypes = [c.c_void_p]
    rf.rf_domain_create.argtypes = [c.c_void_p, c.POINTER(Options), c.POINTER(c.c_void_p)]
    rf.rf_memory_read_string.argtypes = [c.c_void_p, c.c_void_p, c.c_char_p, c.c_size_t, c.c_void_p]

    @CALLBACK
    def add(caller, _context):
        rf.rf_caller_return_int(caller, (rf.rf_caller_arg_int(caller, 0) + rf.rf_caller_arg_int(caller, 1)) & 0xFFFFFFFF)

    names = [b"host_add", b"host_mix", b"host_eight", b"host_note"]
    imports = (Import * 4)(*[Import(n, None, add, None) for n in names])
    handle, domain = c.c_void_p(), c.c_void_p()
    assert rf.rf_module_create(module.encode(), 0, c.byref(handle)) == 0, rf.rf_error()[0].message
    options = Options(c.sizeof(Options), imports, 4)
    assert rf.rf_domain_create(handle, c.byref(options), c.byref(domain)) == 0, rf.rf_error()[0].message

    # A prototype and the type for Python, told once.
    words = {c.c_int: "int", c.c_long: "long", c.c_size_t: "size_t", c.c_ubyte: "unsigned char", c.c_float: "float",
             c.c_double: "double", c.c_void_p: "void *"}

    def function(name, result, *arguments):
        prototype = f"{words[result]} {name.decode()}({', '.join(words[a] for a in arguments)})"
        return c.CFUNCTYPE(result, *arguments)(rf.rf_dlsym(domain, prototype.encode()))

    assert function(b"add", c.c_int, c.c_int, c.c_int)(2, 3) == 5
    assert function(b"call_host_add", c.c_int, c.c_int, c.c_int)(20, 21) == 42
    assert function(b"mixed", c.c_double, c.c_int, c.c_double, c.c_long, c.c_float, c.c_ubyte)(1, 2.5, 3, 4.25, 250) == 276
    text = rf.rf_memory_alloc_string(domain, b"from python")
    assert function(b"upper", c.c_size_t, c.c_void_p)(text) == 11
    back = c.create_string_buffer(32)
    assert rf.rf_memory_read_string(domain, text, back, 32, None) == 0 and back.value == b"FROM PYTHON"
    assert not rf.rf_error()
    assert function(b"wild_read", c.c_int, c.c_void_p)(None) == 0
    info = rf.rf_error()[0]
    assert info.status == 32 and info.function == b"wild_read" and info.line > 0, info.message
    assert rf.rf_domain_reset(domain) == 0 and not rf.rf_error()
    assert function(b"add", c.c_int, c.c_int, c.c_int)(2, 3) == 5
    assert rf.rf_domain_destroy(domain) == 0
    with_a_policy(rf, files)
    print("ctypes: ok")


main(*sys.argv[1:])
