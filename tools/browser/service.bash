# Prepares ../../bin/browser with the scripts of this folder and their packages, goes there, and starts a licet dev. Sets
# work, a directory that is removed at the end. The variables of dev.env are exported. lifetime is how long an order can be
# paid.
if ! command -v chromium >/dev/null; then
  as_root=()
  if ((EUID != 0)); then as_root=(sudo); fi
  export DEBIAN_FRONTEND=noninteractive
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" apt-get install -y -qq --no-install-recommends chromium >/dev/null
fi
mkdir -p ../../bin/browser
cp -- *.json *.mjs ../../bin/browser
cd ../../bin/browser
npm ci --silent --no-audit --no-fund

work=$(mktemp -d) service=
stop() {
  if [[ -n $service ]]; then
    kill "$service" 2>/dev/null || true
    wait "$service" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap stop EXIT
go run -exec cp ../../cmd/licet "$work/licet" # linked once for all checks: Go keeps the executable
exec {ready}< <(exec "$work/licet" dev --listen 127.0.0.1:0 --data-dir "$work/data" \
  --test-order-lifetime "${lifetime:-15s}" --metrics-listen 127.0.0.1:0 2>"$work/log")
service=$!
# licet dev prints its first line once it is ready.
read -r <&"$ready" || {
  cat "$work/log" >&2
  exit 1
}
set -a
. "$work/data/dev.env"
set +a
