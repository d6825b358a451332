//! C: functions of the library's own names and types, over `ringfence/bound.h`.

use std::fmt::Write as _;

use super::{Library, line};
use crate::plan::{Bound, Give, Hook, Parameter, Pass, TwinField};
use crate::probe;
use crate::types::{Id, Type};

pub(crate) fn write(library: &Library<'_>) -> Vec<(String, String)> {
    let name = &library.request.name;
    vec![
        (format!("{name}_fenced.h"), header(library)),
        (format!("{name}_fenced.c"), source(library)),
        (format!("{name}_layout.c"), layout_of_module(library)),
    ]
}

/// A text as a C constant.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

pub(crate) fn includes(library: &Library<'_>) -> String {
    let mut out = String::new();
    let mut flags = library.request.flags.iter();
    while let Some(flag) = flags.next() {
        if flag == "-include"
            && let Some(file) = flags.next()
        {
            out.push_str(&probe::include(file));
        }
    }
    library
        .request
        .headers
        .iter()
        .for_each(|h| out.push_str(&probe::include(h)));
    out
}

fn header(library: &Library<'_>) -> String {
    let name = &library.request.name;
    let guard = format!("{}_FENCED_H", name.to_uppercase());
    let mut out = String::new();
    line!(
        out,
        "/* {name}, fenced: written by `ringfence bind`. In place of the library's header; link {name}_fenced.c and -lringfence. */"
    );
    line!(out, "#ifndef {guard}\n#define {guard}\n");
    out.push_str(&includes(library));
    line!(out, "#include <ringfence/bound.h>\n");
    line!(out, "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n");
    line!(out, "/* The library: rfb_open, rfb_reset, rfb_close. */");
    line!(out, "extern rfb_library {name}_fence;\n");
    line!(out, "/* The same for other languages. */");
    for declaration in for_others(name) {
        line!(out, "{declaration};");
    }
    line!(out, "");
    line!(out, "#ifndef RFB_WITHOUT_REFUSALS");
    for (function, why) in &library.plan.refused {
        let text = quote(&format!("{function} {why}"));
        line!(
            out,
            "extern __typeof__({function}) {function} __attribute__((error({text})));"
        );
    }
    line!(out, "#endif\n\n#ifdef __cplusplus\n}}\n#endif\n#endif");
    out
}

/// Functions that do with the library what `ringfence/bound.h` does in C.
fn for_others(name: &str) -> [String; 4] {
    [
        format!("rf_status {name}_fence_open(const char *path)"),
        format!("rf_status {name}_fence_reset(void)"),
        format!("void {name}_fence_close(void)"),
        format!("void {name}_fence_on_failure(void (*told)(const rf_error_info *))"),
    ]
}

/// Sizes and offsets: expressions.
fn layout(library: &Library<'_>) -> Vec<String> {
    let types = library.types;
    let mut list = Vec::new();
    for twin in &library.plan.twins {
        let Type::Record(record) = types.bare(twin.to) else {
            continue;
        };
        let own = types.declare(strip(library, twin.to), "");
        list.push(format!("sizeof({own})"));
        for field in record.fields.iter().filter(|f| f.bits.is_none()) {
            if let Some(name) = &field.name {
                list.push(format!("offsetof({own}, {name})"));
            }
        }
    }
    list
}

/// A type without `const` at its top.
fn strip(library: &Library<'_>, to: Id) -> Id {
    match library.types.get(to) {
        Type::Const(inner) => *inner,
        _ => to,
    }
}

fn layout_of_module(library: &Library<'_>) -> String {
    let name = &library.request.name;
    let mut out = String::new();
    line!(
        out,
        "/* {name}'s structs as the module has them: linked into it, they are compared with the program's. Written by `ringfence bind`. */"
    );
    line!(out, "#include <stddef.h>");
    out.push_str(&includes(library));
    line!(
        out,
        "\n__attribute__((visibility(\"default\"), used)) const size_t rfb_layout_{name}[] = {{"
    );
    for row in layout(library) {
        line!(out, "    {row},");
    }
    line!(out, "    0\n}};");
    out
}

