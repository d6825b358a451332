//! What the tests of the command share: a directory of their own, and the command run in it.

#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory for one test, removed at its end.
pub struct Dir(PathBuf);

impl Dir {
    pub fn new() -> Dir {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "rf-test-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Dir(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.0.join(name)).unwrap()
    }

    pub fn exists(&self, name: &str) -> bool {
        self.0.join(name).exists()
    }

    /// Runs `ringfence` here, without a sysroot, so that results do not depend on what is installed.
    pub fn rf(&self, args: &[&str]) -> Ran {
        let mut command = self.command(env!("CARGO_BIN_EXE_ringfence"));
        command.args(args);
        Ran::of(command.output().unwrap())
    }

    /// Compiles a C program with the C library to `p.rf`.
    #[track_caller]
    pub fn program(&self, source: &str) {
        let sysroot = concat!(env!("CARGO_MANIFEST_DIR"), "/../../build/sysroot");
        assert!(
            Path::new(sysroot).join("lib/libc.a").exists(),
            "no libc in build/sysroot: run sysroot/build.sh first"
        );
        self.write("p.c", source);
        self.sh(&format!("$RF cc --sysroot-rf {sysroot} -O1 -g -w p.c -o p.rf"))
            .ok();
    }

    /// Runs a shell script here; `$RF` is the command.
    pub fn sh(&self, script: &str) -> Ran {
        let mut command = self.command("bash");
        command
            .args(["-euc", script])
            .env("RF", env!("CARGO_BIN_EXE_ringfence"));
        Ran::of(command.output().unwrap())
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.0)
            .env("RINGFENCE_SYSROOT", "")
            .env("LC_ALL", "C");
        for name in [
            "RINGFENCE_CC",
            "RINGFENCE_CXX",
            "RINGFENCE_AS",
            "MAKEFLAGS",
            "MAKELEVEL",
        ] {
            command.env_remove(name);
        }
        command
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What a command left behind.
pub struct Ran {
    pub status: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    fn of(output: Output) -> Ran {
        Ran {
            status: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    #[track_caller]
    pub fn ok(self) -> Ran {
        assert_eq!(self.status, 0, "stdout: {}\nstderr: {}", self.out, self.err);
        self
    }

    #[track_caller]
    pub fn fails(self, status: i32, parts: &[&str]) -> Ran {
        assert_eq!(self.status, status, "stdout: {}\nstderr: {}", self.out, self.err);
        for part in parts {
            assert!(
                self.err.contains(part) || self.out.contains(part),
                "no {part:?} in: {}{}",
                self.err,
                self.out
            );
        }
        self
    }
}
