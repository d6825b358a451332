//! What stands for other instructions: those that are written as bytes, for assemblers that did not know their names, and those that
//! ask the processor what a module may not know from it, for which a function of the sysroot answers. And single stores by string
//! instructions, which gcc writes for size: in the words mode those reach the module's own memory only.

use std::borrow::Cow;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Formatter, GasFormatter, Instruction};

use crate::parse::{Kind, Stmt, directive, number, statements};
use crate::sections::Sections;
use crate::{Isolation, Options};

/// Instructions that a function of the same effect stands for. It changes the registers that the instruction writes, and the flags.
const CALLED: &[(&str, &str)] = &[
    ("cpuid", "__rf_insn_cpuid"),
    ("xgetbv", "__rf_insn_xgetbv"),
    ("rdtsc", "__rf_insn_rdtsc"),
    ("rdtscp", "__rf_insn_rdtscp"),
];

/// What loads the control word of the x87 unit. Where a module may use the unit, the word is [`CONTROL_WORD`]: who loads that changes
/// nothing (gnulib does, around each computation with `long double`), and who loads another is stopped by a trap. It changes the flags.
const CONTROL: &str = "fldcw";

/// Extended precision, rounding to nearest, no exceptions.
const CONTROL_WORD: u16 = 0x37F;

/// What gcc clears a few bytes by with `-Os`, and the same by a move. gcc's code finds the direction flag clear, and both leave the flags alone.
const STORES: &[(&str, &str)] = &[
    ("stosb", "movb %al, (%rdi); leaq 1(%rdi), %rdi"),
    ("stosw", "movw %ax, (%rdi); leaq 2(%rdi), %rdi"),
    ("stosl", "movl %eax, (%rdi); leaq 4(%rdi), %rdi"),
    ("stosq", "movq %rax, (%rdi); leaq 8(%rdi), %rdi"),
];

/// The text with all of them replaced, line by line. What cannot be replaced stays, and is refused where it is met.
pub(crate) fn expand<'i>(input: &'i str, options: &Options) -> Cow<'i, str> {
    let bytes = options.handwritten || input.contains("#APP");
    let called = CALLED.iter().any(|(name, _)| input.contains(name));
    let stores = options.isolation == Isolation::Words && input.contains("\tstos");
    if !(called || stores || bytes && (input.contains(".byte") || input.contains(CONTROL))) {
        return Cow::Borrowed(input);
    }
    let Ok(stmts) = statements(input) else {
        return Cow::Borrowed(input);
    };
    let mut out = String::new();
    let mut copied = 0;
    let mut replace = |s: &Stmt<'_>, by: &str| {
        // Statements are parts of the input.
        let at = s.text.as_ptr() as usize - input.as_ptr() as usize;
        out.push_str(&input[copied..at]);
        out.push_str(by);
        copied = at + s.text.len();
    };
    let mut sections = Sections::new();
    let mut at = 0;
    while let Some(s) = stmts.get(at) {
        at += 1;
        if sections.follow(s) || !sections.now.code {
            continue;
        }
        if s.kind == Kind::Insn
            && let Some(function) = called_for(s.text, options)
        {
            replace(s, &format!("call {function}"));
            continue;
        }
        if s.kind == Kind::Insn
            && stores
            && !(s.app || options.handwritten)
            && let Some((_, moves)) = STORES.iter().find(|(name, _)| *name == s.text)
        {
            replace(s, moves);
            continue;
        }
        if s.kind == Kind::Insn
            && (s.app || options.handwritten)
            && let Some(word) = s.text.strip_prefix(CONTROL)
        {
            replace(s, &format!("cmpw ${CONTROL_WORD:#x},{word}; je 99f; ud2; 99:"));
            continue;
        }
        if s.kind != Kind::Directive || !(s.app || options.handwritten) {
            continue;
        }
        let Some(mut code) = literals(s) else { continue };
        let mut end = at;
        while let Some(more) = stmts
            .get(end)
            .filter(|s| s.kind == Kind::Directive)
            .and_then(literals)
        {
            code.extend(more);
            end += 1;
        }
        let Some(instructions) = decode(&code) else {
            at = end;
            continue;
        };
        let named = instructions.iter().map(|i| match called_for(i, options) {
            Some(function) => format!("call {function}"),
            None => i.clone(),
        });
        replace(s, &named.collect::<Vec<_>>().join("; "));
        for s in &stmts[at..end] {
            replace(s, "");
        }
        at = end;
    }
    if copied == 0 {
        return Cow::Borrowed(input);
    }
    out.push_str(&input[copied..]);
    Cow::Owned(out)
}

fn called_for(instruction: &str, options: &Options) -> Option<&'static str> {
    if instruction.starts_with("rdtsc") && !options.clock {
        return None;
    }
    let found = CALLED.iter().find(|(name, _)| *name == instruction)?;
    Some(found.1)
}

