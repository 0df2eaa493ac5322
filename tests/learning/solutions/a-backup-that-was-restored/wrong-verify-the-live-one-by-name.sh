#!/bin/sh
set -eu

live=/srv/repertoire
file="/backups/skills-$(date +%F).backup"
proof="$(mktemp -d)/data"

repertoire backup "$file" --data "$live"
repertoire restore "$file" --data "$proof"
repertoire verify --data "$live"
