import Foundation
import GRDB
import Larder
import LarderBatching
import LarderLMDB
import LarderQueue
import LarderStoreQueue

/// Enqueuing items of 200 bytes, next to appending to a file and to a table of SQLite.
public enum Queues {
  private static let value = (0..<200).map { UInt8(truncatingIfNeeded: $0) }

  /// A record of the same length as an item in the log of a queue, with its key and its header.
  private static let record = [UInt8](repeating: 7, count: 274)

  static let comparisons = [
    Comparison(
      enqueuing(producers: 100, itemsEach: 20),
      beside: [
        Comparison.Yardstick(synchronized(recordsEach: 1), limit: 1.0 / 12),
        Comparison.Yardstick(synchronized(recordsEach: 100)),
        Comparison.Yardstick(rows, limit: 1.0 / 20),
      ], roundCount: 11),
    Comparison(
      enqueuing(producers: 1000, itemsEach: 10),
      beside: [
        Comparison.Yardstick(synchronized(recordsEach: 1), limit: 1.0 / 25),
        Comparison.Yardstick(synchronized(recordsEach: 100)),
        Comparison.Yardstick(rows, limit: 1.0 / 20),
      ], roundCount: 11),
    Comparison(
      enqueuing(producers: 1, itemsEach: 100),
      beside: [
        Comparison.Yardstick(synchronized(recordsEach: 1), limit: 1 / 0.8), Comparison.Yardstick(rows),
      ], roundCount: 21),
    Comparison(
      enqueuingInLMDB(isBatched: true, itemsEach: 20),
      beside: [Comparison.Yardstick(enqueuingInLMDB(isBatched: false, itemsEach: 2), limit: 1.0 / 8)], roundCount: 11),
  ]

  /// Durable enqueuing of 100 producers into a `StoreQueue` over LMDB.
  private static func enqueuingInLMDB(isBatched: Bool, itemsEach: Int) -> Workload {
    let how = isBatched ? "through .batched()" : "a commit each"
    return Workload(
      "durable enqueue of 100 producers into a StoreQueue over LMDB, \(how)", operationCount: 100 * itemsEach
    ) { folder in
      let bytes = try await LMDBStore(path: folder.newPath(), codec: .raw)
      let queue: any DurableQueue<[UInt8]> =
        isBatched
        ? try await bytes.batched().queue(of: [UInt8].self, prefix: "q/", codec: .raw)
        : try await bytes.queue(of: [UInt8].self, prefix: "q/", codec: .raw)
      return {
        try await withThrowingDiscardingTaskGroup { group in
          for _ in 0..<100 {
            group.addTask {
              for _ in 0..<itemsEach { try await queue.enqueue(value) }
            }
          }
        }
      }
    }
  }

  private static func enqueuing(producers: Int, itemsEach: Int) -> Workload {
    let who =
      producers == 1 ? "one producer" : "\(producers.formatted(.number.locale(Locale(identifier: "en")))) producers"
    return Workload("durable enqueue of \(who) into a QueueStore", operationCount: producers * itemsEach) { folder in
      let queue = try await QueueStore(path: folder.newPath(), codec: .raw)
      return {
        try await withThrowingDiscardingTaskGroup { group in
          for _ in 0..<producers {
            group.addTask {
              for _ in 0..<itemsEach { try await queue.enqueue(value) }
            }
          }
        }
      }
    }
  }

  private static func synchronized(recordsEach count: Int) -> Workload {
    let name =
      count == 1 ? "append of a record, with an fdatasync each" : "append of a record, \(count) for each fdatasync"
    let bytes = Array(repeatElement(record, count: count).joined())
    return Workload(name, operationCount: 30 * count) { folder in
      let file = try PlainFile(appendingTo: folder.newPath())
      return {
        for _ in 0..<30 { try file.append(bytes, isDurable: true) }
      }
    }
  }

