#if Postgres
import Larder
import LarderCBOR
import LarderPostgres
import LarderTesting
import TestSupport
import Testing

/// Calls whose parameters are larger than those of one statement, which are split.
@Suite(.timeLimit(.minutes(60))) struct PostgresQueueSizeTests {
  /// Two of them exceed the size of a statement.
  private static let payload = [UInt8](repeating: 7, count: 9 << 20)

  /// Runs a closure with a queue that another program watches: it notes how many statements insert items.
  private func withQueue(
    capacity: Int? = nil,
    _ body: (PostgresQueue<[UInt8]>, Setting, _ insertions: () async throws -> Int) async throws -> Void
  ) async throws {
    try await Setting.run { setting in
      let queue = try await PostgresQueue(
        in: setting.database, name: "q", codec: .raw,
        configuration: PostgresQueueConfiguration(policy: QueuePolicy(maximumDeliveries: 1), capacity: capacity))
      try await setting.psql(
        """
        CREATE TABLE insertions(count bigint);
        CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
          BEGIN INSERT INTO \(setting.schema).insertions SELECT count(*) FROM added WHERE payload IS NOT NULL; RETURN NULL; END $$;
        CREATE TRIGGER note AFTER INSERT ON q REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION note();
        """)
      try await body(queue, setting) {
        let count = try await setting.psql("SELECT count(*) FROM insertions WHERE count > 0")
        try await setting.psql("DELETE FROM insertions")
        return try #require(Int(count))
      }
    }
  }

  @Test func `large items are enqueued by several statements`() async throws {
    try await withQueue { queue, _, insertions in
      var inputs = (0..<4).map { number in
        QueueInput(Self.payload + [UInt8(number)], id: number == 1 ? "a" : nil, group: number > 1 ? "g" : nil)
      }
      inputs.append(QueueInput(Self.payload, id: "a"))
      let results = try await queue.enqueue(inputs)
      #expect(results.map(\.isDuplicate) == [false, false, false, false, true])
      #expect(results[4].sequence == results[1].sequence)
      #expect(results[..<4].map(\.sequence) == results[..<4].map(\.sequence).sorted())
      #expect(try await insertions() == 4)
      let deliveries = try await queue.receive(max: 9, lease: .seconds(600))
      #expect(deliveries.map(\.value.last) == [0, 1, 2], "the second item of the group waits")
    }
  }

  @Test func `a capacity counts all items of a call`() async throws {
    try await withQueue(capacity: 3) { queue, _, insertions in
      await expectStoreError(.full) { try await queue.enqueue((0..<4).map { _ in QueueInput(Self.payload) }) }
      #expect(try await queue.count() == 0)
      try await queue.enqueue((0..<3).map { _ in QueueInput(Self.payload) })
      #expect(try await insertions() == 3)
      await expectStoreError(.full) { try await queue.enqueue([1]) }
    }
  }

  @Test func `large items are set by several statements`() async throws {
    try await withQueue { queue, _, insertions in
      try await queue.apply([.set("c", Self.payload), .set("b", Self.payload + [1]), .set("a", [2])])
      #expect(try await insertions() == 2)
      try await queue.update(["d", "e", "f"]) { values in
        for index in values.indices { values[index] = Self.payload + [UInt8(index)] }
      }
      #expect(try await insertions() == 3)
      let deliveries = try await queue.receive(max: 9, lease: .seconds(600))
      #expect(deliveries.map(\.key) == ["c", "b", "a", "d", "e", "f"])
      #expect(deliveries.map(\.value.last) == [7, 1, 2, 0, 1, 2])
    }
  }

  /// 33,000 keys of the greatest length are more than a statement takes.
  @Test func `many long keys are requeued together or not at all`() async throws {
    try await withQueue { queue, setting, insertions in
      let keys = (1...33_000).map { number in
        StoreKey(String(repeating: "0", count: 511 - "\(number)".count) + "\(number)")
      }
      try await setting.psql(
        """
        INSERT INTO q(name, payload, arrival, state, deliveries, reason)
        SELECT convert_to(lpad(n::text, 511, '0'), 'UTF8'), '\\x01', now(), 3, 1, 1
        FROM generate_series(1, 33000) AS n WHERE n < 10 OR n > 32990
        """)
      try await queue.enqueue([1], id: keys[32_999])
      await expectStoreError(.conflict) { try await queue.requeue(keys) }
      #expect(try await queue.counts() == QueueCounts(waiting: 1, dead: 19))
      _ = try await insertions()
      #expect(try await queue.requeue([keys[7]] + keys.dropLast()) == 18)
      #expect(try await insertions() == 2)
      #expect(try await queue.counts() == QueueCounts(waiting: 19, dead: 1))
      #expect(try await queue.peek(max: 3).map(\.key) == [keys[32_999], keys[7], keys[0]])
    }
  }
}
#endif
