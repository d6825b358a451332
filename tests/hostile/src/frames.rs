//! Hostile frames: modules in assembly whose stacks are deep or wide, whose functions are giant, with records of `setjmp` and
//! landing pads by thousands, and what can happen at the bottom of such a stack.

use crate::adapter::{self, DomainOptions, End};
use crate::bounds::{self, Kept, Memory};
use crate::case::{Case, Shape};
use crate::figures::Figures;
use crate::files::Wrong;
use ringfence_driver::args::Front;
use std::fmt::Write as _;
use std::time::Duration;

/// Pushes of one function at most; the verifier takes a few more.
const PUSHED: u64 = 500;

/// What there is.
pub const SHAPES: &[Shape] = &[
    // Levels of a function that calls itself; registers that it pushes; places in it that call.
    Shape {
        name: "calls",
        numbers: &[(0, 200_000), (0, PUSHED), (1, 100_000)],
    },
    // Levels of a function that calls `setjmp` and itself.
    Shape {
        name: "jumps",
        numbers: &[(0, 60_000)],
    },
    // Landing pads of one function that is never called, and their depth.
    Shape {
        name: "pads",
        numbers: &[(0, 60_000), (0, 100)],
    },
    // What the last function does.
    Shape {
        name: "end",
        numbers: &[(0, 11)],
    },
    // The control stack of each thread, in pages.
    Shape {
        name: "stack",
        numbers: &[(4, 16_384)],
    },
    // The time limit, in milliseconds.
    Shape {
        name: "limit",
        numbers: &[(1, 50)],
    },
];

const HEAD: &str = "\
    .text
    .macro function name
    .p2align 3
    .globl \\name
    .type \\name, @function
\\name:
    nopl 0x629AFFFF(%rax,%rax,1)
    .endm
    .macro pad depth
    .byte 0x0f, 0x1f, 0x84, 0x09
    .2byte \\depth, 0x7AD0
    .endm
    .macro setjmp depth
    leaq .Lset\\@(%rip), %rax
    movq %rax, %gs:8(%edi)
    movq %rbx, %gs:32(%edi)
    movq %r15, %gs:64(%edi)
    call __rf_distance
    movq %rax, %gs:(%edi)
    xorl %eax, %eax
.Lset\\@: pad \\depth
    .endm
";

struct Plan {
    text: String,
    stack: u32,
    limit: Duration,
}

