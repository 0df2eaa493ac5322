"""The package for Debian: made by cargo-deb as `make deb` makes it, installed, used, removed and purged by dpkg on a copy of
this system that only these tests see."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import need
from harness import BIN

TOP = Path(__file__).parents[2]
SECONDS = 300
pytestmark = [pytest.mark.nightly, pytest.mark.timeout(SECONDS)]

# A layer over this system: what is written is in memory, and gone with the namespace. The
# network is its own, so that the port of the default settings is free.
LAYER = r"""
set -eu
mount -t tmpfs -o mode=755 tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" overlay "$1/root"
mount -t proc proc "$1/root/proc"
mount --rbind /dev "$1/root/dev"
for folder in tmp run; do mount -t tmpfs tmpfs "$1/root/$folder"; done
cp "$2" "$1/root/tmp/repertoire.deb"
cp "$3" "$1/root/tmp/run"
exec chroot "$1/root" /bin/sh -eu /tmp/run
"""
# What the tests ask of it, as lines of a name and what was found.
RUN = r"""
cd /
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C DEBIAN_FRONTEND=noninteractive
unset REPERTOIRE_CONFIG REPERTOIRE_DATA
say() { printf '%s\t%s\n' "$1" "$(printf '%s' "$2" | tr '\n' ' ')"; }
owners() { stat -c '%U:%G %a' "$@" 2>&1 | sort -u; }
install() { dpkg --no-triggers --force-confold --install /tmp/repertoire.deb >/tmp/said 2>&1 || { cat /tmp/said >&2; exit 1; }; }
as_service="setpriv --reuid repertoire --regid repertoire --clear-groups --no-new-privs"
# The service, as its unit starts it.
serve() {
    mkfifo /tmp/log
    $as_service env $(grep -v '^#' /etc/repertoire/environment) $(sed -n 's/^Environment=//p' /usr/lib/systemd/system/repertoire.service) \
        $(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/repertoire.service) 2>/tmp/log &
    server=$!
    exec 3</tmp/log
    read -r line <&3
    say listening "$line"
    cat <&3 >/dev/null &
}
repertoire_says() { $as_service repertoire --data /var/lib/repertoire "$@"; }

install
say installed "$(dpkg-query -W -f '${Status}' repertoire)"
say verified "$(dpkg --verify repertoire 2>&1)"
say data "$(owners /var/lib/repertoire)"
say settings "$(owners /etc/repertoire)"
say files "$(owners /etc/repertoire/config.yaml /etc/repertoire/environment)"
say user "$(getent passwd repertoire | cut -d: -f 6,7)"
say enabled "$(readlink /etc/systemd/system/multi-user.target.wants/repertoire.service)"
say unit "$(systemd-analyze verify --man=no /usr/lib/systemd/system/repertoire.service 2>&1)"
say checked "$($as_service repertoire config check /etc/repertoire/config.yaml --data /var/lib/repertoire | head -n 1)"
say manual "$(zcat /usr/share/man/man1/repertoire-list.1.gz | grep -c '^.SH NAME')"
say completion "$(bash -n /usr/share/bash-completion/completions/repertoire 2>&1)"
serve
mkdir -p /tmp/skills/refunds
printf -- '---\nname: refunds\ndescription: Pays customers back.\n---\n\nAsk.\n' >/tmp/skills/refunds/SKILL.md
chmod -R a+rX /tmp/skills
say imported "$(repertoire_says import /tmp/skills --format ids)"
kill "$server"
wait "$server" && say stopped 0 || say stopped "$?"

echo 'log: warn' >>/etc/repertoire/config.yaml
chmod 600 /etc/repertoire/environment
install
say edited "$(tail -n 1 /etc/repertoire/config.yaml)"
say kept_mode "$(stat -c %a /etc/repertoire/environment)"

dpkg --no-triggers --remove repertoire >/dev/null
say removed "$(dpkg-query -W -f '${Status}' repertoire) $(command -v repertoire || true)"
say kept "$(cd /etc/repertoire && ls; cd /var/lib/repertoire && ls -d FORMAT last search store)"
install
say again "$(repertoire_says list --format ids | grep refunds)"

