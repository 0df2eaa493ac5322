#!/bin/sh
set -eu

repertoire serve --config repertoire.yaml &

until curl --fail --silent http://127.0.0.1:7070/healthz; do
  sleep 1
done

repertoire status --config repertoire.yaml || true
