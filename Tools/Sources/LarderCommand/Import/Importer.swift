import Dispatch
import Larder
import LarderBatching
import StoreAccess

/// Writes entries into a store in batches, and counts them.
///
/// Several batches can run at the same time. They reach the store in the order of the lines and share commits. As long as
/// none fails, the store holds the entries of some first lines of the input at any moment.
struct Importer {
  /// A batch that is being written.
  private struct Running {
    let count: Int
    let task: Task<Void, any Error>
  }

  private let store: BatchingStore<AnyDataStore<JSONText>>
  private let opened: OpenedStore
  private let parser: EntryParser
  private let batchSize: Int
  private let concurrency: Int
  private let waitsForCommits: Bool
  private let order = ArrivalOrder()
  private var batch = ChangeBatch<JSONText>()
  private var running: [Running] = []

  /// The number of committed entries.
  ///
  /// An entry that overwrites another one of the same import counts, too.
  private(set) var committed = 0

  /// The number of entries taken, committed or not.
  var taken: Int { running.reduce(committed + batch.count) { $0 + $1.count } }

  /// Creates an importer.
  ///
  /// - Parameters:
  ///   - store: The store to write to.
  ///   - parser: The parser of the lines.
  ///   - batchSize: The number of entries in a batch, at least 1.
  ///   - concurrency: The maximum number of batches that run at the same time, at least 1. Defaults to 1.
  ///   - waitsForCommits: A Boolean value that indicates whether a line that completes a batch waits until a further batch
  ///     could run. Otherwise, the lines of the next batch are taken while this one is written. Defaults to `false`.
  init(
    into store: OpenedStore, parser: EntryParser, batchSize: Int, concurrency: Int = 1, waitsForCommits: Bool = false
  ) {
    self.store = store.present.batched(bounds: BatchBounds(changes: .max))
    opened = store
    self.parser = parser
    self.batchSize = batchSize
    self.concurrency = concurrency
    self.waitsForCommits = waitsForCommits
  }

  /// Takes a line, and starts writing the batch if the line completes one.
  ///
  /// An empty line is skipped.
  ///
  /// - Returns: A Boolean value that indicates whether more entries are committed than before.
  /// - Throws: ``BadLine`` if the line is not an entry; the line is not taken. The error of an earlier batch, after all
  ///   batches have ended.
  mutating func take(_ line: LineSplitter.Line) async throws -> Bool {
    guard let entry = try parser.entry(of: line) else { return false }
    try opened.check(entry.value)
    batch.setValue(entry.value, forKey: entry.key)
    guard batch.count >= batchSize else { return false }
    guard !waitsForCommits else {
      start()
      return try await wait(until: concurrency - 1)
    }
    let hasCommitted = try await wait(until: concurrency - 1)
    start()
    return hasCommitted
  }

  /// Commits all entries taken.
  ///
  /// - Returns: A Boolean value that indicates whether more entries are committed than before.
  /// - Throws: The error of a batch, after all batches have ended.
  mutating func finish() async throws -> Bool {
    if !batch.isEmpty { start() }
    return try await wait(until: 0)
  }

  /// Waits for the running batches.
  ///
  /// An incomplete batch is not started.
  ///
  /// - Returns: A Boolean value that indicates whether more entries are committed than before.
  /// - Throws: The error of a batch, after all batches have ended.
  mutating func settle() async throws -> Bool {
    try await wait(until: 0)
  }

  private mutating func start() {
    let (store, changes) = (store, batch)
    running.append(
      Running(count: changes.count, task: Task(executorPreference: order) { try await store.apply(changes) }))
    batch = ChangeBatch()
  }

  /// Waits until at most `limit` batches are running.
  private mutating func wait(until limit: Int) async throws -> Bool {
    var hasCommitted = false
    while running.count > limit {
      do {
        try await running[0].task.value
      } catch {
        // The batches behind it can fail as well, most likely for the same reason. The first error is reported.
        for behind in running { _ = await behind.task.result }
        running = []
        throw error
      }
      committed += running.removeFirst().count
      hasCommitted = true
    }
    return hasCommitted
  }
}

/// An executor that starts tasks in the order of their creation and runs each of them up to its first suspension.
///
/// Their requests reach a store in that order, even if they all wait at the same time.
private final class ArrivalOrder: TaskExecutor {
  private let queue = DispatchQueue(label: "larder.import")

  /// Runs a job after the jobs that were enqueued before it.
  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async {
      job.runSynchronously(on: self.asUnownedTaskExecutor())
    }
  }
}

/// Reports after each commit how many entries of an import are durable.
struct Acknowledger<Store: DataStore> {
  private let store: Store
  private let output: ByteOutput

  /// Creates an acknowledger.
  ///
  /// - Parameters:
  ///   - store: The store that is written to.
  ///   - output: The output for the numbers.
  /// - Throws: ``CommandFailure`` if the store is volatile.
  init(store: Store, output: ByteOutput) throws(CommandFailure) {
    guard store.information.durability != .volatile else {
      throw CommandFailure(.usage, "nothing in this store is durable", advice: "Omit --acknowledge.")
    }
    self.store = store
    self.output = output
  }

  /// Synchronizes the store if its commits are not durable yet, and prints the number of committed entries.
  ///
  /// - Parameter count: The number of committed entries.
  /// - Throws: The store's errors; ``CommandFailure`` if the number cannot be printed.
  func acknowledge(_ count: Int) async throws {
    if store.information.durability != .synced { try await store.synchronize() }
    do {
      try output.writeLine("\(count)")
      try output.flush()
    } catch {
      // A reader that stops early is a failure here, unlike in a listing, because the import is not complete.
      throw CommandFailure(
        .inputOutput, "cannot write to standard output: \(error.error.message)",
        advice: "Imported so far: \(EntryCount.text(count)).")
    }
  }
}