fn source(library: &Library<'_>) -> String {
    let (name, plan) = (&library.request.name, library.plan);
    let mut out = String::new();
    line!(out, "/* {name}, fenced: written by `ringfence bind`. */");
    line!(
        out,
        "#define RFB_WITHOUT_REFUSALS\n#include \"{name}_fenced.h\"\n\n#include <stddef.h>\n"
    );
    line!(
        out,
        "#ifndef RFB_MODULE\n#define RFB_MODULE {}\n#endif\n",
        quote(&library.request.module_name())
    );
    line!(out, "#define RFB (&{name}_fence)\n");
    for (number, hook) in plan.hooks.iter().enumerate() {
        write_hook(&mut out, library, number, hook);
    }
    tables(&mut out, library);
    let bodies = [
        "return rfb_open(RFB, path, NULL)",
        "return rfb_reset(RFB)",
        "rfb_close(RFB)",
        "RFB->on_failure = told",
    ];
    for (declaration, body) in for_others(name).iter().zip(bodies) {
        line!(out, "{declaration} {{ {body}; }}");
    }
    line!(out, "");
    for (number, function) in plan.functions.iter().enumerate() {
        write_function(&mut out, library, number, function);
    }
    out
}

/// A function's type in words that rf_dlsym reads.
fn prototype(library: &Library<'_>, function: &Bound) -> String {
    let word = |to| match library.types.bare(to) {
        Type::Void => "void".to_owned(),
        Type::Integer { bytes, signed, .. } | Type::Enumeration { bytes, signed, .. } => {
            let sign = if *signed { "" } else { "u" };
            format!("{sign}int{}_t", 8 * bytes)
        }
        Type::Float { bytes: 4, .. } => "float".to_owned(),
        Type::Float { bytes: 8, .. } => "double".to_owned(),
        Type::Float { .. } => "long double".to_owned(),
        _ => "void *".to_owned(),
    };
    let list: Vec<String> = function.parameters.iter().map(|p| word(p.to)).collect();
    let list = if list.is_empty() {
        "void".to_owned()
    } else {
        list.join(", ")
    };
    format!("{} {}({list})", word(function.result), function.name)
}

