#!/bin/sh
set -eu

file="/backups/skills-$(date +%F).backup"
proof="$(mktemp -d)/data"

echo "repertoire backup begins"
repertoire backup "$file" --data /srv/repertoire || { echo "repertoire backup failed" >&2; exit 1; }
repertoire restore "$file" --data "$proof"
repertoire verify --data "$proof"
echo "repertoire verify found no damage"
rm -r "$proof"
