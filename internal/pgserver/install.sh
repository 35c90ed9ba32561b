# Installs the PostgreSQL server, and the further packages given, on Debian and Ubuntu. Only the programs are wanted, so
# Debian's own cluster is neither created nor started, unless the machine already says otherwise.
set -eu
conf=/etc/postgresql-common/createcluster.conf
if [ ! -e "$conf" ]; then
    mkdir -p "${conf%/*}"
    echo 'create_main_cluster = false' >"$conf"
fi
export DEBIAN_FRONTEND=noninteractive UCF_FORCE_CONFFOLD=1
# One at a time: the tests of several packages may come here at once, and apt waits for nobody.
flock --close "${conf%/*}" sh -c 'apt-get update && apt-get install -y --no-install-recommends postgresql "$@"' sh "$@"
