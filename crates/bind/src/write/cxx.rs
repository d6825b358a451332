//! C++: the fields of the library's structs, and how they pass by value, for `ringfence/tainted.hpp`.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use super::eightbytes::eightbytes;
use super::{Library, all_records, declared, line};
use crate::types::{Id, Record, Type, Types};

pub(crate) fn write(library: &Library<'_>) -> Vec<(String, String)> {
    let (name, types) = (&library.request.name, library.types);
    let guard = format!("{}_FENCED_HPP", name.to_uppercase());
    let mut out = String::new();
    line!(
        out,
        "// {name}, tainted: written by `ringfence bind`. Fields of its structs, by name: p->field is a tainted value."
    );
    line!(out, "#ifndef {guard}\n#define {guard}\n");
    // Headers of C++'s library that the library's own include are there already, and not once more in `extern "C"`.
    line!(
        out,
        "#include <cstddef>\n#include <ringfence/tainted.hpp>\nextern \"C\" {{"
    );
    out.push_str(&super::c::includes(library));
    line!(out, "}}\n");
    line!(out, "namespace ringfence {{");
    let records = all_records(library);
    let names = names(library, &records);
    for (id, record) in records {
        if record.size.is_none() || types.name(id).is_none() {
            continue;
        }
        let own = names.get(&id).cloned().unwrap_or_else(|| types.declare(id, ""));
        if let Some(words) = eightbytes(types, &record) {
            let words = words
                .iter()
                .map(|w| format!("{{{}, {:#x}}}", w.floating, w.fields));
            let words = words.collect::<Vec<_>>().join(", ");
            line!(
                out,
                "template <> struct by_value<{own}> {{\n    static constexpr eightbyte words[] = {{{words}}};\n}};"
            );
        }
        if record.union {
            continue;
        }
        let fields: Vec<_> = record
            .fields
            .iter()
            .filter(|f| f.bits.is_none())
            .filter_map(|f| Some((f.name.as_ref()?, f)))
            .collect();
        line!(out, "template <> class tainted_struct<{own}> {{\n  public:");
        for (field, f) in &fields {
            let kind = match types.get(f.to) {
                Type::Integer { name, .. } if name == "_Bool" => "bool".into(),
                Type::Integer { .. } | Type::Float { .. } => types.declare(f.to, ""),
                _ => format!("std::remove_volatile_t<{}>", field_type(&own, field)),
            };
            line!(out, "    tainted_volatile<{kind}> {field};");
        }
        let list: Vec<String> = fields
            .iter()
            .map(|(field, _)| format!("{field}(at, offsetof({own}, {field}))"))
            .collect();
        let (unused, colon) = if list.is_empty() {
            ("[[maybe_unused]] ", "")
        } else {
            ("", " : ")
        };
        line!(
            out,
            "    explicit tainted_struct({unused}const detail::place &at){colon}{} {{}}",
            list.join(", ")
        );
        line!(
            out,
            "}};\nstatic_assert(sizeof({own}) == {}, \"{own} is not what the binding was made of\");",
            record.size.unwrap_or(0)
        );
    }
    line!(out, "}} // namespace ringfence\n\n#endif");
    vec![(format!("{name}_fenced.hpp"), out)]
}

fn field_type(own: &str, field: &str) -> String {
    format!("decltype(std::declval<{own} &>().{field})")
}

/// What structs are called in C++, where a struct that is defined in another one is out of sight: those that no function's declaration
/// names, by way of a field.
fn names(library: &Library<'_>, records: &[(Id, Record)]) -> BTreeMap<Id, String> {
    let types = library.types;
    let mut names = BTreeMap::new();
    let typedefs = records.iter().map(|r| r.0);
    let typedefs = typedefs.filter(|&id| matches!(types.get(id), Type::Typedef(..)));
    for id in declared(library).chain(typedefs) {
        if let Some((id, _)) = inside(types, id, String::new()) {
            names.insert(id, types.declare(id, ""));
        }
    }
    let by_id: BTreeMap<Id, &Record> = records.iter().map(|(id, record)| (*id, record)).collect();
    let mut queue: VecDeque<Id> = names.keys().copied().collect();
    while let Some(outer) = queue.pop_front() {
        let (own, Some(record)) = (names[&outer].clone(), by_id.get(&outer)) else {
            continue;
        };
        for field in record.fields.iter().filter(|f| f.bits.is_none()) {
            let Some(name) = &field.name else { continue };
            if let Some((id, path)) = inside(types, field.to, field_type(&own, name))
                && !names.contains_key(&id)
            {
                names.insert(id, format!("std::remove_cv_t<{path}>"));
                queue.push_back(id);
            }
        }
    }
    names
}

/// The struct that a type is made of by pointers and arrays, if it is, and how to get to it from `path`, which is of this type.
fn inside(types: &Types, mut id: Id, mut path: String) -> Option<(Id, String)> {
    // Debug information of strangers may go in circles.
    for _ in 0..64 {
        match types.get(id) {
            Type::Pointer(to) => (id, path) = (*to, format!("std::remove_pointer_t<{path}>")),
            Type::Array(to, _) => (id, path) = (*to, format!("std::remove_extent_t<{path}>")),
            Type::Typedef(..) | Type::Const(_) | Type::Record(_)
                if matches!(types.bare(id), Type::Record(_)) =>
            {
                return Some((types.record_id(id), path));
            }
            Type::Typedef(_, to) | Type::Const(to) => id = *to,
            _ => return None,
        }
    }
    None
}
