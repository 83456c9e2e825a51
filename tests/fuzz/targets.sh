# What the scripts of this folder share: where targets are, and how they are built. Read by them, not run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# One folder for all, so that what several crates need is built once.
built=$root/target/fuzz
found=$root/.tools/fuzz
# Tools the scripts have installed come first.
export PATH=$root/.tools/cargo/bin:$PATH
# Works on a stable toolchain: without a sanitizer the fuzzer needs nothing from nightly.
sanitizer=none

# The fuzz crates, each in the folder of the crate it is about.
crates() {
    local manifest
    for manifest in "$root"/fuzz/Cargo.toml "$root"/crates/*/fuzz/Cargo.toml; do
        dirname "$manifest"
    done
}

# crate_targets CRATE: the names of its targets.
crate_targets() {
    awk '/^\[\[bin\]\]/ { bin = 1 } bin && /^name = / { gsub(/"/, "", $3); print $3; bin = 0 }' "$1/Cargo.toml"
}

all_targets() {
    local crate
    crates | while read -r crate; do crate_targets "$crate"; done
}

# crate_of TARGET: the fuzz crate that has it.
crate_of() {
    local crate
    while read -r crate; do
        if crate_targets "$crate" | grep -qx "$1"; then
            echo "$crate"
            return
        fi
    done < <(crates)
    echo "no crate has a target \`$1\`; the targets are: $(all_targets | tr '\n' ' ')" >&2
    return 1
}

# build TARGET...: cargo-fuzz comes with the first build.
build() {
    local target crate
    if ! command -v cargo-fuzz >/dev/null; then
        echo 'installing cargo-fuzz (two minutes, once)' >&2
        cargo install --quiet --locked --root "$root/.tools/cargo" cargo-fuzz
    fi
    for target in "$@"; do
        crate=$(crate_of "$target")
        (cd "$(dirname "$crate")" && cargo fuzz build --fuzz-dir "$crate" --sanitizer "$sanitizer" --target-dir "$built" "$target") >&2
    done
}

program() {
    echo "$built/x86_64-unknown-linux-gnu/release/$1"
}

# The longest input: messages are small, documents and segments need room for their structure.
longest() {
    case $(crate_of "$1") in
        */extract/fuzz | */index/fuzz) echo 16384 ;;
        *) echo 4096 ;;
    esac
}
