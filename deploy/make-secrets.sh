#!/bin/sh
# Makes the secrets for deploy/compose.yaml; existing ones stay. They are files because `docker inspect` shows variables, and Docker
# Compose mounts only files into containers with a read-only root. Containers have their own users, so the files are readable for all; the
# directory keeps other users of this machine out.
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
# The last one, because its existence means that all exist.
cat >"$directory/gradewire.toml" <<END
redis_url = "redis://:$redis_password@valkey:6379"
auth_tokens = ["$(random)"]
END
echo "$directory: made; the bearer token of callers stands in gradewire.toml, Grafana's password of \`admin\` in grafana_password"
