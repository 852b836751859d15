#!/bin/bash
# Two ranks on two hosts, where each host is a network namespace with an address of its own: mpirun of
# each MPI starts them through `ip netns exec`, and they reach each other by TCP over a bridge only.
# Compares x of spmv solve, and y of spmv matvec, with those of one rank, bit by bit.
#
# usage: two_hosts.sh PROGRAM [MPI...]    MPI: openmpi, mpich; default: those that are installed
#
# Exit status 77: this user cannot make network namespaces, or there is no MPI.
#
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail

program=$(realpath "${1:?usage: two_hosts.sh PROGRAM [MPI...]}")
shift
mpis=("$@")
if [ ${#mpis[@]} -eq 0 ]; then
    for mpi in openmpi mpich; do
        ! command -v "mpirun.$mpi" >/dev/null || mpis+=("$mpi")
    done
fi
name=spmv$$
scratch=$(mktemp -d)
bridge=${name}b

# shellcheck disable=SC2317 # called by trap
clean() {
    for host in 1 2; do
        ip netns del "$name.$host" 2>/dev/null || true
    done
    ip link del "$bridge" 2>/dev/null || true
    rm -rf "$scratch"
}
trap clean EXIT

# The bridge has an address too: there mpirun itself runs.
make_hosts() {
    ip link add "$bridge" type bridge && ip addr add 10.213.0.254/24 dev "$bridge" && ip link set "$bridge" up || return 1
    for host in 1 2; do
        ip netns add "$name.$host" && ip link add "${name}v$host" type veth peer name eth0 netns "$name.$host" &&
            ip link set "${name}v$host" master "$bridge" up && ip -n "$name.$host" addr add "10.213.0.$host/24" dev eth0 &&
            ip -n "$name.$host" link set eth0 up && ip -n "$name.$host" link set lo up || return 1
    done
}
if [ ${#mpis[@]} -eq 0 ] || [ "$(id -u)" -ne 0 ] || ! command -v ip >/dev/null || ! make_hosts 2>"$scratch/why"; then
    echo "two_hosts.sh: skipped: no MPI, or no network namespaces: $(cat "$scratch/why" 2>/dev/null)" >&2
    exit 77
fi

# In place of ssh: HOST COMMAND..., with options before the host.
cat >"$scratch/shell" <<SHELL
#!/bin/bash
while [[ \$1 == -* ]]; do shift; done
host=\$1
shift
echo "\$host" >>"$scratch/hosts"
exec ip netns exec $name.\${host##*.} unshare --uts sh -c "hostname host\${host##*.}; \$*"
SHELL
chmod +x "$scratch/shell"

# The run of an MPI: two ranks on two hosts.
start() {
    local mpi=$1
    shift
    case $mpi in
    openmpi)
        OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun.openmpi -n 2 -H 10.213.0.1,10.213.0.2 \
            --mca plm_rsh_agent "$scratch/shell" --mca oob_tcp_if_include 10.213.0.0/24 \
            --mca btl self,tcp --mca btl_tcp_if_include 10.213.0.0/24 --mca pml ob1 "$@"
        ;;
    mpich) mpirun.mpich -n 2 -hosts 10.213.0.1,10.213.0.2 -launcher ssh -launcher-exec "$scratch/shell" \
        -localhost 10.213.0.254 "$@" ;;
    esac
}

# A file that both hosts read, and one that rank 0 unpacks for both.
"$program" gen powerlaw:20000,9,2.1,5000 -q -o "$scratch/a.mtx"
gzip -1 -k "$scratch/a.mtx"

failed=0
for mpi in "${mpis[@]}"; do
    for job in "matvec poisson2d:40" "solve diffusion2d:60,100" "matvec $scratch/a.mtx" "matvec $scratch/a.mtx.gz"; do
        # shellcheck disable=SC2086 # words
        "$program" $job --ranks 1 -q -o "$scratch/one"
        # shellcheck disable=SC2086 # words
        if ! start "$mpi" "$program" $job --threads 1 -o "$scratch/two" 2>"$scratch/said" </dev/null ||
            ! cmp "$scratch/one" "$scratch/two"; then
            echo "two_hosts.sh: $mpi, $job: failed or other bits" >&2
            cat "$scratch/said" >&2
            failed=1
        elif ! grep -q "on 2 ranks (mpi)" "$scratch/said" || [ "$(sort -u "$scratch/hosts" | wc -l)" -ne 2 ]; then
            echo "two_hosts.sh: $mpi, $job: not on two ranks and two hosts" >&2
            failed=1
        else
            echo "$mpi, $job: the bits of one rank"
        fi
        rm -f "$scratch/two" "$scratch/hosts"
    done
done
exit $failed
