//! Python: ctypes over the library that the C binding is compiled to.

use std::fmt::Write as _;

use super::{Library, line, records};
use crate::constant::Constant;
use crate::plan::{Give, Pass};
use crate::types::{Function, Id, Record, Type, Types};

pub(crate) fn write(library: &Library<'_>) -> Vec<(String, String)> {
    let name = &library.request.name;
    let module = library.request.module_name();
    let mut out = String::new();
    line!(
        out,
        "\"\"\"{name}, fenced: written by `ringfence bind`.\n\n    {name} = open(\"./lib{name}_fenced.so\", \"{module}\")\n\n\
         The first is {name}_fenced.c, compiled: cc -shared -fPIC {name}_fenced.c -lringfence. A call that fails raises Failure.\"\"\"\n"
    );
    line!(out, "import ctypes\n");
    out.push_str(RUNTIME);
    for (constant, value) in library.constants {
        match value {
            Constant::Number(n) => {
                line!(out, "{} = {n}", word(constant));
            }
            Constant::Text(text) => {
                line!(out, "{} = b{text}", word(constant));
            }
        }
    }
    line!(out, "");
    let list: Vec<_> = records(library)
        .into_iter()
        .filter(|(_, r)| r.size.is_some())
        .collect();
    for (id, record) in &list {
        let base = if record.union { "Union" } else { "Structure" };
        line!(
            out,
            "class {}(ctypes.{base}):\n    pass\n",
            record_name(library.types, *id)
        );
    }
    for (id, record) in &list {
        fields(&mut out, library, *id, record);
    }
    line!(out, "\n\ndef open(library, module=None):");
    line!(
        out,
        "    \"\"\"The functions of {name}: `library` is the compiled binding, `module` the file of the domain.\"\"\""
    );
    out.push_str(HOST);
    line!(out, "    c = ctypes.CDLL(library)");
    line!(out, "    fence = Fence(c, {:?})", name);
    for function in &library.plan.functions {
        let arguments: Vec<String> = function
            .parameters
            .iter()
            .map(|p| argument(library, p.to, &p.pass))
            .collect();
        let result = match function.give {
            Give::Copy(None, _) => "ctypes.c_char_p".to_owned(),
            Give::User => "ctypes.c_void_p".to_owned(),
            _ => ctype(library, function.result, 0),
        };
        line!(
            out,
            "    fence.bind({:?}, {result}, [{}])",
            function.name,
            arguments.join(", ")
        );
    }
    line!(out, "    fence.open(module)\n    return fence");
    vec![(format!("{name}_fenced.py"), out)]
}

/// Where the host library is, if not where the linker looks.
const HOST: &str = r"    try:
        import ringfence as _  # a wheel brings libringfence.so.0
    except ImportError:
        pass
";

