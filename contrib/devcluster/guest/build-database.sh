#!/bin/sh
# Inside the new root file system: MariaDB's own tables, so that an instance need not make them.
set -eu
mkdir -p /var/lib/mysql /run/mysqld
chown mysql:mysql /var/lib/mysql /run/mysqld
mariadb-install-db --user=mysql --datadir=/var/lib/mysql --skip-test-db > /dev/null
