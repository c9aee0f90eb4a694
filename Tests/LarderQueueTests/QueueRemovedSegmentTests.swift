import Dispatch
import Larder
import LarderCBOR
import LarderFiles
import LarderTesting
import TestSupport
import Testing

@testable import LarderQueue

/// Segments are removed after a reader has found items in them, and before it opens them.
@Suite struct QueueRemovedSegmentTests {
  /// The operations that read items.
  enum Reading: CaseIterable {
    case value, values, entries, peek, receive, deadLetters, verify, backup
  }

  private let bench = QueueBench()
  private let fileSystem: StubbornFileSystem

  init() {
    fileSystem = StubbornFileSystem(bench.disk, refusing: [])
  }

  /// Opens a queue with a due item, a delayed one and a dead letter, in segments that are not open.
  private func open() async throws -> QueueStore<[UInt8]> {
    let clock = bench.clock
    let queue = try await QueueStore<[UInt8]>(
      path: "/queue", codec: .cbor(),
      configuration: QueueConfiguration(policy: QueuePolicy(maximumDeliveries: 1), segmentSize: 4096),
      fileSystem: fileSystem, environment: .manual(clock))
    try await queue.enqueue([0], id: "dead")
    let delivery = try #require(try await queue.receive(lease: .seconds(5)))
    try await queue.release(delivery.receipt)
    try await queue.enqueue([1], id: "a")
    try await queue.enqueue([2], id: "b", after: .seconds(60))
    try await closeSegments(queue)
    return queue
  }

  /// Enqueues so many items, each in a segment of its own, that the files of older segments are closed.
  private func closeSegments(_ queue: QueueStore<[UInt8]>) async throws {
    let filling = [UInt8](repeating: 7, count: 4096)
    for _ in 0..<40 { try await queue.enqueue(filling, after: .seconds(60)) }
  }

  /// Runs a closure when a reader opens a segment, but only so many times, so no reader tries again forever.
  ///
  /// - Returns: The number of times that it ran.
  private func interrupting(
    atMost limit: Int = 8, with interruption: @escaping @Sendable () async throws -> Void,
    _ body: () async throws -> Void
  ) async throws -> Int {
    let runs = Locked((count: 0, isRunning: false))
    fileSystem.beforeReading = { path in
      // The interruption itself reads segments, too.
      let mayRun = runs.withLock { runs in
        guard path.contains("segment"), !runs.isRunning, runs.count < limit else { return false }
        runs = (runs.count + 1, true)
        return true
      }
      guard mayRun else { return }
      let done = DispatchSemaphore(value: 0)
      Task {
        await #expect(throws: Never.self) { try await interruption() }
        done.signal()
      }
      done.wait()
      runs.withLock { $0.isRunning = false }
    }
    defer { fileSystem.beforeReading = { _ in } }
    try await body()
    return runs.withLock { $0.count }
  }

  /// The segments are cleaned each time that a reader wants to open one.
  @Test(arguments: Reading.allCases) func `items of segments that are constantly cleaned`(_ reading: Reading)
    async throws
  {
    let queue = try await open()
    let count = try await interrupting {
      try await queue.compact()
      try await closeSegments(queue)
    } _: {
      switch reading {
      case .value: #expect(try await queue.value(forKey: "a") == [1])
      case .values: #expect(try await queue.values(forKeys: ["b", "a", "c"]) == [[2], [1], nil])
      case .entries:
        #expect(try await queue.entries(in: .prefix("a"), limit: 9, order: .ascending).map(\.value) == [[1]])
      case .peek: #expect(try await queue.peek(max: 9).map(\.value) == [[1]])
      case .receive: #expect(try await queue.receive(max: 9, lease: .seconds(5)).map(\.value) == [[1]])
      case .deadLetters:
        let letter = try #require(try await queue.deadLetters().first)
        #expect(try letter.value.get() == [0])
      case .verify: #expect(try await queue.verify().findings.isEmpty)
      case .backup:
        try await queue.backup(to: "/copy", compacting: false)
        let copy = try await QueueStore<[UInt8]>(path: "/copy", codec: .cbor(), fileSystem: bench.disk)
        #expect(try await copy.entries(in: .prefix("a"), limit: 9).map(\.value) == [[1]])
        #expect(!copy.recovery.hasDamage)
        try await copy.close()
      }
    }
    #expect(count > 0)
    // The segments that stayed for the reader are removed when it has finished.
    let needed = try await queue.storeStatistics().details.first { $0.name == "segments" }?.value
    #expect(try Int64(bench.names.count { $0.hasPrefix("segment") }) == needed)
    try await queue.close()
  }

  /// An item is withdrawn after it was leased, and before it is read.
  @Test func `a withdrawn item is not delivered`() async throws {
    let queue = try await open()
    let count = try await interrupting {
      try await queue.removeValue(forKey: "a")
      try await queue.compact()
      try await closeSegments(queue)
    } _: {
      let delivery = try await queue.receive(lease: .seconds(5))
      #expect(delivery == nil)
    }
    #expect(count > 0)
    #expect(try await queue.counts().leased == 0)
    try await queue.close()
  }

  /// An item is replaced after it was leased, and before it is read.
  @Test func `a replaced item is delivered with a valid receipt`() async throws {
    let queue = try await open()
    let count = try await interrupting(atMost: 1) {
      try await queue.setValue([3], forKey: "a")
      try await queue.compact()
    } _: {
      let delivery = try #require(try await queue.receive(lease: .seconds(5)))
      #expect(delivery.value == [3])
      try await queue.acknowledge(delivery.receipt)
    }
    #expect(count == 1)
    try await queue.close()
  }
}
