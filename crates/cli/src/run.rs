//! `ringfence run`: a program in a domain of its own, under a policy.

use std::ffi::OsString;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use ringfence::policy::program::{self, RunError};
use ringfence::policy::{Policy, Rights, Stream};
use ringfence::{Domain, Imports, LoadOptions, Module};

use crate::added::{self, Additions, Named};
use crate::failure;
use crate::options::Options;
use crate::output;

/// Options of `ringfence run`.
#[derive(clap::Args)]
pub struct Args {
    /// The program
    program: PathBuf,
    /// Its arguments
    #[arg(allow_hyphen_values = true, trailing_var_arg = true)]
    args: Vec<String>,
    /// Another module for the same domain, whose exports the program uses; may be given several times
    #[arg(long = "module", value_name = "FILE")]
    modules: Vec<PathBuf>,
    /// Add a module to the domain once that is made, under a name; it may use the exports of all that are there, and they call each
    /// other directly; may be given several times
    #[arg(long = "add", value_name = "NAME=FILE", value_parser = added::named)]
    added: Vec<Named>,
    /// Grant a directory: HOST[:GUEST][:ro]; GUEST is the same as HOST unless given
    #[arg(long, value_name = "HOST[:GUEST][:ro]", value_parser = directory)]
    dir: Vec<(PathBuf, String, Rights)>,
    /// Where the program starts, a guest name: the first directory unless given
    #[arg(long, value_name = "GUEST")]
    cwd: Option<String>,
    /// The program's name as it sees it, in place of the file's
    #[arg(long, value_name = "NAME")]
    argv0: Option<String>,
    /// As if it were started natively, for a build's own tests: all files, the current directory, the whole environment, threads,
    /// processes, and its end by a signal is this command's. The fence then protects memory, and nothing else
    #[arg(long)]
    native: bool,
    /// Pass on the whole environment
    #[arg(long)]
    env_all: bool,
    /// When the program ends as by a signal, end by that signal too
    #[arg(long)]
    end_by_signal: bool,
    /// Set an environment variable, or pass one on
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = variable)]
    env: Vec<String>,
    /// Standard input is empty
    #[arg(long)]
    no_stdin: bool,
    /// No clocks
    #[arg(long)]
    no_clocks: bool,
    /// No random numbers from the kernel
    #[arg(long)]
    no_randomness: bool,
    /// Allow connections to this address
    #[arg(long, value_name = "IP:PORT")]
    connect: Vec<SocketAddr>,
    /// Allow to wait for connections at this address, by TCP; port 0 is any that is free
    #[arg(long, value_name = "IP:PORT")]
    listen: Vec<SocketAddr>,
    /// Most open descriptors, 3 to 65536
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(3..=65536))]
    descriptors: Option<u32>,
    /// Most bytes that the program may put on disk, as 64M (default 1G)
    #[arg(long, value_name = "SIZE", value_parser = failure::size)]
    disk_limit: Option<u64>,
    /// Most threads that the program may make, up to 62 (none unless given)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=62))]
    threads: Option<u32>,
    /// Most processes that the program may have besides its first, by fork (none unless given)
    #[arg(long, value_name = "N")]
    processes: Option<u32>,
    /// Symbolic links may be made where writing is granted
    #[arg(long)]
    symlinks: bool,
    /// Print what the domain has used in the end: memory, time, calls, faults, descriptors
    #[arg(long)]
    usage: bool,
    /// Print each system call as strace does
    #[arg(long)]
    trace: bool,
    /// Largest module file to load, as 512M (default 256M)
    #[arg(long, value_name = "SIZE", value_parser = crate::failure::size)]
    max_file: Option<u64>,
    /// Accept a program whose loads are not confined
    #[arg(long)]
    allow_integrity: bool,
    #[command(flatten)]
    domain: Options,
}

fn variable(text: &str) -> Result<String, String> {
    if text.is_empty() || text.starts_with('=') {
        return Err("a variable has a name: write NAME, or NAME=VALUE".into());
    }
    Ok(text.to_owned())
}

