//! Small loops lie in one line of 64 bytes.
//!
//! gcc aligns a loop to 64 where that is cheap, else to 32 (`-falign-loops`, see `flags.rs`): one of 33 to 64 bytes may then cross a
//! line. Where a turn takes a cycle or two, fetching from a second line costs as much again (docs/performance-causes.md,
//! *Alignment of loops*). How long instructions will be is estimated; a wrong guess costs padding or a cycle, nothing else.

/// What gcc writes in front of a loop, up to the fill and the most bytes that it may take.
const ALIGNED: &str = "\t.p2align\t6,";
const AT_MOST: &str = ",31\n";

/// A line of the instruction caches of both makes (AMD's optimization guide for family 1Ah, section 2.8; Intel's optimization
/// manual, section 2.4).
const LINE: usize = 64;

/// Above it a turn takes more cycles than fetching from two lines does.
const MOST_INSTRUCTIONS: usize = 12;

/// The innermost loop that may end further on.
struct Loop<'t> {
    label: &'t str,
    /// Where the alignment's line begins.
    at: usize,
    bytes: usize,
    instructions: usize,
}

/// Aligns the small loops of the function whose code begins at `from` to a line each.
pub(crate) fn settle(buf: &mut String, from: usize) {
    let mut aligned = Vec::new();
    let (mut wide, mut open) = (None, None::<Loop<'_>>);
    let mut at = from;
    for line in buf[from..].split_inclusive('\n') {
        let here = at;
        at += line.len();
        if line.starts_with(ALIGNED) && line.ends_with(AT_MOST) {
            wide = Some(here);
            open = None;
        } else if line.starts_with("\t.p2align") {
            // The narrower one of the same loop, or that of something inside a loop.
            open = None;
        } else if let Some(label) = line.strip_suffix(":\n") {
            // Debug information has labels of its own (`.LVL7`), which must not make a difference.
            let jumped_to = label
                .strip_prefix(".L")
                .is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit()));
            if jumped_to && let Some(at) = wide.take() {
                open = Some(Loop {
                    label,
                    at,
                    bytes: 0,
                    instructions: 0,
                });
            }
        } else if line.starts_with('\t') && !line.starts_with("\t.") {
            wide = None;
            let Some(l) = &mut open else { continue };
            l.bytes += length(line.trim());
            l.instructions += 1;
            if l.instructions > MOST_INSTRUCTIONS || l.bytes > LINE {
                open = None;
            } else if jump(line.trim()).is_some_and(|to| to == l.label) {
                if l.bytes > LINE / 2 {
                    aligned.push(l.at);
                }
                open = None;
            }
        }
    }
    for at in aligned.into_iter().rev() {
        let end = at + buf[at..].find('\n').unwrap_or(0);
        let kept = buf[at..end]
            .trim_end_matches(",31")
            .trim_end_matches(',')
            .to_owned();
        buf.replace_range(at..end, &kept);
    }
}

/// Where a jump with a plain label leads.
fn jump(text: &str) -> Option<&str> {
    let (name, to) = text.split_once('\t')?;
    (name.starts_with('j') && !to.starts_with('*')).then_some(to)
}