/// One section of the stack: `f{i}` with its count of levels in `edi`, which calls `f{i+1}` at last.
fn plan(case: &Case) -> Plan {
    let mut text = String::from(HEAD);
    let (mut stack, mut limit, mut how) = (256, 20, 0);
    let mut sections: Vec<(u64, String)> = Vec::new();
    let mut most = 1;
    for op in &case.ops {
        let i = sections.len();
        let mut f = String::new();
        match op.name.as_str() {
            "stack" => stack = op.n(0).clamp(4, 16_384),
            "limit" => limit = op.n(0).clamp(1, 50),
            "end" => how = op.n(0),
            "calls" => {
                let (pushed, places) = (op.n(1).min(PUSHED), op.n(2).clamp(1, 100_000));
                let _ = write!(
                    f,
                    " .rept {pushed}\n pushq %rbx\n .endr\n testl %edi, %edi\n je 1f\n decl %edi\n testl $1, %edi\n jne 3f\n call f{i}\n jmp 2f\n \
                     .rept {places}\n call f{i}\n .endr\n3: call f{i}\n jmp 2f\n1: movl $LEVELS, %edi\n call f{next}\n2: .rept {pushed}\n popq %rbx\n .endr\n ret\n",
                    next = i + 1
                );
                sections.push((op.n(0), f));
            }
            "jumps" => {
                let levels = op.n(0).min(60_000);
                most = most.max(levels + 1);
                let _ = write!(
                    f,
                    " pushq %rbx\n movl %edi, %ebx\n leaq buffers(%rip), %rdi\n imull $72, %ebx, %eax\n addq %rax, %rdi\n setjmp 8\n \
                     testl %eax, %eax\n jne 2f\n testl %ebx, %ebx\n je 1f\n leal -1(%rbx), %edi\n call f{i}\n jmp 2f\n\
                     1: movl $LEVELS, %edi\n call f{next}\n2: popq %rbx\n ret\n",
                    next = i + 1
                );
                sections.push((levels, f));
            }
            "pads" => {
                let (count, depth) = (op.n(0).min(60_000), op.n(1).min(100));
                let _ = write!(
                    text,
                    " function pads{i}_{}\n .rept {depth}\n pushq %rbx\n .endr\n jmp 1f\n .rept {count}\n pad {}\n .endr\n1: .rept {depth}\n popq %rbx\n .endr\n ret\n",
                    text.len(),
                    8 * depth
                );
            }
            _ => {}
        }
    }
    let count = sections.len();
    let mut levels: Vec<u64> = sections.iter().map(|s| s.0).collect();
    levels.push(0);
    let _ = write!(
        text,
        " function start\n movl ${}, %edi\n call f0\n ret\n",
        levels[0]
    );
    for (i, (_, f)) in sections.iter().enumerate() {
        let f = f.replace("LEVELS", &levels[i + 1].to_string());
        let _ = write!(text, " function f{i}\n{f} .size f{i}, . - f{i}\n");
    }
    let bottom = match how {
        0 => " ud2\n".into(),
        1 => " xorl %ecx, %ecx\n xorl %edx, %edx\n divl %ecx\n ret\n".into(),
        2 => "1: jmp 1b\n".into(),
        // Its frames, for ever; those far up, which there are not.
        3 => "1: leaq view(%rip), %rdi\n xorl %esi, %esi\n call __rf_unwind\n jmp 1b\n".into(),
        4 => " leaq view(%rip), %rdi\n movl $4096, %esi\n call __rf_unwind\n ud2\n".into(),
        // A frame that is not there: behind all, and before all.
        5 => resume(0),
        6 => resume(u64::from(u32::MAX)),
        // Jumps to the outermost of the records, and to none.
        7 => " leaq buffers(%rip), %rdi\n movq $1, %gs:16(%edi)\n call __rf_resume\n ud2\n".into(),
        8 => " leaq view(%rip), %rdi\n call __rf_resume\n ud2\n".into(),
        // A record more, for ever.
        9 => "1: leaq view(%rip), %rdi\n setjmp 0\n jmp 1b\n".into(),
        // Until the stack ends.
        10 => format!(" call f{count}\n ret\n"),
        // Nobody catches.
        _ => " leaq record(%rip), %rdi\n movl $4, %esi\n call __rf_uncaught\n ud2\n".into(),
    };
    let _ = write!(
        text,
        " function f{count}\n{bottom} .size f{count}, . - f{count}\n .data\n .p2align 3\nrecord: .zero 128\n .bss\n .p2align 6\nview: .zero 1024\nbuffers: .zero {}\n .section .note.GNU-stack,\"\",@progbits\n",
        72 * most
    );
    Plan {
        text,
        stack: stack as u32 * 4096,
        limit: Duration::from_millis(limit),
    }
}

fn resume(distance: u64) -> String {
    format!(
        " leaq record(%rip), %rdi\n movq ${distance}, %rax\n movq %rax, %gs:(%edi)\n leaq f0(%rip), %rax\n movq %rax, %gs:8(%edi)\n call __rf_resume\n ud2\n"
    )
}

/// Assembles a text in its final form.
fn assemble(text: &str) -> Result<Vec<u8>, String> {
    let place = std::env::temp_dir().join(format!("ringfence-frames-{}", std::process::id()));
    let (source, out) = (place.with_extension("s"), place.with_extension("rf"));
    std::fs::write(&source, text).map_err(|e| e.to_string())?;
    let args = ["--no-rewrite", "-nostdlib", "-o"].map(Into::into);
    let args = args
        .into_iter()
        .chain([out.clone().into(), source.clone().into()]);
    let status = ringfence_driver::cc(Front::C, args.collect());
    let bytes = std::fs::read(&out);
    let _ = std::fs::remove_file(&source);
    let _ = std::fs::remove_file(&out);
    match status {
        0 => bytes.map_err(|e| e.to_string()),
        status => Err(format!("the assembler ended with {status}")),
    }
}

/// A module whose `start` never returns.
///
/// # Errors
/// What the assembler said.
pub fn endless() -> Result<Vec<u8>, String> {
    assemble(&plan(&Case::parse("end 2", SHAPES)?).text)
}