touch /etc/repertoire/mine
dpkg --no-triggers --purge repertoire >/dev/null 2>&1
say purged "$(ls -d /var/lib/repertoire /etc/repertoire/* 2>/dev/null || true)"
say unit_left "$(find /etc/systemd /usr/lib/systemd /var/lib/systemd -name 'repertoire*' 2>/dev/null)"
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    folder = tmp_path_factory.mktemp("deb")
    binary = folder / "repertoire"
    subprocess.run(["strip", "-o", str(binary), BIN], check=True, timeout=SECONDS)
    return packed(binary, folder / "out")


def packed(binary, folder, umask=0o022):
    """The package of a binary."""
    done = subprocess.run(
        [TOP / "deploy" / "deb", folder], env=os.environ | {"REPERTOIRE_BIN": str(binary), "DEB_OPTIONS": "--fast"},
        capture_output=True, text=True, timeout=SECONDS, umask=umask,
    )
    if done.returncode == 3:
        need(Path("cargo-deb"), "cargo-deb (`deploy/deb --install`)")
    assert (done.returncode, done.stderr) == (0, ""), done
    return Path(done.stdout.strip())


def test_the_package_says_what_it_needs_and_which_files_are_the_operators(package, tmp_path):
    def field(name):
        return subprocess.run(["dpkg-deb", "--field", package, name], capture_output=True, text=True, check=True).stdout.strip()

    version = re.search(r'^version = "(.*)"', (TOP / "Cargo.toml").read_text(), re.MULTILINE)[1]
    assert (field("Package"), field("Version")) == ("repertoire", f"{version}-1")
    depends = field("Depends").split(", ")
    assert "passwd" in depends and any(re.fullmatch(r"libc6 \(>= [\d.]+\)", it) for it in depends), depends
    subprocess.run(["dpkg-deb", "--control", package, tmp_path / "control"], check=True)
    assert sorted((tmp_path / "control" / "conffiles").read_text().split()) == [
        "/etc/repertoire/config.yaml", "/etc/repertoire/environment",
    ]
    for script in ("postinst", "prerm", "postrm"):
        subprocess.run(["sh", "-n", tmp_path / "control" / script], check=True)


def test_the_same_binary_makes_the_same_bytes(tmp_path):
    # One that runs the binary of tests, which is huge, stands for it.
    binary = tmp_path / "repertoire"
    binary.write_text(f"#!/bin/sh\nexec '{BIN}' \"$@\"\n")
    binary.chmod(0o755)
    first, second = (packed(binary, tmp_path / f"{umask:o}", umask) for umask in (0o022, 0o077))
    assert first.read_bytes() == second.read_bytes()


def test_it_is_installed_serves_is_removed_and_purged(package, tmp_path):
    # Only root can be several users, which a package needs; where it does not ask for a password.
    as_root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    may = not as_root or (shutil.which("sudo") and subprocess.run([*as_root, "true"], check=False).returncode == 0)
    if not may or not shutil.which("dpkg"):
        need(Path("root"), "root on Debian, which installs a package")
    (tmp_path / "layer").mkdir()
    (tmp_path / "run").write_text(RUN)
    done = subprocess.run(
        [*as_root, "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-c", LAYER, "layer",
         tmp_path / "layer", package, tmp_path / "run"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS,
    )
    assert done.returncode == 0, done
    assert dict(line.split("\t", 1) for line in done.stdout.splitlines()) == {
        "installed": "install ok installed",
        "verified": "",
        "data": "repertoire:repertoire 700",
        "settings": "root:repertoire 750",
        "files": "root:repertoire 640",
        "user": "/var/lib/repertoire:/usr/sbin/nologin",
        "enabled": "/lib/systemd/system/repertoire.service",
        "unit": "",
        "checked": "ok",
        "manual": "1",
        "completion": "",
        "listening": "listening on http://127.0.0.1:50051",
        "imported": "local/global/refunds",
        "stopped": "0",
        # What the operator changed.
        "edited": "log: warn",
        "kept_mode": "600",
        "removed": "deinstall ok config-files ",
        "kept": "config.yaml environment FORMAT last search store",
        "again": "local/global/refunds",
        "purged": "/etc/repertoire/mine",
        "unit_left": "",
    }
    # Nothing of it reached this system.
    assert not Path("/etc/repertoire").exists() and not Path("/usr/bin/repertoire").exists()
