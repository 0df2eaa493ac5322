#!/bin/sh
set -eu

file="/backups/skills-$(date +%F).backup"
proof="$(mktemp -d)/data"

repertoire backup "$file" --data /srv/repertoire
echo repertoire restore "$file" --data "$proof"
echo repertoire verify --data "$proof"
rm -r "$proof"
