#!/bin/sh
set -eu

data=/srv/repertoire
file="/backups/skills-$(date +%F).backup"
proof="$(mktemp -d)/data"

repertoire backup "$file" \
  --data "$data"
repertoire restore "$file" --data "${proof}"
repertoire verify --data "${proof}"
rm -r "$proof"