  private static let rows = Workload(
    "row in a table of SQLite, a commit each, WAL, synchronous=FULL", operationCount: 30
  ) { folder in
    let pool = try DatabasePool(path: folder.newPath())
    // Not in the configuration, after which GRDB sets it to NORMAL.
    try await pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = FULL") }
    try await pool.write { database in
      try database.execute(sql: "CREATE TABLE item (id INTEGER PRIMARY KEY, value BLOB NOT NULL)")
    }
    let data = Data(value)
    return {
      for _ in 0..<30 {
        try await pool.write { database in
          try database.cachedStatement(sql: "INSERT INTO item (value) VALUES (?)").execute(arguments: [data])
        }
      }
    }
  }

  // MARK: What is no comparison of two times

  /// Measures how long one producer takes to enqueue, `.buffered`, one item after another.
  ///
  /// - Parameter folder: The folder of the queue.
  /// - Returns: The time for an item, in seconds.
  /// - Throws: The error of the queue.
  @concurrent
  public static func secondsOfBufferedEnqueue(in folder: ScratchFolder) async throws -> Double {
    let queue = try await QueueStore(path: folder.newPath(), codec: .raw, durability: .buffered)
    let value = [UInt8](repeating: 7, count: 24)
    let count = 100_000
    let time = try await ContinuousClock().measure {
      for _ in 0..<count { try await queue.enqueue(value) }
    }
    try await queue.close()
    return time / .seconds(1) / Double(count)
  }

  /// Measures how long it takes to append the same number of bytes to a file, without waiting for the disk.
  ///
  /// - Parameter folder: The folder of the file.
  /// - Returns: The time for an item, in seconds.
  /// - Throws: The error of the file system.
  public static func secondsOfBufferedAppend(in folder: ScratchFolder) throws -> Double {
    let file = try PlainFile(appendingTo: folder.newPath())
    let record = [UInt8](repeating: 7, count: 98)
    let count = 100_000
    let time = try ContinuousClock().measure {
      for _ in 0..<count { try file.append(record, isDurable: false) }
    }
    return time / .seconds(1) / Double(count)
  }

  /// Fills a `QueueStore` with 1,000,000 items, and receives and acknowledges all of them, 1,000 at a time.
  ///
  /// - Parameter folder: The folder of the queue.
  /// - Returns: The time for an item in the first and in the last tenth, in seconds.
  /// - Throws: The error of the queue.
  @concurrent
  public static func secondsOfDraining(in folder: ScratchFolder) async throws -> (first: Double, last: Double) {
    try await secondsOfDraining(try await QueueStore(path: folder.newPath(), codec: .raw, durability: .buffered))
  }

  /// Fills a `StoreQueue` over LMDB with 1,000,000 items, and receives and acknowledges all of them, 1,000 at a time.
  ///
  /// - Parameter folder: The folder of the queue.
  /// - Returns: The time for an item in the first and in the last tenth, in seconds.
  /// - Throws: The error of the queue.
  @concurrent
  public static func secondsOfDrainingInLMDB(in folder: ScratchFolder) async throws -> (first: Double, last: Double) {
    let bytes = try await LMDBStore(path: folder.newPath(), codec: .raw, durability: .buffered)
    return try await secondsOfDraining(try await bytes.queue(of: [UInt8].self, prefix: "q/", codec: .raw))
  }

  @concurrent
  private static func secondsOfDraining(
    _ queue: some DurableQueue<[UInt8]>
  ) async throws -> (first: Double, last: Double) {
    for _ in 0..<1000 { try await queue.enqueue((0..<1000).map { _ in QueueInput(value) }) }
    var tenths: [Double] = []
    for _ in 0..<10 {
      let time = try await ContinuousClock().measure {
        for _ in 0..<100 {
          let deliveries = try await queue.receive(max: 1000, lease: .seconds(600))
          guard try await queue.acknowledge(deliveries.map(\.receipt)).isEmpty, deliveries.count == 1000 else {
            throw CocoaError(.featureUnsupported)
          }
        }
      }
      tenths.append(time / .seconds(1) / 100_000)
    }
    try await queue.close()
    return (tenths[0], tenths[9])
  }
}
