#!/bin/sh
set -eu

file="/backups/skills-latest.backup"
proof="$(mktemp -d)/data"

repertoire backup "$file" --data /srv/repertoire --force
repertoire restore "$file" --data "$proof"
repertoire verify --data "$proof"
rm -r "$proof"
