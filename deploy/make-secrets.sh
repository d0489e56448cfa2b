#!/bin/sh
# Makes the secrets that deploy/compose.yaml mounts, once: run again, it leaves what is there. Files, not variables: `docker inspect` shows
# variables, and Docker Compose gives containers with a read-only root no others. Containers read them as users of their own, so the files
# are readable; the directory keeps everybody else on this machine out.
set -eu
directory="${1:-$(dirname "$0")/secrets}"
mkdir -p "$directory"
chmod 700 "$directory"
if [ -e "$directory/gradewire.toml" ]; then
  echo "$directory: already there"
  exit 0
fi
random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
umask 022
redis_password="$(random)"
printf '%s' "$redis_password" >"$directory/redis_password"
random >"$directory/grafana_password"
# Last: it says that all are there.
cat >"$directory/gradewire.toml" <<END
redis_url = "redis://:$redis_password@valkey:6379"
auth_tokens = ["$(random)"]
END
echo "$directory: made; the bearer token of callers stands in gradewire.toml, Grafana's password of \`admin\` in grafana_password"
