//! A file: sections, functions, and everything that is passed through.

use std::collections::{HashMap, HashSet};

use crate::Options;
use crate::debug::Debug;
use crate::dispatch;
use crate::emit::{self, Place};
use crate::error::{Error, Errors, SourceLine};
use crate::expand::expand;
use crate::func::{Builder, Refusal, Regions};
use crate::late::declared_foreign;
use crate::out::Out;
use crate::parse::{self, Kind, Stmt, directive};
use crate::sections::Sections;
use crate::small_loops;
use crate::tables::Arrays;
use crate::walk::{At, walk};

/// Rewrites a file.
pub(crate) fn rewrite(input: &str, file_name: &str, options: &Options) -> Result<String, Errors> {
    let expanded = expand(input, options);
    let input = expanded.as_ref();
    let stmts = parse::statements(input).map_err(|(line, reason)| {
        Errors(vec![Error {
            file: file_name.to_owned(),
            line: line as usize,
            source_line: None,
            function: None,
            instruction: String::new(),
            reason,
            advice: String::new(),
        }])
    })?;
    let regions = regions(input, &stmts);
    let functions = function_names(&stmts, options.handwritten);
    let mut file = File {
        file_name,
        options,
        stmts: &stmts,
        functions,
        arrays: label_arrays(&stmts),
        out: Out::new(
            options,
            input.len() + input.len() / 2,
            weak_names(&stmts),
            declared_foreign(&stmts),
        ),
        errors: Vec::new(),
        sections: Sections::new(),
        builder: None,
        bad: false,
        debug: Debug::new(input.contains(".debug_info")),
        number: 0,
        label: "",
    };
    for s in &stmts {
        file.statement(s, &regions);
    }
    file.finish(None);
    if !file.errors.is_empty() {
        return Err(Errors(file.errors));
    }
    if file.out.uses_labels {
        file.out.line(".hidden\t__rf_id_base");
    }
    Ok(file.out.buf)
}

struct File<'a, 'o> {
    file_name: &'o str,
    options: &'o Options,
    stmts: &'o [Stmt<'a>],
    functions: HashSet<&'a str>,
    arrays: Arrays<'a>,
    out: Out<'o>,
    errors: Vec<Error>,
    sections: Sections<'a>,
    builder: Option<Builder<'a, 'o>>,
    /// The function at hand has an error already.
    bad: bool,
    debug: Debug<'a>,
    number: u32,
    /// The last label outside functions, for hand-written code.
    label: &'a str,
}

impl<'a, 'o> File<'a, 'o> {
    fn statement(&mut self, s: &Stmt<'a>, regions: &'o Regions<'a>) {
        if s.kind == Kind::Directive && self.section(s) {
            return;
        }
        if self.sections.now.dropped {
            return;
        }
        if !self.sections.now.code {
            match &mut self.builder {
                Some(b) => b.data(s),
                None => self.pass(s),
            }
            return;
        }
        match s.kind {
            Kind::Directive => self.directive(s),
            Kind::Label => self.label(s, regions),
            Kind::Insn => self.code(s, regions),
            Kind::Assign => match &mut self.builder {
                Some(b) => b.raw(s),
                None => self.pass(s),
            },
        }
    }

    /// Follows changes of the section. True if `s` was dealt with.
    fn section(&mut self, s: &Stmt<'a>) -> bool {
        let (name, args) = directive(s.text);
        if name == ".section" && args.starts_with(".note.GNU-stack") && args.contains("\"x\"") {
            self.refuse(Refusal::new(
                *s,
                "the file asks for an executable stack",
                "do without trampolines",
            ));
            return true;
        }
        if !self.sections.follow(s) {
            return false;
        }
        if !self.sections.now.dropped {
            match &mut self.builder {
                Some(b) => b.raw(s),
                None => self.pass(s),
            }
        }
        true
    }

    fn pass(&mut self, s: &Stmt<'a>) {
        match s.kind {
            Kind::Label => {
                self.out.buf.push_str(s.text);
                self.out.buf.push_str(":\n");
            }
            _ => match self.debug.statement(s) {
                Some(text) => self.out.line(&text),
                None => self.out.line(s.text),
            },
        }
    }

