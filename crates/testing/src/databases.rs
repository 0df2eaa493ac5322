//! Real servers of databases, from the packages of the system, for a test: each on
//! a free port of this machine, with its data in a folder that goes away.
//!
//! They are started without what the system configured for them, and stopped when
//! they are dropped, also by a test that fails.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::{Port, skip};

/// The password of each, which must not show anywhere.
pub const PASSWORD: &str = "planted-Pa55word";

/// The user of each, which may do anything: what stops it is not its rights.
pub const USER: &str = "reporteruser";

/// Another user of each, which may only `SELECT`.
pub const READER: &str = "readeruser";

/// The sample database as the product has it.
const SAMPLE: &str = include_str!("../../run/sql/src/sample.sql");

/// A server, stopped when it is dropped.
#[derive(Debug)]
pub struct Database {
    /// Its address, with the password.
    pub url: String,
    /// The same, as the user that may only `SELECT`.
    pub reader: String,
    /// Its letter in [`crate::attempts`].
    pub letter: char,
    child: Child,
    folder: TempDir,
    _port: Port,
}

impl Database {
    /// What it logged so far.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).expect("a log")
    }

    /// Stops it.
    pub fn stop(&mut self) {
        if let Some(pid) = rustix::process::Pid::from_raw(self.child.id().cast_signed()) {
            // PostgreSQL: stop without waiting for clients. MariaDB: quit.
            let signal = if self.letter == 'p' {
                rustix::process::Signal::QUIT
            } else {
                rustix::process::Signal::TERM
            };
            rustix::process::kill_process(pid, signal).ok();
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_secs(20) {
                if matches!(self.child.try_wait(), Ok(Some(_))) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The servers that are installed, each with the sample database in it. The tests with one
/// that is missing are skipped.
pub async fn start() -> Vec<Database> {
    let mut all = Vec::new();
    match postgres() {
        Some(server) => all.push(server),
        None => skip("postgresql is not installed (`tests/packages`)"),
    }
    match mariadb() {
        Some(server) => all.push(server),
        None => skip("mariadb-server is not installed (`tests/packages`)"),
    }
    for server in &mut all {
        fill(server).await;
    }
    all
}

/// A command of another user where this one is root, which the servers refuse.
fn command(program: &Path) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=nobody", "--regid=nogroup", "--clear-groups", "--"])
        .arg(program);
    command
}

/// A folder that the servers may write to.
fn folder() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    if rustix::process::geteuid().is_root() {
        let ids = |flag: &str| {
            let out = Command::new("id").args([flag, "nobody"]).output();
            let out = out.expect("id").stdout;
            String::from_utf8_lossy(&out)
                .trim()
                .parse()
                .expect("a number")
        };
        chown(folder.path(), Some(ids("-u")), Some(ids("-g"))).expect("a folder for nobody");
    }
    assert!(fs::metadata(folder.path()).expect("a folder").uid() != u32::MAX);
    folder
}

fn run(command: &mut Command) {
    let output = command.output().expect("a program");
    assert!(
        output.status.success(),
        "{command:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

fn spawn(command: &mut Command, log: &Path) -> Child {
    let log = fs::File::create(log).expect("a log");
    command
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a log"))
        .stderr(log)
        .spawn()
        .expect("a server")
}

fn postgres() -> Option<Database> {
    let mut versions: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .filter(|bin| bin.join("initdb").exists())
        .collect();
    versions.sort();
    let bin = versions.pop()?;
    let folder = folder();
    let (data, port) = (folder.path().join("data"), Port::hold());
    let secret = folder.path().join("secret");
    fs::write(&secret, PASSWORD).expect("a file");
    run(command(&bin.join("initdb"))
        .arg("-D")
        .arg(&data)
        .args([
            "-U",
            USER,
            "-A",
            "scram-sha-256",
            "-E",
            "UTF8",
            "--locale=C",
            "-N",
        ])
        .arg(format!("--pwfile={}", secret.display())));
    let child = spawn(
        command(&bin.join("postgres"))
            .arg("-D")
            .arg(&data)
            .args(["-h", "127.0.0.1", "-F", "-p"])
            .arg(port.number().to_string())
            .arg("-k")
            .arg(folder.path()),
        &folder.path().join("log"),
    );
    let number = port.number();
    Some(Database {
        url: format!("postgres://{USER}:{PASSWORD}@127.0.0.1:{number}/postgres"),
        reader: format!("postgres://{READER}:{PASSWORD}@127.0.0.1:{number}/postgres"),
        letter: 'p',
        child,
        folder,
        _port: port,
    })
}

fn mariadb() -> Option<Database> {
    let server = PathBuf::from("/usr/sbin/mariadbd");
    let install = PathBuf::from("/usr/bin/mariadb-install-db");
    if !server.exists() || !install.exists() {
        return None;
    }
    let folder = folder();
    let (data, port) = (folder.path().join("data"), Port::hold());
    // Of its own: a server that starts deletes the temporary tables of every other
    // one that has the same folder for them.
    let temporary = format!("--tmpdir={}", folder.path().display());
    run(command(&install)
        .args([
            "--no-defaults",
            "--skip-test-db",
            "--auth-root-authentication-method=normal",
        ])
        .arg(&temporary)
        .arg(format!("--datadir={}", data.display())));
    let first = folder.path().join("first.sql");
    fs::write(
        &first,
        format!(
            "CREATE DATABASE IF NOT EXISTS shop CHARACTER SET utf8mb4;\n\
             CREATE USER IF NOT EXISTS '{USER}'@'%' IDENTIFIED BY '{PASSWORD}';\n\
             GRANT ALL PRIVILEGES ON *.* TO '{USER}'@'%' WITH GRANT OPTION;\n\
             CREATE USER IF NOT EXISTS '{READER}'@'%' IDENTIFIED BY '{PASSWORD}';\n\
             GRANT SELECT ON shop.* TO '{READER}'@'%';\n"
        ),
    )
    .expect("a file");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let child = spawn(
        command(&server)
            .args([
                "--no-defaults",
                "--bind-address=127.0.0.1",
                "--skip-name-resolve",
            ])
            .arg(&temporary)
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--port={}", port.number()))
            .arg(format!("--socket={}", at("socket")))
            .arg(format!("--pid-file={}", at("pid")))
            .arg(format!("--init-file={}", first.display())),
        &folder.path().join("log"),
    );
    let number = port.number();
    Some(Database {
        url: format!("mysql://{USER}:{PASSWORD}@127.0.0.1:{number}/shop"),
        reader: format!("mysql://{READER}:{PASSWORD}@127.0.0.1:{number}/shop"),
        letter: 'm',
        child,
        folder,
        _port: port,
    })
}

/// Beside the sample: who may only read, and what somebody may have planted.
fn planted() -> String {
    format!(
        "CREATE ROLE {READER} LOGIN PASSWORD '{PASSWORD}';
         GRANT SELECT ON ALL TABLES IN SCHEMA public TO {READER};
         CREATE SEQUENCE evil_seq;
         CREATE TYPE mood AS ENUM ('sad', 'happy');
         CREATE FUNCTION evil_write() RETURNS bigint LANGUAGE sql AS
             'INSERT INTO customers (id, name) VALUES (950, ''x''); SELECT count(*) FROM customers';
         CREATE FUNCTION evil_write_one(integer) RETURNS bigint LANGUAGE sql AS 'SELECT evil_write()';
         CREATE FUNCTION evil_text(text) RETURNS text LANGUAGE sql AS 'SELECT $1';
         CREATE FUNCTION evil_row(customers) RETURNS bigint LANGUAGE sql AS 'SELECT evil_write()';
         CREATE FUNCTION evil_any(anyelement) RETURNS bigint LANGUAGE sql AS 'SELECT evil_write()';
         CREATE FUNCTION evil_rows() RETURNS SETOF bigint LANGUAGE sql AS 'SELECT evil_write()';
         CREATE FUNCTION evil_check(text) RETURNS boolean LANGUAGE sql AS 'SELECT evil_write() > 0';
         CREATE DOMAIN evil_domain AS text CHECK (evil_check(VALUE));
         CREATE FUNCTION slug(text) RETURNS text LANGUAGE sql AS 'SELECT $1';
         CREATE FUNCTION public.lower(varchar) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT ''planted''::text'"
    )
}

/// The same for `MariaDB`.
const PLANTED: &str = "CREATE FUNCTION evil_write() RETURNS INT MODIFIES SQL DATA \
    BEGIN INSERT INTO customers (id, name) VALUES (950, 'x'); RETURN 1; END";

/// Waits until it answers, and loads the sample.
async fn fill(server: &mut Database) {
    use sqlx::Connection as _;
    let begin = Instant::now();
    let log = server.folder.path().join("log");
    loop {
        let outcome = if server.letter == 'p' {
            match sqlx::PgConnection::connect(&server.url).await {
                Ok(mut connection) => {
                    let all = format!("{SAMPLE};{}", planted());
                    sqlx::raw_sql(sqlx::AssertSqlSafe(all))
                        .execute(&mut connection)
                        .await
                        .map(drop)
                }
                Err(error) => Err(error),
            }
        } else {
            // An index of MySQL needs a length.
            let sample = SAMPLE
                .replace("email TEXT UNIQUE", "email VARCHAR(200) UNIQUE")
                .replace("order_date TEXT", "order_date VARCHAR(10)");
            match sqlx::MySqlConnection::connect(&server.url).await {
                Ok(mut connection) => {
                    let loaded = sqlx::raw_sql(sqlx::AssertSqlSafe(sample))
                        .execute(&mut connection)
                        .await;
                    match loaded {
                        Ok(_) => sqlx::raw_sql(PLANTED)
                            .execute(&mut connection)
                            .await
                            .map(drop),
                        Err(error) => Err(error),
                    }
                }
                Err(error) => Err(error),
            }
        };
        match outcome {
            Ok(()) => return,
            Err(sqlx::Error::Database(error)) if begin.elapsed() > Duration::from_secs(5) => {
                panic!("the sample cannot be loaded: {error}")
            }
            Err(error) => assert!(
                begin.elapsed() < Duration::from_secs(120),
                "no server: {error}\n{}",
                fs::read_to_string(&log).unwrap_or_default()
            ),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
