//! The figures that the operating system has of this process: processor time, memory, descriptors.
//! They are from `/proc`, so on Linux; elsewhere nothing is known.
//!
//! Not here: metrics of the services, and the format of the figures.

// What may fail in a test may not in the product; the rest is in Cargo.toml.
#![warn(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

use std::fs;

/// Ticks a second in `/proc`: fixed, whatever the kernel counts in itself.
const TICKS_PER_SECOND: f64 = 100.0;

/// Figures of this process. None: the system does not have it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Vitals {
    /// Seconds of processor time since the start, user and system.
    pub cpu_seconds: Option<f64>,
    /// When the process was started, in seconds since 1970.
    pub start_seconds: Option<f64>,
    /// Bytes of memory that are resident.
    pub resident_bytes: Option<u64>,
    /// Bytes of address space.
    pub virtual_bytes: Option<u64>,
    /// Threads.
    pub threads: Option<u64>,
    /// Descriptors that are open.
    pub open_fds: Option<u64>,
    /// Descriptors that may be open; none: as many as one likes, too.
    pub max_fds: Option<u64>,
}

impl Vitals {
    /// Reads them: some small files, and the list of open descriptors.
    #[must_use]
    pub fn read() -> Self {
        let text = |name: &str| fs::read_to_string(format!("/proc/{name}")).unwrap_or_default();
        let (stat, status, system) = (text("self/stat"), text("self/status"), text("stat"));
        let started = field(&stat, 22).zip(line(&system, "btime"));
        Self {
            cpu_seconds: field(&stat, 14)
                .zip(field(&stat, 15))
                .map(|(user, system)| (user + system) / TICKS_PER_SECOND),
            start_seconds: started.and_then(|(ticks, boot)| {
                let boot: f64 = boot.parse().ok()?;
                Some(boot + ticks / TICKS_PER_SECOND)
            }),
            resident_bytes: kib(&status, "VmRSS:"),
            virtual_bytes: kib(&status, "VmSize:"),
            threads: line(&status, "Threads:").and_then(|text| text.parse().ok()),
            // The one that lists them is among them.
            open_fds: fs::read_dir("/proc/self/fd")
                .ok()
                .map(|entries| (entries.count() as u64).saturating_sub(1)),
            max_fds: line(&text("self/limits"), "Max open files").and_then(|text| {
                let soft = text.split_whitespace().next()?;
                soft.parse().ok()
            }),
        }
    }

    /// Those that are whole numbers, by the names that Prometheus has for them.
    #[must_use]
    pub fn gauges(&self) -> [(&'static str, &'static str, Option<u64>); 5] {
        [
            (
                "process_resident_memory_bytes",
                "Memory of this process that is resident",
                self.resident_bytes,
            ),
            (
                "process_virtual_memory_bytes",
                "Address space of this process",
                self.virtual_bytes,
            ),
            ("process_threads", "Threads of this process", self.threads),
            (
                "process_open_fds",
                "Descriptors that this process has open",
                self.open_fds,
            ),
            (
                "process_max_fds",
                "Descriptors that this process may have open",
                self.max_fds,
            ),
        ]
    }
}

/// A field of `/proc/self/stat`, by its number in proc(5). The second is a name in brackets,
/// which may have anything in it.
fn field(stat: &str, number: usize) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let field = rest.split_whitespace().nth(number.checked_sub(3)?)?;
    field.parse().ok()
}

/// The text behind a name at the beginning of a line.
fn line<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines();
    lines.find_map(|line| line.strip_prefix(name).map(str::trim))
}

