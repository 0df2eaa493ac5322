#!/bin/sh
set -eu

repertoire diff refunds 3 2
repertoire activate refunds 2
repertoire yank --reason="Above the limit: use version 2" refunds 3
repertoire versions refunds
