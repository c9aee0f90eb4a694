#if DEBUG
// The threads of files take part in debug builds only.
import Foundation
import Larder
import LarderCBOR
import LarderCompressedFile
import LarderFiles
import LarderJSON
import LarderQueue
import LarderTesting
import TestSupport
import Testing

/// Stores in files in many schedules: what was acknowledged survives a crash, and closing loses nothing.
@Suite(.enabled(if: ScheduledTrial.isAvailable, "this runtime lets no program choose the order of its jobs"))
struct FileSchedules {
  /// The way in which a run ends.
  private enum Ending: UInt64 {
    /// The process dies between two pieces of work, and the power fails.
    case crash
    /// The power fails in an operation of the file system, and all later ones fail.
    case powerLoss
    /// The store is closed by another task.
    case closing

    /// Chooses one by the seed of the run.
    ///
    /// The seeds of a trial are consecutive, so that each kind has a third of the runs.
    init(_ context: ScheduledContext) {
      self = Ending(rawValue: context.seed % 3) ?? .crash
    }

    /// Schedules the ending, unless a task closes the store.
    ///
    /// - Parameters:
    ///   - disk: The disk.
    ///   - operationLimit: The number of operations of the disk within which the power fails.
    ///   - context: The run.
    ///   - afterCrash: A closure that runs after the death of the process, with the power on again.
    func schedule(
      on disk: SimulatedFileSystem, within operationLimit: Int, _ context: ScheduledContext,
      afterCrash: @escaping @Sendable () async throws -> Void
    ) {
      switch self {
      case .crash:
        context.mayCrash {
          disk.losePower()
          disk.restart()
          try await afterCrash()
        }
      case .powerLoss:
        var generator = context.generator("power")
        disk.schedule(
          .powerLoss, atOperation: disk.operationCount + Int.random(in: 1..<operationLimit, using: &generator))
      case .closing: break
      }
    }
  }

  // MARK: Stores

  struct Subject: Sendable {
    let name: String
    let open: @Sendable (SimulatedFileSystem) async throws -> AnyDataStore<Int>
  }

  private static let documents = [
    Subject(name: "a document") { disk in
      AnyDataStore(try await JSONFileStore<Int>(path: "/store.json", codec: .json(), fileSystem: disk))
    }
  ]

  #if Compression
  static let stores =
    documents + [
      Subject(name: "a compressed file") { disk in
        AnyDataStore(try await CompressedFileStore<Int>(path: "/store.gz", codec: .json(), fileSystem: disk))
      }
    ]
  #else
  static let stores = documents
  #endif

  /// The last number that a task has written to its keys, and the one that it is writing.
  private struct Progress: Sendable {
    var written = 0
    var begun = 0
  }

  /// Three writers, a reader and a compaction: each writer has two keys, which a batch or an update changes together, so that both have the
  /// last number that was acknowledged, or the one that was being written.
  @Test(arguments: stores.indices) func `acknowledged writes survive`(_ index: Int) async throws {
    let subject = Self.stores[index]
    let endings = Shared<Set<UInt64>>([])
    try await runSchedules("endings of \(subject.name)") { context in
      let (disk, ending) = (SimulatedFileSystem(seed: context.seed), Ending(context))
      let progress = Shared([Progress](repeating: Progress(), count: 3))
      @Sendable func check() async throws {
        let store = try await subject.open(disk)
        for task in 0..<3 {
          let numbers = try await store.values(forKeys: Self.keys(of: task)).map { $0 ?? 0 }
          let expected = progress.value[task]
          guard numbers[0] == numbers[1], [expected.written, expected.begun].contains(numbers[0]) else {
            throw Wrong("writer \(task) finds \(numbers) after \(expected)")
          }
        }
        // A power failure can tear what is written in place, but no entry.
        let findings = try await store.maintenance?.verify().findings ?? []
        guard findings.allSatisfy({ ending != .closing && $0.key == nil }) else { throw Wrong("\(findings)") }
        try await store.close()
      }
      let store = try await subject.open(disk)
      ending.schedule(on: disk, within: 40, context) {
        endings.change { _ = $0.insert(ending.rawValue) }
        try await check()
      }
      try await concurrently(6) { task in
        do {
          switch task {
          case 3: try await store.maintenance?.compact()
          case 5: try await Self.read(store, progress, context)
          case 4:
            guard ending == .closing else { return }
            var generator = context.generator("closing")
            await context.pause(upTo: 20, &generator)
            try await store.close()
          default: try await Self.write(to: store, task, progress)
          }
        } catch let error as StoreError {
          guard ending == .closing ? error.code == .closed : !disk.hasPower else { throw error }
        }
      }
      // A crash during the check would repeat it.
      if ending == .crash { return }
      if ending == .closing || !disk.hasPower { endings.change { _ = $0.insert(ending.rawValue) } }
      if disk.hasPower {
        try await store.close()
        disk.losePower()
      } else {
        disk.restart()
      }
      try await check()
    }
    // The store can be done before its death or the power failure, and in a few runs each time.
    #expect(endings.value.count == 3 || scheduleCount < 100)
  }