fn tables(out: &mut String, library: &Library<'_>) {
    let (name, plan, types) = (&library.request.name, library.plan, library.types);
    line!(out, "static const char *const rfb_prototypes[] = {{");
    for function in &plan.functions {
        line!(out, "    {},", quote(&prototype(library, function)));
    }
    line!(
        out,
        "}};\nstatic void *rfb_functions[{}];\n",
        plan.functions.len().max(1)
    );
    for (number, twin) in plan.twins.iter().enumerate() {
        if twin.fields.is_empty() {
            continue;
        }
        let own = types.declare(strip(library, twin.to), "");
        line!(out, "static const rfb_field rfb_fields_{number}[] = {{");
        for (field, kind) in &twin.fields {
            let (kind, index) = match kind {
                TwinField::Twin(n) => ("TWIN", *n),
                TwinField::Hook(n) => ("HOOK", *n),
                TwinField::Text => ("TEXT", 0),
            };
            line!(
                out,
                "    {{ offsetof({own}, {field}), RFB_FIELD_{kind}, {index} }},"
            );
        }
        line!(out, "}};");
    }
    line!(out, "static const rfb_record rfb_records[] = {{");
    for (number, twin) in plan.twins.iter().enumerate() {
        let own = types.declare(strip(library, twin.to), "");
        let fields = if twin.fields.is_empty() {
            "NULL".to_owned()
        } else {
            format!("rfb_fields_{number}")
        };
        line!(
            out,
            "    {{ {}, sizeof({own}), {fields}, {} }},",
            quote(&twin.name),
            twin.fields.len()
        );
    }
    line!(out, "    {{ NULL, 0, NULL, 0 }}\n}};");
    line!(out, "static const rfb_hook rfb_hooks[] = {{");
    let mut first = 0;
    for (number, hook) in plan.hooks.iter().enumerate() {
        let refuse = if hook.refused.is_some() {
            "NULL".to_owned()
        } else {
            format!("(void (*)(void))rfb_refuse_{number}")
        };
        line!(
            out,
            "    {{ {}, rfb_hook_{number}, {refuse}, {first}, {} }},",
            quote(&hook.name),
            hook.loans
        );
        first += hook.loans;
    }
    line!(out, "    {{ NULL, NULL, NULL, {first}, 0 }}\n}};");
    let layout = layout(library);
    line!(out, "static const size_t rfb_layout[] = {{");
    layout.iter().for_each(|row| {
        line!(out, "    {row},");
    });
    line!(
        out,
        "    0\n}};\nstatic const char *const rfb_layout_names[] = {{"
    );
    layout.iter().for_each(|row| {
        line!(out, "    {},", quote(row));
    });
    line!(out, "    \"the end\"\n}};\n");
    line!(out, "rfb_library {name}_fence = {{");
    let rows = [
        ("name", quote(name)),
        ("path", "RFB_MODULE".to_owned()),
        ("prototypes", "rfb_prototypes".to_owned()),
        ("functions", "rfb_functions".to_owned()),
        ("function_count", plan.functions.len().to_string()),
        ("records", "rfb_records".to_owned()),
        ("hooks", "rfb_hooks".to_owned()),
        ("hook_count", plan.hooks.len().to_string()),
        ("loan_count", first.to_string()),
        ("layout_symbol", quote(&format!("rfb_layout_{name}"))),
        ("layout", "rfb_layout".to_owned()),
        ("layout_names", "rfb_layout_names".to_owned()),
        ("layout_count", (layout.len() + 1).to_string()),
        ("lock", "PTHREAD_MUTEX_INITIALIZER".to_owned()),
    ];
    for (field, value) in rows {
        line!(out, "    .{field} = {value},");
    }
    line!(out, "}};\n");
}

/// Bytes of so many elements of what a pointer points to; of bytes, if that is nothing.
fn bytes(library: &Library<'_>, to: Id, count: &str) -> String {
    let types = library.types;
    let unit = types.target(to).and_then(|inner| types.size(inner));
    match unit {
        None | Some(1) => format!("(size_t)({count})"),
        Some(n) => format!("(size_t)({count}) * {n}"),
    }
}

fn owner(owner: Option<&String>) -> String {
    owner.map_or("NULL".to_owned(), |o| format!("(const void *){o}"))
}

/// What the domain's pointer `from` becomes.
fn given(library: &Library<'_>, to: Id, give: &Give, from: &str) -> String {
    match give {
        Give::Nothing | Give::Value | Give::Address => from.to_owned(),
        Give::User => format!("rfb_user_of(RFB, {from})"),
        Give::Twin => format!("rfb_twin_of(RFB, {from}, sizeof *{from}, 0)"),
        Give::Copy(count, own) => {
            let size = match count {
                None => "RFB_TEXT".to_owned(),
                Some(count) => bytes(library, to, count),
            };
            format!("rfb_copy(RFB, {from}, {size}, {}, 0)", owner(own.as_ref()))
        }
    }
}

/// The call of the other side, whose result is kept if there is one.
fn write_call(out: &mut String, library: &Library<'_>, result: Option<Id>, arguments: &str) {
    let kept = result.map_or(String::new(), |to| {
        format!("{} = ", library.types.declare(strip(library, to), "rfb_result"))
    });
    line!(out, "    {kept}rfb_call({arguments});");
}