/// Makes the module, calls it, and asks for a report.
///
/// # Errors
/// Which bound did not hold.
pub fn run(case: &Case) -> Result<String, String> {
    tried(case, 2)
}

/// The same, as often as it takes for the least of each time.
///
/// # Errors
/// Which bound did not hold.
pub fn measure(case: &Case) -> Result<String, String> {
    tried(case, bounds::TRIES)
}

/// At least so many tries, two or more, of which the last holds the bounds.
fn tried(case: &Case, wanted: u32) -> Result<String, String> {
    let plan = plan(case);
    let bytes = match assemble(&plan.text) {
        Ok(bytes) => bytes,
        Err(e) => return Ok(format!("not assembled: {e}")),
    };
    let mut last = String::new();
    let mut figures = Figures::default();
    for round in 0..bounds::TRIES + wanted - 2 {
        let before = Kept::now();
        let mut measured = Figures::default();
        measured.note("bytes", bytes.len() as u64);
        let told = bounds::on_small_stack(|| once(&bytes, &plan, &mut measured));
        figures.least(&measured);
        let mut after = Kept::now();
        if let Ok(told) = &told {
            after.heap -= told.capacity() as i64;
        }
        let leaked = after.leaked(&before).filter(|_| round > 0);
        match (told, leaked) {
            (Ok(told), None) if round + 1 >= wanted => return Ok(format!("{told}; {figures}")),
            (Ok(_), None) => {}
            (Ok(_), Some(leaked)) => last = leaked,
            (Err(Wrong::Slow(why)), _) => last = why,
            (Err(Wrong::Bad(why)), _) => return Err(why),
        }
    }
    Err(last)
}

fn once(bytes: &[u8], plan: &Plan, figures: &mut Figures) -> Result<String, Wrong> {
    let module = match adapter::load(bytes) {
        Ok(module) => module,
        Err(e) => return Ok(format!("refused: {e}")),
    };
    let mut options = DomainOptions::default();
    options.time_limit = Some(plan.limit);
    options.control_stack = plan.stack;
    let domain = match module.domain(&options) {
        Ok(domain) => domain,
        Err(e) => return Ok(format!("no domain: {e}")),
    };
    let memory = Memory::begin();
    let (end, took) = domain.call_timed("start", 0, 0);
    figures.time("call_us", took);
    figures.time("beyond_us", took.saturating_sub(plan.limit));
    // The kernel's own work on a fault or a tick is in it; `NOISE` is.
    let limit = (plan.limit + bounds::BEYOND) * bounds::NOISE;
    if took > limit {
        return Err(Wrong::Slow(format!(
            "a call with a limit of {:?} took {took:?}, {limit:?} are allowed",
            plan.limit
        )));
    }
    let told = match end {
        End::Returned(_) => "returned".into(),
        End::Error(e) => format!("error: {e}"),
        End::Fault(fault) => {
            let begin = bounds::processor();
            let (frames, cut) = adapter::report(&fault)?;
            let took = bounds::processor() - begin;
            figures.time("report_us", took);
            if took > bounds::REPORT * bounds::NOISE {
                return Err(Wrong::Slow(format!("a report took {took:?}")));
            }
            format!(
                "{}, {frames} frames{}",
                fault.kind,
                if cut { " (cut)" } else { "" }
            )
        }
    };
    let (heap, resident) = memory.most();
    figures.note("heap", heap);
    figures.note("resident", resident);
    // Stacks are the domain's own.
    let limit = bounds::memory(bytes.len() as u64) + 8 * u64::from(plan.stack);
    if heap > limit || resident > limit {
        return Err(Wrong::Bad(format!(
            "a call took {heap} bytes of heap, {resident} of the system; {limit} are allowed"
        )));
    }
    let begin = bounds::processor();
    let reset = domain.0.reset();
    let took = bounds::processor() - begin;
    figures.time("reset_us", took);
    // Stacks are dropped, not written; a page of them costs the kernel less than a microsecond.
    let limit =
        (plan.limit + bounds::BEYOND) * bounds::NOISE + Duration::from_micros(u64::from(plan.stack / 4096));
    if took > limit {
        return Err(Wrong::Slow(format!(
            "a reset took {took:?}, {limit:?} are allowed"
        )));
    }
    reset.map_err(|e| Wrong::Bad(format!("no reset: {e}")))?;
    Ok(told)
}