  private static func keys(of task: Int) -> [StoreKey] { ["\(task)/a", "\(task)/b"] }

  /// Reads until the store is closed, and finds what was written before.
  private static func read(
    _ store: AnyDataStore<Int>, _ progress: Shared<[Progress]>, _ context: ScheduledContext
  ) async throws {
    var generator = context.generator("reader")
    for _ in 0..<6 {
      await context.pause(upTo: 4, &generator)
      let task = Int.random(in: 0..<3, using: &generator)
      let written = progress.value[task].written
      let number = try await store.value(forKey: keys(of: task)[0]) ?? 0
      guard number >= written else { throw Wrong("writer \(task) has written \(written), and \(number) is read") }
    }
  }

  private static func write(to store: AnyDataStore<Int>, _ task: Int, _ progress: Shared<[Progress]>) async throws {
    let keys = keys(of: task)
    for number in 1...4 {
      progress.change { $0[task].begun = number }
      do {
        if number.isMultiple(of: 2) {
          try await store.apply(ChangeBatch(keys.map { .set($0, number) }))
        } else {
          try await store.update(keys) { slots in
            guard slots[0] ?? 0 == number - 1 else { throw Wrong("\(slots[0] ?? 0) before \(number)") }
            for slot in slots.indices { slots[slot] = number }
          }
        }
      } catch let error as StoreError where error.outcome == .nothingChanged {
        progress.change { $0[task].begun = number - 1 }
        throw error
      }
      progress.change { $0[task].written = number }
    }
  }

  // MARK: Replaced files

  /// Several readers check whether a file was replaced, and one of the checks fails: a later one notices the new file.
  @Test func `a replaced file is noticed`() async throws {
    try await runSchedules("a replaced file") { context in
      let disk = SimulatedFileSystem(seed: context.seed)
      let file = try disk.open("/file", .createNew)
      _ = try disk.open("/new", .createNew)
      let watch = ReplacedFileWatch(try file.attributes().identity, at: "/file", in: disk) {
        UInt64(context.clock.now.offset / .nanoseconds(1))
      }
      var generator = context.generator()
      disk.schedule(.error(EIO), atOperation: disk.operationCount + Int.random(in: 1...8, using: &generator))
      let delay = Int.random(in: 0...150, using: &generator)
      try await concurrently(4) { task in
        if task == 0 {
          try await context.clock.sleep(for: .milliseconds(delay))
          do {
            try disk.rename("/new", to: "/file")
          } catch is FileError {
            try disk.rename("/new", to: "/file")
          }
        } else {
          for _ in 0..<6 {
            try await context.clock.sleep(for: .milliseconds(25))
            do {
              _ = try watch.isReplaced()
            } catch is FileError {}
          }
        }
      }
      disk.clearFaults()
      try await context.clock.sleep(for: .milliseconds(60))
      guard try watch.isReplaced() else { throw Wrong("the new file was not noticed") }
    }
  }

  // MARK: A queue

  /// The knowledge of producers and consumers about the items of a queue.
  private struct Items: Sendable {
    /// The items that may be in the queue, and those that must be, unless they were taken out.
    var begun: Set<Int> = []
    var enqueued: Set<Int> = []
    /// The items that consumers have, those that may be gone, and those that must be.
    var leased: Set<Int> = []
    /// The item that a consumer is releasing, by the consumer.
    ///
    /// Another one can have it before the call returns, and release it too.
    var releasing: [Int: Int] = [:]
    var ending: Set<Int> = []
    var acknowledged: Set<Int> = []
    /// The consumers that may have a lease that they don't know of.
    var receiving: Set<Int> = []
  }