/// The list of parameters of a declaration.
fn parameters(library: &Library<'_>, list: &[Parameter]) -> String {
    if list.is_empty() {
        return "void".to_owned();
    }
    let list: Vec<String> = list
        .iter()
        .map(|p| library.types.declare(p.to, &p.name))
        .collect();
    list.join(", ")
}

fn write_function(out: &mut String, library: &Library<'_>, number: usize, function: &Bound) {
    let types = library.types;
    let list = parameters(library, &function.parameters);
    // By its frame a call tells what a jump has left: a note's expression may call another function of the library.
    line!(
        out,
        "__attribute__((noinline)) {} {{",
        types.declare(function.result, &format!("{}({list})", function.name))
    );
    let nothing = function.give == Give::Nothing;
    let fail = match (&function.fails, nothing) {
        (_, true) => "return;".to_owned(),
        (Some(value), _) => format!("return {value};"),
        (None, _) => "return 0;".to_owned(),
    };
    line!(
        out,
        "    __typeof__({}) *rfb_call = (__typeof__({0}) *)rfb_begin(RFB, {number}, __builtin_frame_address(0));",
        function.name
    );
    line!(out, "    if (!rfb_call)\n        {fail}");
    for (i, p) in function.parameters.iter().enumerate() {
        match p.pass {
            Pass::Place(_) | Pass::Within(_) => {
                line!(out, "    void *rfb_place_{i} = NULL;");
            }
            Pass::Fixed(_) => {
                line!(out, "    (void){};", p.name);
            }
            _ => {}
        }
        if let Some(value) = passed(library, i, p) {
            line!(out, "    void *rfb_{i} = {value};");
        }
    }
    let arguments: Vec<String> = function
        .parameters
        .iter()
        .enumerate()
        .map(|(i, p)| match (&p.pass, types.bare(p.to)) {
            (Pass::Value, _) => p.name.clone(),
            (Pass::Fixed(value), Type::Pointer(_)) => {
                format!("({})(uintptr_t)({value})", types.declare(p.to, ""))
            }
            (Pass::Fixed(value), _) => value.clone(),
            _ => format!("({})rfb_{i}", types.declare(p.to, "")),
        })
        .collect();
    write_call(
        out,
        library,
        (!nothing).then_some(function.result),
        &arguments.join(", "),
    );
    line!(out, "    int rfb_good = rfb_end(RFB);");
    for (i, p) in function.parameters.iter().enumerate() {
        if let Some(back) = brought_back(library, i, p, function) {
            line!(
                out,
                "    if (rfb_good && {})\n        *{} = {back};",
                p.name,
                p.name
            );
        }
    }
    for (who, given) in &function.ends {
        line!(
            out,
            "    rfb_ends(RFB, (const void *){who}, {});",
            u8::from(*given)
        );
    }
    if !nothing {
        line!(out, "    if (!rfb_good)\n        {fail}");
        let result = given_result(library, function);
        line!(out, "    return {result};");
    } else {
        line!(out, "    (void)rfb_good;");
    }
    line!(out, "}}\n");
}

fn given_result(library: &Library<'_>, function: &Bound) -> String {
    let text = match &function.give {
        Give::Nothing | Give::Value | Give::Address => return "rfb_result".to_owned(),
        give => given(library, function.result, give, "rfb_result"),
    };
    format!("({}){text}", library.types.declare(function.result, ""))
}

