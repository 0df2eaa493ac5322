#!/bin/sh
repertoire serve --listen 0.0.0.0:7070
sleep 10
