//! A page of Apache: a server of one process for each trial, asked by plain HTTP.

use super::{Place, compare};
use crate::told::{self, Told};
use crate::way::{REQUESTS, Way};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Texts of the requests, encoded.
const TEXTS: [&str; REQUESTS as usize] = [
    "a+host+and+a+module+and+a+gate",
    "one%2C+two%3B+two%20three.three+three",
    "%3Cb%3Ebold%3C%2Fb%3E+%26+%3Cb%3Ebold%3C%2Fb%3E",
    "the+quick+brown+fox+jumps+over+the+lazy+dog.+The+dog+sleeps;+the+fox+does+not",
    "",
    "word+longer-than-thirty-two-characters-which-is-left-out+word",
    "%41%42%43+abc+ABC+%7a%7A+100%25+%zz+%4",
    "z+y+x+w+v+u+t+s+r+q+p+o+n+m+l+k+j+i+h+g+f+e+d+c+b+a+z+y+x+w+v+u+t+s+r+q+p+o+n+m+l+k+j+i+h+g+f+e+d+c+b+a",
];
/// For a server that answers nothing, although it has not used its processor time.
const PATIENCE: Duration = Duration::from_secs(60);
/// Seconds that mod_fenced gives to a request.
const REQUEST: u64 = 1;

/// Limits what a server may take. mod_fenced ends each request that runs out of its time, and serves the next: the server's own limit
/// is behind all of theirs.
fn limit(command: &mut Command, way: Way) {
    let requests = match way {
        Way::Native => 0,
        _ => REQUEST * u64::from(REQUESTS),
    };
    told::limit(command, told::PROCESSOR + requests);
}

fn configuration(place: &Place, program: &Path, directory: &Path, way: Way, port: u16) -> String {
    let modules = place.named("modules");
    // SAFETY: asks for a number.
    let user = match unsafe { libc::geteuid() } {
        0 => "User www-data\nGroup www-data\n",
        _ => "",
    };
    let (load, handler) = match way {
        Way::Native => (
            format!("LoadModule lab_module {}", program.display()),
            "SetHandler lab".to_owned(),
        ),
        _ => (
            format!(
                "LoadModule fenced_module {}/mod_fenced.so\nFencedModule page {}\nFencedTimeLimit {REQUEST}",
                place.named("out"),
                program.display()
            ),
            "SetHandler fenced:page".to_owned(),
        ),
    };
    format!(
        "ServerRoot \"{0}\"\nDefaultRuntimeDir \"{0}\"\nPidFile httpd.pid\nListen 127.0.0.1:{port}\nServerName localhost\n{user}\
         LoadModule mpm_prefork_module {modules}/mod_mpm_prefork.so\nLoadModule authz_core_module {modules}/mod_authz_core.so\n{load}\n\
         ErrorLog error.log\nErrorLogFormat \"%M\"\nLogLevel warn\nDocumentRoot \"{1}\"\n<Location />\nRequire all granted\n{handler}\n</Location>\n",
        directory.display(),
        // The server's user has to get there, which is not so of the directory if root works where nobody else may look.
        place.named("out")
    )
}

/// A server of one process, and its port.
fn start(place: &Place, program: &Path, directory: &Path, way: Way) -> Result<(Child, u16), String> {
    let error = |e: std::io::Error| format!("{}: {e}", directory.display());
    let log = directory.join("error.log");
    let mut last = String::new();
    for attempt in 0..10 {
        // What keeps it from starting may pass.
        std::thread::sleep(Duration::from_millis(100 * attempt));
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|l| l.local_addr())
            .map_err(error)?
            .port();
        let file = directory.join("httpd.conf");
        std::fs::write(&file, configuration(place, program, directory, way, port)).map_err(error)?;
        let _ = std::fs::remove_file(&log);
        let mut command = Command::new(place.named("program"));
        command.arg("-X").arg("-d").arg(directory).arg("-f").arg(file);
        // Where it works is how the keeper of the room knows it.
        command.current_dir(directory);
        limit(&mut command, way);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(error)?;
        while child.try_wait().map_err(error)?.is_none() {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Ok((child, port));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        // Somebody else has taken the port, or the module is refused.
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        if !said.contains("could not bind") && !said.is_empty() {
            return Err(said);
        }
        let status = child.wait().map_err(error)?;
        last = format!(
            "{status}, {}",
            if said.is_empty() { "without a word" } else { &said }
        );
    }
    Err(format!(
        "{}: the server does not start: {last}",
        directory.display()
    ))
}

