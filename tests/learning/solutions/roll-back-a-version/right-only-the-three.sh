#!/bin/sh
repertoire activate refunds 2
repertoire yank refunds 3 --reason '1.2.0 pays out above the limit; use 1.1.0'
repertoire versions refunds