fn directory(text: &str) -> Result<(PathBuf, String, Rights), String> {
    let (text, rights) = match text.strip_suffix(":ro") {
        Some(rest) => (rest, Rights::Read),
        None => (text.strip_suffix(":rw").unwrap_or(text), Rights::Write),
    };
    let (host, guest) = match text.split_once(':') {
        Some((host, guest)) => (PathBuf::from(host), guest.to_owned()),
        None => {
            let host = std::path::absolute(text).map_err(|e| e.to_string())?;
            let guest = host
                .to_str()
                .ok_or("the name is not UTF-8; give a guest name too")?
                .to_owned();
            (host, guest)
        }
    };
    if !guest.starts_with('/') {
        return Err(format!("the guest name '{guest}' must start with '/'"));
    }
    Ok((host, guest, rights))
}

/// All files: the root, and each file system that is mounted below it, for a granted directory ends where another file system begins.
fn all_files(policy: Policy) -> Policy {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let reachable = |path: &String| std::fs::read_dir(path).is_ok();
    let policy = policy.dir("/", "/", Rights::Write);
    mount_points(&mounts)
        .into_iter()
        .filter(reachable)
        .fold(policy, |policy, path| policy.dir(&path, &path, Rights::Write))
}

/// The directories below the root where file systems are mounted, without those that are doors to the kernel; each once.
fn mount_points(info: &str) -> Vec<String> {
    const DOORS: [&str; 17] = [
        "proc",
        "sysfs",
        "debugfs",
        "tracefs",
        "cgroup",
        "cgroup2",
        "devtmpfs",
        "devpts",
        "mqueue",
        "bpf",
        "securityfs",
        "configfs",
        "fusectl",
        "pstore",
        "autofs",
        "binfmt_misc",
        "nsfs",
    ];
    let mut found: Vec<String> = Vec::new();
    for line in info.lines() {
        let (Some(point), Some((_, rest))) = (line.split(' ').nth(4), line.split_once(" - ")) else {
            continue;
        };
        let kind = rest.split(' ').next().unwrap_or("");
        // A name with a blank or its like is escaped: such a place is left out.
        let plain = point.len() > 1 && !point.contains('\\');
        let system = ["/proc", "/sys"].iter().any(|s| {
            point
                .strip_prefix(s)
                .is_some_and(|r| r.is_empty() || r.starts_with('/'))
        });
        if plain && !system && !DOORS.contains(&kind) && !found.iter().any(|f| f == point) {
            found.push(point.to_owned());
        }
    }
    found
}

