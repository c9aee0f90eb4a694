#if Compression && GRDB && LMDB && Metrics && Postgres && SQLite && os(Linux)
import Foundation
import GRDB
import Larder
import LarderBatching
import LarderBounded
import LarderCBOR
import LarderCache
import LarderCompressedFile
import LarderExpiry
import LarderGRDB
import LarderIndexes
import LarderJSON
import LarderLMDB
import LarderMetrics
import LarderObservation
import LarderPostgres
import LarderQueue
import LarderSQLite
import LarderStoreQueue
import LarderTesting
import TestSupport
import Testing

/// A process that works for long needs no more descriptors, threads and memory at its end than after its first part.
///
/// `LARDER_OPERATIONS` sets the number of operations of each store. One in PostgreSQL does a tenth of them, and at least a
/// thousand. With a million, a leak of sixteen bytes with each is found, and in PostgreSQL one of some hundred.
@Suite(.limitedParallelism, .timeLimit(.minutes(60))) struct FlatResourcesTests {
  /// Stores and queues with a thousand keys, in a process of their own.
  enum Subject: String, CaseIterable, Codable {
    case memory, json, compressed, lmdb, sqlite, grdb, postgres, stack, indexed, bounded
    case queue, storeQueue, postgresQueue

    /// A Boolean value that indicates whether the subject needs a server.
    var isOnServer: Bool { self == .postgres || self == .postgresQueue }

    /// - Parameter server: The connection string of the server, if the subject needs one.
    func run(in folder: String, server: String, count: Int) async throws {
      switch self {
      case .memory: try await work(on: MemoryStore<Int>(), count)
      case .json:
        try await work(
          on: JSONFileStore(path: folder + "/s.json", codec: .json(Int.self), durability: .buffered), count)
      case .compressed:
        try await work(
          on: CompressedFileStore(path: folder + "/s.gz", codec: .json(Int.self), durability: .buffered), count)
      case .lmdb:
        try await work(on: LMDBStore(path: folder + "/s", codec: .cbor(Int.self), durability: .buffered), count)
      case .sqlite:
        try await work(
          on: SQLiteStore(path: folder + "/s.sqlite", codec: .cbor(Int.self), durability: .buffered), count)
      case .grdb:
        var configuration = Configuration()
        configuration.prepareDatabase { try $0.execute(sql: "PRAGMA synchronous = OFF") }
        let database = try DatabaseQueue(path: folder + "/s.sqlite", configuration: configuration)
        try await work(on: GRDBStore(in: database, codec: .cbor(Int.self)), count)
        try database.close()
      case .postgres:
        let database = try await PostgresDatabase(server, durability: .buffered)
        try await work(on: PostgresStore(in: database, name: rawValue, codec: .cbor(Int.self)), count)
        await database.close()
      case .stack:
        let base = try await LMDBStore(
          path: folder + "/s", codec: .cbor(Int.self).expiring(), durability: .buffered)
        let store = base.metered(as: "backend", logger: nil).batched().cached().expiring(.after(.seconds(86_400)))
        try await work(on: store.observable().metered(as: "store", logger: nil), count)
      case .indexed:
        let base = MemoryStore<[UInt8]>()
        try await work(on: base.indexed(by: [StoreIndex("parity") { [[$1 % 2]] }], codec: .cbor(Int.self)), count)
      case .bounded:
        let store = try await MemoryStore<[UInt8]>().bounded(bytes: 1 << 30, entries: 500)
        try await work(on: TypedView(store, prefix: "", codec: .cbor(Int.self)), count)
      case .queue:
        try await work(onQueue: QueueStore(path: folder + "/q", codec: .cbor(Int.self), durability: .buffered), count)
      case .storeQueue:
        let base = try await LMDBStore(path: folder + "/s", codec: .raw, durability: .buffered)
        try await work(onQueue: base.queue(of: Int.self, prefix: "q/", codec: .cbor()), count)
      case .postgresQueue:
        let database = try await PostgresDatabase(server, durability: .buffered)
        try await work(onQueue: PostgresQueue(in: database, name: rawValue, codec: .cbor(Int.self)), count)
        await database.close()
      }
    }

    /// Sets, reads, scans and removes entries.
    private func work(on store: some DataStore<Int>, _ count: Int) async throws {
      var resources = Resources(count)
      for number in 0..<count {
        let key = StoreKey("key:\(number &* 7919 % 1000)")
        switch number % 20 {
        case 0: try await store.apply(ChangeBatch((0..<10).map { .set("key:\($0)", number) }))
        case 1: _ = try await store.entries(in: .all, limit: 20)
        case 2, 3: try await store.removeValue(forKey: key)
        case 4..<9: _ = try await store.value(forKey: key)
        case 9: try await store.update(key) { $0 = ($0 ?? 0) &+ 1 }
        default: try await store.setValue(number, forKey: key)
        }
        try resources.check(after: number)
      }
      try await store.close()
    }

    /// Enqueues, receives, returns and acknowledges items.
    private func work(onQueue queue: some DurableQueue<Int>, _ count: Int) async throws {
      var resources = Resources(count)
      for number in 0..<count {
        try await queue.enqueue(number)
        if number % 2 == 1 {
          var deliveries = try await queue.receive(max: 2, lease: .seconds(60))
          if number % 20 == 1, let first = deliveries.popLast() {
            guard try await queue.release([first.receipt]).isEmpty else { throw Grown("a receipt is stale") }
            deliveries += try await queue.receive(max: 1, lease: .seconds(60))
          }
          guard try await queue.acknowledge(deliveries.map(\.receipt)).isEmpty else {
            throw Grown("a receipt is stale")
          }
        }
        try resources.check(after: number)
      }
      try await queue.close()
    }
  }

  private struct Grown: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
  }

  /// The most that the first fifth of the work needed, with which the rest is compared.
  private struct Resources {
    private struct Counts {
      var descriptors = 0
      var threads = 0
      /// In KiB.
      var memory = 0
    }

    let count: Int
    private var first = Counts()

    init(_ count: Int) { self.count = count }

    mutating func check(after number: Int) throws {
      guard (number + 1) % max(1, count / 20) == 0 else { return }
      let now = Counts(
        descriptors: try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count,
        threads: try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count,
        memory: try resident())
      guard number + 1 > count / 5 else {
        first.descriptors = max(first.descriptors, now.descriptors)
        first.threads = max(first.threads, now.threads)
        first.memory = max(first.memory, now.memory)
        return
      }
      // The system's pool of threads grows and shrinks by itself.
      guard now.descriptors <= first.descriptors + 4, now.threads <= first.threads + 16,
        now.memory <= first.memory + 8192
      else { throw Grown("from \(first) to \(now) after \(number + 1) operations") }
    }

    private func resident() throws -> Int {
      let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
      guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmRSS:") }),
        let size = Int(line.filter(\.isNumber))
      else { throw Grown("the system does not report the resident memory") }
      return size
    }
  }

  private static let operationCount =
    ProcessInfo.processInfo.environment["LARDER_OPERATIONS"].flatMap { Int($0) } ?? 2000

  @Test(arguments: Subject.allCases) func `descriptors threads and memory stay flat`(subject: Subject) async throws {
    let folder = try TemporaryFolder()
    let server = subject.isOnServer ? try await PostgresServer.local.connectionString : ""
    let path = folder.path
    let count = subject.isOnServer ? max(1000, Self.operationCount / 10) : Self.operationCount
    await #expect(processExitsWith: .success) {
      [path = path as String, server = server as String, count = count as Int, subject = subject as Subject] in
      try await subject.run(in: path, server: server, count: count)
    }
  }
}
#endif