  /// Two producers and two consumers of a queue: after the end, it has the items that were enqueued and not acknowledged, and
  /// those that consumers have are not delivered again before their leases end.
  @Test func `a queue keeps its items`() async throws {
    let endings = Shared<Set<UInt64>>([])
    // A consumer that released an item, and heard of it after another one had begun to release it again.
    let released = "16378 101=2 102=2 129=3 135=12 271=4 301=12 377=1 378=3 379=2 381=3 386=12"
    try await runSchedules("endings of a queue in files", regressions: [released]) { context in
      let disk = SimulatedFileSystem(seed: context.seed)
      let items = Shared(Items())
      @Sendable func open() async throws -> QueueStore<Int> {
        // Small segments, so that some of them are removed. No item is released so often that it becomes a dead letter.
        try await QueueStore<Int>(
          path: "/queue", codec: .cbor(),
          configuration: QueueConfiguration(policy: QueuePolicy(maximumDeliveries: nil), segmentSize: 4096),
          fileSystem: disk, environment: .manual(context.clock))
      }
      @Sendable func check() async throws {
        let queue = try await open()
        let (found, items) = (
          Set(try await queue.entries(in: .all, limit: .max, order: .ascending).map(\.value)), items.value
        )
        let lost = items.enqueued.subtracting(items.ending).subtracting(found)
        let revived = found.subtracting(items.begun).union(found.intersection(items.acknowledged))
        guard lost.isEmpty, revived.isEmpty else { throw Wrong("lost \(lost), revived \(revived) of \(items)") }
        var delivered: Set<Int> = []
        // An item that may have crashed a process is received alone.
        while case let deliveries = try await queue.receive(max: 100, lease: .seconds(60)), !deliveries.isEmpty {
          delivered.formUnion(deliveries.map(\.value))
        }
        let again = delivered.intersection(items.leased)
        let unknown = items.leased.union(items.releasing.values).union(items.ending)
        let hidden = found.subtracting(delivered).subtracting(unknown)
        guard again.isEmpty, hidden.count <= items.receiving.count else {
          throw Wrong("\(delivered) of \(found) delivered after \(items)")
        }
        try await queue.close()
      }
      let queue = try await open()
      let ending = Ending(context)
      ending.schedule(on: disk, within: 60, context) {
        endings.change { _ = $0.insert(ending.rawValue) }
        try await check()
      }
      try await concurrently(5) { task in
        do {
          switch task {
          case 4:
            guard ending == .closing else { return }
            var generator = context.generator("closing")
            await context.pause(upTo: 20, &generator)
            try await queue.close()
          case 0, 1: try await Self.produce(queue, items, context, task)
          default: try await Self.consume(queue, items, context, task)
          }
        } catch let error as StoreError {
          guard ending == .closing ? error.code == .closed : !disk.hasPower else { throw error }
          // A consumer that waits for an item would wait forever.
          if !disk.hasPower { _ = try? await queue.close() }
        }
      }
      // A crash during the check would repeat it.
      if ending == .crash { return }
      if ending == .closing || !disk.hasPower { endings.change { _ = $0.insert(ending.rawValue) } }
      if disk.hasPower {
        try await queue.close()
        disk.losePower()
      } else {
        disk.restart()
      }
      try await check()
    }
    // The store can be done before its death or the power failure, and in a few runs each time.
    #expect(endings.value.count == 3 || scheduleCount < 100)
  }

  private static func produce(
    _ queue: QueueStore<Int>, _ items: Shared<Items>, _ context: ScheduledContext, _ task: Int
  ) async throws {
    for number in 0..<3 {
      let pair = [20 * task + 2 * number, 20 * task + 2 * number + 1]
      items.change { $0.begun.formUnion(pair) }
      do {
        try await queue.enqueue(pair.map { QueueInput($0) })
      } catch let error as StoreError where error.outcome == .nothingChanged {
        items.change { $0.begun.subtract(pair) }
        throw error
      }
      items.change { $0.enqueued.formUnion(pair) }
    }
  }

  private static func consume(
    _ queue: QueueStore<Int>, _ items: Shared<Items>, _ context: ScheduledContext, _ task: Int
  ) async throws {
    var generator = context.generator("consumer \(task)")
    for _ in 0..<5 {
      items.change { $0.receiving.insert(task) }
      let delivery: QueueDelivery<Int>
      do {
        delivery = try await queue.nextDelivery(lease: .seconds(60)).get()
      } catch let error as StoreError where error.code == .closed && error.outcome == .nothingChanged {
        items.change { $0.receiving.remove(task) }
        throw error
      }
      let item = delivery.value
      try items.change { items in
        items.receiving.remove(task)
        guard items.begun.contains(item), items.leased.insert(item).inserted else {
          throw Wrong("\(item) was delivered: \(items)")
        }
      }
      switch Int.random(in: 0..<4, using: &generator) {
      // This consumer keeps its lease.
      case 0: break
      case 1:
        items.change { items in
          items.leased.remove(item)
          items.releasing[task] = item
        }
        try await queue.release(delivery.receipt, after: .zero)
        items.change { $0.releasing[task] = nil }
      default:
        items.change { $0.ending.insert(item) }
        do {
          try await queue.acknowledge(delivery.receipt)
        } catch let error as StoreError where error.outcome == .nothingChanged {
          items.change { $0.ending.remove(item) }
          throw error
        }
        items.change { $0.acknowledged.insert(item) }
      }
    }
  }
}
#endif
