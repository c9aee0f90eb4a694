import Foundation
import Larder
import LarderCBOR
import LarderQueue
import LarderTesting
import TestSupport
import Testing

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// A queue that has filled the disk can be drained and continues.
@Suite(.timeLimit(.minutes(60))) struct QueueFullDiskTests {
  /// Fills a simulated disk, so nothing else fits, and returns the number of items.
  private static func fill(_ queue: QueueStore<Int>, from first: Int = 0) async throws -> Int {
    var number = first
    do {
      while true {
        try await queue.enqueue(number)
        number += 1
      }
    } catch StoreError.Code.full {
      return number - first
    }
  }

  @Test(arguments: Durability.File.allCases, [1, 20]) func `a queue that fills the disk drains`(
    _ durability: Durability.File, batch: Int
  )
    async throws
  {
    let bench = QueueBench()
    bench.disk.capacity = TestDepth.isShort ? 140_000 : 160_000
    let configuration = QueueConfiguration(
      policy: QueuePolicy(maximumDeliveries: nil, retryPolicy: .immediate), segmentSize: 16_384)
    var queue = try await bench.open(configuration, durability: durability)
    // An old item in the oldest segment does not keep other segments.
    try await queue.enqueue(-7, id: "old", after: .seconds(1_000_000))
    for round in 0..<(TestDepth.isShort ? 2 : 3) {
      let count = try await QueueFullDiskTests.fill(queue, from: round * 100_000)
      #expect(count > 1000)
      var next = round * 100_000
      while true {
        let deliveries = try await queue.receive(max: batch, lease: .seconds(5))
        guard !deliveries.isEmpty else { break }
        #expect(deliveries.map(\.value) == Array(next..<next + deliveries.count))
        next += deliveries.count
        if next % 3 == 0 { for delivery in deliveries { try await queue.extend(delivery.receipt, lease: .seconds(9)) } }
        #expect(try await queue.acknowledge(deliveries.map(\.receipt)).isEmpty)
        if next == round * 100_000 + 500 {
          // Neither opening nor closing takes space.
          try await queue.close()
          queue = try await bench.open(configuration, durability: durability)
        }
      }
      #expect(next == round * 100_000 + count)
      #expect(try await queue.counts() == QueueCounts(delayed: 1))
      try await queue.enqueue(1, id: "again")
      try await queue.removeValue(forKey: "again")
    }
    #expect(try await queue.verify().findings.isEmpty == true)
    try await queue.compact()
    try await queue.close()
    #expect(try bench.names.filter { $0.hasPrefix("segment") }.count < 4)
  }

  @Test func `removal compaction and closing take no space`() async throws {
    let bench = QueueBench()
    bench.disk.capacity = 200_000
    let queue = try await bench.open(QueueConfiguration(segmentSize: 16_384))
    let count = try await QueueFullDiskTests.fill(queue)
    try await queue.compact()
    let delivery = try #require(try await queue.receive(lease: .seconds(5)))
    try await queue.release(delivery.receipt)
    #expect(try await queue.counts() == QueueCounts(waiting: count - 1, delayed: 1))
    try await queue.removeAll(in: .all)
    #expect(try await queue.counts() == QueueCounts())
    try await queue.enqueue(1)
    try await queue.close()
  }

  /// A process was killed while the disk was full.
  ///
  /// Its items can be received.
  @Test func `a queue on a full disk can be opened`() async throws {
    let bench = QueueBench()
    var queue = try await bench.open(QueueConfiguration(segmentSize: 16_384), durability: .buffered)
    for number in 0..<50 { try await queue.enqueue(number) }
    bench.disk.killProcess()
    // The disk has exactly the used capacity and no reserve.
    try bench.disk.removeFile(at: "/queue/reserve")
    let used = try bench.names.reduce(0) { $0 + (bench.disk.content(at: "/queue/\($1)")?.count ?? 0) }
    bench.disk.capacity = used
    queue = try await bench.open(QueueConfiguration(segmentSize: 16_384), durability: .buffered)
    #expect(try await queue.peek(max: 99).count == 50)
    await expectStoreError(.full) { try await queue.enqueue(50) }
    bench.disk.capacity = used + 1000
    var received = 0
    for _ in 0..<10 {
      if let delivery = try await queue.receive(lease: .seconds(5)) {
        try await queue.acknowledge(delivery.receipt)
        received += 1
      }
    }
    #expect(received == 10)
    bench.disk.capacity = nil
    bench.clock.advance(by: .seconds(2))
    try await queue.enqueue(50)
    try await queue.close()
  }

  // MARK: A real disk

  /// The known state of the items of a run, in a file on another disk.
  ///
  /// Each line is written immediately.
  private struct Journal {
    private let descriptor: Int32

    init(_ path: String) {
      descriptor = openFile(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    }

    func note(_ what: Character, _ numbers: [Int]) {
      let text = numbers.map { "\(what) \($0)\n" }.joined()
      _ = text.withCString { write(descriptor, $0, strlen($0)) }
    }

    func close() {
      _ = closeFile(descriptor)
    }

    static func read(_ path: String) throws -> [Character: Set<Int>] {
      var numbers: [Character: Set<Int>] = [:]
      for line in try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n") {
        guard let what = line.first, let number = Int(line.dropFirst(2)) else { continue }
        numbers[what, default: []].insert(number)
      }
      return numbers
    }
  }

  private static func item(_ number: Int) -> [UInt8] {
    withUnsafeBytes(of: Int64(number).littleEndian) { Array($0) } + [UInt8](repeating: 7, count: 92)
  }

  private static func number(_ item: [UInt8]) -> Int {
    item.withUnsafeBytes { Int(Int64(littleEndian: $0.loadUnaligned(as: Int64.self))) }
  }

  private static func open(_ path: String) async throws -> QueueStore<[UInt8]> {
    try await QueueStore(
      path: path, codec: .raw,
      configuration: QueueConfiguration(
        policy: QueuePolicy(maximumDeliveries: nil, retryPolicy: .immediate), segmentSize: 1 << 20),
      leases: .void)
  }

  /// Enqueues all items of a range, or as many as fit.
  private static func fill(_ queue: QueueStore<[UInt8]>, _ journal: Journal, from first: Int, to end: Int) async throws
    -> Int
  {
    for start in stride(from: first, to: end, by: 500) {
      let numbers = Array(start..<min(start + 500, end))
      journal.note("E", numbers)
      do {
        _ = try await queue.enqueue(numbers.map { QueueInput(item($0)) })
      } catch StoreError.Code.full {
        return start
      }
      journal.note("e", numbers)
    }
    return end
  }

  /// Receives all items and records them.
  ///
  /// No acknowledged item may be delivered again.
  private static func drain(_ queue: QueueStore<[UInt8]>, _ journalPath: String) async throws {
    let journal = Journal(journalPath)
    let gone = try Journal.read(journalPath)["a"] ?? []
    while true {
      let deliveries = try await queue.receive(max: .random(in: 1...60), lease: .seconds(600))
      guard !deliveries.isEmpty else { break }
      let numbers = deliveries.map { number($0.value) }
      journal.note("B", numbers.filter(gone.contains))
      journal.note("s", numbers)
      _ = try await queue.acknowledge(deliveries.map(\.receipt))
      journal.note("a", numbers)
    }
    journal.close()
  }

  /// Fills the remaining space.
  private static func takeRoom(_ path: String) {
    let descriptor = openFile(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    let bytes = [UInt8](repeating: 1, count: 1 << 20)
    var count = bytes.count
    while count > 0 { if write(descriptor, bytes, count) <= 0 { count /= 2 } }
    _ = closeFile(descriptor)
  }

  /// A short run by default.
  ///
  /// `make soak` sets `LARDER_ROUNDS` to 50, with 100,000 items each.
  @Test(.enabled(if: TemporaryFileSystem.obstacle == nil, "\(TemporaryFileSystem.obstacle ?? "")"))
  func `a small disk is filled and drained by killed processes`() async throws {
    let (rounds, count, kills) = ConformanceSuite.roundsOfProcess > 20 ? (50, 100_000, 6) : (2, 12_000, 3)
    let disk = try TemporaryFileSystem(size: "32m")
    let folder = try TemporaryFolder()
    let (path, journalPath) = (disk.path + "/queue", folder.path("journal"))
    var first = 0
    for round in 0..<rounds {
      let journal = Journal(journalPath)
      var queue = try await QueueFullDiskTests.open(path)
      let end = try await QueueFullDiskTests.fill(queue, journal, from: first, to: first + count)
      #expect(end - first > count / 2)
      if round == 0 { QueueFullDiskTests.takeRoom(disk.path + "/ballast") }
      // Fills the remaining space completely.
      _ = try await QueueFullDiskTests.fill(queue, journal, from: end, to: end + 100 * count)
      try await queue.close()
      for _ in 0..<kills {
        await #expect(processExitsWith: .signal(SIGKILL)) {
          [path = path as String, journalPath = journalPath as String] in
          let delay = UInt32.random(in: 1000...400_000)
          Thread.detachNewThread {
            usleep(delay)
            kill(getpid(), SIGKILL)
          }
          let queue = try await QueueFullDiskTests.open(path)
          try await QueueFullDiskTests.drain(queue, journalPath)
          kill(getpid(), SIGKILL)
        }
      }
      queue = try await QueueFullDiskTests.open(path)
      try await QueueFullDiskTests.drain(queue, journalPath)
      #expect(try await queue.counts() == QueueCounts())
      #expect(!queue.recovery.hasDamage)
      try await queue.close()
      let known = try Journal.read(journalPath)
      #expect(known["B"] ?? [] == [], "were delivered after their acknowledgement")
      let lost = (known["e"] ?? []).subtracting(known["s"] ?? [])
      #expect(lost.isEmpty, "were lost in round \(round): \(lost.count)")
      first = (known["E"]?.max() ?? 0) + 1
      journal.close()
      try FileManager.default.removeItem(atPath: journalPath)
    }
    print("\(rounds) rounds, \(first) items")
  }
}

// Within the types above, the unqualified names refer to their own methods.

private func openFile(_ path: String, _ flags: Int32, _ permissions: mode_t) -> Int32 {
  open(path, flags, permissions)
}

private func closeFile(_ descriptor: Int32) -> Int32 {
  close(descriptor)
}
