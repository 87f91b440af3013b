# Sourced by the check of a client, in the client's folder. Sets work, a folder that is removed at the end. Its folder
# repository has the client's files, as a clean checkout has them.
work=$(mktemp -d) programs=()
stop() {
  if ((${#programs[@]} > 0)); then kill "${programs[@]}" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap stop EXIT
sources=$(cd ../.. && pwd)
export LICET_VECTORS=$sources/testdata/receipts/vectors.json
mkdir "$work/repository" "$work/bin"
(cd ../.. && git ls-files -z --cached --others --exclude-standard LICENSE "clients/$(basename "$OLDPWD")" |
  xargs -0 cp --parents -t "$work/repository")
PATH=$work/bin:$PATH

# need installs packages of Debian.
need() {
  local as_root=()
  if ((EUID != 0)); then as_root=(sudo); fi
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# start brings up a service. The environment names the service then.
start() {
  local ready program
  # Linked once for all clients: Go keeps the executables.
  for program in cmd/licet clients/testdata/standin; do
    (cd ../.. && go run -exec cp "./$program" "$work/bin/")
  done
  exec {ready}< <(exec licet dev --listen 127.0.0.1:0 --data-dir "$work/data" 2>"$work/log")
  programs+=($!)
  # licet dev prints its first line once it is ready.
  read -r <&"$ready" || {
    cat "$work/log" >&2
    return 1
  }
  set -a
  . "$work/data/dev.env"
  set +a
}

# stand_in puts a stand-in before the service, for tests. The environment names the stand-in then, its root key and the
# account, and the service itself as LICET_SERVICE.
stand_in() {
  local ready account line
  export LICET_SERVICE=$LICET_URL
  account=$(licet account show --output json | sed 's/.*"account_id":"\([^"]*\)".*/\1/')
  exec {ready}< <(exec standin --upstream "$LICET_URL" --account "$account")
  programs+=($!)
  while read -r line <&"$ready"; do
    export "${line?}"
    [[ $line != LICET_ROOT=* ]] || break # its last line
  done
}

# conform drives the client through every code that it can meet, looks when it asks for what, and measures for how long
# it accepts a void receipt, by the command of its driver.
conform() {
  (cd "$sources" && LICET_DRIVER=$* go test -count=1 -run '^TestConformance(Age|Asks)?$' ./client/offline)
}

# guide runs the commands of README.md from the root of the repository, which becomes the working folder. Its code in the
# language of the first argument must stand in the program of the second argument.
guide() {
  local commands code
  commands=$(blocks sh) code=$(blocks "$1")
  if [[ $(<"example/$2") != *"$code"* ]]; then
    echo "README.md shows what example/$2 does not have" >&2
    return 1
  fi
  cd "$work/repository"
  bash -euc "$commands"
}
blocks() {
  sed -n '/^```'"$1"'$/,/^```$/{/^```/!p}' README.md
}
