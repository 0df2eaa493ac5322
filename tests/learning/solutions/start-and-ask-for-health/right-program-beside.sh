#!/bin/sh
set -eu

./repertoire serve --config repertoire.yaml &

tries=0
until curl -sf http://127.0.0.1:7070/healthz; do
  tries=$((tries + 1))
  [ "$tries" -lt 30 ] || exit 1
  sleep 1
done

./repertoire status --config repertoire.yaml
