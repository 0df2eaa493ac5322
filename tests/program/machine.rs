//! What `make test` says of the machine that it runs on: what it installs, what is missing,
//! and what was skipped for that. Without being asked it changes nothing of the system.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// A folder of programs that stands for a machine which has nothing that tests need. What
/// would change it is only noted.
struct Machine(TempDir);

/// How a run ended: its code, and what it said.
type Told = (Option<i32>, String, String);

fn told(command: &mut Command) -> Told {
    let output = command.output().expect("a program");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let (out, err) = (text(output.stdout), text(output.stderr));
    (output.status.code(), out, err)
}

impl Machine {
    fn new(apt_get: &str) -> Self {
        let folder = TempDir::new().expect("a folder");
        for tool in ["awk", "bash", "cat", "env", "grep", "sh"] {
            let paths = std::env::var_os("PATH").expect("a PATH");
            let mut found = std::env::split_paths(&paths).map(|path| path.join(tool));
            let found = found.find(|path| path.is_file()).expect(tool);
            symlink(found, folder.path().join(tool)).expect("a link");
        }
        let machine = Self(folder);
        machine.has("id", "echo 0");
        machine.has("apt-get", apt_get);
        for change in ["tee", "chmod", "rm"] {
            machine.has(change, ":");
        }
        machine
    }

    fn has(&self, program: &str, does: &str) {
        let file = self.0.path().join(program);
        let text = format!("#!/bin/sh\necho {program} \"$@\" >>\"$NOTES\"\n{does}\n");
        fs::write(&file, text).expect("a program");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("its mode");
    }

    /// Runs `tests/packages` there.
    fn packages(&self, arguments: &[&str], settings: &[(&str, &str)]) -> Told {
        told(
            Command::new(self.0.path().join("bash"))
                .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/packages"))
                .args(arguments)
                .env_clear()
                .env("PATH", self.0.path())
                .env("PLACES", "/nowhere")
                .env("NOTES", self.0.path().join("notes"))
                .envs(settings.iter().copied()),
        )
    }

    /// What was asked of apt-get so far.
    fn asked(&self) -> Vec<String> {
        let notes = fs::read_to_string(self.0.path().join("notes")).unwrap_or_default();
        let asked = notes.lines().filter(|line| line.starts_with("apt-get"));
        asked.map(str::to_owned).collect()
    }
}

const INSTALL: &str = "apt-get install -y -qq --no-install-recommends";
const EVERY_RUN: &str = "postgresql mariadb-server git openssh-server systemd";
const NIGHTLY: &str = "strace nginx-light libreoffice-calc-nogui podman runc";

#[test]
fn what_is_missing_is_said_and_nothing_is_installed() {
    let machine = Machine::new(":");
    let missing = format!(
        "
*** packages: not here, so that tests are skipped:
    postgresql                     SQL tools on PostgreSQL
    mariadb-server                 SQL tools on MariaDB
    git                            sources in Git
    openssh-server                 Git over SSH
    systemd                        the unit for systemd
    apt-get install {EVERY_RUN} ***

"
    );
    assert_eq!(
        machine.packages(&[], &[]),
        (Some(0), String::new(), missing)
    );
    machine.has("git", ":");
    let one = "
*** packages: not here, so that tests are skipped:
    nginx-light                    TLS by a proxy
    apt-get install nginx-light ***

";
    let two = machine.packages(&["nginx-light", "git"], &[]);
    assert_eq!(two, (Some(0), String::new(), one.to_owned()));
    assert!(!machine.0.path().join("notes").exists(), "nothing was done");
}

#[test]
fn packages_are_installed_where_somebody_asks_and_what_cannot_be_had_fails_in_ci() {
    let all = format!("{EVERY_RUN} {NIGHTLY}");
    let runs = [(&[][..], EVERY_RUN), (&["--nightly"][..], &all)];
    for (asks, (run, packages)) in ["CI", "INSTALL_PACKAGES"]
        .into_iter()
        .flat_map(|asks| runs.map(|run| (asks, run)))
    {
        let machine = Machine::new(":");
        let installing = format!("packages: installing {packages}\n");
        assert_eq!(
            machine.packages(run, &[(asks, "true")]),
            (Some(0), installing.clone(), String::new())
        );
        assert_eq!(machine.asked(), [format!("{INSTALL} {packages}")]);

        let offline = Machine::new("exit 1");
        let (code, said, complaint) = offline.packages(run, &[(asks, "true")]);
        assert_eq!((code, said), (Some(i32::from(asks == "CI")), installing));
        let why = "\n*** packages: the packages cannot be installed, so that tests are skipped:\n";
        assert!(complaint.starts_with(why), "{complaint}");
        assert_eq!(
            offline.asked(),
            [
                format!("{INSTALL} {packages}"),
                "apt-get update -qq".to_owned()
            ]
        );
    }
}

