import Larder
import LarderBatching

/// Puts entries into a store, batch by batch, and keeps count.
///
/// Several batches may be on their way at once. They come to the store in the order of the lines, and share commits, so
/// that at any moment what is there is what the first so many lines make, as long as none fails.
struct Importer {
  /// A batch on its way.
  private struct Running {
    let count: Int
    let task: Task<Void, any Error>
  }

  private let store: BatchingStore<AnyDataStore<JSONText>>
  private let opened: OpenedStore
  private let parser: EntryParser
  private let batchSize: Int
  private let concurrency: Int
  private let order = ArrivalOrder()
  private var batch = ChangeBatch<JSONText>()
  private var running: [Running] = []

  /// How many entries were committed.
  ///
  /// An entry that overwrites another of the same import counts, too.
  private(set) var committed = 0

  /// How many entries were taken, committed or not.
  var taken: Int { running.reduce(committed + batch.count) { $0 + $1.count } }

  /// Makes an importer.
  ///
  /// - Parameters:
  ///   - store: Where the entries go.
  ///   - parser: Makes entries of lines.
  ///   - batchSize: How many entries make a batch, at least 1.
  ///   - concurrency: How many batches may be on their way at once, at least 1; 1 unless given.
  init(into store: OpenedStore, parser: EntryParser, batchSize: Int, concurrency: Int = 1) {
    self.store = store.present.batched(bounds: BatchBounds(changes: .max))
    opened = store
    self.parser = parser
    self.batchSize = batchSize
    self.concurrency = concurrency
  }

  /// Takes a line, and has it written where it completes a batch.
  ///
  /// An empty line is skipped.
  ///
  /// - Returns: Whether more entries are committed than before.
  /// - Throws: ``BadLine``, with nothing taken; what committing an earlier batch throws, once none is on its way.
  mutating func take(_ line: LineSplitter.Line) async throws -> Bool {
    guard let entry = try parser.entry(of: line) else { return false }
    try opened.check(entry.value)
    batch.setValue(entry.value, forKey: entry.key)
    guard batch.count >= batchSize else { return false }
    start()
    return try await wait(until: concurrency - 1)
  }

  /// Commits what was taken.
  ///
  /// - Returns: Whether more entries are committed than before.
  /// - Throws: What committing throws, once no batch is on its way.
  mutating func finish() async throws -> Bool {
    if !batch.isEmpty { start() }
    return try await wait(until: 0)
  }

  /// Waits for what is on its way; an unfinished batch stays as it is.
  ///
  /// - Returns: Whether more entries are committed than before.
  /// - Throws: What committing throws, once no batch is on its way.
  mutating func settle() async throws -> Bool {
    try await wait(until: 0)
  }

  private mutating func start() {
    let (store, changes) = (store, batch)
    running.append(
      Running(count: changes.count, task: Task(executorPreference: order) { try await store.apply(changes) }))
    batch = ChangeBatch()
  }

  /// Waits until no more than some batches are on their way.
  private mutating func wait(until limit: Int) async throws -> Bool {
    var hasCommitted = false
    while running.count > limit {
      do {
        try await running[0].task.value
      } catch {
        // Those behind it may fail as well, for the same reason most likely: the first is the one to tell of.
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
