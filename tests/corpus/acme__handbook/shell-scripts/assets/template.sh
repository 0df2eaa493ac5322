#!/usr/bin/env bash
# What it does, in one line.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
