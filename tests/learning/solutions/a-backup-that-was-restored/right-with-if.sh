#!/bin/sh
set -eu

file="/backups/skills-$(date +%F).backup"
proof="$(mktemp -d)/data"

repertoire backup "$file" --data /srv/repertoire
repertoire restore "$file" --data "$proof"
if ! repertoire verify --data "$proof"; then
  echo "the backup of today is damaged" >&2
  exit 1
fi
rm -r "$proof"
