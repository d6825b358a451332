//! An option has one name: in Rust, in the C header, on the command line, and on the page that tells of it.

use std::path::Path;

use ringfence::DomainOptions;

fn text(path: &str) -> String {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// What stands in backticks at the start of the rows of the page's table that has this head.
fn rows(head: &str) -> Vec<Vec<String>> {
    let page = text("docs/options.md");
    let table = page.split(head).nth(1).expect("the table is there");
    table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells = line.trim_matches('|').split('|');
            cells.map(|cell| cell.trim().to_owned()).collect()
        })
        .collect()
}

#[test]
fn the_c_struct_has_the_rows_in_their_order() {
    let header = text("include/ringfence/host/options.h");
    let fields = header
        .split("void *on_limit_context;")
        .nth(1)
        .and_then(|rest| rest.split("} rf_domain_options;").next())
        .expect("the struct");
    let named: Vec<&str> = fields
        .lines()
        .filter_map(|line| line.trim().strip_prefix("uint64_t "))
        .filter_map(|line| line.split(';').next())
        .collect();
    let rows: Vec<&str> = DomainOptions::TABLE.iter().map(|row| row.name).collect();
    assert_eq!(named, rows);
    // C++ has no designated initialisers: one value for each field, the size first, `cancel` and `arena` last.
    let init = header
        .split("{ sizeof(rf_domain_options),")
        .nth(1)
        .and_then(|rest| rest.split('}').next());
    assert_eq!(init.expect("the initialiser").split(',').count(), 9 + rows.len());
}

#[test]
fn the_page_has_the_rows_as_they_are() {
    let wanted: Vec<Vec<String>> = DomainOptions::TABLE
        .iter()
        .map(|row| {
            vec![
                format!("`{}`", row.name),
                row.summary.to_owned(),
                row.accepted(),
                row.default().map_or("none".to_owned(), |n| row.unit.text(n)),
            ]
        })
        .collect();
    assert_eq!(
        rows("| option | what it limits or sets | accepted | default |"),
        wanted
    );
}

#[test]
fn options_of_policies_have_one_name() {
    let (rust, c) = (
        text("crates/policy/src/grant.rs"),
        text("include/ringfence/host/policy.h"),
    );
    let command = text("crates/cli/src/run.rs");
    let mut known = Vec::new();
    for row in rows("| option | on the command line |") {
        let name = row[0].trim_matches('`').to_owned();
        assert!(rust.contains(&format!("    pub fn {name}(")), "Policy::{name}");
        assert!(
            c.contains(&format!("rf_status rf_policy_{name}(")),
            "rf_policy_{name}"
        );
        if let Some(option) = row[1].strip_prefix("`--") {
            let field = option.trim_matches('`').replace('-', "_");
            assert_eq!(field.strip_prefix("no_").unwrap_or(&field), name);
            assert!(command.contains(&format!("\n    {field}: ")), "--{option}");
        }
        known.push(name);
    }
    // And nothing has been forgotten.
    let builder = rust
        .split("impl Policy {")
        .nth(1)
        .and_then(|rest| rest.split("\n}\n").next());
    for line in builder.expect("the builder").lines() {
        let Some(rest) = line.strip_prefix("    pub fn ") else {
            continue;
        };
        let name = rest.split(['(', '<']).next().unwrap_or(rest);
        let other = ["new", "start", "inherit_streams"].contains(&name);
        assert!(
            other || known.iter().any(|k| k == name),
            "Policy::{name} is not on the page"
        );
    }
    for name in c
        .split("rf_status rf_policy_")
        .skip(1)
        .filter_map(|rest| rest.split('(').next())
    {
        let other = ["create", "destroy", "stdin_bytes"].contains(&name);
        assert!(
            other || known.iter().any(|k| k == name),
            "rf_policy_{name} is not on the page"
        );
    }
}