/// Runs the program; its exit status, 139 after a fault, 124 after the time limit, 125 if it could not be started.
pub fn run(args: &Args) -> ExitCode {
    let refuse = |text: String| {
        output::error(text);
        ExitCode::from(failure::NOT_STARTED)
    };
    let name = args
        .argv0
        .clone()
        .unwrap_or_else(|| args.program.to_string_lossy().into_owned());
    let mut policy = Policy::new()
        .inherit_streams()
        .broken_pipes_end(true)
        .clocks(!args.no_clocks)
        .randomness(!args.no_randomness)
        .args(std::iter::once(name).chain(args.args.iter().cloned()));
    if args.no_stdin {
        policy = policy.stdin(Stream::Null);
    }
    for (host, guest, rights) in &args.dir {
        policy = policy.dir(host, guest, *rights);
    }
    if args.native {
        policy = match std::env::current_dir() {
            Ok(here) => all_files(policy)
                .stdin(if args.no_stdin {
                    Stream::Null
                } else {
                    Stream::Positioned
                })
                .stdout(Stream::Positioned)
                .stderr(Stream::Positioned)
                .cwd(&here.to_string_lossy())
                .descriptors(1024)
                .threads(62)
                .processes(256)
                .symlinks(true)
                .disk_limit(u64::MAX),
            Err(e) => return refuse(format!("the current directory: {e}")),
        };
    }
    if let Some(guest) = &args.cwd {
        policy = policy.cwd(guest);
    }
    if args.env_all || args.native {
        let text =
            |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
        for (name, value) in std::env::vars_os().filter_map(text) {
            policy = policy.env(&name, &value);
        }
    }
    for variable in &args.env {
        match variable.split_once('=') {
            Some((name, value)) => policy = policy.env(name, value),
            None => {
                if let Ok(value) = std::env::var(variable) {
                    policy = policy.env(variable, &value);
                }
            }
        }
    }
    for address in &args.connect {
        policy = policy.connect(*address);
    }
    for address in &args.listen {
        policy = policy.listen(*address);
    }
    if let Some(limit) = args.descriptors {
        policy = policy.descriptors(limit as usize);
    }
    if let Some(bytes) = args.disk_limit {
        policy = policy.disk_limit(bytes);
    }
    if let Some(limit) = args.threads {
        policy = policy.threads(limit as usize);
    }
    if let Some(limit) = args.processes {
        policy = policy.processes(limit as usize);
    }
    if args.symlinks {
        policy = policy.symlinks(true);
    }
    if args.trace {
        policy = policy.trace(|line| {
            // Nothing to be done when nobody reads it.
            let _ = writeln!(std::io::stderr(), "{line}");
        });
    }
    let monitor = match policy.start() {
        Ok(monitor) => monitor,
        Err(e) => return refuse(e.to_string()),
    };
    let mut load = LoadOptions::default();
    load.allow_integrity = args.allow_integrity;
    load.max_file_size = args.max_file.unwrap_or(load.max_file_size);
    load.backend = args.domain.0.backend;
    load.addressing = args.domain.0.addressing;
    let mut options = args.domain.0.clone();
    let files = std::iter::once(&args.program).chain(&args.modules);
    let modules: Vec<Module> = match files.map(|f| Module::open_with(f, &load)).collect() {
        Ok(modules) => modules,
        Err(e) => return refuse(e.to_string()),
    };
    let additions = match Additions::load(&args.added, &load) {
        Ok(additions) => additions,
        Err(e) => return refuse(e),
    };
    additions.prepare(&mut options);
    if args.usage {
        added::count(&mut options);
    }
    let domain = match Domain::instantiate(&modules, Imports::new().policy(monitor.clone()), &options) {
        Ok(domain) => domain,
        Err(e) => return failure::not_made(&e, &modules),
    };
    if let Err(code) = additions.add(&domain) {
        return code;
    }
    let ended = domain.run_program(&monitor);
    if args.usage {
        added::print_usage(&domain);
    }
    match ended {
        Ok(status) => {
            if args.trace {
                let _ = writeln!(std::io::stderr(), "+++ exited with {} +++", status as u8);
            }
            ExitCode::from(status as u8)
        }
        Err(RunError::Call(e)) => {
            let code = failure::call(&e);
            if (args.end_by_signal || args.native)
                && let Some(signal) = program::signal(&e)
            {
                failure::end_by(signal);
            }
            code
        }
        Err(e) => refuse(e.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_below_the_root() {
        let info = "20 1 8:1 / / rw - ext4 /dev/a rw\n21 20 0:5 / /proc rw - proc proc rw\n22 20 0:6 / /tmp rw shared:1 - tmpfs t rw\n\
                    23 20 0:7 / /sys/x rw - tmpfs t rw\n24 20 8:1 /srv /srv/a rw - ext4 /dev/a rw\n\
                    25 20 8:1 /srv /srv/a rw - ext4 /dev/a rw\n26 20 8:1 /x /a\\040b rw - ext4 /dev/a rw\n\
                    27 20 0:9 / /dev rw - devtmpfs d rw\n28 27 0:9 / /dev/shm rw - tmpfs d rw\nodd\n";
        assert_eq!(mount_points(info), ["/tmp", "/srv/a", "/dev/shm"]);
    }

    #[test]
    fn directories() {
        let d = directory("/tmp:/data:ro").unwrap();
        assert_eq!(d, (PathBuf::from("/tmp"), "/data".to_owned(), Rights::Read));
        assert_eq!(directory("/tmp").unwrap().1, "/tmp");
        assert_eq!(directory("/tmp:ro").unwrap().2, Rights::Read);
        assert!(directory("/tmp:data").is_err());
    }
}
