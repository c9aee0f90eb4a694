import Foundation
import Larder
import LarderPostgres
import PostgresServers

/// A `PostgresQueue` of items of 200 bytes.
public enum PostgresQueues {
  private static let value = [UInt8](repeating: UInt8(ascii: "v"), count: 200)

  static let comparisons = [enqueues(connections: 4), enqueues(connections: 32)]

  /// Durable enqueuing, one item for each transaction.
  ///
  /// The script has the statement of the queue. Its keys have fewer bytes, because `pgbench` makes them from numbers.
  private static func enqueues(connections: Int) -> PostgresComparison {
    let producers = 32
    return PostgresComparison(
      "durable enqueue of \(producers) producers into a PostgresQueue over \(connections) connections",
      beside: "the same statement by pgbench, \(connections) connections", limit: 1 / 0.7
    ) { server, folder in
      let (queue, table) = try await openQueue(on: server, connections: connections)
      let pgbench = try Pgbench(
        """
        \\set number :number + 1
        \\set key :round * 1000000000 + :client_id * 1000000 + :number
        WITH clock AS MATERIALIZED
          (SELECT coalesce(timestamptz 'epoch' + NULL::int8 * interval '1 microsecond', clock_timestamp()) AS now),
        given AS MATERIALIZED (
          SELECT nextval('\(table)_seq_seq'::regclass) AS seq, list.*
          FROM (SELECT * FROM unnest(ARRAY[:key::bytea], ARRAY[:value::bytea], :zeros::int8[], :zeros::int8[],
              :nulls::bytea[], :zeros::int8[])
            WITH ORDINALITY AS t(key, payload, delay, priority, group_key, named, place) ORDER BY place) AS list)
        INSERT INTO \(table) AS q
          (seq, key, payload, priority, group_key, is_named, arrival, state, since, until)
        SELECT seq, key, payload, priority, group_key, named = 1, now,
          CASE WHEN group_key IS NOT NULL THEN 5 WHEN delay > 0 THEN 1 ELSE 0 END, CASE WHEN delay > 0 THEN now END,
          CASE WHEN delay > 0 THEN now + delay * interval '1 microsecond' END
        FROM given CROSS JOIN clock ORDER BY key
        ON CONFLICT (key) DO UPDATE SET seq = excluded.seq, payload = excluded.payload, priority = excluded.priority,
          group_key = excluded.group_key, is_named = excluded.is_named, arrival = excluded.arrival,
          state = excluded.state, since = excluded.since, until = excluded.until, deliveries = 0, epoch = NULL,
          is_suspect = false, remembered = NULL, original = NULL
          WHERE q.state = 4 AND q.until <= (SELECT now FROM clock)
        RETURNING seq, key;
        """, clients: connections,
        variables: [
          "value": String(repeating: "v", count: 200), "zeros": "{0}", "nulls": "{NULL}", "number": "0",
        ], on: server, in: folder)
      let round = Turn(count: .max)
      let count = 32 * 50
      return PostgresComparison.Rounds {
        try await secondsForEach(of: count, tasks: producers) { _ in try await queue.enqueue(value) }
      } yardstick: {
        try await pgbench.secondsForEach(of: count, variables: ["round": "\(100_000 + round.next())"])
      }
    }
  }

  // MARK: What is no comparison with pgbench

  /// Measures how long `receive` takes in a new queue, and in one that 1,000,000 items have gone through: before and after
  /// autovacuum has freed the space of old rows, which it does once a minute.
  ///
  /// Each round receives 100 items, one in each call.
  ///
  /// - Returns: The medians of the times of a call, in seconds.
  /// - Throws: The error of the queue.
  @concurrent
  public static func secondsOfReceiving() async throws -> (new: Double, used: Double, vacuumed: Double) {
    let server = try await PostgresServer.local
    let (new, _) = try await openQueue(on: server)
    let (used, table) = try await openQueue(on: server)
    for _ in 0..<1000 {
      try await used.enqueue((0..<1000).map { _ in QueueInput(value) })
      try await drain(used, count: 1000, by: 1000)
    }
    let before = try await medians(new, used)
    let cleaned = "SELECT n_dead_tup < 100000 FROM pg_stat_user_tables WHERE relid = '\(table)'::regclass"
    while try await server.run(psql: cleaned) != "t" { try await Task.sleep(for: .seconds(1)) }
    let later = try await medians(new, used)
    return (later.new, before.used, later.used)
  }

  private static func medians(
    _ new: PostgresQueue<[UInt8]>, _ used: PostgresQueue<[UInt8]>
  ) async throws -> (new: Double, used: Double) {
    var times: (new: [Double], used: [Double]) = ([], [])
    for number in 0...31 {
      let (first, second) = (try await secondsOfOneRound(new), try await secondsOfOneRound(used))
      guard number > 0 else { continue }
      times.new.append(first)
      times.used.append(second)
    }
    return (times.new.sorted()[15], times.used.sorted()[15])
  }

  private static func secondsOfOneRound(_ queue: PostgresQueue<[UInt8]>) async throws -> Double {
    try await queue.enqueue((0..<100).map { _ in QueueInput(value) })
    return try await drain(queue, count: 100, by: 1)
  }

  /// Receives and acknowledges items, and returns the time of one call of `receive` in seconds.
  @discardableResult
  private static func drain(_ queue: PostgresQueue<[UInt8]>, count: Int, by size: Int) async throws -> Double {
    var receipts: [DeliveryReceipt] = []
    let time = try await ContinuousClock().measure {
      while receipts.count < count {
        let deliveries = try await queue.receive(max: size, lease: .seconds(600))
        guard !deliveries.isEmpty else { throw CocoaError(.featureUnsupported) }
        receipts += deliveries.map(\.receipt)
      }
    }
    guard try await queue.acknowledge(receipts).isEmpty else { throw CocoaError(.featureUnsupported) }
    return time / .seconds(1) / Double(count / size)
  }

  /// Measures the time from the call that enqueues an item until a consumer of another `PostgresDatabase`, which waits for
  /// one, has it.
  ///
  /// - Returns: The times of 100 items in seconds, in ascending order.
  /// - Throws: The error of the queue.
  @concurrent
  public static func secondsOfWaking() async throws -> [Double] {
    let server = try await PostgresServer.local
    let (producer, table) = try await openQueue(on: server)
    let schema = String(table.prefix { $0 != "." })
    let database = try await PostgresDatabase(server.connectionString, schema: schema)
    let consumer = try await PostgresQueue(in: database, name: "jobs", codec: .raw)
    var times: [Double] = []
    for _ in 0..<101 {
      let waiting = Task { try await consumer.nextDelivery(lease: .seconds(600)).get() }
      // The consumer has looked once and waits.
      try await Task.sleep(for: .milliseconds(30))
      let start = ContinuousClock.now
      try await producer.enqueue(value)
      let delivery = try await waiting.value
      times.append((ContinuousClock.now - start) / .seconds(1))
      guard try await consumer.acknowledge([delivery.receipt]).isEmpty else { throw CocoaError(.featureUnsupported) }
    }
    return times.dropFirst().sorted()
  }

  /// Returns a new queue, and the name of its table for SQL.
  private static func openQueue(
    on server: PostgresServer, connections: Int = 4
  ) async throws -> (queue: PostgresQueue<[UInt8]>, table: String) {
    let schema = try await server.newSchema()
    let database = try await PostgresDatabase(server.connectionString, schema: schema, connections: connections)
    return (try await PostgresQueue(in: database, name: "jobs", codec: .raw), "\(schema).jobs")
  }
}
