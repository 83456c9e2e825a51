# shellcheck shell=bash
# A server on a free loopback port, and commands with a time limit; sourced by the scripts that need them.
#
#   start_server LOG COMMAND ARG...    `PORT` among the arguments becomes the port; sets `server_port`
#   wait_until_up PATH                 any HTTP response counts; sets `server_status`
#   bounded SECONDS COMMAND ARG...     like timeout(1), but a signal to the script takes effect immediately
#
# Both the server and the bounded command end with the script in any case. One server at a time.

server_pid=
server_port=
server_log=
# shellcheck disable=SC2034 # read by the scripts that source this
server_status=
bounded_pid=

trap 'stop bounded_pid; stop server_pid' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

start_server() {
    local argument command=()
    stop server_pid
    server_log=$1
    shift
    server_port=$(free_port)
    for argument in "$@"; do
        [[ $argument != PORT ]] || argument=$server_port
        command+=("$argument")
    done
    "${command[@]}" >"$server_log" 2>&1 </dev/null &
    server_pid=$!
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

wait_until_up() {
    local url=http://127.0.0.1:$server_port$1 attempt
    for ((attempt = 0; attempt < 150; attempt++)); do
        kill -0 "$server_pid" 2>/dev/null || break
        # shellcheck disable=SC2034
        if server_status=$(http_status "$url"); then
            return
        fi
        sleep 0.2
    done
    echo "the server does not answer at $url; its output:" >&2
    tail -n 40 "$server_log" >&2
    return 1
}

# Prints the status of a GET; fails while no server listens.
http_status() {
    python3 - "$1" <<'PYTHON'
import sys
import urllib.error
import urllib.request

opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
try:
    print(opener.open(sys.argv[1], timeout=5).status)
except urllib.error.HTTPError as error:
    print(error.code)
except OSError:
    sys.exit(1)
PYTHON
}

bounded() {
    local status=0
    timeout --kill-after=5 "$@" &
    bounded_pid=$!
    wait "$bounded_pid" || status=$?
    bounded_pid=
    return "$status"
}

# stop VARIABLE: sends SIGTERM to the process with this id, then SIGKILL.
stop() {
    local -n pid=$1
    local attempt
    [[ -n $pid ]] || return 0
    kill "$pid" 2>/dev/null || true
    for ((attempt = 0; attempt < 60; attempt++)); do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
    pid=
}