/// The status and the body of an answer; none if the connection ends without one.
fn get(port: u16, path: &str) -> Option<(u32, String)> {
    let mut connection = TcpStream::connect(("127.0.0.1", port)).ok()?;
    connection.set_read_timeout(Some(PATIENCE)).ok()?;
    write!(connection, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
    let mut bytes = Vec::new();
    connection.read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, body.into()))
}

/// The bodies of all answers without a fault.
///
/// # Errors
/// One of them is no answer.
pub fn answers(place: &Place, program: &Path, directory: &Path, way: Way) -> Result<Vec<String>, String> {
    let (mut child, port) = start(place, program, directory, way)?;
    let all: Vec<_> = TEXTS
        .iter()
        .map(|t| get(port, &format!("/?fault=0&text={t}")))
        .collect();
    stop(&mut child);
    let bodies = all
        .into_iter()
        .map(|a| a.filter(|(status, _)| *status == 200).map(|(_, body)| body));
    let bodies = bodies.collect::<Option<Vec<_>>>();
    bodies.ok_or_else(|| {
        let log = std::fs::read_to_string(directory.join("error.log")).unwrap_or_default();
        format!("a page without a fault in it gives no answer: {log}")
    })
}

fn stop(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// Asks for all pages.
pub fn ask(
    place: &Place,
    answers: &[String],
    program: &Path,
    directory: &Path,
    (way, fault): (Way, usize),
) -> Result<Told, String> {
    let (mut child, port) = start(place, program, directory, way)?;
    let mut text = String::new();
    for (request, query) in TEXTS.iter().enumerate() {
        let before = std::fs::metadata(directory.join("error.log")).map_or(0, |m| m.len());
        let Some((status, body)) = get(port, &format!("/?fault={fault}&text={query}")) else {
            break;
        };
        // What mod_fenced says of a fault: `fenced:page: FILE: WHAT in FUNCTION`.
        let log = std::fs::read(directory.join("error.log")).unwrap_or_default();
        let log = String::from_utf8_lossy(log.get(before as usize..).unwrap_or_default()).into_owned();
        let said = log
            .lines()
            .find_map(|l| l.split_once("fenced:page: "))
            .map(|(_, s)| s.to_owned());
        let line = match (said, status) {
            (Some(said), _) => format!("fault {said}"),
            (None, 200) => compare(answers, request, &body).into(),
            (None, status) => format!("error {status}"),
        };
        text.push_str(&line);
        text.push('\n');
    }
    // One that gave no answer has ended, or does so now, or hangs.
    if text.lines().count() < REQUESTS as usize {
        return Ok(told::judge(&text, told::end(&mut child, &told::alone)?));
    }
    stop(&mut child);
    Ok(told::judge(&format!("{text}heap ok\nend\n"), Some(told::well())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seconds of processor time that a server of this way may take.
    fn seconds(way: Way) -> u64 {
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -t"]);
        limit(&mut shell, way);
        let said = shell.output().expect("a shell").stdout;
        String::from_utf8_lossy(&said).trim().parse().expect("a number")
    }

    #[test]
    fn a_fenced_server_outlives_requests_that_all_run_out_of_time() {
        assert_eq!(seconds(Way::Native), told::PROCESSOR);
        assert!(seconds(Way::Fenced) > REQUEST * u64::from(REQUESTS));
    }

    #[test]
    fn the_root_of_documents_is_where_the_servers_user_gets() {
        let place = Place {
            named: vec![("out".into(), "/out".into())],
            ..Place::default()
        };
        let desk = Path::new("/desk");
        let text = configuration(&place, &desk.join("page.rf"), desk, Way::Fenced, 8080);
        assert!(text.contains("\nDocumentRoot \"/out\"\n"), "{text}");
        assert!(text.contains("FencedTimeLimit 1\n"), "{text}");
    }
}