    fn directive(&mut self, s: &Stmt<'a>) {
        let (name, args) = directive(s.text);
        match name {
            ".size" => {
                let symbol = args.split(',').next().unwrap_or("").trim();
                if self.builder.as_ref().is_some_and(|b| b.f.name == symbol) {
                    self.finish(None);
                }
            }
            ".type" if args.contains("gnu_indirect_function") => {
                self.refuse(Refusal::new(
                    *s,
                    "functions chosen at load time (ifunc) are not supported",
                    "choose by the features in the header page, through a pointer",
                ));
                return;
            }
            ".intel_syntax" | ".code32" | ".code16" => {
                self.refuse(Refusal::new(
                    *s,
                    "only 64-bit code in AT&T syntax is understood",
                    "do without it",
                ));
                return;
            }
            ".macro" | ".rept" | ".irp" | ".irpc" | ".if" | ".ifdef" | ".ifndef" | ".ifc" | ".include"
            | ".altmacro" => {
                self.refuse(Refusal::new(
                    *s,
                    "the assembler's own macros and conditions are not expanded here",
                    "use the C preprocessor (a .S file)",
                ));
                return;
            }
            ".align" | ".p2align" | ".balign" => {
                match &mut self.builder {
                    Some(b) => b.align(s),
                    None => self.out.buf.push_str(&emit::alignment(s.text, true)),
                }
                return;
            }
            ".byte" | ".value" | ".short" | ".word" | ".2byte" | ".long" | ".int" | ".4byte" | ".quad"
            | ".8byte" | ".octa" | ".ascii" | ".asciz" | ".string" | ".zero" | ".skip" | ".space"
            | ".fill" | ".org" | ".float" | ".double" | ".uleb128" | ".sleb128" | ".incbin" => {
                self.refuse(Refusal::new(
                    *s,
                    "data among code",
                    "put data into .rodata, and write instructions by name; whole instructions are read from plain numbers",
                ));
                return;
            }
            _ => {}
        }
        if name.starts_with(".cfi_")
            && let Some(b) = &mut self.builder
        {
            if let Err(r) = b.cfi(s) {
                self.refuse(r);
            }
            return;
        }
        match &mut self.builder {
            Some(b) => b.raw(s),
            None => self.pass(s),
        }
    }

    fn label(&mut self, s: &Stmt<'a>, regions: &'o Regions<'a>) {
        if self.functions.contains(s.text) {
            if let Some(b) = &mut self.builder
                && b.f.codes.is_empty()
            {
                b.label(s);
                return;
            }
            self.finish(Some(s.text));
            self.begin(s, regions);
            return;
        }
        match &mut self.builder {
            Some(b) => b.label(s),
            None => {
                self.label = s.text;
                self.pass(s);
            }
        }
    }

    fn begin(&mut self, s: &Stmt<'a>, regions: &'o Regions<'a>) {
        self.out.line(".p2align\t3,0xcc");
        let mut b = Builder::new(s.text, regions);
        b.label(s);
        self.builder = Some(b);
        self.bad = false;
        self.number += 1;
    }

    fn code(&mut self, s: &Stmt<'a>, _regions: &'o Regions<'a>) {
        let Some(b) = &mut self.builder else {
            self.refuse(Refusal::new(
                *s,
                "an instruction outside every function",
                "give the function a global label or .type NAME,@function",
            ));
            return;
        };
        if let Err(r) = b.code(s) {
            self.refuse(r);
        }
    }

    /// Translates the function at hand.
    fn finish(&mut self, next: Option<&'a str>) {
        let Some(mut b) = self.builder.take() else { return };
        if self.bad {
            return;
        }
        b.f.finish();
        b.f.dispatch = dispatch::find(&b.f, &self.arrays);
        let place = Place {
            number: self.number,
            next,
            handwritten: self.options.handwritten,
        };
        let from = self.out.buf.len();
        let result = walk(&b.f, self.options.handwritten)
            .and_then(|w| emit::emit(&b.f, &w, &place, &mut self.out, &mut self.debug));
        small_loops::settle(&mut self.out.buf, from);
        if let Err(At(i, fail)) = result {
            let name = b.f.name;
            let stmt = match b.f.codes.get(i as usize) {
                Some(c) => c.stmt,
                None => return,
            };
            self.report(&Refusal::new(stmt, fail.reason, fail.advice), Some(name));
        }
    }

    fn refuse(&mut self, r: Refusal<'a>) {
        let function = self.builder.as_ref().map(|b| b.f.name);
        self.bad |= function.is_some();
        self.report(&r, function);
    }

    fn report(&mut self, r: &Refusal<'a>, function: Option<&str>) {
        self.errors.push(Error {
            file: self.file_name.to_owned(),
            line: r.stmt.line as usize,
            source_line: source_line(self.stmts, r.stmt.line),
            function: function.map(str::to_owned),
            instruction: r.stmt.text.to_owned(),
            reason: r.reason.clone(),
            advice: r.advice.clone(),
        });
    }
}

/// The names that `.type` calls functions; in hand-written code also global labels.
fn function_names<'a>(stmts: &[Stmt<'a>], handwritten: bool) -> HashSet<&'a str> {
    let mut set = HashSet::new();
    for s in stmts {
        if s.kind != Kind::Directive {
            continue;
        }
        let (name, args) = directive(s.text);
        match name {
            ".type" => {
                if let Some((symbol, kind)) = args.split_once(',')
                    && (kind.contains("function") || kind.contains("STT_FUNC"))
                {
                    set.insert(symbol.trim());
                }
            }
            ".globl" | ".global" | ".weak" if handwritten || s.app => {
                set.extend(args.split(',').map(str::trim));
            }
            _ => {}
        }
    }
    set
}

