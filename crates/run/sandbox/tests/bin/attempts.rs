//! A child that confines itself and then, as native code that broke out of an engine
//! would, tries what its argument says. Whatever it writes afterwards, it is still there.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::process::Command;

use repertoire_sandbox::{Limits, Outcome, Value, confine};
use rustix::process::{Pid, Resource, Rlimit, Signal};

fn main() {
    let name = std::env::args().nth(1).expect("what to try");
    // Descriptors that the process had before.
    let (mut reader, mut writer) = std::io::pipe().expect("a pipe");
    let mut file = File::open("/etc/passwd").expect("a file");
    let confinement = confine(&Limits::default()).expect("confined");
    say(&serde_json::json!({ "Confined": confinement }));
    let mut byte = [0];
    // Whether it works or fails: it should not come back.
    let came_back: bool = match name.as_str() {
        "nothing" => true,
        "open" => File::open("/etc/passwd").is_ok(),
        "environment" => File::open("/proc/self/environ").is_ok(),
        "list" => std::fs::read_dir("/").is_ok(),
        "create" => File::create("/tmp/left-by-a-sandbox").is_ok(),
        "delete" => std::fs::remove_file("/tmp/left-by-a-sandbox").is_ok(),
        "run" => Command::new("/bin/true").spawn().is_ok(),
        "tcp" => TcpStream::connect("127.0.0.1:9").is_ok(),
        "udp" => UdpSocket::bind("127.0.0.1:0").is_ok(),
        "unix" => UnixDatagram::unbound().is_ok(),
        "thread" => std::thread::Builder::new().spawn(|| {}).is_ok(),
        "write-inherited" => writer.write(b"x").is_ok(),
        "read-inherited" => file.read(&mut byte).is_ok(),
        "read-pipe" => reader.read(&mut byte).is_ok(),
        "signal" => {
            let parent = rustix::process::getppid().unwrap_or(Pid::INIT);
            rustix::process::kill_process(parent, Signal::CONT).is_ok()
        }
        "raise" => {
            let all = Rlimit {
                current: None,
                maximum: None,
            };
            rustix::process::setrlimit(Resource::Cpu, all).is_ok()
        }
        "priority" => rustix::process::nice(1).is_ok(),
        "link" => std::fs::hard_link("/etc/passwd", "/tmp/left-by-a-sandbox").is_ok(),
        "where" => std::env::current_dir().is_ok(),
        other => panic!("{other}?"),
    };
    say(&serde_json::json!({ "Outcome": Outcome::Value(Value::Bool(came_back)) }));
}

fn say(line: &serde_json::Value) {
    let mut out = std::io::stdout();
    writeln!(out, "{line}").expect("a parent");
    out.flush().expect("a parent");
}