/// About how many bytes an instruction will take (Intel's manual, volume 2, chapter 2).
fn length(text: &str) -> usize {
    let (name, operands) = text.split_once(['\t', ' ']).unwrap_or((text, ""));
    if name.starts_with('j') {
        return if operands.starts_with('*') { 3 } else { 2 };
    }
    if name.starts_with("call") {
        return 5;
    }
    if name == "movabsq" {
        return 10;
    }
    let (front, address) = operands
        .split_once('(')
        .map_or((operands, None), |(front, rest)| (front, rest.split_once(')')));
    let plain = address.map_or("", |(_, behind)| behind);
    let address = address.map(|(inside, _)| inside);
    let extended = registers(operands).any(is_extended);
    let vector = operands.contains("mm");
    let stack = matches!(name, "push" | "pushq" | "pop" | "popq");
    let starts = |names: &[&str]| names.iter().any(|n| name.starts_with(n));

    let code = if name.starts_with('v') {
        3 + usize::from(extended && address.is_some())
    } else if stack {
        return 1 + usize::from(extended) + address.map_or(0, |a| address_length(front, a));
    } else {
        let general = registers(front).chain(registers(plain));
        let wide = general.clone().any(is_wide) || !vector && name.ends_with('q');
        let low = general
            .clone()
            .any(|r| matches!(r, "sil" | "dil" | "bpl" | "spl"));
        let half = !vector && name.ends_with('w') && !starts(&["movz", "movs"]);
        let long = starts(&[
            "movz", "movsb", "movsw", "cmov", "set", "bt", "bs", "shld", "shrd", "xadd",
        ]) || name.starts_with("imul") && operands.contains(',') && !operands.starts_with('$');
        let opcode = match vector {
            true if name.ends_with("ps") => 2,
            true => 3,
            false => 1 + usize::from(long),
        };
        opcode + usize::from(extended || wide || low) + usize::from(half)
    };
    code + 1
        + address.map_or(0, |a| address_length(front, a))
        + immediate_length(name, operands, address.is_some(), vector)
}

fn registers(text: &str) -> impl Iterator<Item = &str> + Clone {
    text.split('%').skip(1).map(|r| {
        let end = r.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(r.len());
        &r[..end]
    })
}

/// One that takes a bit of a prefix: `r8` to `r15`, `xmm8` to `xmm15`.
fn is_extended(register: &str) -> bool {
    register
        .trim_matches(|c: char| c.is_ascii_alphabetic())
        .parse::<u32>()
        .is_ok_and(|n| n >= 8)
}

fn is_wide(register: &str) -> bool {
    register.starts_with('r') && !register.ends_with(['d', 'w', 'b'])
}

/// Prefixes, scaled index and displacement of an operand in memory; `front` ends with what stands before its parenthesis.
fn address_length(front: &str, address: &str) -> usize {
    let displacement = front.rsplit([',', ' ', ':']).next().unwrap_or("");
    let base = registers(address.split(',').next().unwrap_or(""))
        .next()
        .unwrap_or("");
    let narrow = registers(address).any(|r| r.starts_with('e') || r.ends_with('d') && is_extended(r));
    let needs_one = matches!(base, "rbp" | "ebp" | "r13" | "r13d");
    let shift = match displacement.parse::<i64>() {
        _ if matches!(base, "" | "rip") => 4,
        Ok(0) => usize::from(needs_one),
        Err(_) if displacement.is_empty() => usize::from(needs_one),
        Ok(n) if i8::try_from(n).is_ok() => 1,
        _ => 4,
    };
    let scaled = address.contains(',') || matches!(base, "" | "rsp" | "esp" | "r12" | "r12d");
    shift + usize::from(scaled) + usize::from(narrow) + usize::from(front.contains("%gs:"))
}