/// Weak symbols that this file does not define and that others may: those that are not hidden. What they are is known when the module
/// is loaded, so calls of them go through the global offset table.
pub(crate) fn weak_names<'a>(stmts: &[Stmt<'a>]) -> HashSet<&'a str> {
    let mut weak = HashSet::new();
    let names = |args: &'a str| args.split(',').map(str::trim);
    for s in stmts.iter().filter(|s| s.kind == Kind::Directive) {
        let (name, args) = directive(s.text);
        match name {
            ".weak" => weak.extend(names(args)),
            ".weakref" => weak.extend(names(args).take(1)),
            _ => {}
        }
    }
    if weak.is_empty() {
        return weak;
    }
    for s in stmts {
        let (name, args) = directive(s.text);
        match s.kind {
            Kind::Label => _ = weak.remove(s.text),
            Kind::Assign => _ = weak.remove(s.text.split('=').next().unwrap_or("").trim()),
            Kind::Directive => match name {
                ".set" | ".equ" | ".comm" | ".lcomm" | ".hidden" | ".internal" => {
                    names(args).for_each(|n| _ = weak.remove(n));
                }
                _ => {}
            },
            Kind::Insn => {}
        }
    }
    weak
}

/// Finds the arrays in constant data that list labels of code and nothing else.
fn label_arrays<'a>(stmts: &[Stmt<'a>]) -> Arrays<'a> {
    let mut arrays = Arrays::new();
    let mut constant = false;
    // The array at hand, whether anything but labels was in it, and its labels.
    let mut array: (&str, bool, Vec<&str>) = ("", false, Vec::new());
    let mut close = |array: &mut (&'a str, bool, Vec<&'a str>), next| {
        let (name, mixed, list) = std::mem::replace(array, (next, false, Vec::new()));
        if !name.is_empty() && !mixed && !list.is_empty() {
            arrays.insert(name, list);
        }
    };
    for s in stmts {
        let (name, args) = directive(s.text);
        match s.kind {
            Kind::Label if constant => close(&mut array, s.text),
            Kind::Directive if name == ".quad" && constant => {
                let labels = args.split(',').map(str::trim);
                array.1 |= !labels.clone().all(is_code_label);
                array.2.extend(labels);
            }
            Kind::Directive
                if matches!(
                    name,
                    ".section" | ".text" | ".data" | ".bss" | ".pushsection" | ".popsection" | ".previous"
                ) =>
            {
                close(&mut array, "");
                let section = args.split(',').next().unwrap_or("");
                constant = name == ".section"
                    && (section.starts_with(".data.rel.ro") || section.starts_with(".rodata"));
            }
            Kind::Directive
                if matches!(
                    name,
                    ".size" | ".type" | ".align" | ".p2align" | ".balign" | ".globl" | ".local"
                ) => {}
            _ => array.1 = true,
        }
    }
    close(&mut array, "");
    arrays
}

fn is_code_label(text: &str) -> bool {
    text.strip_prefix(".L")
        .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// Reads the call-site tables of C++ functions.
fn regions<'a>(input: &str, stmts: &[Stmt<'a>]) -> Regions<'a> {
    let mut map = HashMap::new();
    if !input.contains(".gcc_except_table") {
        return map;
    }
    let mut last: [&'a str; 2] = [""; 2];
    for s in stmts {
        if s.kind != Kind::Directive || !s.text.starts_with(".uleb128") {
            last = [""; 2];
            continue;
        }
        let arg = s.text[".uleb128".len()..].trim();
        let minuend = arg.split('-').next().unwrap_or("");
        if last[0].starts_with(".LEHB") && last[1].starts_with(".LEHE") && minuend.starts_with(".L") {
            map.insert(last[0], (last[1], minuend));
        }
        last = [last[1], minuend];
    }
    map
}

/// The source line that the last `.loc` in front of a line names.
fn source_line(stmts: &[Stmt<'_>], line: u32) -> Option<SourceLine> {
    let end = stmts.partition_point(|s| s.line < line);
    let mut loc = None;
    for s in stmts[..end].iter().rev() {
        let (name, args) = directive(s.text);
        if s.kind == Kind::Directive && name == ".size" {
            return None;
        }
        if s.kind == Kind::Directive && name == ".loc" {
            let mut parts = args.split_whitespace();
            let file = parts.next()?;
            loc = Some((file, parts.next()?.parse().ok()?));
            break;
        }
    }
    let (file, line) = loc?;
    let name = stmts.iter().filter(|s| s.kind == Kind::Directive).find_map(|s| {
        let (name, args) = directive(s.text);
        let (number, rest) = args.split_once(char::is_whitespace)?;
        if name != ".file" || number != file {
            return None;
        }
        let mut strings = rest.split('"').skip(1).step_by(2);
        let first = strings.next()?;
        Some(match strings.next() {
            Some(second) if !second.starts_with('/') => format!("{first}/{second}"),
            Some(second) => second.to_owned(),
            None => first.to_owned(),
        })
    })?;
    Some(SourceLine { file: name, line })
}