/// The bytes of a directive of plain numbers.
fn literals(s: &Stmt<'_>) -> Option<Vec<u8>> {
    let (name, args) = directive(s.text);
    let size = match name {
        ".byte" => 1,
        ".value" | ".short" | ".word" | ".2byte" => 2,
        ".long" | ".int" | ".4byte" => 4,
        ".quad" | ".8byte" => 8,
        _ => return None,
    };
    let mut bytes = Vec::new();
    for word in args.split(',') {
        let word = word.trim();
        if word.is_empty() {
            return None;
        }
        bytes.extend(&number(word)?.to_le_bytes()[..size]);
    }
    Some(bytes)
}

/// The instructions that the bytes are, if they are whole ones that lead nowhere else and do not depend on where they stand.
fn decode(code: &[u8]) -> Option<Vec<String>> {
    let mut decoder = Decoder::new(64, code, DecoderOptions::NONE);
    let mut formatter = GasFormatter::new();
    formatter.options_mut().set_uppercase_hex(false);
    formatter.options_mut().set_gas_show_mnemonic_size_suffix(true);
    let mut found = Vec::new();
    while decoder.can_decode() {
        let instruction: Instruction = decoder.decode();
        let goes_on = matches!(
            instruction.flow_control(),
            FlowControl::Next | FlowControl::Return | FlowControl::Exception
        );
        if instruction.is_invalid() || !goes_on || instruction.is_ip_rel_memory_operand() {
            return None;
        }
        let mut text = String::new();
        formatter.format(&instruction, &mut text);
        found.push(text);
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// gcc's own use of it rounds another way, and stays refused.
    #[test]
    fn control_words() {
        let text = "#APP\n\tfldcw 12(%rsp)\n#NO_APP\n\tfldcw 2(%rsp)\n";
        let want = "#APP\n\tcmpw $0x37f, 12(%rsp); je 99f; ud2; 99:\n#NO_APP\n\tfldcw 2(%rsp)\n";
        assert_eq!(expand(text, &Options::default()), want);
    }

    #[test]
    fn single_stores_are_moves_where_words_have_rights() {
        let mut options = Options::default();
        let text = "\tstosq\t# 5\n\trep stosl\n\tstosb\n#APP\n\tstosb\n#NO_APP\n";
        assert_eq!(expand(text, &options), text);
        options.isolation = Isolation::Words;
        let want = "\tmovq %rax, (%rdi); leaq 8(%rdi), %rdi\t# 5\n\trep stosl\n\tmovb %al, (%rdi); leaq 1(%rdi), %rdi\n#APP\n\tstosb\n#NO_APP\n";
        assert_eq!(expand(text, &options), want);
    }

    fn handwritten(text: &str, clock: bool) -> String {
        let options = Options {
            handwritten: true,
            clock,
            ..Options::default()
        };
        expand(text, &options).into_owned()
    }

    #[test]
    fn bytes_become_instructions() {
        let text =
            "f:\n\t.byte 102,15,56,220,209 # aesenc\n\t.byte\t0x0f, 0x01\n\t.byte 0xd0\n\t.byte 0xf3,0xc3\n";
        assert_eq!(
            handwritten(text, false),
            "f:\n\taesenc %xmm1,%xmm2; call __rf_insn_xgetbv; rep retq # aesenc\n\t\n\t\n\t\n"
        );
        let memory = "\t.byte 102,68,15,56,0,76,36,16\n";
        assert_eq!(handwritten(memory, false), "\tpshufb 0x10(%rsp),%xmm9\n");
    }

    /// Half an instruction, a jump, an address relative to the place, data, and a symbol: all of them stay.
    #[test]
    fn what_is_no_whole_instruction_stays() {
        for text in [
            "\t.byte 0x66\n\tnop\n",
            "\t.byte 0xeb,0x02\n",
            "\t.byte 0x8b,0x05,0,0,0,0\n",
            "\t.section .rodata\n\t.byte 0x90\n",
            "\t.byte f-g\n",
            "\t.byte\n",
        ] {
            assert_eq!(handwritten(text, false), text);
        }
        let compiled = "\t.byte 0x90\n#APP\n#NO_APP\n";
        assert_eq!(expand(compiled, &Options::default()), compiled);
    }

    #[test]
    fn the_clock_is_an_option() {
        assert_eq!(handwritten("\trdtsc\n", false), "\trdtsc\n");
        assert_eq!(handwritten("\trdtsc\n", true), "\tcall __rf_insn_rdtsc\n");
        assert_eq!(
            handwritten("\tcpuid; nop\n", false),
            "\tcall __rf_insn_cpuid; nop\n"
        );
        assert_eq!(
            handwritten("\t.byte 0x0f,0x31\n", true),
            "\tcall __rf_insn_rdtsc\n"
        );
    }
}
