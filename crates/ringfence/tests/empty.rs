//! Domains without a module: all their code comes later.

use ringfence::dynamic::Argument;
use ringfence::{Backend, Code, Domain, DomainError, DomainOptions, Imports};

/// A function that jumps to the one at this offset in the window.
fn jump(to: u32) -> Vec<u8> {
    use ringfence_isa::{identifier, sequence};
    let mut code = identifier::marker(identifier::FUNCTION).to_vec();
    code.extend([0x41, 0xBB]); // movl $to, %r11d
    code.extend(to.to_le_bytes());
    code.extend(sequence::AND);
    code.extend(sequence::CMP);
    code.extend(identifier::FUNCTION.to_le_bytes());
    code.extend(sequence::CMOV);
    code.extend(sequence::ADD);
    code.extend(sequence::JMP);
    code
}

fn imports() -> Imports {
    Imports::new()
        .func("add", |a: i64, b: i64| a.wrapping_add(b))
        .func("multiply", |a: i64, b: i64| a.wrapping_mul(b))
}

#[test]
fn code_comes_to_a_domain_without_modules_and_calls_the_host() {
    let mut options = DomainOptions::default();
    options.extensible = true;
    let domain = Domain::instantiate(&[], imports(), &options).unwrap();
    assert!(matches!(
        domain.function("add"),
        Err(DomainError::NoExport { .. })
    ));
    assert!(matches!(
        domain.import_address("nothing"),
        Err(DomainError::NoExport { .. })
    ));
    for round in 0..3 {
        for (name, result) in [("add", 13), ("multiply", 42)] {
            let address = domain.import_address(name).unwrap().address();
            let code = jump(address as u32);
            let code = Code {
                bytes: &code,
                entry: 0,
            };
            let function = domain.add_code_dynamic("f", &code).unwrap();
            let called = function.call([Argument::Int(6), Argument::Int(7)]).unwrap();
            assert_eq!(called.int, result, "round {round}");
            let typed = function.try_typed::<(i64, i64), i64>().unwrap();
            assert_eq!(typed.call(6, 7).unwrap(), result as i64);
            domain.remove_code("f").unwrap();
        }
        domain.memory().put_slice(&[round; 100]).unwrap().leak();
        domain.reset().unwrap();
    }
}

#[test]
fn a_domain_needs_a_module_or_what_comes_later() {
    let refused = Domain::instantiate(&[], imports(), &DomainOptions::default());
    let told = refused.expect_err("it could do nothing").to_string();
    assert!(told.contains("DomainOptions::extensible"), "{told}");
}

#[test]
fn other_back_ends_take_no_code() {
    let mut options = DomainOptions::default();
    options.backend = Backend::None;
    options.extensible = true;
    assert!(Domain::instantiate(&[], imports(), &options).is_err());
}
