#!/bin/sh
set -eu

file="/backups/skills-$(date +%F).backup"
proof="$(mktemp -d)/data"

repertoire backup "$file" --data /srv/repertoire
repertoire restore "$file" --data "$proof"
repertoire verify --data "$proof" || echo "damaged"
