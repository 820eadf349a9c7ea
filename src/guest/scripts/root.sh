# In the suite that becomes the guest's root: removes what nobody reads there.
set -eu
rm -rf /usr/share/doc/* /usr/share/man/* /usr/share/locale/* /usr/share/info/* /usr/share/zoneinfo/right
rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/apt/archives /var/cache/debconf/*-old /usr/sbin/policy-rc.d
mkdir -p /var/cache/apt/archives/partial /run/pgstrata
for program in /usr/lib/postgresql/*/bin/postgres; do
    "$program" --version | sed 's/^postgres (PostgreSQL) //; s/ .*//' > /etc/pgstrata-postgresql
done
printf 'pgstrata-guest\n' > /etc/hostname
printf '127.0.0.1 localhost pgstrata-guest\n' > /etc/hosts
depmod "$(basename /usr/lib/modules/*)"
