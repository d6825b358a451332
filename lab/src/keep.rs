//! What does not outlive a laboratory, however that ends: directories of its own, and servers that are nobody's children.

use std::ffi::CString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// What the names of rooms begin with.
const PREFIX: &str = "lab-";
/// The file in a room that is locked as long as somebody uses it.
const HELD: &str = "held";
/// How long a look at a room's processes takes, and how many there are before they are killed.
const LOOK: Duration = Duration::from_millis(20);
const LOOKS: u32 = 500;
/// What the keeper says when it is there.
const THERE: u8 = b'k';

/// A directory that nobody else can foresee or enter, with what works in it. Both go with it.
pub struct Room {
    path: PathBuf,
    _held: File,
    /// Who clears it if this process does not.
    keeper: Option<Child>,
}

impl Room {
    /// A new one below a directory, which is made. Those of laboratories that were killed go first.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new(of: &Path) -> Result<Room, String> {
        let error = |e: std::io::Error| format!("{}: {e}", of.display());
        std::fs::create_dir_all(of).map_err(error)?;
        let of = of.canonicalize().map_err(error)?;
        // One at a time: a room that is not held yet is nobody's to clear.
        let door = File::open(&of).map_err(error)?;
        lock(&door, libc::LOCK_EX).map_err(error)?;
        sweep(&of);
        let name = CString::new(of.join(format!("{PREFIX}XXXXXX")).as_os_str().as_bytes());
        let mut name = name.map_err(|e| e.to_string())?.into_bytes_with_nul();
        // SAFETY: a text that ends with its zero; the six characters before it are written.
        if unsafe { libc::mkdtemp(name.as_mut_ptr().cast()) }.is_null() {
            return Err(error(std::io::Error::last_os_error()));
        }
        name.pop();
        let path = PathBuf::from(std::ffi::OsString::from_vec(name));
        let held = File::create(path.join(HELD)).map_err(error)?;
        lock(&held, libc::LOCK_EX).map_err(error)?;
        Ok(Room {
            path,
            _held: held,
            keeper: None,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Has a process of its own clear it when this one is gone: `lab keep`.
    ///
    /// # Errors
    /// That cannot be run.
    pub fn keep(&mut self) -> Result<(), String> {
        if self.keeper.is_some() {
            return Ok(());
        }
        // This program, even if its file has been replaced since.
        let mut command = Command::new("/proc/self/exe");
        command.arg0("lab");
        // What ends the laboratory from a terminal does not end its keeper.
        command.arg("keep").arg(&self.path).process_group(0);
        let keeper = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut keeper = keeper.map_err(|e| format!("the keeper: {e}"))?;
        let mut there = [0];
        let out = keeper.stdout.as_mut().ok_or("no output")?;
        out.read_exact(&mut there)
            .map_err(|e| format!("the keeper: {e}"))?;
        self.keeper = Some(keeper);
        Ok(())
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let cleared = self.keeper.take().is_some_and(|mut keeper| {
            drop(keeper.stdin.take());
            keeper.wait().is_ok_and(|end| end.success())
        });
        if !cleared {
            clear(&self.path);
        }
    }
}

/// What `lab keep` does: waits for the end of whoever started it, and clears the room then.
///
/// # Errors
/// It has no input or output.
pub fn keep(path: &Path) -> Result<(), String> {
    std::io::stdout()
        .write_all(&[THERE])
        .and_then(|()| std::io::stdout().flush())
        .and_then(|()| std::io::stdin().read_to_end(&mut Vec::new()))
        .map_err(|e| e.to_string())?;
    clear(path);
    Ok(())
}

/// Locks a file as long as it is open.
fn lock(file: &File, how: i32) -> std::io::Result<()> {
    // SAFETY: a system call on a descriptor that is open.
    match unsafe { libc::flock(file.as_raw_fd(), how) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Clears the rooms below a directory that nobody holds.
fn sweep(of: &Path) {
    let rooms = std::fs::read_dir(of).into_iter().flatten().flatten();
    for room in rooms.filter(|r| r.file_name().as_bytes().starts_with(PREFIX.as_bytes())) {
        let held = File::open(room.path().join(HELD));
        if held.is_ok_and(|h| lock(&h, libc::LOCK_EX | libc::LOCK_NB).is_ok()) {
            clear(&room.path());
        }
    }
}

/// Ends what works in a directory, and removes that. PostgreSQL takes the first signal for an immediate shutdown.
fn clear(path: &Path) {
    for signal in [libc::SIGQUIT, libc::SIGKILL] {
        for pid in workers(path) {
            // SAFETY: a system call on numbers.
            unsafe { libc::kill(pid, signal) };
        }
        for _ in 0..LOOKS {
            if workers(path).is_empty() {
                break;
            }
            std::thread::sleep(LOOK);
        }
    }
    let _ = std::fs::remove_dir_all(path);
}

/// The processes whose directory is this or one below it, but for the one that asks.
pub fn workers(path: &Path) -> Vec<i32> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter(|p| std::fs::read_link(p.path().join("cwd")).is_ok_and(|d| d.starts_with(path)))
        .filter_map(|p| p.file_name().to_str()?.parse().ok())
        .filter(|&pid| u32::try_from(pid) != Ok(std::process::id()))
        .collect()
}

/// Has a command end with the thread that starts it.
pub fn guard(command: &mut Command) {
    let parent = std::process::id();
    // SAFETY: system calls that are safe between fork and exec.
    unsafe {
        command.pre_exec(move || {
            let asked = libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            match asked == 0 && u32::try_from(libc::getppid()) == Ok(parent) {
                true => Ok(()),
                false => Err(std::io::Error::from_raw_os_error(libc::ESRCH)),
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn place(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("ringfence-lab-{name}-{}", std::process::id()))
    }

    #[test]
    fn rooms_are_private_and_unlike_each_other() {
        let of = place("rooms");
        let (a, b) = (Room::new(&of).expect("one"), Room::new(&of).expect("another"));
        assert_ne!(a.path(), b.path());
        let mode = std::fs::metadata(a.path()).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let gone = a.path().to_path_buf();
        drop(a);
        assert!(!gone.exists() && b.path().exists());
        drop(b);
        let _ = std::fs::remove_dir_all(of);
    }

    #[test]
    fn rooms_of_the_dead_are_cleared_and_what_works_in_them_ends() {
        let of = place("dead");
        let held = Room::new(&of).expect("one");
        let dead = of.canonicalize().expect("there").join("lab-dead");
        std::fs::create_dir(&dead).expect("new");
        std::fs::write(dead.join(HELD), "").expect("written");
        let mut server = Command::new("sleep")
            .arg("1000")
            .current_dir(&dead)
            .spawn()
            .expect("a process");
        // It is a child of this test: somebody has to take its end, so that it is gone.
        let taker = std::thread::spawn(move || server.wait());
        let new = Room::new(&of).expect("another");
        let end = taker.join().expect("no panic").expect("an end");
        assert!(!end.success() && !dead.exists());
        assert!(held.path().exists() && new.path().exists());
        drop((held, new));
        let _ = std::fs::remove_dir_all(of);
    }

    #[test]
    fn a_guarded_command_ends_with_its_thread() {
        let started = std::thread::spawn(|| {
            let mut command = Command::new("sleep");
            guard(&mut command);
            command.arg("1000").spawn().expect("a process")
        });
        let mut child = started.join().expect("no panic");
        assert!(!child.wait().expect("an end").success());
    }
}