fn immediate_length(name: &str, operands: &str, memory: bool, vector: bool) -> usize {
    let Some(value) = operands.strip_prefix('$') else {
        return 0;
    };
    let value = value.split(',').next().unwrap_or("").parse::<i64>().ok();
    let shift = ["sal", "shl", "sar", "shr", "rol", "ror"]
        .iter()
        .any(|m| name.starts_with(m));
    let whole = name.starts_with("mov") || name.starts_with("test");
    match value {
        Some(1) if shift => 0,
        _ if vector || shift || name.ends_with('b') => 1,
        Some(n) if !whole && i8::try_from(n).is_ok() => 1,
        _ if name.ends_with('w') => 2,
        // In the opcode's own form, without the byte that names a register.
        _ if name == "movl" && !memory => 3,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::{length, settle};

    /// As `as` makes them.
    #[test]
    fn lengths() {
        for (text, bytes) in [
            ("movzbl\t%gs:(%edx), %ecx", 5),
            ("movzbl\t%gs:-1(%eax), %esi", 6),
            ("addq\t$1, %rdx", 4),
            ("movb\t%sil, %gs:-1(%edx)", 6),
            ("movb\t%cl, %gs:(%eax)", 4),
            ("cmpq\t%rax, %rdx", 3),
            ("jb\t.L6", 2),
            ("leaq\t-112(%r15), %r15", 4),
            ("movl\t$8, %gs:60(%r15d)", 10),
            ("movq\t%rdi, %gs:40(%r15d)", 6),
            ("movq\t$32, %gs:8(%r15d)", 10),
            ("movb\t$0, %gs:0(%ebp,%eax,1)", 7),
            ("leaq\ttext(%rip), %rdx", 7),
            ("shrq\t$27, %rbx", 4),
            ("movl\t$37, %ebx", 5),
            ("imulq\t%r13, %rcx", 4),
            ("imulq\t$90, %rdx, %rdx", 4),
            ("cmpq\t$999, %r9", 7),
            ("subl\t$1, %gs:60(%r15d)", 7),
            ("movabsq\t$3279421168659475843, %rax", 10),
            ("pushq\t%r13", 2),
            ("movq\t(%r14,%r11), %rax", 4),
            ("movl\t%ecx, %r11d", 3),
            ("vmovdqu\t%gs:(%edi), %ymm2", 6),
            ("vpaddd\t%ymm1, %ymm2, %ymm3", 4),
            ("addsd\t%xmm1, %xmm0", 4),
            ("mulsd\t%gs:8(%eax), %xmm0", 7),
            ("cmovne\t%rdx, %rax", 4),
        ] {
            assert_eq!(length(text), bytes, "{text}");
        }
    }

    fn settled(body: &str) -> String {
        let mut text = format!("\t.p2align\t6,,31\n\t.p2align\t5,,15\n.L6:\n{body}");
        settle(&mut text, 0);
        text
    }

    const TURN: &str = "\tmovzbl\t%gs:(%edx), %ecx\n\tmovzbl\t%gs:-1(%eax), %esi\n\taddq\t$1, %rdx\n\tsubq\t$1, %rax\n\
                        \tmovb\t%sil, %gs:-1(%edx)\n\tmovb\t%cl, %gs:(%eax)\n\tcmpq\t%rax, %rdx\n";

    #[test]
    fn one_that_would_cross_a_line_gets_one() {
        let text = settled(&format!("{TURN}\tjb\t.L6\n"));
        assert!(
            text.starts_with("\t.p2align\t6\n\t.p2align\t5,,15\n.L6:\n"),
            "{text}"
        );
    }

    #[test]
    fn others_stay_where_they_are() {
        for body in [
            // Short enough at 32, long enough to take more cycles, and no loop.
            "\taddq\t$1, %rdx\n\tcmpq\t%rax, %rdx\n\tjb\t.L6\n".to_owned(),
            format!("{TURN}{TURN}\tjb\t.L6\n"),
            format!("{TURN}\tjb\t.L7\n"),
            format!("{TURN}\t.p2align\t4,,10\n.L8:\n\tjb\t.L6\n"),
        ] {
            let text = settled(&body);
            assert!(text.starts_with("\t.p2align\t6,,31\n"), "{text}");
        }
    }

    #[test]
    fn debug_information_makes_no_difference() {
        let mut text = format!(
            "\t.p2align\t6,,31\n\t.p2align\t5,,15\n.LVL3:\n.L6:\n.LBB7:\n\t.loc 1 2 3\n{TURN}.LVL4:\n\tjb\t.L6\n"
        );
        settle(&mut text, 0);
        assert!(text.starts_with("\t.p2align\t6\n"), "{text}");
    }

    #[test]
    fn what_cannot_be_reached_keeps_its_fill() {
        let mut text = format!("\t.p2align\t6,0xcc,31\n\t.p2align\t5,0xcc,15\n.L6:\n{TURN}\tjb\t.L6\n");
        settle(&mut text, 0);
        assert!(text.starts_with("\t.p2align\t6,0xcc\n"), "{text}");
    }
}
