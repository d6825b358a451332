//! C++: the fields of the library's structs, for `ringfence/tainted.hpp`.

use std::fmt::Write as _;

use super::{Library, line, records};
use crate::types::Type;

pub(crate) fn write(library: &Library<'_>) -> Vec<(String, String)> {
    let (name, types) = (&library.request.name, library.types);
    let guard = format!("{}_FENCED_HPP", name.to_uppercase());
    let mut out = String::new();
    line!(
        out,
        "// {name}, tainted: written by `ringfence bind`. Fields of its structs, by name: p->field is a tainted value."
    );
    line!(out, "#ifndef {guard}\n#define {guard}\n");
    line!(out, "extern \"C\" {{");
    out.push_str(&super::c::includes(library));
    line!(out, "}}\n#include <cstddef>\n#include <ringfence/tainted.hpp>\n");
    line!(out, "namespace ringfence {{");
    for (id, record) in records(library) {
        if record.union || record.size.is_none() || types.name(id).is_none() {
            continue;
        }
        let own = types.declare(id, "");
        let fields: Vec<_> = record
            .fields
            .iter()
            .filter(|f| !f.bits)
            .filter_map(|f| Some((f.name.as_ref()?, f)))
            .collect();
        line!(out, "template <> class tainted_struct<{own}> {{\n  public:");
        for (field, f) in &fields {
            // A type without a name has one by way of the field.
            let unnamed = types.name(f.to).is_none() && matches!(types.bare(f.to), Type::Record(_));
            let kind = if unnamed || matches!(types.bare(f.to), Type::Array(..)) {
                format!("decltype({own}::{field})")
            } else {
                types.declare(f.to, "")
            };
            line!(out, "    tainted_volatile<{kind}> {field};");
        }
        let list: Vec<String> = fields
            .iter()
            .map(|(field, _)| format!("{field}(at, offsetof({own}, {field}))"))
            .collect();
        let colon = if list.is_empty() { "" } else { " : " };
        line!(
            out,
            "    explicit tainted_struct(const detail::place &at){colon}{} {{}}",
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
