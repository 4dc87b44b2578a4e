# What a maintainer types. `just` without a name lists them.

default:
    @just --list

# The whole test suite, as in CI.
test *ARGS:
    ./test {{ARGS}}

# Unit and integration tests of one crate: just t reliability guard
t CRATE *FILTER:
    cargo test --package holdfast-{{CRATE}} --all-features {{FILTER}}

# Formats and lints.
lint:
    cargo fmt --all
    cargo clippy --workspace --all-targets --all-features -- -D warnings

# Writes the reference pages from the tables in the code.
docs:
    cargo run --quiet --package holdfast -- docs docs

# Replays one simulated schedule: just replay 4711
replay SEED:
    HOLDFAST_SIM_SEED={{SEED}} cargo test --package holdfast-toolbox --all-features --test it -- --nocapture simulation::

# Fuzzes for a while: just fuzz 300 envelope
fuzz SECONDS="60" *TARGET:
    fuzz/run --seconds {{SECONDS}} {{TARGET}}

# Measures calls side by side with peers.
bench *ARGS:
    bench/call/run {{ARGS}}
    bench/intent/run {{ARGS}}
    bench/intent-speed/run {{ARGS}}
