//! Nobody waits for ever, nobody changes a folder at the same time, and a server is not
//! asked for everything at once.

use std::sync::mpsc;
use std::thread;

use super::*;

/// Another process that has the folder of a lock. It lets go when the test is over, and
/// after a while at the latest: so whoever waits in spite of all goes on and fails.
struct Other {
    over: Option<mpsc::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Other {
    fn holds(folder: &Path) -> Self {
        let held = hold(folder, NEVER).expect("a lock");
        let (over, wait) = mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            let _over = wait.recv_timeout(Duration::from_secs(20));
            drop(held);
        });
        Self {
            over: Some(over),
            thread: Some(thread),
        }
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        drop(self.over.take());
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the other ends");
        }
    }
}

#[tokio::test]
async fn waiting_ends_at_the_instant_that_was_named_and_not_before() {
    let machine = Machine::new();
    for is_late in [true, false] {
        let how = How {
            is_late,
            ..How::default()
        };
        let told = machine.with(&how, async |with| Ok(with.give_up())).await;
        assert_eq!(told.expect("an answer"), is_late);
    }
}

#[tokio::test]
async fn an_install_and_an_update_give_up_on_another_process_and_change_nothing() {
    let machine = Machine::new();
    machine.publish("pdf", 1, &[]);
    let how = How::default();
    machine.install(&["pdf"], &how).await.expect("installed");
    machine.publish("pdf", 2, &[]);
    let before = machine.there();
    machine.asked();
    let _other = Other::holds(&machine.project());
    let late = How {
        is_late: true,
        ..how
    };
    for refused in [
        machine.install(&["pdf"], &late).await,
        machine.update(&[], &late).await,
    ] {
        assert_eq!(refused.expect_err("a refusal").code, Code::Overloaded);
    }
    assert_eq!(machine.asked(), [""; 0]);
    assert_eq!(machine.there(), before);
}

#[tokio::test]
async fn a_removal_gives_up_when_its_caller_says_so() {
    let machine = Machine::new();
    machine.publish("pdf", 1, &[]);
    let how = How::default();
    machine.install(&["pdf"], &how).await.expect("installed");
    let before = machine.there();
    let targets = machine.targets(&how).expect("targets");
    for held in ["", ".claude/skills/.repertoire"] {
        let _other = Other::holds(&machine.project().join(held));
        let times = Cell::new(0);
        let give_up = || {
            times.set(times.get() + 1);
            times.get() == 2
        };
        let refused = uninstall(&targets, "pdf", false, false, &give_up);
        assert_eq!(refused.expect_err("a refusal").code, Code::Overloaded);
        assert_eq!(times.get(), 2);
        assert_eq!(machine.there(), before);
    }
}

#[tokio::test]
async fn a_folder_that_another_process_writes_to_is_given_up_on() {
    let machine = Machine::new();
    machine.publish("pdf", 1, &[]);
    let _other = Other::holds(&machine.project().join(".claude/skills/.repertoire"));
    let late = How {
        is_late: true,
        ..How::default()
    };
    let refused = machine.install(&["pdf"], &late).await;
    assert_eq!(refused.expect_err("a refusal").code, Code::Overloaded);
    assert_eq!(machine.there(), BTreeMap::new());
    assert_eq!(machine.lock(), []);
}

#[tokio::test]
async fn the_lock_belongs_to_a_call_until_it_ends_and_to_nobody_afterwards() {
    let machine = Machine::new();
    machine.publish("pdf", 1, &[]);
    let watch = || *machine.server.locks.borrow_mut() = Some((machine.project(), Vec::new()));
    let taken = || machine.server.locks.take().expect("a folder").1;
    let how = How::default();
    watch();
    machine.install(&["pdf"], &how).await.expect("installed");
    assert_eq!(taken(), [false, false], "asked twice, and held each time");
    machine.publish("pdf", 2, &[]);
    watch();
    machine.update(&[], &how).await.expect("updated");
    assert_eq!(taken(), [false, false]);
    assert!(hold(&machine.project(), NEVER).is_ok());
}

#[tokio::test]
async fn four_skills_are_asked_for_at_once_and_no_more() {
    let machine = Machine::new();
    let names = ["a1", "b2", "c3", "d4", "e5", "f6", "g7", "h8", "i9"];
    for name in names {
        machine.publish(name, 1, &[]);
    }
    let how = How::default();
    machine.install(&names, &how).await.expect("installed");
    assert_eq!(machine.server.most.take(), 4);
    assert_eq!(machine.fetched.get(), names.len());
    let all = machine.with(&how, async |with| newer(with).await).await;
    assert_eq!(all.expect("an answer").len(), names.len());
    assert_eq!(machine.server.most.take(), 4);
    let all = machine.with(&how, async |with| audit(with).await).await;
    assert_eq!(all.expect("an answer").len(), names.len());
    assert_eq!(machine.server.most.take(), 4);
}
