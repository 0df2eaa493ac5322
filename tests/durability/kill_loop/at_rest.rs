//! Kills of a start, and of commands that work on a stopped directory.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::tally::{Sort, Tally};
use super::{VERIFY_LIMIT, World, no_panic};
use crate::harness::{Server, repertoire, run};

impl World {
    /// Kills a server while it starts.
    fn kill_starting(&mut self, tally: &mut Tally) {
        let mut server = Server::spawn(&self.data());
        let window = u64::try_from(self.start.as_micros()).expect("a short time");
        std::thread::sleep(Duration::from_micros(self.dice.below(window * 5 / 4)));
        tally.kills += 1;
        tally.starting += 1;
        no_panic(tally, &server.kill());
    }

    /// Kills something that works on the stopped directory.
    pub(super) fn kill_at_rest(&mut self, tally: &mut Tally) {
        let there = self.data().join("FORMAT").exists();
        match self.dice.below(12) {
            4..6 if there => self.kill_compacting(tally),
            6..8 if there => self.kill_backing_up(tally),
            8..10 if there => self.kill_restoring(tally),
            10..12 if there => self.kill_salvaging(tally),
            _ => self.kill_starting(tally),
        }
    }

    /// Runs a command and kills it at some moment; it may have ended before, and then
    /// ends well.
    fn kill_command(&mut self, which: usize, mut command: Command, tally: &mut Tally) {
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let began = Instant::now();
        let mut child = command
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let window = u64::try_from(self.commands[which].as_micros()).expect("a short time");
        let until = Duration::from_micros(self.dice.below(window * 5 / 4));
        let ended = loop {
            let ended = child.try_wait().expect("a child");
            if ended.is_some() || began.elapsed() >= until {
                break ended;
            }
            std::thread::sleep(Duration::from_micros(500));
        };
        match ended {
            Some(_) => self.commands[which] = began.elapsed(),
            // The next one is given more time, until one ends by itself.
            None => self.commands[which] = self.commands[which].max(until * 9 / 8),
        }
        let _ended = child.kill();
        let ran = child.wait_with_output().expect("the child ends");
        let stderr = String::from_utf8_lossy(&ran.stderr);
        if ended.is_some_and(|status| !status.success()) {
            tally.find(Sort::Wrong, format!("{command:?} ended with {stderr}"));
        }
        no_panic(tally, &stderr);
        tally.kills += 1;
        tally.commands[which] += 1;
    }

    fn kill_compacting(&mut self, tally: &mut Tally) {
        self.kill_command(0, repertoire(&["compact"], &self.data()), tally);
    }

    /// A backup is whole or not there.
    fn kill_backing_up(&mut self, tally: &mut Tally) {
        let (file, copy) = (
            self.folder.path().join("backup"),
            self.folder.path().join("copy"),
        );
        let _none = fs::remove_file(&file);
        let name = file.to_str().expect("a name");
        self.kill_command(1, repertoire(&["backup", name], &self.data()), tally);
        if file.exists() {
            let ran = run(repertoire(&["restore", name], &copy), VERIFY_LIMIT);
            if ran.code() != Some(0) {
                tally.find(
                    Sort::Half,
                    format!("a backup is there and not whole: {}", ran.stderr),
                );
            }
            fs::remove_dir_all(&copy).expect("a folder");
        }
    }

    /// What a killed restore leaves is whole, or says that it was cut short and can be
    /// restored into again.
    fn kill_restoring(&mut self, tally: &mut Tally) {
        let (file, copy) = (
            self.folder.path().join("backup"),
            self.folder.path().join("copy"),
        );
        let name = file.to_str().expect("a name");
        let ran = run(
            repertoire(&["backup", "--force", name], &self.data()),
            VERIFY_LIMIT,
        );
        if ran.code() != Some(0) {
            return tally.find(Sort::Wrong, format!("backup: {}", ran.stderr));
        }
        self.kill_command(2, repertoire(&["restore", name], &copy), tally);
        let verify = |data: &Path| run(repertoire(&["verify", "--json"], data), VERIFY_LIMIT);
        // Until it has a folder to restore into, nothing is there that could be taken for
        // a directory.
        if copy.join("store.restoring").exists() {
            let ran = verify(&copy);
            if ran.code() != Some(1) || !ran.stderr.contains("was cut short; run it again") {
                tally.find(
                    Sort::Wrong,
                    format!("half a restore: {} {}", ran.stdout, ran.stderr),
                );
            }
        }
        if !copy.join("store").exists() {
            let ran = run(repertoire(&["restore", name], &copy), VERIFY_LIMIT);
            if ran.code() != Some(0) {
                tally.find(Sort::Lost, format!("a second restore: {}", ran.stderr));
            }
        }
        let (ran, expected) = (verify(&copy), verify(&self.data()));
        if ran.code() != Some(0)
            || without_records(&ran.stdout) != without_records(&expected.stdout)
        {
            tally.find(
                Sort::Lost,
                format!(
                    "restored: {} {}, instead of {}",
                    ran.stdout, ran.stderr, expected.stdout
                ),
            );
        }
        fs::remove_dir_all(&copy).expect("a folder");
    }

    /// What a killed salvage of a damaged directory leaves is mended, or says that it was
    /// cut short and can be salvaged into again.
    fn kill_salvaging(&mut self, tally: &mut Tally) {
        let (damaged, saved) = (
            self.folder.path().join("damaged"),
            self.folder.path().join("saved"),
        );
        fs::create_dir_all(damaged.join("store")).expect("a folder");
        for name in ["FORMAT", "store/db"] {
            fs::copy(self.data().join(name), damaged.join(name)).expect("a copy");
        }
        // Some pages, so that versions lack a content and heads a version.
        let file = File::options()
            .write(true)
            .open(damaged.join("store/db"))
            .expect("a file");
        let size = file.metadata().expect("a file").len();
        for _ in 0..8 {
            let at = self.dice.below(size);
            file.write_all_at(&[0x55; 64], at).expect("written");
        }
        let name = saved.to_str().expect("a name");
        let salvage = || repertoire(&["salvage", name], &damaged);
        self.kill_command(3, salvage(), tally);
        let verify = || run(repertoire(&["verify"], &saved), VERIFY_LIMIT);
        if !saved.join("store").exists() {
            if saved.join("store.restoring").exists() {
                let ran = verify();
                if ran.code() != Some(1) || !ran.stderr.contains("was cut short; run it again") {
                    tally.find(
                        Sort::Wrong,
                        format!("half a salvage: {} {}", ran.stdout, ran.stderr),
                    );
                }
            }
            let ran = run(salvage(), VERIFY_LIMIT);
            if ran.code() != Some(0) {
                tally.find(Sort::Lost, format!("a second salvage: {}", ran.stderr));
            }
        }
        let ran = verify();
        if ran.code() != Some(0) {
            tally.find(
                Sort::Half,
                format!("salvaged: {} {}", ran.stdout, ran.stderr),
            );
        }
        fs::remove_dir_all(&saved).expect("a folder");
        fs::remove_dir_all(&damaged).expect("a folder");
    }
}

/// What `verify` found, but for the number of records: each opening may add some of its own.
fn without_records(verified: &str) -> serde_json::Value {
    let mut found: serde_json::Value = serde_json::from_str(verified).unwrap_or_default();
    if let Some(found) = found.as_object_mut() {
        found.remove("records");
    }
    found
}
