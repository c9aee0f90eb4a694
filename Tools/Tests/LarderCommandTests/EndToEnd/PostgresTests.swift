import Foundation
import Testing

/// Stores in a PostgreSQL database, on a server of the test, beside the command `psql`.
@Suite struct PostgresTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  /// Starts a server in a folder of its own, runs a script with the `PG…` variables of that server, and stops it.
  private func withServer(_ script: String) async throws -> ToolRun {
    try await Tool.shell(
      """
      set -e
      export PGHOST=$(mktemp -d /tmp/larder.XXXXXX) PGUSER=larder PGDATABASE=postgres
      programs=$(ls -d /usr/lib/postgresql/*/bin /opt/homebrew/opt/postgresql@*/bin 2>/dev/null | sort -V | tail -n 1)
      run=''
      if [ "$(id -u)" = 0 ]; then
        chown postgres: "$PGHOST"
        run='setpriv --reuid=postgres --regid=postgres --clear-groups --'
      fi
      cd "$PGHOST"
      stop() { cd "$PGHOST"; $run "$programs/pg_ctl" -D data -m immediate stop >/dev/null; cd /; rm -rf "$PGHOST"; }
      trap stop EXIT
      $run "$programs/initdb" -D data -U larder -A trust --no-sync --locale=C -E UTF8 >/dev/null
      $run "$programs/pg_ctl" -D data -w -l log -o "-c listen_addresses='' -c unix_socket_directories='$PGHOST'" start >/dev/null
      \(script)
      """, folder.path)
  }

  @Test func `other programs read and write the tables`() async throws {
    let run = try await withServer(
      """
      cd "$1"
      larder set json:orders.json 7/1 '{"n":2}'
      larder copy json:orders.json postgres:orders 2>/dev/null
      larder set postgres:users ada 1
      larder set "postgres:host=$PGHOST dbname=postgres#users" bob 2
      psql -qAtc "INSERT INTO orders VALUES('7/2', '{\\"n\\": 3}'); SELECT sum((value->>'n')::int) FROM orders"
      larder get postgres:orders 7/2
      larder list --keys postgres:users
      larder count postgres:users
      larder stores postgres:
      larder stores "postgres:host=$PGHOST" | sed "s|$PGHOST|HOST|"
      larder export postgres:users
      larder verify postgres:users 2>&1
      larder get postgres:none a || echo "status $?"
      larder compact postgres:users || echo "status $?"
      larder get "postgres:postgresql://ada:secret@/postgres?host=$PGHOST#users" ada || echo "status $?"
      """)
    #expect(
      run.output == """
        5
        {"n":3}
        {"key":"ada"}
        {"key":"bob"}
        2
        postgres:orders
        postgres:users
        postgres:host=HOST#orders
        postgres:host=HOST#users
        {"key":"ada","value":1}
        {"key":"bob","value":2}
        2 entries, no damage
        status 66
        status 64
        status 64

        """)
    let errors = run.errors.split(separator: "\n")
    #expect(errors.count == 3)
    #expect(errors[0].contains("no store of this name"))
    #expect(errors[1].contains("VACUUM"))
    #expect(errors[2].contains("PGPASSWORD") && !run.errors.contains("secret"))
  }

  @Test func `a table of another program needs a codec`() async throws {
    let run = try await withServer(
      """
      psql -qAtc "CREATE TABLE texts(key bytea PRIMARY KEY, value json); INSERT INTO texts VALUES('a', '{}')"
      psql -qAtc "CREATE TABLE blobs(key bytea PRIMARY KEY, value bytea); INSERT INTO blobs VALUES('a', '\\\\x000102ff')"
      larder list postgres:texts
      larder get postgres:blobs a || echo "status $?"
      larder set postgres:blobs b 1 || echo "status $?"
      larder set postgres:blobs b 1 --ttl 1h || echo "status $?"
      psql -qAtc "SELECT count(*) FROM pg_class WHERE relname = 'larder_stores'"
      larder get postgres:blobs a --codec raw
      larder set postgres:blobs b x --raw --codec raw
      larder set postgres:texts b 1
      larder count postgres:blobs
      psql -qAtc 'SELECT name, codec FROM larder_stores ORDER BY name'
      """)
    #expect(
      run.output == """
        {"key":"a","value":{}}
        status 64
        status 64
        status 64
        0
        {"$base64":"AAEC/w=="}
        2
        blobs|raw
        texts|json

        """)
    let errors = run.errors.split(separator: "\n")
    #expect(errors.count == 3)
    #expect(errors.allSatisfy { $0.contains("records no codec") && $0.contains("--codec raw") })
  }

  /// The store reports its changes, as the article on the change feed describes.
  @Test func `changes of other processes are watched`() async throws {
    let run = try await withServer(
      """
      larder set postgres:users ada 1
      larder watch postgres:users || echo "status $?"
      psql -q <<'SQL'
      CREATE UNLOGGED TABLE larder_changes(
        xid xid8 NOT NULL DEFAULT pg_current_xact_id(), origin bigint, store text NOT NULL,
        keys bytea[], lower bytea, upper bytea);
      CREATE INDEX larder_changes_xid ON larder_changes(xid);
      CREATE UNLOGGED TABLE larder_feed(
        id boolean PRIMARY KEY DEFAULT true CHECK (id), epoch bigint NOT NULL, trimmed xid8 NOT NULL,
        horizon xid8 NOT NULL, noted timestamptz NOT NULL);
      UPDATE larder_stores SET format = 2 WHERE name = 'users';
      SQL
      # Not by the function `larder`, of which $! would be another process.
      '\(Tool.path)' watch postgres:users --initial > lines & watch=$!
      wait_for() { for i in $(seq 300); do if grep -q "$1" lines; then return; fi; sleep 0.05; done; echo "$1 is missing"; }
      wait_for ada
      larder set postgres:users bob 2
      wait_for bob
      psql -qc "WITH written AS (UPDATE users SET value = '\\x03') INSERT INTO larder_changes(store, lower) VALUES('users', '')"
      wait_for '"ada".*3'
      larder remove postgres:users ada
      wait_for removed
      kill -TERM $watch
      wait $watch || echo "status $?"
      cat lines
      """)
    #expect(
      run.output == """
        status 64
        status 143
        {"key":"ada","change":"set","value":1}
        {"key":"bob","change":"set","value":2}
        {"key":"ada","change":"set","value":3}
        {"key":"bob","change":"set","value":3}
        {"key":"ada","change":"removed"}

        """)
    #expect(run.errors.contains("does not report the changes of other programs"), "\(run)")
  }

  @Test func `a queue is processed`() async throws {
    let run = try await withServer(
      """
      larder queue enqueue postgres-queue:jobs '{"to":"ada"}' --id 1
      larder queue enqueue postgres-queue:jobs '{"to":"bob"}' --id 2 --priority 1
      larder queue enqueue postgres-queue:jobs '{"to":"bob"}' --id 2
      larder queue receive postgres-queue:jobs > delivery
      sed 's/,"receipt".*//' delivery
      larder queue acknowledge postgres-queue:jobs $(sed 's/.*"receipt":"\\(.*\\)"}/\\1/' delivery)
      larder list postgres-queue:jobs
      larder queue stat postgres-queue:jobs | sed 's/,"oldestAge".*//'
      psql -qAtc 'SELECT count(*) FROM jobs WHERE state = 0'
      larder queue receive postgres-queue:none || echo "status $?"
      larder queue receive postgres-queue:jobs --prefix x || echo "status $?"
      larder queue move postgres-queue:jobs "postgres-queue:host=$PGHOST user=larder#jobs" || echo "status $?"
      larder queue move postgres-queue:jobs "postgres-queue:host=$PGHOST#others"
      larder count postgres-queue:others
      """)
    #expect(
      run.output == """
        {"key":"1","isDuplicate":false}
        {"key":"2","isDuplicate":false}
        {"key":"2","isDuplicate":true}
        {"key":"2","value":{"to":"bob"},"attempt":1
        {"key":"1","value":{"to":"ada"}}
        {"waiting":1,"delayed":0,"leased":0,"dead":0
        1
        status 66
        status 64
        status 64
        {"moved":1,"duplicates":0,"left":{"waiting":0,"delayed":0,"leased":0,"dead":0}}
        1

        """)
    let errors = run.errors.split(separator: "\n")
    #expect(errors.count == 3)
    #expect(errors[0].contains("no queue of this name"))
    #expect(errors[1].contains("is a queue itself"))
    #expect(errors[2].contains("cannot be moved to itself"))
  }
}
