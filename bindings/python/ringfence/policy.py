"""What a domain may ask of the operating system."""

import ctypes
import os

from .host import check, library

STREAMS = {"closed": 0, "null": 1, "inherit": 2, "capture": 3, "positioned": 4}


def _bytes(text):
    return text if isinstance(text, bytes) else os.fsencode(text)


class Policy:
    """Grants nothing at first. Each method grants something and returns the policy:

        Policy().dir("/srv/data", "/data").stdout("capture").clocks()

    The names are those of the C interface (ringfence/host/policy.h), without rf_policy_. A module that is opened with a policy gets
    it as it is then.
    """

    def __init__(self):
        self._handle = ctypes.c_void_p()
        check(library.rf_policy_create(ctypes.byref(self._handle)))

    def __del__(self):
        if self._handle:
            library.rf_policy_destroy(self._handle)

    def _with(self, name, *arguments):
        check(getattr(library, "rf_policy_" + name)(self._handle, *arguments))
        return self

    def dir(self, host, guest, write=False):
        """The host's directory `host` under the absolute name `guest`, to read, or to read and write."""
        return self._with("dir", _bytes(host), _bytes(guest), 1 + bool(write))

    def cwd(self, guest):
        return self._with("cwd", _bytes(guest))

    def stdin(self, stream):
        """"null", "inherit", or bytes to read."""
        if isinstance(stream, bytes):
            return self._with("stdin_bytes", stream, len(stream))
        return self._with("stdin", STREAMS[stream])

    def stdout(self, stream):
        """"null", "inherit", or "capture" for Module.captured."""
        return self._with("stdout", STREAMS[stream])

    def stderr(self, stream):
        return self._with("stderr", STREAMS[stream])

    def args(self, *words):
        """A program's arguments, its name first."""
        return self._with("args", (ctypes.c_char_p * len(words))(*map(_bytes, words)), len(words))

    def env(self, name, value):
        return self._with("env", _bytes(name), _bytes(value))

    def clocks(self, granted=True):
        return self._with("clocks", granted)

    def randomness(self, granted=True):
        return self._with("randomness", granted)

    def descriptors(self, limit):
        return self._with("descriptors", limit)

    def threads(self, limit):
        return self._with("threads", limit)

    def connect(self, address):
        return self._with("connect", _bytes(address))

    def listen(self, address):
        """Lets domains wait for connections at this address of the host's, by TCP; port 0 is any that is free."""
        return self._with("listen", _bytes(address))