/// What a parameter becomes for the call.
fn passed(library: &Library<'_>, number: usize, p: &Parameter) -> Option<String> {
    let name = &p.name;
    let pass = |kind: &str, size: String, read: u8, own: &str| {
        format!("rfb_pass(RFB, {kind}, (const void *){name}, {size}, {read}, {own})")
    };
    Some(match &p.pass {
        Pass::Value | Pass::Fixed(_) => return None,
        Pass::Address | Pass::Texts(_) => format!("rfb_address(RFB, (const void *){name})"),
        Pass::Text => pass("RFB_IN", "RFB_TEXT".into(), 1, "NULL"),
        Pass::In(count) => pass("RFB_IN", bytes(library, p.to, count), 1, "NULL"),
        Pass::Out(count) => pass("RFB_OUT", bytes(library, p.to, count), 0, "NULL"),
        Pass::InOut(count) => pass("RFB_OUT", bytes(library, p.to, count), 1, "NULL"),
        Pass::Kept(count, own) => {
            let size = count
                .as_ref()
                .map_or("RFB_TEXT".to_owned(), |c| bytes(library, p.to, c));
            pass("RFB_KEPT", size, 1, &owner(Some(own)))
        }
        Pass::Rows { count, bytes, out } => {
            let kind = if *out { "RFB_OUT" } else { "RFB_IN" };
            format!("rfb_rows(RFB, {kind}, (void *){name}, (size_t)({count}), (size_t)({bytes}))")
        }
        Pass::Place(_) | Pass::Within(_) => {
            let place = format!("rfb_place_{number}");
            format!("rfb_pass(RFB, RFB_OUT, {name} ? &{place} : NULL, sizeof {place}, 1, NULL)")
        }
        Pass::User => format!("rfb_user(RFB, (const void *){name})"),
        Pass::Hook(hook) => format!("rfb_lend(RFB, {hook}, (void (*)(void)){name})"),
        Pass::Twin { record, read } => {
            format!("rfb_twin(RFB, {record}, (void *){name}, {}, 0)", u8::from(*read))
        }
    })
}

/// What the program gets where it has a place for a pointer.
fn brought_back(library: &Library<'_>, number: usize, p: &Parameter, function: &Bound) -> Option<String> {
    let types = library.types;
    let to = types.target(p.to)?;
    let cast = types.declare(strip(library, to), "");
    let from = format!("rfb_place_{number}");
    Some(match &p.pass {
        Pass::Place(give) => format!("({cast}){}", given(library, to, give, &from)),
        Pass::Within(other) => {
            let data = &function.parameters[*other];
            let size = match &data.pass {
                Pass::In(count) => bytes(library, data.to, count),
                _ => format!("strlen({})", data.name),
            };
            format!("({cast})rfb_within({}, {size}, rfb_{other}, {from})", data.name)
        }
        _ => return None,
    })
}

