#!/bin/sh
file="/backups/skills-$(date +%F).backup"
proof="$(mktemp -d)/data"

repertoire backup "$file" --data /srv/repertoire || exit 1
repertoire restore "$file" --data "$proof" || exit 2
repertoire verify --data "$proof" || exit 3
rm -r "$proof"
