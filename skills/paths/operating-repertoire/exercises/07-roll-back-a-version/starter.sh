#!/bin/sh
repertoire delete refunds --yes