fn write_hook(out: &mut String, library: &Library<'_>, number: usize, hook: &Hook) {
    let types = library.types;
    if let Some(why) = &hook.refused {
        line!(out, "/* {}: {why} */", hook.name);
        line!(
            out,
            "static void rfb_hook_{number}(rf_caller *caller, void *context) {{"
        );
        line!(
            out,
            "    (void)context;\n    rf_caller_fail(caller, {});\n}}\n",
            quote(&format!("{} {why}", hook.name))
        );
        return;
    }
    let nothing = matches!(types.bare(hook.result), Type::Void);
    line!(out, "/* {} */", hook.name);
    let list = parameters(library, &hook.parameters);
    line!(
        out,
        "static {} {{",
        types.declare(hook.result, &format!("rfb_refuse_{number}({list})"))
    );
    for p in &hook.parameters {
        line!(out, "    (void){};", p.name);
    }
    line!(out, "    rfb_refused(RFB, {number});");
    if !nothing {
        line!(out, "    return 0;");
    }
    line!(out, "}}");
    line!(
        out,
        "static void rfb_hook_{number}(rf_caller *caller, void *context) {{"
    );
    line!(out, "    rfb_pair *rfb_mark = NULL;");
    let pointer = types.declare(strip(library, hook.to), "");
    line!(
        out,
        "    __typeof__({pointer}) rfb_call = (__typeof__({pointer}))rfb_enter(caller, (rfb_loan *)context, &rfb_mark);"
    );
    line!(out, "    if (!rfb_call)\n        return;");
    let (mut ints, mut floats, mut stacked) = (0, 0, 0);
    for (i, p) in hook.parameters.iter().enumerate() {
        let own = types.declare(strip(library, p.to), &p.name);
        let mut stack = || {
            stacked += 1;
            format!("rf_caller_arg_stack(caller, {})", stacked - 1)
        };
        match types.bare(p.to) {
            Type::Float { bytes, .. } if floats < 8 => {
                line!(out, "    {own} = rf_caller_arg_f{}(caller, {floats});", 8 * bytes);
                floats += 1;
            }
            Type::Float { .. } => {
                let word = stack();
                line!(
                    out,
                    "    uint64_t rfb_word_{i} = {word};\n    {own};\n    memcpy(&{}, &rfb_word_{i}, sizeof {});",
                    p.name,
                    p.name
                );
            }
            bare => {
                let word = if ints < 6 {
                    ints += 1;
                    format!("rf_caller_arg_int(caller, {})", ints - 1)
                } else {
                    stack()
                };
                if let Type::Pointer(_) = bare {
                    line!(out, "    void *rfb_{i} = (void *)(uintptr_t){word};");
                } else {
                    let cast = types.declare(strip(library, p.to), "");
                    line!(out, "    {own} = ({cast}){word};");
                }
            }
        }
    }
    // Their lengths may be any of the numbers.
    for (i, p) in hook.parameters.iter().enumerate() {
        if let Type::Pointer(_) = types.bare(p.to) {
            let own = types.declare(strip(library, p.to), &p.name);
            let cast = types.declare(strip(library, p.to), "");
            line!(out, "    {own} = ({cast}){};", lent(library, i, p));
        }
    }
    let list: Vec<&str> = hook.parameters.iter().map(|p| p.name.as_str()).collect();
    write_call(out, library, (!nothing).then_some(hook.result), &list.join(", "));
    for (i, p) in hook.parameters.iter().enumerate() {
        match &p.pass {
            Pass::InOut(count) | Pass::Out(count) => {
                let size = bytes(library, p.to, count);
                line!(
                    out,
                    "    if ({})\n        (void)rf_memory_write(RFB->state->domain, rfb_{i}, {}, {size});",
                    p.name,
                    p.name
                );
            }
            Pass::Twin { record, .. } => {
                line!(out, "    rfb_twin(RFB, {record}, (void *){}, 1, 1);", p.name);
            }
            _ => {}
        }
    }
    match types.bare(hook.result) {
        Type::Void => {}
        Type::Float { bytes, .. } => {
            line!(out, "    rf_caller_return_f{}(caller, rfb_result);", 8 * bytes);
        }
        Type::Pointer(_) => {
            line!(
                out,
                "    rf_caller_return_int(caller, (uint64_t)(uintptr_t)rfb_address(RFB, (const void *)rfb_result));"
            );
        }
        _ => {
            line!(out, "    rf_caller_return_int(caller, (uint64_t)rfb_result);");
        }
    }
    line!(out, "    rfb_return(RFB, 0, rfb_mark);\n}}\n");
}

/// What a host function gets for the domain's pointer.
fn lent(library: &Library<'_>, number: usize, p: &Parameter) -> String {
    let from = format!("rfb_{number}");
    match &p.pass {
        Pass::Text => format!("rfb_copy(RFB, {from}, RFB_TEXT, NULL, 1)"),
        Pass::In(count) | Pass::InOut(count) | Pass::Out(count) => {
            format!("rfb_copy(RFB, {from}, {}, NULL, 1)", bytes(library, p.to, count))
        }
        Pass::Texts(count) => {
            let count = count
                .as_ref()
                .map_or("RFB_TEXT".to_owned(), |c| format!("(size_t)({c})"));
            format!("rfb_texts(RFB, {from}, {count})")
        }
        Pass::User => format!("rfb_user_of(RFB, {from})"),
        Pass::Twin { .. } => format!("rfb_twin_of(RFB, {from}, sizeof *{}, 1)", p.name),
        _ => from,
    }
}