/// What every binding has.
const RUNTIME: &str = r#"
class Failure(Exception):
    """A call into the domain failed; `status` is the rf_status."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class _Info(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("status", ctypes.c_int), ("code", ctypes.c_int32), ("message", ctypes.c_char_p)]


class Fence:
    """A library in its domain; its functions are attributes. One of a library in a process."""

    def __init__(self, library, name):
        self._library, self._name, self._failure = library, name, None
        self._told = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Info))(self._tell)
        getattr(library, name + "_fence_on_failure")(self._told)

    def _tell(self, info):
        info = info.contents
        self._failure = Failure(info.status, (info.message or b"").decode(errors="replace"))

    def _check(self, result, function=None, arguments=None):
        failure, self._failure = self._failure, None
        if failure:
            raise failure
        return result

    def bind(self, name, result, arguments):
        function = getattr(self._library, name)
        function.restype, function.argtypes, function.errcheck = result, arguments, self._check
        setattr(self, name, function)

    def open(self, module):
        function = getattr(self._library, self._name + "_fence_open")
        function.argtypes = [ctypes.c_char_p]
        self._check(function(module.encode() if module else None))

    def reset(self):
        """Puts the domain back to its start, after a Failure too: handles and texts are gone."""
        self._check(getattr(self._library, self._name + "_fence_reset")())

    def close(self):
        getattr(self._library, self._name + "_fence_close")()


"#;

/// A name that is no word of Python's.
fn word(name: &str) -> String {
    const WORDS: [&str; 12] = [
        "None", "True", "False", "class", "def", "from", "global", "import", "in", "is", "lambda", "pass",
    ];
    if WORDS.contains(&name) {
        format!("{name}_")
    } else {
        name.to_owned()
    }
}

fn record_name(types: &Types, id: Id) -> String {
    types.name(id).map_or_else(|| format!("unnamed_{id}"), word)
}

fn fields(out: &mut String, library: &Library<'_>, id: Id, record: &Record) {
    let types = library.types;
    let name = record_name(types, id);
    let size = record.size.unwrap_or(0);
    let known = record
        .fields
        .iter()
        .all(|f| f.bits.is_none() && f.name.is_some() && types.size(f.to).is_some());
    if known {
        let list: Vec<String> = record
            .fields
            .iter()
            .map(|f| {
                format!(
                    "({:?}, {})",
                    word(f.name.as_deref().unwrap_or_default()),
                    ctype(library, f.to, 0)
                )
            })
            .collect();
        line!(out, "{name}._fields_ = [{}]", list.join(", "));
    } else {
        line!(out, "{name}._fields_ = [(\"bytes\", ctypes.c_ubyte * {size})]");
    }
    line!(out, "assert ctypes.sizeof({name}) == {size}");
}

fn argument(library: &Library<'_>, to: Id, pass: &Pass) -> String {
    match pass {
        Pass::Place(Give::Copy(None, _)) | Pass::Within(_) => "ctypes.POINTER(ctypes.c_char_p)".to_owned(),
        Pass::Text => "ctypes.c_char_p".to_owned(),
        Pass::User => "ctypes.c_void_p".to_owned(),
        _ => ctype(library, to, 0),
    }
}

fn ctype(library: &Library<'_>, to: Id, depth: usize) -> String {
    let types = library.types;
    let pointer = "ctypes.c_void_p".to_owned();
    if depth > 8 {
        return pointer;
    }
    match types.bare(to) {
        Type::Void => "None".to_owned(),
        Type::Integer { name, .. } if name == "_Bool" => "ctypes.c_bool".to_owned(),
        Type::Integer { bytes, signed, .. } | Type::Enumeration { bytes, signed, .. } => {
            format!("ctypes.c_{}int{}", if *signed { "" } else { "u" }, 8 * bytes)
        }
        Type::Float { bytes: 4, .. } => "ctypes.c_float".to_owned(),
        Type::Float { bytes: 8, .. } => "ctypes.c_double".to_owned(),
        Type::Float { .. } => "ctypes.c_longdouble".to_owned(),
        Type::Record(r) if r.size.is_some() => record_name(types, types.record_id(to)),
        Type::Array(of, count) => format!("({}) * {}", ctype(library, *of, depth + 1), count.unwrap_or(0)),
        Type::Pointer(of) => match types.bare(*of) {
            Type::Integer { bytes: 1, .. } | Type::Void | Type::Unknown(_) => pointer,
            Type::Record(r) if r.size.is_none() => pointer,
            Type::Function(f) => function(library, f, depth + 1),
            _ => format!("ctypes.POINTER({})", ctype(library, *of, depth + 1)),
        },
        _ => pointer,
    }
}

fn function(library: &Library<'_>, function: &Function, depth: usize) -> String {
    // Texts arrive as such.
    let one = |to: Id| {
        let text = library.types.target(to).is_some_and(|inner| {
            library.types.constant(inner)
                && matches!(library.types.bare(inner), Type::Integer { name, bytes: 1, .. } if name == "char")
        });
        if text {
            "ctypes.c_char_p".to_owned()
        } else {
            ctype(library, to, depth)
        }
    };
    let list: Vec<String> = [function.result]
        .iter()
        .chain(&function.parameters)
        .map(|&p| one(p))
        .collect();
    format!("ctypes.CFUNCTYPE({})", list.join(", "))
}
