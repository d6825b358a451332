//! Rust: declarations of the C binding's functions, as a `-sys` crate has them.

use std::fmt::Write as _;

use super::{Library, line, records};
use crate::constant::Constant;
use crate::types::{Function, Id, Record, Type, Types};

pub(crate) fn write(library: &Library<'_>) -> Vec<(String, String)> {
    let name = &library.request.name;
    let mut out = String::new();
    line!(
        out,
        "//! {name}, fenced: written by `ringfence bind`. Compile {name}_fenced.c beside it (the crate cc), and link libringfence."
    );
    line!(
        out,
        "#![allow(non_camel_case_types, non_snake_case, non_upper_case_globals, dead_code, clippy::all)]\n"
    );
    line!(out, "use core::ffi::{{c_char, c_void}};\n");
    for (constant, value) in library.constants {
        match value {
            Constant::Number(n) => {
                let kind = if i32::try_from(*n).is_ok() {
                    "i32"
                } else if i64::try_from(*n).is_ok() {
                    "i64"
                } else {
                    "u64"
                };
                line!(out, "pub const {}: {kind} = {n};", word(constant));
            }
            Constant::Text(text) => {
                line!(out, "pub const {}: &core::ffi::CStr = c{text};", word(constant));
            }
        }
    }
    line!(out, "");
    for (id, record) in records(library) {
        write_record(&mut out, library, id, &record);
    }
    line!(out, "unsafe extern \"C\" {{");
    for function in &library.plan.functions {
        let wide = |to| matches!(library.types.bare(to), Type::Float { bytes: 16, .. });
        if wide(function.result) || function.parameters.iter().any(|p| wide(p.to)) {
            line!(
                out,
                "    // {} has a long double, which Rust has not.",
                function.name
            );
            continue;
        }
        let list: Vec<String> = function
            .parameters
            .iter()
            .map(|p| format!("{}: {}", word(&p.name), kind(library, p.to, 0)))
            .collect();
        line!(
            out,
            "    pub fn {}({}){};",
            function.name,
            list.join(", "),
            arrow(library, function.result)
        );
    }
    line!(
        out,
        "\n    /// Opens the module; null: the file that the C was compiled with. 0, or an rf_status."
    );
    line!(out, "    pub fn {name}_fence_open(path: *const c_char) -> i32;");
    line!(
        out,
        "    /// Puts the domain back to its start, after a fault too: handles and texts are gone."
    );
    line!(out, "    pub fn {name}_fence_reset() -> i32;");
    line!(out, "    /// Ends the domain.\n    pub fn {name}_fence_close();");
    line!(
        out,
        "    /// Is told of each failed call: a pointer to an rf_error_info."
    );
    line!(
        out,
        "    pub fn {name}_fence_on_failure(told: Option<unsafe extern \"C\" fn(*const c_void)>);\n}}"
    );
    vec![(format!("{name}_fenced.rs"), out)]
}

fn word(name: &str) -> String {
    const WORDS: [&str; 16] = [
        "type", "ref", "in", "move", "match", "fn", "use", "mod", "impl", "loop", "where", "dyn", "async",
        "box", "final", "priv",
    ];
    if WORDS.contains(&name) {
        format!("r#{name}")
    } else {
        name.to_owned()
    }
}

fn record_name(types: &Types, id: Id) -> String {
    types.name(id).map_or_else(|| format!("unnamed_{id}"), word)
}

fn write_record(out: &mut String, library: &Library<'_>, id: Id, record: &Record) {
    let types = library.types;
    let name = record_name(types, id);
    let Some(size) = record.size else {
        line!(out, "#[repr(C)]\npub struct {name} {{\n    _opaque: [u8; 0],\n}}");
        return;
    };
    let what = if record.union { "union" } else { "struct" };
    line!(out, "#[repr(C)]\n#[derive(Clone, Copy)]\npub {what} {name} {{");
    let known = record
        .fields
        .iter()
        .all(|f| f.bits.is_none() && f.name.is_some() && types.size(f.to).is_some());
    if known {
        for field in &record.fields {
            line!(
                out,
                "    pub {}: {},",
                word(field.name.as_deref().unwrap_or_default()),
                kind(library, field.to, 0)
            );
        }
    } else {
        // Bit fields, and fields without a name: of the right size, and aligned as pointers are.
        line!(out, "    pub words: [u64; {}],", size / 8);
        line!(out, "    pub bytes: [u8; {}],", size % 8);
    }
    line!(out, "}}\nconst _: () = assert!(size_of::<{name}>() == {size});");
    if known {
        for field in &record.fields {
            let own = word(field.name.as_deref().unwrap_or_default());
            line!(
                out,
                "const _: () = assert!(core::mem::offset_of!({name}, {own}) == {});",
                field.offset
            );
        }
    }
}

fn arrow(library: &Library<'_>, result: Id) -> String {
    match library.types.bare(result) {
        Type::Void => String::new(),
        _ => format!(" -> {}", kind(library, result, 0)),
    }
}

fn kind(library: &Library<'_>, to: Id, depth: usize) -> String {
    let types = library.types;
    if depth > 8 {
        return "*mut c_void".to_owned();
    }
    match types.bare(to) {
        Type::Void | Type::Unknown(_) => "c_void".to_owned(),
        Type::Integer { name, .. } if name == "_Bool" => "bool".to_owned(),
        Type::Integer { name, bytes: 1, .. } if name == "char" => "c_char".to_owned(),
        Type::Integer { bytes, signed, .. } | Type::Enumeration { bytes, signed, .. } => {
            format!("{}{}", if *signed { 'i' } else { 'u' }, 8 * bytes)
        }
        Type::Float { bytes: 4, .. } => "f32".to_owned(),
        Type::Float { bytes: 8, .. } => "f64".to_owned(),
        // Rust has none.
        Type::Float { .. } => "[u128; 1]".to_owned(),
        Type::Record(_) => record_name(types, types.record_id(to)),
        Type::Array(of, count) => format!("[{}; {}]", kind(library, *of, depth + 1), count.unwrap_or(0)),
        Type::Pointer(of) => match types.bare(*of) {
            Type::Function(f) => function(library, f, depth + 1),
            _ => {
                let star = if types.constant(*of) { "*const" } else { "*mut" };
                format!("{star} {}", kind(library, *of, depth + 1))
            }
        },
        Type::Function(f) => function(library, f, depth + 1),
        Type::Typedef(..) | Type::Const(_) => "c_void".to_owned(),
    }
}

fn function(library: &Library<'_>, function: &Function, depth: usize) -> String {
    let list: Vec<String> = function
        .parameters
        .iter()
        .map(|&p| kind(library, p, depth))
        .collect();
    let variadic = if function.variadic { ", ..." } else { "" };
    format!(
        "Option<unsafe extern \"C\" fn({}{variadic}){}>",
        list.join(", "),
        arrow(library, function.result)
    )
}
