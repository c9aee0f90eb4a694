import Larder
import LarderPostgres
import LarderTesting
import PostgresServers

/// A `PostgresStore` of 100,000 entries of 200 bytes, next to `pgbench` with the same statements on the same table.
///
/// Keys are decimal numbers, which `pgbench` can send, because it knows no bytes.
enum PostgresStores {
  private static let keys = 100_000..<200_000
  private static let value = [UInt8](repeating: UInt8(ascii: "v"), count: 200)
  private static let valueText = String(repeating: "v", count: 200)

  static let comparisons = [
    gets(tasks: 1), gets(tasks: 4), gets(tasks: 16), puts(tasks: 1), puts(tasks: 4), puts(tasks: 16),
    updates(tasks: 16, connections: 4), updates(tasks: 16, connections: 16), batches, delayedGets,
  ]

  // MARK: Reading

  /// Gets of random keys by as many tasks as there are connections.
  private static func gets(tasks: Int) -> PostgresComparison {
    PostgresComparison(
      "get from a PostgresStore of 100,000 entries, \(description(tasks: tasks))",
      beside: "SELECT by pgbench, \(description(connections: tasks))", limit: 1 / 0.8
    ) { server, folder in
      let (store, table) = try await filledStore(on: server, connections: tasks)
      let numbers = SampleRecords.shuffledNumbers(keys.count).map { StoreKey("\(keys.lowerBound + $0)") }
      let pgbench = try Pgbench(
        "\\set key random(\(keys.lowerBound), \(keys.upperBound - 1))\nSELECT value FROM \(table) WHERE key = :key;",
        clients: tasks, on: server, in: folder)
      let count = 8000
      let turn = Turn(count: numbers.count)
      return PostgresComparison.Rounds {
        try await secondsForEach(of: count, tasks: tasks) { _ in
          consume(try await store.value(forKey: numbers[turn.next()])?.count)
        }
      } yardstick: {
        try await pgbench.secondsForEach(of: count)
      }
    }
  }

  /// Gets that begin at the same time, through a proxy that delays every message by 1 ms.
  private static let delayedGets = PostgresComparison(
    "1,000 concurrent gets from a PostgresStore over 16 connections, 1 ms of delay each way",
    beside: "63 gets one after another", limit: 1.5
  ) { server, folder in
    let (_, table) = try await filledStore(on: server)
    let schema = String(table.prefix { $0 != "." })
    let proxy = try PostgresProxy(server)
    let database = try await PostgresDatabase(proxy.connectionString, schema: schema, connections: 16)
    let store = try await PostgresStore(in: database, name: "users", codec: .raw)
    proxy.delay(toServer: .milliseconds(1), toClient: .milliseconds(1))
    @Sendable func get(_ number: Int) async throws {
      consume(try await store.value(forKey: StoreKey("\(keys.lowerBound + number)"))?.count)
    }
    return PostgresComparison.Rounds {
      try await secondsForEach(of: 1000, tasks: 1000, get) * 1000
    } yardstick: {
      let time = try await secondsForEach(of: 63, tasks: 1, get) * 63
      // Without a reference, the proxy would end.
      withExtendedLifetime(proxy) {}
      return time
    }
  }

  // MARK: Writing

  /// Durable puts of random keys, each a transaction.
  private static func puts(tasks: Int) -> PostgresComparison {
    PostgresComparison(
      "durable put into a PostgresStore of 100,000 entries, \(description(tasks: tasks))",
      beside: "INSERT … ON CONFLICT DO UPDATE by pgbench, \(description(connections: tasks))",
      limit: 1 / 0.8
    ) { server, folder in
      let (store, table) = try await filledStore(on: server, connections: tasks)
      let numbers = SampleRecords.shuffledNumbers(keys.count).map { StoreKey("\(keys.lowerBound + $0)") }
      let pgbench = try Pgbench(
        """
        \\set key random(\(keys.lowerBound), \(keys.upperBound - 1))
        INSERT INTO \(table)(key, value) VALUES(:key, :value) ON CONFLICT (key) DO UPDATE SET value = excluded.value;
        """, clients: tasks, variables: ["value": valueText], on: server, in: folder)
      let count = 400 * tasks
      let turn = Turn(count: numbers.count)
      return PostgresComparison.Rounds {
        try await secondsForEach(of: count, tasks: tasks) { _ in
          try await store.setValue(value, forKey: numbers[turn.next()])
        }
      } yardstick: {
        try await pgbench.secondsForEach(of: count)
      }
    }
  }

