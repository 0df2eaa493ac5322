//! Compactions of the directory of a server that serves.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::tally::{Sort, Tally};
use crate::harness::repertoire;

/// Compacts the directory of a server that serves, again and again.
pub(super) struct Compacting {
    /// The server is killed: a command may fail.
    pub(super) killed: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<(usize, usize, Vec<String>)>,
}

impl Compacting {
    pub(super) fn of(data: &Path) -> Self {
        let data = data.to_owned();
        let (killed, stop) = (Arc::default(), Arc::default());
        let (failing, stopped) = (Arc::clone(&killed), Arc::<AtomicBool>::clone(&stop));
        let thread = std::thread::spawn(move || {
            let (mut begun, mut done, mut found) = (0, 0, Vec::new());
            while !stopped.load(Ordering::SeqCst) {
                begun += 1;
                let mut child = repertoire(&["compact"], &data)
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .stderr(Stdio::piped())
                    .spawn()
                    .expect("the program starts");
                let ended = loop {
                    let ended = child.try_wait().expect("a child");
                    if ended.is_some() || stopped.load(Ordering::SeqCst) {
                        break ended;
                    }
                    std::thread::sleep(Duration::from_millis(1));
                };
                // Without its server it would go on with the directory.
                let _ended = child.kill();
                let ran = child.wait_with_output().expect("the child ends");
                match ended {
                    Some(status) if status.success() => done += 1,
                    _ if AtomicBool::load(&failing, Ordering::SeqCst) => {}
                    _ => found.push(String::from_utf8_lossy(&ran.stderr).into_owned()),
                }
            }
            (begun, done, found)
        });
        Self {
            killed,
            stop,
            thread,
        }
    }

    /// After the server is gone.
    pub(super) fn end(self, tally: &mut Tally) {
        self.stop.store(true, Ordering::SeqCst);
        let (begun, done, found) = self.thread.join().expect("a thread");
        tally.served += begun;
        tally.served_whole += done;
        for stderr in found {
            tally.find(Sort::Wrong, format!("a compaction ended with {stderr}"));
        }
    }
}