fn kib(status: &str, name: &str) -> Option<u64> {
    let kib: u64 = line(status, name)?.strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_moves_no_field() {
        let stat = "7 (a) b) (c) S 1 7 7 0 -1 4194304 1 2 3 4 250 50 0 0 20 0 9 0 1200 5 6";
        assert_eq!(
            [14, 15, 22].map(|number| field(stat, number)),
            [Some(250.0), Some(50.0), Some(1200.0)]
        );
        assert_eq!(field("", 14), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_all_of_them() {
        let before = Vitals::read();
        let _open = fs::File::open("/proc/self/stat").expect("a file");
        let vitals = Vitals::read();
        assert!(vitals.cpu_seconds.is_some_and(|seconds| seconds >= 0.0));
        // After 2020.
        assert!(vitals.start_seconds.is_some_and(|start| start > 1.5e9));
        assert!(vitals.resident_bytes.is_some_and(|bytes| bytes > 1 << 16));
        assert!(vitals.virtual_bytes >= vitals.resident_bytes);
        assert!(vitals.threads.is_some_and(|threads| threads >= 1));
        assert!(vitals.open_fds >= before.open_fds, "{before:?} {vitals:?}");
        assert!(vitals.max_fds >= vitals.open_fds);
    }

    #[test]
    fn a_gauge_has_the_figure_of_its_name() {
        let vitals = Vitals {
            cpu_seconds: Some(0.5),
            start_seconds: Some(1.5),
            resident_bytes: Some(1),
            virtual_bytes: Some(2),
            threads: Some(3),
            open_fds: Some(4),
            max_fds: None,
        };
        let figures = vitals.gauges().map(|(name, _, figure)| (name, figure));
        assert_eq!(
            figures,
            [
                ("process_resident_memory_bytes", Some(1)),
                ("process_virtual_memory_bytes", Some(2)),
                ("process_threads", Some(3)),
                ("process_open_fds", Some(4)),
                ("process_max_fds", None),
            ]
        );
    }

    #[test]
    fn memory_is_told_in_bytes() {
        let status = "Name:\tVmRSS: 7 kB\nVmSize:\t      24 kB\nVmRSS:\t      12 kB\n";
        assert_eq!(
            ["VmRSS:", "VmSize:", "VmSwap:", "Name:"].map(|name| kib(status, name)),
            [Some(12_288), Some(24_576), None, None]
        );
    }

    /// What the system says of this process, from the fourth field on.
    #[cfg(target_os = "linux")]
    fn stat() -> Vec<f64> {
        let stat = fs::read_to_string("/proc/self/stat").expect("a file");
        let (_, fields) = stat.rsplit_once(')').expect("a name");
        // The third is a letter: how it runs.
        let fields = fields.split_whitespace().skip(1);
        fields
            .map(|field| field.parse().expect("a number"))
            .collect()
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn processor_time_is_that_of_the_program_and_of_the_system_for_it() {
        // The fields 14 and 15, in hundredths of a second.
        let ticks = || [stat()[10], stat()[11]];
        // Each reading costs the system some time: until it has a few ticks to tell.
        for _ in 0..1_000_000 {
            if ticks()[1] >= 3.0 {
                break;
            }
        }
        let seconds = || ticks().iter().sum::<f64>() / 100.0;
        let before = seconds();
        let told = Vitals::read().cpu_seconds.expect("processor time");
        let after = seconds();
        assert!(
            before <= told && told <= after,
            "{before} <= {told} <= {after}"
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_started_so_many_ticks_after_its_system() {
        let boot = || -> f64 {
            let text = fs::read_to_string("/proc/stat").expect("a file");
            let boot = text.lines().find_map(|line| line.strip_prefix("btime "));
            boot.expect("a boot").parse().expect("seconds")
        };
        // Field 22, in hundredths of a second. The boot moves when the clock is set.
        let (before, ticks) = (boot(), stat()[18]);
        let told = Vitals::read().start_seconds.expect("a start");
        let after = boot();
        let start = |boot: f64| boot + ticks / 100.0;
        assert!(
            [before, after].map(start).contains(&told),
            "{before} {after} {ticks} {told}"
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_list_of_descriptors_does_not_count_itself_and_the_limit_is_the_one_that_holds() {
        // Those that are still open once they are listed.
        let open = || {
            let listed = fs::read_dir("/proc/self/fd").expect("a folder").flatten();
            let listed: Vec<_> = listed.map(|entry| entry.path()).collect();
            let open = listed.iter().filter(|path| fs::read_link(path).is_ok());
            Some(open.count() as u64)
        };
        // Other tests open files meanwhile.
        let is_told = (0..10_000).any(|_| {
            let (before, told) = (open(), Vitals::read().open_fds);
            before == told && told == open()
        });
        assert!(is_told, "{:?} {:?}", Vitals::read(), open());

        let limits = fs::read_to_string("/proc/self/limits").expect("a file");
        let limit = limits.lines().find(|line| line.starts_with("Max open"));
        // `Max open files`, the limit that holds, the one that it may be raised to.
        let soft = limit.expect("a limit").split_whitespace().nth(3);
        assert_eq!(
            Vitals::read().max_fds,
            soft.and_then(|soft| soft.parse().ok())
        );
    }
}