#[test]
fn a_plan_says_what_is_installed_where() {
    let plan = |run: &str, night: &str, system: &str| {
        format!(
            "\
make {run} installs, and asks nothing:
    target/                crates, cargo-nextest, typos, rumdl, mdBook{night}
    tests/interop/.tools/  packages of Python, Node, Go and Java (1 GB), each at one version
    caches                 those of cargo, pip, npm, go and mvn, where they always are
    the system             {system}
"
        )
    };
    let machine = Machine::new(":");
    for toolchain in ["python3", "go", "npm"] {
        machine.has(toolchain, ":");
    }
    let no_java = "
*** packages: not here, so that tests are skipped:
    Java 17 or newer               the client and the examples in Java
    Maven                          the client and the examples in Java ***

"
    .to_owned();
    let nothing = format!("nothing; with INSTALL_PACKAGES=true by apt-get: {EVERY_RUN}");
    let nothing = plan("test", "", &nothing);
    assert_eq!(
        machine.packages(&["--plan"], &[]),
        (Some(0), nothing, no_java.clone())
    );
    let some = plan(
        "nightly",
        ", a model for the search (90 MB), cargo-cyclonedx, cargo-deb",
        &format!("by apt-get: {EVERY_RUN} {NIGHTLY}"),
    );
    assert_eq!(
        machine.packages(&["--plan", "--nightly"], &[("CI", "true")]),
        (Some(0), some, no_java)
    );
    assert!(!machine.0.path().join("notes").exists(), "nothing was done");
}

/// Not a test by itself: it is run below.
#[test]
fn child_that_is_skipped() {
    if std::env::var_os("REPERTOIRE_TEST_SKIP").is_some() {
        testing::skip("a thing\nis missing");
    }
}

#[test]
fn a_skipped_test_is_said_and_summed_up_and_fails_in_ci() {
    let place = TempDir::new().expect("a folder");
    let noted = place.path().join("skipped");
    let child = |ci: &str| {
        told(
            Command::new(std::env::current_exe().expect("this program"))
                .args(["machine::child_that_is_skipped", "--exact"])
                .env("REPERTOIRE_TEST_SKIP", "1")
                .env("REPERTOIRE_SKIPPED", &noted)
                .env("CI", ci),
        )
    };
    let (code, _, said) = child("");
    let loud = "*** machine::child_that_is_skipped: a thing\nis missing: SKIPPED ***\n";
    assert_eq!((code, said.as_str()), (Some(0), loud));
    let (code, _, _) = child("true");
    assert_eq!(code, Some(101));

    let line = "machine::child_that_is_skipped\ta thing is missing\n";
    assert_eq!(fs::read_to_string(&noted).expect("notes"), line);
    let more = "a\tNode is missing\na\tNode is missing\nb\tNode is missing\nc\tNode is missing\n\
                d\tNode is missing\na\ta thing is missing\n";
    fs::write(&noted, format!("{line}{more}")).expect("notes");
    let sum = "
*** tests that were skipped, whole or in part: 5 ***
    4  Node is missing: a, b, c and 1 more
    2  a thing is missing: a, machine::child_that_is_skipped
";
    assert_eq!(summed(&noted), (Some(0), sum.to_owned(), String::new()));
    let nothing = (Some(0), "skipped: nothing\n".to_owned(), String::new());
    assert_eq!(summed(&place.path().join("none")), nothing);
}

fn summed(file: &Path) -> Told {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/skipped");
    told(Command::new(script).arg(file))
}

/// Two reports, as cargo-nextest and pytest write them.
const REPORTS: [&str; 2] = [
    r#"<testsuites><testsuite name="a">
        <testcase name="quick" classname="a" time="0.25"/>
        <testcase name="named" classname="a" time="39.0"/>
        <testcase name="wrong" classname="a" time="2.0"><failure/></testcase>
    </testsuite></testsuites>"#,
    r#"<testsuites><testsuite name="pytest">
        <testcase name="test_left_out" classname="b" time="0.001"><skipped/></testcase>
        <testcase name="test_long[first]" classname="b" time="31.0"/>
    </testsuite></testsuites>"#,
];

#[test]
fn a_run_ends_with_its_slowest_tests_and_fails_for_one_that_takes_longer_than_it_may() {
    let place = TempDir::new().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = place.path().join(name);
        fs::write(&path, text).expect("a file");
        path
    };
    // The script reads what is beside it.
    let script = file("times", include_str!("../times"));
    file("slow.txt", "# a comment\n40 a named starts forty servers\n");
    let reports = [file("a.xml", REPORTS[0]), file("b.xml", REPORTS[1])];
    let times = |pace: &str, reports: &[std::path::PathBuf]| {
        let mut python = Command::new("python3");
        python.arg(&script).args(reports);
        python.env("REPERTOIRE_PACE", file("pace", pace));
        // At night tests may take as long as they do.
        python.env_remove("REPERTOIRE_NIGHTLY");
        let (code, out, err) = told(&mut python);
        (code, format!("{out}{err}"))
    };
    let slowest = "
the 20 slowest tests:
    39.0 s  a named
    31.0 s  b test_long
     2.0 s  a wrong
     0.2 s  a quick
     0.0 s  b test_left_out
";
    let too_long = "*** b test_long took 31.0 s of 20 s x 1.5: make it faster, or name it in tests/slow.txt ***\n";
    let sum = "tests: 3 passed, 1 failed, 1 skipped\n";
    // Faster than the machine that the limits are for counts as that one.
    let quiet = times("0.90\n0.95\n", &reports);
    assert_eq!(quiet, (Some(1), format!("{slowest}{too_long}{sum}")));
    // Before the run and after it: what counts is when the machine was slower.
    let busy = times("1.00\n2.00\n", &reports);
    assert_eq!(busy, (Some(1), format!("{slowest}{sum}")));
    let (green, _) = times("2.00\n", &reports[1..]);
    assert_eq!(green, Some(0));
}
