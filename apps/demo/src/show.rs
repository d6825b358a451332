//! Short, aligned lines; colour on a terminal only.

use std::io::IsTerminal;
use std::process::ExitCode;

/// What is shown, and how much of it went wrong.
pub struct Show {
    colour: bool,
    passed: u32,
    failed: u32,
}

impl Show {
    /// Looks at what standard output is.
    pub fn new() -> Self {
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Show {
            colour,
            passed: 0,
            failed: 0,
        }
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colour {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// A heading.
    pub fn title(&self, text: &str) {
        println!("\n{}", self.paint("1", text));
    }

    /// Something to know.
    pub fn fact(&self, name: &str, value: &str) {
        println!("    {name:<28} {value}");
    }

    /// Something that must be so.
    pub fn check(&mut self, name: &str, holds: bool, value: &str) {
        if holds {
            self.passed += 1;
        } else {
            self.failed += 1;
        }
        let mark = if holds {
            self.paint("32", "ok")
        } else {
            self.paint("1;31", "!!")
        };
        println!(" {mark} {name:<28} {value}");
    }

    /// Something that should not have happened.
    pub fn fail(&mut self, name: &str, value: &str) {
        self.check(name, false, value);
    }

    /// What another program said.
    pub fn quote(&self, text: &str) {
        for line in text.lines().take(8) {
            println!("      {}", self.paint("2", line));
        }
    }

    /// The last line, and the status to exit with.
    pub fn end(self) -> ExitCode {
        println!("\ndemo: {} passed, {} failed", self.passed, self.failed);
        if self.failed == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}