  /// Updates of one key, which wait for each other.
  ///
  /// The script sends the same statements in the same two round trips.
  private static func updates(tasks: Int, connections: Int) -> PostgresComparison {
    PostgresComparison(
      "update of one key of a PostgresStore, \(tasks) tasks over \(connections) connections",
      beside: "the same statements by pgbench, \(connections) connections", limit: 1 / 0.8
    ) { server, folder in
      let (store, table) = try await filledStore(on: server, connections: connections)
      let key = "\(keys.lowerBound)"
      let pgbench = try Pgbench(
        """
        \\startpipeline
        BEGIN;
        INSERT INTO \(table)(key) SELECT k FROM unnest(:keys::bytea[]) AS k ORDER BY k
        ON CONFLICT (key) DO UPDATE SET value = NULL WHERE false;
        SELECT key, value FROM \(table) WHERE key = ANY(:keys) AND value IS NOT NULL;
        \\endpipeline
        \\startpipeline
        INSERT INTO \(table)(key, value) VALUES(:key, :value) ON CONFLICT (key) DO UPDATE SET value = excluded.value;
        COMMIT;
        \\endpipeline
        """, clients: connections, variables: ["keys": "{\(key)}", "key": key, "value": valueText], on: server,
        in: folder)
      let count = 25 * tasks
      return PostgresComparison.Rounds {
        try await secondsForEach(of: count, tasks: tasks) { _ in
          try await store.update(StoreKey(key)) { value in value?[0] &+= 1 }
        }
      } yardstick: {
        try await pgbench.secondsForEach(of: count)
      }
    }
  }

  /// Durable batches of keys from all over the store, in random order.
  ///
  /// The server of the yardstick has the arrays already, so it neither receives nor parses them, and stores them
  /// uncompressed.
  private static let batches = PostgresComparison(
    "batch of 10,000 puts into a PostgresStore of 100,000 entries",
    beside: "the same statement by pgbench, with arrays that the server has", limit: 1 / 0.8
  ) { server, folder in
    let (store, table) = try await filledStore(on: server)
    let size = 10_000
    let numbers = SampleRecords.shuffledNumbers(keys.count).map { StoreKey("\(keys.lowerBound + $0)") }
    let arrays = table.replacing("users", with: "arrays")
    let batchCount = numbers.count / size
    try await server.run(
      psql: """
        CREATE TABLE \(arrays)(number integer, keys bytea[], values bytea[]);
        ALTER TABLE \(arrays) ALTER COLUMN keys SET STORAGE EXTERNAL, ALTER COLUMN values SET STORAGE EXTERNAL;
        INSERT INTO \(arrays)
        SELECT (place - 1) / \(size), array_agg(key), array_agg(value)
        FROM (SELECT key, value, row_number() OVER (ORDER BY md5(key)) AS place FROM \(table)) AS t
        GROUP BY 1;
        """)
    let pgbench = try Pgbench(
      """
      \\set number random(0, \(batchCount - 1))
      INSERT INTO \(table)(key, value)
      SELECT k, v FROM \(arrays), unnest(keys, values) AS t(k, v) WHERE number = :number ORDER BY k
      ON CONFLICT (key) DO UPDATE SET value = excluded.value;
      """, clients: 1, on: server, in: folder)
    let turn = Turn(count: batchCount)
    return PostgresComparison.Rounds {
      try await secondsForEach(of: 4, tasks: 1) { _ in
        let first = turn.next() * size
        try await store.apply(ChangeBatch(numbers[first..<first + size].map { .set($0, value) }))
      } / Double(size)
    } yardstick: {
      try await pgbench.secondsForEach(of: 4) / Double(size)
    }
  }

  private static func description(tasks: Int) -> String {
    tasks == 1 ? "one task, one connection" : "\(tasks) tasks over as many connections"
  }

  private static func description(connections: Int) -> String {
    connections == 1 ? "one connection" : "\(connections) connections"
  }

  /// Returns a new store with all entries, and the name of its table for SQL.
  private static func filledStore(
    on server: PostgresServer, connections: Int = 4
  ) async throws -> (store: PostgresStore<[UInt8]>, table: String) {
    let schema = try await server.newSchema()
    let database = try await PostgresDatabase(server.connectionString, schema: schema, connections: connections)
    let store = try await PostgresStore(in: database, name: "users", codec: .raw)
    try await store.apply(ChangeBatch(keys.map { .set(StoreKey("\($0)"), value) }))
    // Otherwise the server would do this soon, in the middle of a round.
    try await server.run(psql: "VACUUM ANALYZE \(schema).users; CHECKPOINT;")
    return (store, "\(schema).users")
  }
}
